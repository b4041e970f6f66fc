"""Loops that isl finds for statements to share: the same at any extents, each proved on all iterations."""

from __future__ import annotations

from msc.poly.compute import dims
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.outer_band import CORNER, SharedLoop, shared_loops
from tests.unit.poly.kernels import array, read, statement


def grouped(groups: int, channels: int, columns: int) -> KernelModel:
    """What a grouped convolution hands on: groups and channels are one axis, which the next statement runs along."""
    g, c, x = dims(3)
    made, out = array(groups * channels, columns), array(groups * channels, columns, kind="output")
    first = statement((groups, channels, columns), 1, (g * channels + c, x), read(0, 3, g * channels + c, x))
    k, x2 = dims(2)
    second = statement((groups * channels, columns), 2, (k, x2), read(1, 2, k, x2))
    source = array(groups * channels, columns, kind="input")
    return KernelModel((source, made, out), (first, second), ("conv", "relu"))


def test_large_extents_give_the_loops_of_small_ones() -> None:
    found = [shared_loops(model, dependences(model), (0, 1)) for model in (grouped(3, 4, 8), grouped(55, 8, 100))]
    assert found[0] == found[1] == [SharedLoop({0: 2, 1: 1}, True)]


def test_a_dependence_beyond_the_first_iterations_is_seen() -> None:
    """The second statement reads far behind: among the first iterations nothing depends on anything."""
    (i,) = dims(1)
    size, far = 4 * CORNER, 2 * CORNER
    arrays = (array(size, kind="input"), array(size), array(size - far, kind="output"))
    statements = (
        statement((size,), 1, (i,), read(0, 1, i)),
        statement((size - far,), 2, (i,), read(1, 1, i + far)),
    )
    model = KernelModel(arrays, statements, ("copy", "shift"))
    assert not [loop for loop in shared_loops(model, dependences(model), (0, 1)) if loop.coincident]
