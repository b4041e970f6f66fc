"""Subscripts, membership and iteration, of Python's containers and of tensors."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from msc.frontend.reader.session import Session


def as_index(value: Any) -> Any:
    """An index with runtime numbers as tensors, for indexing a tensor."""
    if isinstance(value, RuntimeNumber) and value.kind is int:
        return value.tensor
    if isinstance(value, tuple):
        return tuple(map(as_index, value))
    return value


def loaded_item(session: Session, container: Any, index: Any) -> Any:
    """`container[index]`."""
    if isinstance(container, Tensor):
        return session.operate(operator.getitem, container, as_index(index))
    container = as_sequence(session, container)
    session.look_into(container)
    item = session.operate(operator.getitem, container, index)
    if isinstance(container, list) and isinstance(index, slice):
        return session.journal.born(item)
    return session.inherit(container, item)


def contains(session: Session, container: Any, item: Any) -> Any:
    """`item in container`: a Python bool, or one that the graph computes."""
    if isinstance(container, Tensor) and session.is_symbolic(container):
        equal = session.operate(operator.eq, container, item.tensor if isinstance(item, RuntimeNumber) else item)
        axes = tuple(range(equal.ndim))
        return RuntimeNumber(bool, apply("reduce_any", equal, axis=axes) if axes else equal)
    if session.is_symbolic(item) and isinstance(container, list | tuple | range | set | frozenset):
        return _any_equal(session, list(container), item)
    session.look_into(container)
    return session.operate(operator.contains, container, item)


def _any_equal(session: Session, items: list[Any], item: Any) -> Any:
    found: Tensor | None = None
    for candidate in items:
        if candidate is item:
            return True
        equal = session.truth(candidate == item)
        if not isinstance(equal, Tensor):
            if equal:
                return True
            continue
        found = equal if found is None else apply("logical_or", found, equal)
    return False if found is None else RuntimeNumber(bool, found)


def iterated(session: Session, iterable: Any) -> Iterator[Any]:
    """The items of an iterable. What is read of containers from outside must stay so."""
    if isinstance(iterable, RuntimeNumber):
        raise TypeError(f"'{iterable.kind.__name__}' object is not iterable")
    if isinstance(iterable, Tensor) and iterable.ndim > 0 and session.is_symbolic(iterable):
        return (session.made(iterable[i], ()) for i in range(len(iterable)))
    iterable = drawn(session, iterable)
    session.look_into(iterable)
    return (session.inherit(iterable, item) for item in iterable)


def drawn(session: Session, value: Any) -> Any:
    """An iterator whose items were asked for as a sequence is that sequence from then on; another value is itself."""
    items = session.sequences.get(id(value), (None, None))[1]
    return value if items is None else items


def as_sequence(session: Session, value: Any) -> Any:
    """The tuple of what is left of a `zip`, `map`, `enumerate` or generator expression, the list of a `filter`.

    To MindSpore's graph mode they are sequences, with a length and items. Another value is itself. So is an iterator
    from outside.
    """
    kind, items = session.sequences.get(id(value), (None, None))
    if kind is None and type(value) in (zip, enumerate) and session.journal.is_own(value):
        kind = tuple
    if kind is None:
        return value
    if items is None:
        session.consume(value)
        items = kind(value)
        session.becomes_sequence(value, kind, items)
    return items


def given_out(session: Session, result: Any) -> Any:
    """A result of compiled code, in which ranges and iterators are sequences."""
    if isinstance(result, range):
        return tuple(result)
    if type(result) is dict:
        for key, value in result.items():
            if (given := given_out(session, value)) is not value:
                result[key] = given
        return result
    sequence = as_sequence(session, result)
    if type(sequence) not in (tuple, list):
        return result
    items = [given_out(session, item) for item in sequence]
    if any(given is not item for given, item in zip(items, sequence, strict=True)):
        return session.journal.born(type(sequence)(items))
    return sequence


def as_int64(value: Any) -> Tensor:
    """An int tensor of one element as an i64 of rank 0."""
    tensor = value.tensor if isinstance(value, RuntimeNumber) else value
    if tensor.shape != ():
        tensor = apply("reshape", tensor, shape=())
    return tensor if tensor.dtype is dtypes.int64 else apply("cast", tensor, dtype=dtypes.int64)
