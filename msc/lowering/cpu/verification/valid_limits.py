"""The number of elements of the caller's tensors in a call with open sizes: fewer than those of their buffers.

A tensor whose only open dimension is the first needs only the memory of its valid extent. Other tensors, those that
are copied whole, and those marked `ms.whole` have memory for the largest sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.open_sizes import WHOLE, argument_sizes, compact_extents, valid_tensor
from msc.ir.entry import find_entry
from msc.ir.typed import static_shape
from msc.lowering.cpu.buffer_types import root_buffer
from msc.poly.valid_extents import Size


@dataclass(frozen=True)
class ValidLimit:
    """`buffer` has `elements`, over sizes that are each a value in its function, or any number of a range.

    One that lies like any array, whatever its sizes, has `extents`: no index may be beyond them.
    """

    buffer: SSAValue
    elements: AffineExpr | None
    sizes: Sequence[tuple[Size, SSAValue | None]]
    extents: Sequence[AffineExpr] = ()


def compact_limit(function: func.FuncOp, number: int, extents: AffineMap) -> ValidLimit:
    """The limit of a kernel's parameter of these extents over the sizes that the kernel takes."""
    sizes = argument_sizes(function.args, function.arg_attrs)
    return ValidLimit(function.args[number], None, [(size, value) for value, size in sizes.items()], extents.results)


def compact_limits(function: func.FuncOp) -> Iterator[ValidLimit]:
    """The limits of the parameters that are marked as such."""
    for number, extents in compact_extents(function.arg_attrs):
        yield compact_limit(function, number, extents)


def valid_limits(module: ModuleOp) -> Mapping[str, Sequence[ValidLimit]]:
    """The limits of a planned module's functions, by name: those of @main's arguments, and of what calls hand on."""
    entry = find_entry(module)
    if entry is None:
        return {}
    own = {limit.buffer: limit for limit in _arguments(entry)}
    found: dict[str, list[ValidLimit]] = {entry.sym_name.data: list(own.values())}
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
    for call in (op for op in entry.walk() if isinstance(op, func.CallOp)) if own else ():
        callee = functions.get(call.callee.string_value())
        if callee is not None:
            found.setdefault(callee.sym_name.data, []).extend(_handed_on(call, callee, own))
    return found


def _arguments(entry: func.FuncOp) -> Iterator[ValidLimit]:
    sizes = argument_sizes(entry.args, entry.arg_attrs)
    copied = {root_buffer(v) for op in entry.walk() if isinstance(op, memref.CopyOp) for v in op.operands}
    given = list(entry.arg_attrs) if entry.arg_attrs else [DictionaryAttr({})] * len(entry.args)
    for argument, attributes in zip(entry.args, given, strict=True):
        if argument in sizes or argument in copied or WHOLE in attributes.data or not sizes:
            continue
        shape = static_shape(argument)
        bounds = [dim[0].bound for dim in valid_tensor(attributes.data, shape, list(sizes.values()))]
        bound = bounds[0] if bounds else None
        if bound is not None and not any(bounds[1:]):
            yield ValidLimit(argument, bound * prod(shape[1:]), [(size, value) for value, size in sizes.items()])


def _handed_on(call: func.CallOp, callee: func.FuncOp, own: Mapping[SSAValue, ValidLimit]) -> Iterator[ValidLimit]:
    """The limits of the parameters that a call gives a limited buffer, whatever its shape."""
    parameter_of = dict(zip(call.arguments, callee.args, strict=True))
    for value, parameter in zip(call.arguments, callee.args, strict=True):
        limit = own.get(_cast_source(value))
        if limit is not None:
            sizes = [(size, parameter_of.get(argument) if argument else None) for size, argument in limit.sizes]
            yield ValidLimit(parameter, limit.elements, sizes)


def _cast_source(value: SSAValue) -> SSAValue:
    """The buffer whose elements a value shows from the first on."""
    while isinstance(value.owner, memref.ReinterpretCastOp):
        value = value.owner.source
    return value
