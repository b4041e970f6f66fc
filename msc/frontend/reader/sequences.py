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
    session.look_into(iterable)
    return (session.inherit(iterable, item) for item in iterable)


def as_int64(value: Any) -> Tensor:
    """An int tensor of one element as an i64 of rank 0."""
    tensor = value.tensor if isinstance(value, RuntimeNumber) else value
    if tensor.shape != ():
        tensor = apply("reshape", tensor, shape=())
    return tensor if tensor.dtype is dtypes.int64 else apply("cast", tensor, dtype=dtypes.int64)
