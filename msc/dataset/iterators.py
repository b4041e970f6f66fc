"""Iterators over data sets, which read ahead in a thread of their own."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msc.dataset import config
from msc.dataset.runs import EpochRun
from msc.dataset.values import Array, Row
from msc.frontend.errors import ApiError, is_msc
from msc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from msc.dataset.base import Dataset

T = TypeVar("T")


MOST_BYTES = 256 << 20
"""Bytes of rows and batches that are read ahead of one reader, unless a single one is larger."""


def _bytes_of(item: object) -> int:
    """The bytes of a row; other items count for nothing."""
    return sum(getattr(value, "nbytes", 0) for value in item) if isinstance(item, tuple) else 0


class _End:
    """The end of what a thread makes, with the error that ended it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Shelf(Generic[T]):
    """What a thread has made and its reader has not taken yet: at most `depth` items, and of `MOST_BYTES` in all.

    Thread and reader hold the shelf, and neither of them the other: a reader that nobody holds is freed, whatever its
    thread does, and the thread then ends.
    """

    def __init__(self, depth: int) -> None:
        self._items = deque[tuple[T | _End, int]]()
        self._depth = depth
        self._bytes = 0
        self.waited = 0.0
        """Seconds that the reader has waited."""
        self._is_given_up = False
        self._process = os.getpid()
        self._changed = threading.Condition()  # Of a lock that its holder may take again: a finalizer may run anywhere.

    def put(self, item: T | _End) -> bool:
        """Wait for room and put an item there; False if nobody wants it any more."""
        with self._changed:
            size = _bytes_of(item)
            self._changed.wait_for(lambda: self._is_given_up or self._has_room(size))
            if not self._is_given_up:
                self._items.append((item, size))
                self._bytes += size
                self._changed.notify_all()
            return not self._is_given_up

    def _has_room(self, size: int) -> bool:
        return not self._items or (len(self._items) < self._depth and self._bytes + size <= MOST_BYTES)

    def take(self) -> T | _End | None:
        """Wait for an item; None when the shelf is given up. Raises MSC0883 in another process."""
        if os.getpid() != self._process:
            raise ApiError(
                "MSC0883",
                "this iterator over a data set belongs to the process that made it, not to its child by fork",
                help="make an iterator of the data set in the child",
            )
        with self._changed:
            if not self._items:
                begun = time.perf_counter()
                self._changed.wait_for(lambda: self._is_given_up or bool(self._items))
                self.waited += time.perf_counter() - begun
            if self._is_given_up:
                return None
            item, size = self._items.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return item

    def give_up(self) -> None:
        """End the thread. A child by fork has none, and its lock may be held for ever."""
        if os.getpid() == self._process:
            with self._changed:
                self._is_given_up = True
                self._items.clear()
                self._changed.notify_all()


def _fill(shelf: _Shelf[T], make: Callable[[], Iterator[T]]) -> None:
    made = make()
    try:
        for item in made:
            if not shelf.put(item):
                return
    finally:
        close = getattr(made, "close", None)
        if close is not None:
            close()


def _work(shelf: _Shelf[T], make: Callable[[], Iterator[T]]) -> None:
    try:
        _fill(shelf, make)
    except BaseException as error:  # noqa: BLE001  whatever users' functions raise is raised again by the reader
        _forget(error)
        shelf.put(_End(error))
    else:
        shelf.put(_End(None))


def _forget(error: BaseException) -> None:
    """Let what our stages held go, which the error would keep as long as somebody keeps it: threads, above all."""
    for frame, _ in walk_tb(error.__traceback__):
        if is_msc(frame):
            with suppress(RuntimeError):  # That of the caller still runs.
                frame.clear()


class Prefetched(Generic[T]):
    """What an iterator gives, made ahead of use in a thread: at most `depth` items, and of 256 MiB if they are rows.

    Its errors are raised here.

    The thread ends with the iterator, after `close`, and when nobody refers to this object: `make` must not.
    """

    def __init__(self, make: Callable[[], Iterator[T]], depth: int) -> None:
        self._shelf = _Shelf[T](depth)
        self._end = weakref.finalize(self, self._shelf.give_up)
        threading.Thread(target=_work, args=(self._shelf, make), name="msc-dataset", daemon=True).start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item = self._shelf.take()
        if item is None:
            raise StopIteration
        if not isinstance(item, _End):
            return item
        self.close()
        if item.error is None:
            raise StopIteration
        try:
            raise item.error
        finally:
            del item  # The error refers to this call.

    @property
    def waited(self) -> float:
        """The seconds that were waited for items so far."""
        return self._shelf.waited

    def close(self) -> None:
        """Give up what is not read."""
        self._end()


def as_tensor(array: Array) -> Any:
    """A tensor of the array, which is not copied; strings stay arrays."""
    return array if array.dtype.kind in "US" else Tensor.of(array)


class RowIterator(Generic[T]):
    """The rows of a data set. Each `for` over it is an epoch, up to `num_epochs` of them (-1: without end)."""

    def __init__(self, dataset: Dataset, num_epochs: int, make: Callable[[Row], T], seed: int | None = None) -> None:
        self._dataset = dataset
        self._limit = num_epochs
        self._make = make
        self._run = EpochRun(config.seed_of_a_run() if seed is None else seed)
        self._epoch = 0
        self._rows: Prefetched[Row] | None = None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._rows is None:
            if 0 <= self._limit <= self._epoch:
                raise StopIteration
            dataset, run = self._dataset, self._run.at_epoch(self._epoch)
            self._rows = Prefetched(lambda: dataset.rows(run), config.get_prefetch_size())
        try:
            return self._make(next(self._rows))
        except StopIteration:
            self._rows = None
            self._epoch += 1
            raise

    def get_next(self) -> T:
        """The next row. Raises StopIteration at the end of an epoch."""
        return next(self)

    def stop(self) -> None:
        """Give up the rest of the epoch, and what was read ahead."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None
            self._epoch += 1

    release = stop
