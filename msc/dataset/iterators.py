"""Iterators over data sets, which read ahead in a thread of their own."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msc.dataset import config
from msc.dataset.runs import EpochRun
from msc.dataset.values import Array, Row
from msc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from msc.dataset.base import Dataset

T = TypeVar("T")

_PERIOD = 0.1
"""Seconds after which a thread that waits looks whether anybody still wants what it makes."""


class _End:
    """The end of what a thread makes, with the error that ended it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def prefetched(make: Callable[[], Iterator[T]], depth: int) -> Generator[T]:
    """What an iterator gives, made ahead of use in a thread: at most `depth` items. Its errors are raised here."""
    ready: queue.Queue[T | _End] = queue.Queue(depth)
    abandoned = threading.Event()

    def put(item: T | _End) -> bool:
        while not abandoned.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=_PERIOD)
                return True
        return False

    def work() -> None:
        error: BaseException | None = None
        made: Iterator[T] | None = None
        try:
            made = make()
            for item in made:
                if not put(item):
                    break
        except BaseException as raised:  # noqa: BLE001  whatever users' functions raise is raised again by the reader
            error = raised
        finally:
            close = getattr(made, "close", None)
            if close is not None:
                close()
        put(_End(error))

    thread = threading.Thread(target=work, name="msc-dataset", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        abandoned.set()


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
        self._rows: Generator[Row] | None = None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._rows is None:
            if 0 <= self._limit <= self._epoch:
                raise StopIteration
            run = self._run.at_epoch(self._epoch)
            self._rows = prefetched(lambda: self._dataset.rows(run), config.get_prefetch_size())
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
