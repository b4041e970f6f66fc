"""What is compiled at a call: for the shapes of its inputs, and for the values of those that decide other shapes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
R = TypeVar("R")

Make: TypeAlias = Callable[[Mapping[str, tuple[int, ...]], Mapping[str, Array]], R]
"""Compiles for shapes by input and for values by input; these are inputs no more. Raises DecidedByCall."""

MAXIMUM_ELEMENTS = 4096
"""Of an integer or boolean input whose value may decide a shape."""

MAXIMUM_REAL_ELEMENTS = 16
"""Of a float input whose value may: the limits of a range, the scales of a resize."""

MAXIMUM_SPECIALISATIONS = 64
"""The one that was used least recently goes when there are more."""

_Key: TypeAlias = tuple[tuple[str, str, bytes, tuple[int, ...]], ...]


class Specialisations(Generic[R]):
    """What `make` gives for inputs, once for each of their shapes and for the values of those that decide shapes.

    Which inputs these are is found at the first call. Safe to ask from many threads.
    """

    def __init__(self, make: Make[R]) -> None:
        self.bound: frozenset[str] = frozenset()
        """The inputs whose values decide shapes, as far as calls have shown."""
        self._make = make
        self._kept: OrderedDict[_Key, R] = OrderedDict()
        self._lock = threading.RLock()

    def at(self, inputs: Mapping[str, Array]) -> tuple[R, dict[str, Array]]:
        """What is made for these inputs, and those of them that it takes.

        Raises MSC0716 if the value of a large input decides a shape, and what `make` raises.
        """
        with self._lock:
            while True:
                try:
                    made = self._at(inputs)
                except DecidedByCall as error:
                    new = (error.inputs & inputs.keys()) - self.bound
                    if not new:
                        raise
                    _check_small(error, {name: inputs[name] for name in sorted(new)})
                    self.bound |= new
                else:
                    return made, {name: array for name, array in inputs.items() if name not in self.bound}

    def _at(self, inputs: Mapping[str, Array]) -> R:
        key = tuple((n, a.dtype.str, a.tobytes() if n in self.bound else b"", a.shape) for n, a in inputs.items())
        if key not in self._kept:
            values = {name: inputs[name] for name in sorted(self.bound & inputs.keys())}
            shapes = {name: array.shape for name, array in inputs.items() if name not in values}
            made = self._make(shapes, values)
            if len(self._kept) >= MAXIMUM_SPECIALISATIONS:
                self._kept.popitem(last=False)
            self._kept[key] = made
        self._kept.move_to_end(key)
        return self._kept[key]


def _check_small(error: DecidedByCall, inputs: Mapping[str, Array]) -> None:
    large = [name for name, array in inputs.items() if array.size > _limit(array)]
    if large:
        found = error.diagnostics[0]
        names = ", ".join(f"'{name[:80]}'" for name in large)
        message = f"{found.message}; {names} is too large to compile for each of its values"
        raise MscError(Diagnostic("MSC0716", message, found.location)) from error


def _limit(array: Array) -> int:
    return MAXIMUM_ELEMENTS if array.dtype.kind in "iub" else MAXIMUM_REAL_ELEMENTS
