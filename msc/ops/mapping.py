"""Functions over structures of tensors, as programs for early MindSpore write them for gradients of many parameters."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msc.frontend import dtypes
from msc.frontend.capture import INSTALLED
from msc.frontend.dtypes import DType
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.support.wording import a

__all__ = ["HyperMap", "Map", "MultitypeFuncGraph", "partial"]


def partial(fn: Any, *args: Any, **kwargs: Any) -> functools.partial[Any]:
    """The function with its first arguments given. Raises MSC0811 for what is no function."""
    if not callable(fn):
        raise ApiTypeError("MSC0811", f"partial takes a function, not {a(type(fn).__name__)}")
    return functools.partial(fn, *args, **kwargs)


def _called(function: Any, args: Sequence[Any]) -> Any:
    """A call of a user's function; it is read if a graph is captured."""
    if INSTALLED.builder is None:
        return function(*args)
    from msc.frontend.reader.entry import call_inside

    return call_inside(function, args, {})


def _described(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else type(value).__name__


class Map:
    """`Map(function)(a, b, ...)`: a tuple of what `function` gives for the items of sequences of equal length.

    `Map()(function, a, b, ...)` is the same. With `reverse` the last items come first. Raises MSC0811.
    """

    def __init__(self, ops: Any = None, reverse: bool = False) -> None:
        self._function, self._reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        function, sequences = (args[0], args[1:]) if self._function is None else (self._function, args)
        if not callable(function) or not sequences:
            raise ApiTypeError("MSC0811", f"{type(self).__name__} takes a function and one sequence or more")
        return self._mapped(function, sequences)

    def _mapped(self, function: Any, sequences: Sequence[Any]) -> Any:
        if not all(isinstance(s, tuple | list) for s in sequences) or len({len(s) for s in sequences}) != 1:
            kinds = ", ".join(_described(s) for s in sequences)
            raise ApiValueError("MSC0811", f"{type(self).__name__}: sequences of equal length are mapped, not {kinds}")
        rows = list(zip(*sequences, strict=True))
        found = [self._item(function, row) for row in (reversed(rows) if self._reverse else rows)]
        return tuple(reversed(found) if self._reverse else found)

    def _item(self, function: Any, row: Sequence[Any]) -> Any:
        return _called(function, row)


class HyperMap(Map):
    """As `Map`, and into sequences that are items of sequences."""

    def _mapped(self, function: Any, sequences: Sequence[Any]) -> Any:
        is_leaf = not any(isinstance(s, tuple | list) for s in sequences)
        return _called(function, sequences) if is_leaf else super()._mapped(function, sequences)

    def _item(self, function: Any, row: Sequence[Any]) -> Any:
        return self._mapped(function, row)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "Number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "Int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "Float": lambda v: isinstance(v, float),
    "Bool": lambda v: isinstance(v, bool),
    "String": lambda v: isinstance(v, str),
    "Tuple": lambda v: isinstance(v, tuple),
    "List": lambda v: isinstance(v, list),
    "Dict": lambda v: isinstance(v, dict),
    "Function": callable,
    "None": lambda v: v is None,
    "TypeType": lambda v: isinstance(v, DType),
}
"""Names of kinds of arguments, and what is of them."""
_OF_DTYPES = {dtypes.INTEGER: "Int", dtypes.FLOAT: "Float", dtypes.BOOLEAN: "Bool"}


class MultitypeFuncGraph:
    """A function that is another one for each combination of kinds of its arguments.

    `@graph.register("Tensor", "Number")` adds one; a call runs the first that takes its arguments. Raises MSC0811.
    """

    def __init__(self, name: str, read_value: bool = False, doc_url: str = "") -> None:
        unused("MultitypeFuncGraph", read_value=read_value, doc_url=doc_url)
        self.name = name
        self._entries: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate the function for arguments of these kinds."""
        names = tuple(n if isinstance(n, str) else _OF_DTYPES[n.category] for n in type_names)
        for name in names:
            if name not in _KINDS:
                raise ApiValueError("MSC0811", f"{self.name}: there is no kind '{name}'; there are {', '.join(_KINDS)}")

        def added(function: Callable[..., Any]) -> Callable[..., Any]:
            self._entries.append((names, function))
            return function

        return added

    def __call__(self, *args: Any) -> Any:
        for names, function in self._entries:
            if len(names) == len(args) and all(_KINDS[n](a) for n, a in zip(names, args, strict=True)):
                return _called(function, args)
        kinds = ", ".join(type(a).__name__ for a in args)
        raise ApiTypeError("MSC0811", f"{self.name} has no function for arguments ({kinds})")

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph({self.name})"
