"""Assignment: to names, attributes, items, unpacking; and with an operator."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.reader.expressions import BINARY, aligned
from msc.frontend.reader.frames import Frame, reads
from msc.frontend.reader.journal import CONTAINERS, Content, TensorContent
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.sequences import as_index, loaded_item
from msc.frontend.tensor import Tensor

IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    """Assign to a target of any form."""
    match target:
        case ast.Name():
            frame.store(target.id, value)
        case ast.Tuple() | ast.List():
            _unpack(frame, target.elts, value)
        case ast.Attribute():
            owner = frame.evaluate(target.value)
            frame.node = target
            frame.session.set_attribute(frame, owner, frame.mangled(target.attr), value)
        case ast.Subscript():
            container, index = frame.evaluate(target.value), frame.evaluate(target.slice)
            frame.node = target
            set_item(frame, container, index, value)
        case _:
            raise SyntaxError(f"cannot assign to {type(target).__name__}")


def _unpack(frame: Frame, targets: Sequence[ast.expr], value: Any) -> None:
    """Unpack an iterable into targets, of which one may be starred."""
    try:
        items = list(frame.session.iterate(value))
    except TypeError:
        if isinstance(value, Tensor) or hasattr(type(value), "__iter__"):
            raise
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object") from None
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if starred is None:
        _check_count(len(items), len(targets))
        pairs = list(zip(targets, items, strict=True))
    else:
        behind = len(targets) - starred - 1
        if len(items) < len(targets) - 1:
            raise ValueError(f"not enough values to unpack (expected at least {len(targets) - 1}, got {len(items)})")
        stop = len(items) - behind
        middle = frame.session.journal.born(items[starred:stop])
        star = targets[starred]
        assert isinstance(star, ast.Starred)
        pairs = [
            *zip(targets[:starred], items[:starred], strict=True),
            (star.value, middle),
            *zip(targets[starred + 1 :], items[stop:], strict=True),
        ]
    for target, item in pairs:
        assign(frame, target, item)


def _check_count(given: int, wanted: int) -> None:
    if given < wanted:
        raise ValueError(f"not enough values to unpack (expected {wanted}, got {given})")
    if given > wanted:
        raise ValueError(f"too many values to unpack (expected {wanted})")


def set_item(frame: Frame, container: Any, index: Any, value: Any) -> None:
    """`container[index] = value`."""
    session = frame.session
    if isinstance(container, Tensor):
        session.journal.note(TensorContent(container))
        if session.is_symbolic(index) and _fills_mask(container, index, value):
            _fill(container, index, _beside(value, container))
            return
        session.library(operator.setitem, (container, as_index(index), _beside(value, container)), {})
        return
    if isinstance(container, CONTAINERS):
        session.look_into(container)
        session.journal.note(Content(container))
        index = session.real(index)
        operator.setitem(container, index, value)  # pyright: ignore[reportArgumentType, reportCallIssue]
        return
    setter = getattr(type(container), "__setitem__", None)
    if setter is None:
        raise TypeError(f"'{type(container).__name__}' object does not support item assignment")
    session.call(frame, setter, (container, index, value), {})


def _fills_mask(tensor: Tensor, mask: Any, value: Any) -> bool:
    """Whether one value is assigned wherever a mask over the first axes is true."""
    if not isinstance(mask, Tensor) or mask.dtype is not dtypes.bool_ or mask.shape != tensor.shape[: mask.ndim]:
        return False
    return value.size == 1 if isinstance(value, Tensor) else isinstance(value, bool | int | float | RuntimeNumber)


def _fill(tensor: Tensor, mask: Tensor, value: Any) -> None:
    filled = value if isinstance(value, Tensor) else Tensor(value, tensor.dtype)
    filled = apply("cast", apply("reshape", filled, shape=()), dtype=tensor.dtype)
    wide = apply("reshape", mask, shape=(*mask.shape, *(1 for _ in tensor.shape[mask.ndim :])))
    tensor.replace(apply("select", wide, filled, tensor).content)


def _beside(value: Any, tensor: Tensor) -> Any:
    return aligned(value, tensor)[0] if isinstance(value, RuntimeNumber) else value


@reads(ast.AugAssign)
def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    """`target op= value`, whose target is evaluated once. A tensor is rebound, a list changes in place."""
    match node.target:
        case ast.Name():
            old = frame.load(node.target.id)
            frame.store(node.target.id, _combined(frame, node, old))
        case ast.Attribute():
            owner, name = frame.evaluate(node.target.value), frame.mangled(node.target.attr)
            old = frame.session.attribute(frame, owner, name)
            new = _combined(frame, node, old)
            frame.session.set_attribute(frame, owner, name, new)
        case ast.Subscript():
            container, index = frame.evaluate(node.target.value), frame.evaluate(node.target.slice)
            old = loaded_item(frame.session, container, index)
            set_item(frame, container, index, _combined(frame, node, old))


def _combined(frame: Frame, node: ast.AugAssign, old: Any) -> Any:
    value = frame.evaluate(node.value)
    frame.node = node
    a, b = aligned(old, value)
    if isinstance(a, CONTAINERS):
        frame.session.look_into(a)
        frame.session.journal.note(Content(a))
        return IN_PLACE[type(node.op)](a, b)
    if isinstance(a, Tensor):
        frame.session.journal.note(TensorContent(a))
    function = IN_PLACE if hasattr(type(a), "__iadd__") else BINARY
    return frame.session.operate(function[type(node.op)], a, b)


def delete(frame: Frame, target: ast.expr) -> None:
    """`del target`."""
    match target:
        case ast.Name():
            frame.delete(target.id)
        case ast.Tuple() | ast.List():
            for item in target.elts:
                delete(frame, item)
        case ast.Attribute():
            owner = frame.evaluate(target.value)
            frame.session.delete_attribute(owner, frame.mangled(target.attr))
        case ast.Subscript():
            container, index = frame.evaluate(target.value), frame.evaluate(target.slice)
            if isinstance(container, CONTAINERS):
                frame.session.look_into(container)
                frame.session.journal.note(Content(container))
            operator.delitem(container, index)  # pyright: ignore[reportArgumentType, reportCallIssue]
        case _:
            raise SyntaxError(f"cannot delete {type(target).__name__}")
