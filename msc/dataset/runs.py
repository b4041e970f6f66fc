"""Which pass over the data is made, and the random numbers of each place in it.

What is random about a row depends on the seed, the epoch, the stage and the number of the row, and on nothing else:
the rows are the same for any number of threads, and a pass that begins in the middle gives what a whole one has there.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from msc.support.arrays import Array

_BITS = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def _mixed(z: Any) -> Any:
    """64 bits in which each depends on all of `z`. Source: SplitMix64, https://doi.org/10.1145/2714064.2660195."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _BITS
    return z ^ (z >> 31)


class Draws:
    """Random numbers of one row, or of several rows at once: number k of a row follows from the key, the row and k.

    For one row numbers are Python's, with a `count` arrays [count]; for several they are arrays [rows], or
    [rows, count]. Both ways have the same bits.
    """

    def __init__(self, key: int, rows: Any) -> None:
        self._state = _mixed((key + rows * _STEP) & _BITS)
        self._taken = 0

    def _words(self, count: int | None) -> Any:
        first, self._taken = self._taken + 1, self._taken + (count or 1)
        if count is None:
            return _mixed((self._state + first * _STEP % (1 << 64)) & _BITS)
        steps = np.arange(first, first + count, dtype=np.uint64) * np.uint64(_STEP)
        state = np.asarray(self._state, np.uint64)
        return _mixed((state[..., None] if state.ndim else state) + steps)

    def random(self, count: int | None = None) -> Any:
        """Numbers from 0 on, below 1."""
        return (self._words(count) >> 11) * 2.0**-53

    def uniform(self, low: float, high: float, count: int | None = None) -> Any:
        """Numbers from `low` to `high`."""
        return low + (high - low) * self.random(count)

    def integers(self, limit: Any) -> Any:
        """An integer from 0 on, below `limit`, which is at most 2^32 and may be another one for each row."""
        found: Any = self._words(None) >> 32
        if isinstance(found, int):
            return (found * int(limit)) >> 32
        return ((found * np.asarray(limit).astype(np.uint64)) >> 32).astype(np.int64)

    def permutation(self, count: int) -> Array:
        """The numbers 0 to `count` - 1 in a random order, for one row."""
        return np.argsort(self._words(count), kind="stable")


@dataclass(frozen=True)
class EpochRun:
    """A pass over a data set: the seed, the number of the epoch, and the way to the stage that asks."""

    seed: int
    epoch: int = 0
    path: tuple[int, ...] = ()

    def inside(self, place: int) -> EpochRun:
        """The pass that an input of a stage sees."""
        return replace(self, path=(*self.path, place))

    def at_epoch(self, epoch: int) -> EpochRun:
        """The same pass in another epoch."""
        return replace(self, epoch=epoch)

    def generator(self, row: int = 0) -> np.random.Generator:
        """The random numbers of a row, or of the order of all rows."""
        entropy = (self.seed, self.epoch, row, *(place + 1 for place in self.path))
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))

    def draws(self, function: int, rows: Any) -> Draws:
        """The random numbers that a function of this stage draws for rows."""
        key = 0
        for part in (self.seed, self.epoch, function, *self.path):
            key = _mixed((key + part + _STEP) & _BITS)
        return Draws(key, rows)


class _Drawing(threading.local):
    run: EpochRun | None = None
    row = 0
    function = 0
    draws: Draws | None = None


_DRAWING = _Drawing()


@contextmanager
def drawing(run: EpochRun) -> Generator[None]:
    """Within the block, in this thread, random transforms draw the numbers of the row that `at_row` says."""
    before = _DRAWING.run
    _DRAWING.run = run
    try:
        yield
    finally:
        _DRAWING.run = before
        _DRAWING.draws = None


def at_row(row: int, function: int = 0) -> None:
    """A function of the stage begins with a row."""
    _DRAWING.row, _DRAWING.function, _DRAWING.draws = row, function, None


def at_function(function: int) -> None:
    """Another function of the stage begins with the same row."""
    _DRAWING.function, _DRAWING.draws = function, None


def draws() -> Draws:
    """The random numbers of the row that is transformed; outside of data sets, of the next row that anybody draws."""
    if _DRAWING.run is None:
        from msc.frontend.randomness import generator

        return Draws(int(generator().integers(1 << 63)), 0)
    if _DRAWING.draws is None:
        _DRAWING.draws = _DRAWING.run.draws(_DRAWING.function, _DRAWING.row)
    return _DRAWING.draws
