"""Applying a function to rows in their order, by one thread or several."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias, TypeVar

from msc.dataset import config
from msc.dataset.config import ErrorSamplesMode
from msc.dataset.runs import EpochRun, at_row, drawing
from msc.dataset.values import Row, own_row
from msc.support import notices
from msc.support.diagnostics import Diagnostic, MscError

T = TypeVar("T")
R = TypeVar("R")

_CHUNK = 8
"""Rows that a thread takes at once: a hand-over costs about as much as a small transform."""

_Part: TypeAlias = tuple[list[Row], BaseException | None]
"""Rows in their order, and the error that came in place of the next one."""


def mapped(
    rows: Iterator[Row], function: Callable[[Row], Row], workers: int, run: EpochRun, start: int
) -> Iterator[Row]:
    """The function of each row, in order. Row `start` is the first; its random numbers are those of its number."""
    if config.get_error_samples_mode() is not ErrorSamplesMode.RETURN:
        numbered = enumerate(rows, start)
        return forgiving(_Numbered.all(numbered), lambda item: _one(function, item.row, run, item.number), "row")
    if workers == 1:
        return _alone(rows, function, run, start)
    return _shared(rows, function, workers, run, start)


def _alone(rows: Iterator[Row], function: Callable[[Row], Row], run: EpochRun, start: int) -> Iterator[Row]:
    for number, row in enumerate(rows, start):
        yield _one(function, row, run, number)


def _one(function: Callable[[Row], Row], row: Row, run: EpochRun, number: int) -> Row:
    with drawing(run):
        at_row(number)
        return called(function, row, number)


@dataclass(frozen=True)
class _Numbered:
    """A row and its number, as which it is shown."""

    number: int
    row: Row

    @classmethod
    def all(cls, items: Iterable[tuple[int, Row]]) -> Iterator[_Numbered]:
        return (cls(*item) for item in items)

    def __str__(self) -> str:
        return str(self.number)


def _shared(
    rows: Iterator[Row], function: Callable[[Row], Row], workers: int, run: EpochRun, start: int
) -> Iterator[Row]:
    def work(item: tuple[int, _Part]) -> _Part:
        number, (chunk, error) = item
        made, own = _part(_alone(iter(chunk), function, run, start + number * _CHUNK))
        return made, own or error

    for part in in_order(enumerate(_chunks(rows)), work, workers):
        yield from _delivered(part)


def _chunks(rows: Iterator[Row]) -> Iterator[_Part]:
    error: BaseException | None = None
    while error is None:
        chunk, error = _part(islice(rows, _CHUNK))
        if not chunk and error is None:
            return
        yield chunk, error


def in_order(items: Iterator[T], work: Callable[[T], R], workers: int) -> Iterator[R]:
    """What `work` makes of items, in their order, by one thread or several, which are few items ahead."""
    if workers == 1:
        yield from map(work, items)
        return
    waiting, tasks = deque[Future[R]](), SimpleQueue["tuple[T, Future[R]] | None"]()
    threads = [Thread(target=_serve, args=(tasks, work), name="msc-map", daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    try:
        for item in items:
            waiting.append(Future())
            tasks.put((item, waiting[-1]))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            thread.join()


def _serve(tasks: SimpleQueue[tuple[T, Future[R]] | None], work: Callable[[T], R]) -> None:
    """A thread's part of `in_order`. A program that ends, as after Ctrl-C, does not wait for it, as it would for an
    executor's.
    """
    while (task := tasks.get()) is not None:
        item, future = task
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(work(item))
        except BaseException as error:  # noqa: BLE001  whatever users' functions raise is raised in its place
            future.set_exception(error)
        del task, item, future  # Whoever takes the result may be the only one to hold it.


def forgiving(count: Iterable[T], make: Callable[[T], Row], what: str) -> Iterator[Row]:
    """A row for each item; of an item whose row cannot be made what `config.set_error_samples_mode` says."""
    mode = config.get_error_samples_mode()
    last: Row | None = None
    missing = 0
    for item in count:
        try:
            row = make(item)
        except BaseException as error:
            if mode is ErrorSamplesMode.RETURN or not isinstance(error, Exception):
                raise
            words = error.diagnostics[0].message if isinstance(error, MscError) else f"{type(error).__name__}: {error}"
            done = "is left out" if mode is ErrorSamplesMode.SKIP else "is replaced by another one"
            notices.warn(Diagnostic("MSC1313", f"{what} {item} {done}: {words}"))
            if mode is ErrorSamplesMode.REPLACE:
                if last is None:
                    missing += 1
                else:
                    yield own_row(last)
            continue
        for _ in range(missing):
            yield own_row(row)
        missing, last = 0, own_row(row) if mode is ErrorSamplesMode.REPLACE else None
        yield row


def _part(rows: Iterable[Row]) -> _Part:
    """Rows up to an error."""
    found: list[Row] = []
    try:
        for row in rows:
            found.append(row)
    except BaseException as error:  # noqa: BLE001  whatever users' functions raise is raised in its place
        return found, error
    return found, None


def _delivered(part: _Part) -> Iterator[Row]:
    """The rows of a part, then its error."""
    rows, error = part
    yield from rows
    if error is not None:
        raise error


def called(function: Callable[[T], R], row: T, number: int) -> R:
    """What a function makes of a row, or of a value of one; an error says of which."""
    try:
        return function(row)
    except BaseException as error:
        if not isinstance(error, MscError):
            error.add_note(f"while map was applied to row {number} of a data set")
        raise
