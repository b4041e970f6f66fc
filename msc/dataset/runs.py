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

import numpy as np


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


class _Drawing(threading.local):
    run: EpochRun | None = None
    row = 0
    generator: np.random.Generator | None = None


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
        _DRAWING.generator = None


def at_row(row: int) -> None:
    """A row begins; its generator is made when something draws."""
    _DRAWING.row, _DRAWING.generator = row, None


def draws() -> np.random.Generator:
    """The random numbers of the row that is transformed; outside of data sets, those of the seed of the process."""
    if _DRAWING.run is None:
        from msc.frontend.randomness import generator

        return generator()
    if _DRAWING.generator is None:
        _DRAWING.generator = _DRAWING.run.generator(_DRAWING.row)
    return _DRAWING.generator
