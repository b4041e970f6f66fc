"""Of the cheapest register tiles along each dimension predictions of whole schedules take the fastest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msc.cost.prediction import KernelCost
from msc.poly.compute import affine_map, dims
from msc.poly.dependences import dependences
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Constant, Read
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.strategy import decided_loops
from msc.schedule.tiles import tile_choice
from msc.targets.catalogue import machine_named

MACHINE = machine_named("znver5")


def product(m: int, n: int, k: int) -> KernelModel:
    """`y[m, n] = sum over k of a[k, m] * b[k, n]`."""
    i, j, s = dims(3)
    arrays = (Array((k, m), "f32", "input"), Array((k, n), "f32", "input"), Array((m, n), "f32", "output"))
    body = Apply("mul", (Read(0, affine_map(3, [s, i]), "f32"), Read(1, affine_map(3, [s, j]), "f32")))
    rows, columns = dims(2)
    zero = KernelStatement((m, n), ("m", "n"), 2, affine_map(2, [rows, columns]), Constant(0.0, "f32"), None, 0)
    update = KernelStatement((m, n, k), ("m", "n", "k"), 2, affine_map(3, [i, j]), body, "add", 0)
    return KernelModel(arrays, (zero, update), ("product",))


def chosen(model: KernelModel, tiles: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Tree, float]:
    """The loops where so many tiles along a dimension are compared, and their predicted cycles."""
    monkeypatch.setattr(tile_choice, "TILES_OF_A_SIDE", tiles)
    model = replace(model)  # loops are searched once for a model
    tree = decided_loops(model, dependences(model), MACHINE, 1, [], blocks=False).tree
    return tree, KernelCost(model, MACHINE).prediction(tree, 1).cycles


def test_a_tile_that_is_not_the_cheapest_step_is_taken_where_the_schedule_is_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A short sum: whole rows of the result are stored in turn, where the cheapest step is of two vectors."""
    model = product(512, 128, 16)
    (first, before), (closer, after) = (chosen(model, tiles, monkeypatch) for tiles in (1, 6))
    assert after < tile_choice.FASTER_TILE * before
    assert closer != first


@pytest.mark.parametrize("size", [(64, 64, 64), (197, 197, 64), (64, 1024, 32), (32, 4096, 16)], ids=str)
def test_more_tiles_make_no_kernel_slower_by_prediction(
    size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = product(*size)
    (first, before), (closer, after) = (chosen(model, tiles, monkeypatch) for tiles in (1, 6))
    assert closer == first or after < tile_choice.FASTER_TILE * before
