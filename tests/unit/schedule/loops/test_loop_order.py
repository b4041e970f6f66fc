"""Which loop of a reduction is innermost: one whose steps share what they read, if registers hold that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msc.cost.prediction import KernelCost
from msc.poly.compute import affine_map, dims
from msc.poly.dependences import dependences
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Read
from msc.poly.schedule_tree.nodes import Axis, Tree, loops
from msc.schedule.loops.loop_order import with_best_order
from msc.schedule.loops.sharing import Group, initial
from msc.schedule.strategy import decide
from msc.schedule.tiles.register_tiles import tiled
from msc.targets.catalogue import machine_named

TARGET = machine_named("x86-64-v4").with_bytes(L1=48 << 10, L2=2 << 20)
NAMES = ("oc", "i", "j", "ic", "kh", "kw")
BAND = ("oc", "i", "j")
SIZE = 16


def window(channels: int, taps: int, stride: int, blocks: int = 1) -> KernelModel:
    """`y[b, i, j, oc] += x[i s + kh, j s + kw, ic] * w[oc // 32, kh, kw, ic, oc % 32]`, which lie in that order."""
    o, i, j, c, p, q = dims(6)
    image = SIZE * stride + taps - 1
    arrays = (
        Array((image, image, channels), "f32", "input"),
        Array((blocks, taps, taps, channels, 32), "f32", "input"),
        Array((SIZE, SIZE, 32 * blocks), "f32", "internal"),
    )
    read = Read(0, affine_map(6, [i * stride + p, j * stride + q, c]), "f32")
    weight = Read(1, affine_map(6, [o // 32, p, q, c, o % 32]), "f32")
    sizes = (32 * blocks, SIZE, SIZE, channels, taps, taps)
    update = KernelStatement(sizes, NAMES, 2, affine_map(6, [i, j, o]), Apply("mul", (read, weight)), "add", 0)
    return KernelModel(arrays, (update,), ("window",))


def innermost(model: KernelModel, columns: int) -> str:
    """The loop that is innermost with register tiles of so many columns by 32 channels."""
    tree = tiled(tiled(windows(model), "j", columns, "unroll"), "oc", 32, "vector")
    reasons: list[str] = []
    found = with_best_order(KernelCost(model, TARGET), tree, BAND, reasons)
    assert bool(reasons) == (found != tree)
    return [loop.axis for loop in loops(found) if loop.axis not in BAND][-1]


def windows(model: KernelModel) -> Tree:
    """The loops of a model one in the other: rows, columns and channels around the sums."""
    i, j, oc, kh, kw, ic = (Axis(NAMES[d], model.statements[0].extents[d], {0: d}) for d in (1, 2, 0, 4, 5, 3))
    return initial((i, j, oc), [Group((0,), (kh, kw, ic))])


def test_neighbouring_windows_share_what_they_read() -> None:
    assert innermost(window(32, 3, 1), 8) == "kw"


def test_what_is_shared_must_find_registers() -> None:
    """Fourteen columns two vectors wide leave room for nothing else."""
    assert innermost(window(32, 3, 1), 14) == "ic"


def test_weights_from_beyond_the_second_cache_are_read_as_they_lie() -> None:
    assert innermost(window(256, 3, 1, 8), 8) == "ic"


@pytest.mark.parametrize("stride", [2, 3])
def test_windows_apart_share_less(stride: int) -> None:
    """Every other element is shared with two steps between; with windows side by side none is."""
    assert innermost(window(32, 3, stride), 8) == ("kw" if stride == 2 else "ic")


def test_loops_without_sums_keep_their_order() -> None:
    model = window(32, 3, 1)
    statement = replace(model.statements[0], combine=None)
    plain = replace(model, statements=(statement,))
    tree = windows(plain)
    assert with_best_order(KernelCost(plain, TARGET), tree, BAND, []) is tree


def copied(waiting: float) -> list[str]:
    """The loops of a transposition of heads, on a machine that waits for so many lines at a time."""
    b, h, s, c = dims(4)
    arrays = (Array((4, 512, 12, 64), "f32", "input"), Array((4, 12, 512, 64), "f32", "output"))
    read, write = Read(0, affine_map(4, [b, s, h, c]), "f32"), affine_map(4, [b, h, s, c])
    statement = KernelStatement((4, 12, 512, 64), ("b", "h", "s", "c"), 1, write, read, None, 0)
    machine = machine_named("znver4")
    machine = replace(machine, ports=replace(machine.ports, misses=waiting))
    model = KernelModel(arrays, (statement,), ("transposed",))
    return [loop.axis for loop in loops(decide(model, dependences(model), machine, 1).tree)]


def test_the_order_of_the_fewest_pages_gives_way_to_one_that_is_faster() -> None:
    """Steps from image to image are on other pages each: a core that waits for few lines goes on in one image."""
    assert copied(16) != copied(4)
    assert copied(4)[0] == "b"
