"""Which loop over register tiles is innermost: by what would be read again, and by whether it stays in a cache."""

from __future__ import annotations

import pytest

from msc.poly.compute import affine_map, dims
from msc.poly.dependences import dependences
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Read, apply
from msc.poly.schedule_tree.nodes import Axis
from msc.poly.schedule_tree.nodes import loops as loops_of
from msc.schedule.strategy import decide, tile_orders
from msc.targets.catalogue import machine_named

TARGET = machine_named("x86-64-v4")
"""Its L2 is of 1 MiB."""


def product(batch: int, rows: int, columns: int, depth: int) -> tuple[KernelModel, Axis, tuple[Axis, ...]]:
    """Batched products of matrices with the axes of their bands: columns, and batch and rows."""
    b, m, n, k = dims(4)
    shapes = ((batch, rows, depth), (batch, depth, columns), (batch, rows, columns))
    arrays = tuple(Array(shape, "f32", "input" if i < 2 else "output") for i, shape in enumerate(shapes))
    reads = (Read(i, affine_map(4, index), "f32") for i, index in enumerate(((b, m, k), (b, k, n))))
    statement = KernelStatement(
        (batch, rows, columns, depth), ("b", "m", "n", "k"), 2, affine_map(4, (b, m, n)), apply("mul", *reads), "add", 0
    )
    others = (Axis("b", batch, {0: 0}), Axis("m", rows, {0: 1}))
    return (
        KernelModel(arrays, (statement,), ("ms.batch_matmul",)),
        Axis("n", columns, {0: 2}),
        others,
    )


@pytest.mark.parametrize(
    ("sizes", "innermost"),
    [
        ((1, 3136, 256, 64), "n"),  # weights of 64 KiB, an image of 784 KiB
        ((36, 196, 64, 64), "m"),  # products that L2 holds each: both orders take as long
        ((1, 64, 3136, 64), "m"),  # panels of 784 KiB beside rows of 16 KiB: vectors along the image
        ((1, 49, 2000, 512), "m"),  # weights of 4 MB
        ((1, 1024, 512, 256), "n"),  # 512 KiB of panels, 1 MiB of rows
        ((1, 128, 64, 64), "m"),  # everything in L2
    ],
)
def test_what_is_read_again_is_small(sizes: tuple[int, int, int, int], innermost: str) -> None:
    """By predicted cycles, of the two orders that are compared."""
    model, columns, others = product(*sizes)
    compared = tile_orders(model, 0, columns, others, {"m"}, TARGET)
    assert {band[-1].name for band in compared} == {"m", "n"}
    assert all(set(map(id, band)) == set(map(id, (columns, *others))) for band in compared)
    tiles = [loop.axis for loop in loops_of(decide(model, dependences(model), TARGET, 1).tree) if loop.tile]
    assert [axis for axis in tiles if axis in "mn"][-1] == innermost


def test_columns_alone_have_no_order() -> None:
    model, columns, _ = product(1, 1, 1 << 20, 4)
    assert tile_orders(model, 0, columns, (), set(), TARGET) == ((columns,),)


def test_orders_that_move_nothing_are_not_compared() -> None:
    """All three arrays of 32 x 32 stay in L1."""
    model, columns, others = product(1, 32, 32, 32)
    assert len(tile_orders(model, 0, columns, others, {"m"}, TARGET)) == 1


@pytest.mark.parametrize(("batch", "order"), [(8, "nbm"), (1, "nmb")])
def test_rows_are_innermost_where_panels_change_with_another_loop(batch: int, order: str) -> None:
    """Each matrix of a batch has panels of its own; otherwise the loop that strides further stays outside."""
    model, columns, (b, m) = product(batch, 128, 64, 64)
    assert "".join(axis.name for axis in tile_orders(model, 0, columns, (m, b), {"m"}, TARGET)[0]) == order
