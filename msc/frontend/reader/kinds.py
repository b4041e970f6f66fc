"""What a value was when it was read, by its kind, and whether it still is that. A kind that is not known never is.

Scalars are compared by value, bit for bit; arrays by all their elements; containers by all their items; tensors by what
they refer to, and by its elements if somebody else may write them; methods by function and object; all else by which
object it is, since whatever is read of such an object is recorded on its own.
"""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import array
import hashlib
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, Protocol

import numpy as np

from msc.frontend.changes import CountedDict, SharedMemory
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor

SCALARS = (bool, int, float, complex, str, bytes, type(None))
"""Types whose objects of equal bits are the same to every program."""
SEQUENCES = (list, tuple, deque)
MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
SETS = (set, frozenset)
BUFFERS = (bytearray, memoryview, array.array)
_DEEPEST = 40
_SMALL = 4096
"""Bytes up to which elements are kept to compare them, not their hash."""


class Seen(Protocol):
    """What a value was."""

    def holds(self, now: Any) -> bool:
        """Whether a value is the same to every program."""
        ...


@dataclass(frozen=True)
class SameIdentity:
    """One object."""

    thing: Any

    def holds(self, now: Any) -> bool:
        return now is self.thing


class Unknown:
    """Of no kind that is known: it may have changed at any time."""

    def holds(self, now: Any) -> bool:
        return False


@dataclass(frozen=True)
class SameScalar:
    """A value of a type in `SCALARS`, or an immutable one of NumPy or Python."""

    value: Any

    def holds(self, now: Any) -> bool:
        return now is self.value or is_same_scalar(now, self.value)


@dataclass(frozen=True)
class SameMethod:
    """A method of an object."""

    function: Any
    owner: Any

    def holds(self, now: Any) -> bool:
        return type(now) is MethodType and now.__func__ is self.function and now.__self__ is self.owner


@dataclass(frozen=True)
class SameElements:
    """An array or buffer with these elements."""

    thing: Any
    form: Any
    elements: bytes

    def holds(self, now: Any) -> bool:
        return now is self.thing and form_of(now) == self.form and elements_of(now) == self.elements


@dataclass(frozen=True)
class SameTensor:
    """A tensor that refers to these elements, which the owners of shared memory may change."""

    thing: Tensor
    content: Any
    elements: bytes

    def holds(self, now: Any) -> bool:
        if now is not self.thing or now.content is not self.content:
            return False
        return not SharedMemory.has(self.content) or elements_of(self.content) == self.elements


@dataclass(frozen=True)
class SameItems:
    """A container with these items; `parts` are those that may themselves change."""

    thing: Any
    extra: Any
    items: Sequence[Any]
    parts: Sequence[tuple[int, Seen]]

    def holds(self, now: Any) -> bool:
        if type(now) is not type(self.thing) or (now is not self.thing and type(now) is not tuple):
            return False
        if len(now) != len(self.thing) or extra_of(now) is not self.extra:
            return False
        items = items_of(now)
        if len(items) != len(self.items):
            return False
        if not all(map(operator.is_, items, self.items)):
            mutable = {index for index, _ in self.parts}
            pairs = enumerate(zip(items, self.items, strict=True))
            if not all(a is b or i in mutable or is_same_scalar(a, b) for i, (a, b) in pairs):
                return False
        return all(seen.holds(items[index]) for index, seen in self.parts)


def is_same_scalar(now: Any, seen: Any) -> bool:
    """Whether two immutable values are of one type and have the same bits."""
    kind = type(seen)
    if type(now) is not kind:
        return False
    if kind is float:
        return now.hex() == seen.hex()
    if kind is complex:
        return (now.real.hex(), now.imag.hex()) == (seen.real.hex(), seen.imag.hex())
    if isinstance(seen, np.generic):
        return now.dtype == seen.dtype and now.tobytes() == seen.tobytes()
    return kind in SCALARS and now == seen


def fingerprint(value: Any, depth: int = 0) -> Seen:
    """What must hold later for `value` to count as unchanged."""
    kind = type(value)
    if kind in SCALARS or isinstance(value, np.generic):
        return SameScalar(value)
    if kind is MethodType:
        return SameMethod(value.__func__, value.__self__)
    if isinstance(value, Parameter | CountedDict):
        return SameIdentity(value)
    if isinstance(value, Tensor):
        content = value.content
        return SameTensor(value, content, elements_of(content) if isinstance(content, np.ndarray) else b"")
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return Unknown()
    if isinstance(value, (np.ndarray, *BUFFERS)):
        return SameElements(value, form_of(value), elements_of(value))
    if not isinstance(value, (*SEQUENCES, *MAPPINGS, *SETS)):
        return SameIdentity(value)
    if depth == _DEEPEST:
        return Unknown()
    items = items_of(value)
    found = [(index, fingerprint(item, depth + 1)) for index, item in enumerate(items) if type(item) not in SCALARS]
    parts = [(index, seen) for index, seen in found if not isinstance(seen, SameIdentity)]
    return SameItems(value, extra_of(value), items, parts)


def is_lasting(seen: Seen) -> bool:
    """Whether nothing but putting another object in its place changes a value."""
    if isinstance(seen, SameItems):
        return type(seen.thing) is tuple and all(is_lasting(part) for _, part in seen.parts)
    return isinstance(seen, SameIdentity | SameScalar | SameMethod)


def items_of(container: Any) -> Sequence[Any]:
    """What a container holds, in its order: of a dict the keys, then the values."""
    if isinstance(container, dict):
        kind: Any = OrderedDict if isinstance(container, OrderedDict) else dict
        return [*kind.keys(container), *kind.values(container)]
    return container if type(container) is tuple else list(container)


def extra_of(container: Any) -> Any:
    """What else a container is made of."""
    if isinstance(container, deque):
        return container.maxlen
    return container.default_factory if isinstance(container, defaultdict) else None


def form_of(value: Any) -> Any:
    """The type of the elements of a buffer, and how they lie."""
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape, value.strides, value.flags.writeable)
    return (value.format, value.shape) if isinstance(value, memoryview) else getattr(value, "typecode", None)


def elements_of(value: Any) -> bytes:
    """The elements of an array or buffer, or their hash if they are many."""
    if not isinstance(value, np.ndarray):
        data: Any = value if isinstance(value, bytearray) else value.tobytes()
    elif value.nbytes <= _SMALL:
        return value.tobytes()
    else:
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return bytes(data) if len(data) <= _SMALL else hashlib.blake2b(data, digest_size=16).digest()
