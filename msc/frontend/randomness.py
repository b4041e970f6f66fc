"""The one source of random numbers: initialisers, dropout and `ops.standard_normal` draw from it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np

from msc.frontend.errors import ApiTypeError


class _State:
    seed: int | None = None
    generator: np.random.Generator | None = None
    listeners: tuple[Callable[[], None], ...] = ()


def when_seeded(listener: Callable[[], None]) -> Callable[[], None]:
    """Have a function called whenever the seed is set."""
    _State.listeners += (listener,)
    return listener


def generator() -> np.random.Generator:
    """The generator that random numbers are drawn from."""
    if _State.generator is None:
        _State.generator = np.random.Generator(np.random.Philox(_State.seed))
    return _State.generator


def set_seed(seed: object) -> None:
    """From here on random numbers are those of a seed, 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ApiTypeError("MSC0808", f"a seed is an integer of 0 or more, not {seed!r}")
    _State.seed = seed
    _State.generator = None
    for listener in _State.listeners:
        listener()


def get_seed() -> int | None:
    """The seed that was set, or None."""
    return _State.seed


_MARKS: list[Callable[[], object] | None] = []
"""For each `same_numbers` what brings the numbers again that were drawn in it; None while nothing was drawn."""


def drawing(again: Callable[[], object]) -> None:
    """Numbers are about to be drawn; `again` sets the state back to where it is now."""
    _MARKS[:] = [again if mark is None else mark for mark in _MARKS]


@contextmanager
def same_numbers() -> Generator[Callable[[], None]]:
    """Gives a function after which the numbers that were drawn in here come again."""

    def once_more() -> None:
        again = _MARKS[-1]
        if again is not None:
            again()

    _MARKS.append(None)
    try:
        yield once_more
    finally:
        _MARKS.pop()


def manual_seed(seed: object) -> None:
    """As `set_seed`."""
    set_seed(seed)


def initial_seed() -> int:
    """The seed that was set, or 0."""
    return _State.seed or 0
