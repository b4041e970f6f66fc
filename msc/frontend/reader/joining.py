"""Two values of one place, on two paths, made one: equal ones stay, tensors and numbers become values of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from msc.dialects.ms.values import known
from msc.frontend.capture import Symbol
from msc.frontend.parameter import Parameter
from msc.frontend.reader.journal import UNBOUND, Content, Slot, TensorContent, unchanged
from msc.frontend.reader.numbers import RuntimeNumber, as_kind, kind_of
from msc.frontend.reader.outcomes import MISSING
from msc.frontend.reader.signals import Refusal
from msc.frontend.reader.structures import Leaf, SameObject, Template, children, node, same_form
from msc.frontend.tensor import Tensor
from msc.support.wording import a

if TYPE_CHECKING:
    from msc.frontend.reader.session import Session

Side: TypeAlias = "Tensor | None"
"""What a path gives for a leaf; None where the path gives nothing, and anything will do."""


def _same_tensor(tensor: Tensor) -> Tensor:
    return tensor


def _content_of(tensor: Tensor) -> Any:
    return tensor.content


@dataclass
class Joining:
    """Joins values of two paths. `what` describes the place whose values are being joined, for messages.

    `fresh` says whether an object came into being on one of the paths, so that no other name can refer to it.
    """

    session: Session
    fresh: Callable[[object], bool]
    pairs: list[tuple[Side, Side]] = field(default_factory=list[tuple[Side, Side]])
    what: str = ""
    _joined: dict[int, int] = field(default_factory=dict[int, int])
    is_loop: bool = False
    """Whether the values are those before and after an iteration."""

    def template(self, a: Any, b: Any) -> Template:
        """What both become. Raises Refusal for values of which a graph cannot make one."""
        if a is MISSING or b is MISSING:
            return self._one(b if a is MISSING else a, on_first=b is MISSING)
        if a is b:
            return SameObject(a)
        if (
            isinstance(a, Tensor)
            and isinstance(b, Tensor)
            and not (isinstance(a, Parameter) and isinstance(b, Parameter))
        ):
            return self._tensors(a, b, _same_tensor)
        kinds = kind_of(a), kind_of(b)
        if kinds[0] is not None and kinds[0] is kinds[1]:
            return self._numbers(a, b, kinds[0])
        if children(a) is not None and same_form(a, b) and self._unaliased(a, b):
            return node(a, [self.template(x, y) for x, y in zip(children(a) or (), children(b) or (), strict=True)])
        if unchanged(a, b) or (type(a) is type(b) and _is_plain(a) and a == b):
            return SameObject(a)
        raise self._conflict(a, b)

    def slot(self, slot: Slot, a: Any, b: Any) -> Template:
        """What the values of a slot become."""
        if isinstance(slot, TensorContent) and a is not b:  # the tensor stays, its value is joined
            a, b = (self._read(slot, v) for v in (a, b))
            tensors = [v if v is MISSING else Tensor.of(v) for v in (a, b)]
            if MISSING in tensors:
                return self._one(b if a is MISSING else a, on_first=b is MISSING)
            return self._tensors(tensors[0], tensors[1], _content_of)
        if isinstance(slot, Content) and same_form(a, b):
            return node(a, [self.template(x, y) for x, y in zip(children(a) or (), children(b) or (), strict=True)])
        return self.template(a, b)

    def _read(self, slot: TensorContent, content: Any) -> Any:
        """What a tensor refers to; a parameter that nothing has written yet is read where it is needed."""
        if isinstance(slot.holder, Parameter) and isinstance(content, np.ndarray):
            return self.session.graph.read(slot.holder)
        return content

    def _unaliased(self, a: Any, b: Any) -> bool:
        return isinstance(a, tuple) or (self.fresh(a) and self.fresh(b))

    def _tensors(self, a: Tensor, b: Tensor, make: Callable[[Tensor], Any]) -> Template:
        if a.dtype is not b.dtype or a.shape != b.shape:
            raise self._conflict(a, b)
        return self._leaf(a, b, self._marking(a, b) if make is _same_tensor else make)

    def _marking(self, a: Tensor, b: Tensor) -> Callable[[Tensor], Tensor]:
        """Marks the tensor that stands for both, unless they are new and this is the only place that refers to them."""
        sides = (id(a), id(b))
        for side in sides:
            self._joined[side] = self._joined.get(side, 0) + 1
        mark, is_new = self.session.one_of_two(), self.fresh(a) and self.fresh(b)
        return lambda t: t if is_new and all(self._joined[side] == 1 for side in sides) else mark(t)

    def _numbers(self, a: Any, b: Any, kind: type) -> Template:
        same = not isinstance(a, RuntimeNumber) and not isinstance(b, RuntimeNumber) and _same_number(a, b)
        if same:
            return SameObject(a)
        return self._leaf(as_kind(a, kind), as_kind(b, kind), lambda t: RuntimeNumber(kind, t))

    def _one(self, value: Any, *, on_first: bool) -> Template:
        """A value that exists on one path only: the other gives zeros for what the graph computes."""

        def leaf(tensor: Tensor, make: Callable[[Tensor], Any]) -> Template:
            return self._leaf(tensor if on_first else None, None if on_first else tensor, make)

        if isinstance(value, Symbol):
            return leaf(Tensor.of(value), lambda t: t.content)
        if isinstance(value, Tensor) and isinstance(value.content, Symbol) and not isinstance(value, Parameter):
            return leaf(value, lambda t: t)
        if isinstance(value, RuntimeNumber):
            kind = value.kind
            return leaf(value.tensor, lambda t: RuntimeNumber(kind, t))
        parts = children(value)
        if parts is None or isinstance(value, set | frozenset):
            return SameObject(value)
        items = [self._one(part, on_first=on_first) for part in parts]
        return SameObject(value) if all(isinstance(i, SameObject) for i in items) else node(value, items)

    def _leaf(self, a: Side, b: Side, make: Callable[[Tensor], Any]) -> Leaf:
        self.pairs.append((a, b))
        return Leaf(len(self.pairs) - 1, make)

    def _conflict(self, a: Any, b: Any) -> Refusal:
        if a is UNBOUND or b is UNBOUND:
            return Refusal(
                "MSC0841",
                f"{self.what} has a value on only one of two paths between which a tensor decides",
                help="give it a value before, or on both paths",
            )
        if type(a) is type(b) and children(a) is not None:
            return Refusal(
                "MSC0842",
                f"{self.what} is one {type(a).__name__} on one path and another one on the other, and a tensor decides",
                help="make it on both paths, with the same keys and as many items, or give it other items in place",
            )
        if self.is_loop:
            return Refusal(
                "MSC0843",
                f"{self.what} is {described(a)} before an iteration and {described(b)} after it",
                help="let it have one shape and element type from the start, or be a number of one type",
            )
        return Refusal(
            "MSC0842",
            f"{self.what} is {described(a)} on one path, {described(b)} on the other, and a tensor decides",
            help="let both paths give tensors of one shape and element type, or numbers of one type",
        )

    # Operands.

    def ssa(self, side: int, leaf: int) -> SSAValue:
        """What path `side` gives for a leaf, as a value of the graph, in the block that is being written."""
        value = self.pairs[leaf][side]
        if value is not None:
            return self.session.ssa(value)
        other = self.pairs[leaf][1 - side]
        assert other is not None
        return self.session.graph.constant(np.zeros(other.shape, other.dtype.numpy))

    def types(self) -> list[Any]:
        """The types of the leaves."""
        return [type_of_tensor(a if a is not None else b) for a, b in self.pairs]


def type_of_tensor(tensor: Tensor | None) -> Any:
    """The type of a tensor in the IR."""
    assert tensor is not None
    content = tensor.content
    return content.ssa.type if isinstance(content, Symbol) else known(content).type  # pyright: ignore[reportArgumentType]


def tensors_of(session: Session, values: Sequence[SSAValue]) -> list[Tensor]:
    """Results of a construct as tensors."""
    return [Tensor.of(session.graph.symbol(value)) for value in values]


def described(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {value.shape} and type {value.dtype}"
    if isinstance(value, Symbol):
        return f"a tensor of shape {value.shape} and type {value.dtype}"
    if isinstance(value, RuntimeNumber):
        return f"a Python {value.kind.__name__}"
    if value is None:
        return "None"
    if isinstance(value, int | float | str):
        return f"the Python {type(value).__name__} {value!r:.40}"
    return f"{a(type(value).__name__)}"


def _same_number(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b)) and str(a) == str(b)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bytes | range | slice | type(None) | complex | frozenset) or hasattr(
        type(value), "category"
    )
