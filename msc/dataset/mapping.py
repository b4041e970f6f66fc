"""Applying a function to rows in their order, by one thread or several."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from msc.dataset.runs import EpochRun, at_row, drawing
from msc.dataset.values import Row
from msc.support.diagnostics import MscError

_CHUNK = 8
"""Rows that a thread takes at once: a hand-over costs about as much as a small transform."""


def mapped(
    rows: Iterator[Row], function: Callable[[Row], Row], workers: int, run: EpochRun, start: int
) -> Iterator[Row]:
    """The function of each row, in order. Row `start` is the first; its random numbers are those of its number."""
    if workers == 1:
        return _alone(rows, function, run, start)
    return _shared(rows, function, workers, run, start)


def _alone(rows: Iterator[Row], function: Callable[[Row], Row], run: EpochRun, start: int) -> Iterator[Row]:
    for number, row in enumerate(rows, start):
        with drawing(run):
            at_row(number)
            made = _called(function, row, number)
        yield made


def _shared(
    rows: Iterator[Row], function: Callable[[Row], Row], workers: int, run: EpochRun, start: int
) -> Iterator[Row]:
    def work(chunk: list[Row], first: int) -> list[Row]:
        made: list[Row] = []
        with drawing(run):
            for number, row in enumerate(chunk, first):
                at_row(number)
                made.append(_called(function, row, number))
        return made

    with ThreadPoolExecutor(workers, "msc-map") as pool:
        waiting: deque[Future[list[Row]]] = deque()
        try:
            while chunk := list(islice(rows, _CHUNK)):
                waiting.append(pool.submit(work, chunk, start))
                start += len(chunk)
                if len(waiting) > 2 * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _called(function: Callable[[Row], Row], row: Row, number: int) -> Row:
    try:
        return function(row)
    except BaseException as error:
        if not isinstance(error, MscError):
            error.add_note(f"while map was applied to row {number} of a data set")
        raise
