"""Register tiles of products: rows as registers hold and L1 keeps, of two dimensions if need be."""

from __future__ import annotations

from math import prod

import pytest
from xdsl.ir.affine import AffineExpr

from msc.cost.register_tiles import SPARE_REGISTERS, tile_rows
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Read
from msc.schedule.tiles.tiling import RegisterTile, TileSearch
from msc.targets.catalogue import machine_named

TARGET = machine_named("x86-64-v4").with_bytes(L1=48 << 10)


def best(
    rows: tuple[int, ...],
    columns: int,
    steps: int,
    row_bytes: int = 0,
    panel: int = 0,
    summed: bool = False,
    fresh: frozenset[int] = frozenset(),
) -> RegisterTile:
    """The tile of `y[rows..., j] += a[rows..., k] * b[k, j]`, with rows of `a` so far apart and `b` in panels.

    Lanes may be `summed` along k; `fresh` are arrays of which a loop around gives another part in each iteration.
    """
    rank = len(rows) + 2
    *at, j, k = dims(rank)
    width = row_bytes // 4 or steps
    arrays = (
        Array((*rows, width), "f32", "input"),
        Array((columns // panel, steps, panel) if panel else (steps, columns), "f32", "input"),
        Array((*rows, columns), "f32", "internal"),
    )
    index: list[AffineExpr] = [*at, k]
    right: list[AffineExpr] = [j // panel, k, j % panel] if panel else [k, j]
    body = Apply("mul", (Read(0, affine_map(rank, index), "f32"), Read(1, affine_map(rank, right), "f32")))
    names = tuple("abcdefg"[:rank])
    write = affine_map(rank, [*at, j])
    update = KernelStatement((*rows, columns, steps), names, 2, write, body, "add", 0)
    model = KernelModel(arrays, (update,), ("product",))
    inner = (len(rows) + 1,) if summed else ()
    search = TileSearch(model, update, len(rows), TARGET.lanes(4), TARGET, inner, fresh)
    return search.best(tuple(range(len(rows))))


def test_tiles_are_higher_where_a_loop_gives_other_columns_in_each_iteration() -> None:
    """The first tile of rows waits for them; a panel in one piece, or rows that are new, change nothing."""
    near, far = best((16,), 1024, 128), best((16,), 1024, 128, fresh=frozenset({1}))
    assert near.height < far.height == 16
    assert near.width > far.width
    assert best((16,), 1024, 128, fresh=frozenset({0})) == near
    assert best((16,), 1024, 128, panel=64, fresh=frozenset({1})) == best((16,), 1024, 128, panel=64)


def test_accumulators_and_what_is_loaded_fit_into_registers() -> None:
    tile = best((100,), 512, 100)
    vectors = tile.width // TARGET.lanes(4)
    assert tile.height * vectors + min(vectors, tile.height) + SPARE_REGISTERS <= TARGET.vector_registers
    assert tile.height * vectors >= 16


def test_tiles_of_wide_panels_fill_the_registers() -> None:
    tile = best((100,), 512, 100, panel=64)
    assert (tile.height, tile.width) == (6, 64)
    assert (tile.height + 1) * 4 + 4 + SPARE_REGISTERS > TARGET.vector_registers


@pytest.mark.parametrize(("steps", "width"), [(256, 64), (2048, 48), (3000, 32), (100_000, 64)])
def test_panels_that_are_copied_are_as_wide_as_the_stack_has_room_for(steps: int, width: int) -> None:
    m, n, k = dims(3)
    arrays = (
        Array((100, steps), "f32", "input"),
        Array((steps, 512), "f32", "input"),
        Array((steps, 512), "f32", "internal"),
        Array((100, 512), "f32", "output"),
    )
    row, column = dims(2)
    whole = affine_map(2, [row, column])
    copy = KernelStatement((steps, 512), ("k", "n"), 2, whole, Read(1, whole, "f32"), None, 0)
    body = Apply("mul", (Read(0, affine_map(3, [m, k]), "f32"), Read(2, affine_map(3, [k, n]), "f32")))
    update = KernelStatement((100, 512, steps), ("m", "n", "k"), 3, affine_map(3, [m, n]), body, "add", 1)
    model = KernelModel(arrays, (copy, update), ("copy", "product"))
    assert TileSearch(model, update, 1, TARGET.lanes(4), TARGET).best((0,)).width == width


def test_registers_are_spared_where_every_multiply_add_loads_an_operand() -> None:
    c, p, k = dims(3)
    arrays = (
        Array((66, 64), "f32", "input"),
        Array((3, 64), "f32", "input"),
        Array((64, 64), "f32", "internal"),
    )
    body = Apply("mul", (Read(0, affine_map(3, [p + k, c]), "f32"), Read(1, affine_map(3, [k, c]), "f32")))
    update = KernelStatement((64, 64, 3), ("c", "p", "k"), 2, affine_map(3, [p, c]), body, "add", 0)
    tile = TileSearch(KernelModel(arrays, (update,), ("depthwise",)), update, 0, TARGET.lanes(4), TARGET).best((1,))
    spare = TARGET.vector_registers - TARGET.code.spare_registers
    assert 8 <= tile.height * (tile.width // TARGET.lanes(4)) <= spare // 2


def image(places: int, channels: int = 512, panel: int = 8) -> RegisterTile:
    """The tile of `y[o, p] += w[o, i] * x[i, p]`, with weights in panels of channels."""
    o, p, i = dims(3)
    arrays = (
        Array((channels // panel, 64, panel), "f32", "input"),
        Array((64, places), "f32", "input"),
        Array((channels, places), "f32", "internal"),
    )
    weight = Read(0, affine_map(3, [o // panel, i, o % panel]), "f32")
    body = Apply("mul", (weight, Read(1, affine_map(3, [i, p]), "f32")))
    update = KernelStatement((channels, places, 64), ("o", "p", "i"), 2, affine_map(3, [o, p]), body, "add", 0)
    search = TileSearch(KernelModel(arrays, (update,), ("product",)), update, 1, TARGET.lanes(4), TARGET)
    return search.best((0,))


def test_a_narrow_rest_of_the_columns_runs_along_the_rows() -> None:
    rows = tile_rows(TARGET, 49)
    tile = image(49, panel=rows)
    assert (tile.height, tile.width, tile.tail) == (rows, 49, 1)
    assert rows * 3 + 1 + 3 + SPARE_REGISTERS <= TARGET.vector_registers


@pytest.mark.parametrize(("places", "width"), [(48, 48), (64, 32), (196, 32), (3136, 32)])
def test_other_images_have_tiles_of_whole_vectors(places: int, width: int) -> None:
    assert tile_rows(TARGET, places) == tile_rows(TARGET)
    tile = image(
        places,
        tile_rows(TARGET) * 64,
        tile_rows(
            TARGET,
        ),
    )
    assert (tile.width, tile.tail) == (width, 0)


def test_the_last_of_few_tiles_leaves_a_rest_where_that_is_much_less_work() -> None:
    rows = tile_rows(TARGET)
    tile = image(81, rows * 64, rows)
    assert (tile.height, tile.width, tile.tail, tile.along) == (rows, 32, 1, 0)


def test_rows_that_lie_apart_are_no_vectors() -> None:
    assert best((1024,), 17, 64).tail == 0


@pytest.mark.parametrize("columns", [17, 33, 35])
def test_columns_beside_such_rows_are_summed_along_the_reduction(columns: int) -> None:
    tile = best((512,), columns, 512, summed=True)
    assert (tile.width, tile.tail, tile.along) == (columns, columns % TARGET.lanes(4), 2)
    assert tile.height * max(columns // TARGET.lanes(4), tile.tail) + SPARE_REGISTERS < TARGET.vector_registers
    assert tile.cycles < best((512,), columns, 512).cycles


@pytest.mark.parametrize(("columns", "steps"), [(32, 512), (47, 512), (33, 24)])
def test_no_columns_are_summed_along_a_reduction_where_they_fill_vectors_or_it_is_short(
    columns: int, steps: int
) -> None:
    assert best((512,), columns, steps, summed=True).tail == 0


def test_panels_of_which_the_last_holds_one_column_leave_it_to_the_reduction() -> None:
    tile = best((512,), 33, 512, panel=32, summed=True)
    assert (tile.width, tile.tail, tile.along) == (32, 1, 2)


def test_rows_a_page_apart_share_sets_of_the_first_cache_with_what_vectors_stream() -> None:
    assert best((1000,), 16, 1000).height > 12
    assert best((1000,), 16, 1000, row_bytes=4096).height == 11
    assert best((1000,), 16, 1000, row_bytes=8192).height == 11
    assert best((1000,), 16, 1000, row_bytes=4096 + 64).height > 12


def test_a_second_dimension_adds_rows_where_the_first_is_short() -> None:
    tile = best((4, 4), 512, 2000)
    assert sorted(n for _, n in tile.rows) == [2, 4]
    assert len(best((40, 40), 512, 2000).rows) == 1


def test_no_rows() -> None:
    tile = best((), 512, 2000)
    assert (tile.rows, tile.height) == ((), prod(()))


def whole_row(columns: int, parts: int = 1, apart: int = 1) -> int | None:
    """How many of the columns of 1000 rows, so many apart, are summed at once."""
    j, k = dims(2)
    arrays = (Array((1000, columns * apart), "f32", "input"), Array((columns,), "f32", "internal"))
    read = Read(0, affine_map(2, [k, j * apart]), "f32")
    update = KernelStatement((columns, 1000), ("j", "k"), 1, affine_map(2, [j]), read, "add", 0)
    model = KernelModel(arrays, (update,), ("sum",))
    return TileSearch(model, update, 0, TARGET.lanes(4), TARGET).whole_row(parts)


def test_columns_that_stream_by_are_summed_as_rows_lie() -> None:
    assert whole_row(1024) == 1024
    assert whole_row(1025) == 1025
    assert whole_row(1024, parts=2) == 512
    assert whole_row(1000, parts=2) == 512
    # 40,000 bytes are more than three quarters of the cache: four parts, each rounded up to whole vectors.
    assert whole_row(10_000) == -(-10_000 // (4 * TARGET.lanes(4))) * TARGET.lanes(4)
    assert whole_row(16) is None
    assert whole_row(1024, apart=2) is None


def test_short_reductions_need_no_rows() -> None:
    """A core looks ahead to the next tiles while the few sums of one wait for one another, and loops are unrolled."""
    short, long = pooled(2), pooled(64)
    assert short[()] <= 1.05 * min(short.values())
    assert long[()] > 1.5 * min(long.values())


def pooled(steps: int) -> dict[tuple[int, ...], float]:
    """The cycles of the best tile along each set of rows of `y[i, j] += x[i, k, j]`, which share nothing."""
    i, j, k = dims(3)
    arrays = (Array((64, steps, 16), "f32", "input"), Array((64, 16), "f32", "internal"))
    body = Read(0, affine_map(3, [i, k, j]), "f32")
    update = KernelStatement((64, 16, steps), ("i", "j", "k"), 1, affine_map(3, [i, j]), body, "add", 0)
    search = TileSearch(KernelModel(arrays, (update,), ("pool",)), update, 1, TARGET.lanes(4), TARGET)
    return {tuple(dim for dim, _ in tile.rows): tile.cycles for tile in search.best_of_each((0,))}


def test_two_rows_of_a_tile_share_what_each_reads_alone() -> None:
    """Of `y[n, c, j] += x[n, k, j] * w[k, c]` few channels are whole in a tile, and images use each weight again."""
    n, c, j, k = dims(4)
    arrays = (
        Array((32, 64, 16), "f32", "input"),
        Array((64, 6), "f32", "input"),
        Array((32, 6, 16), "f32", "internal"),
    )
    body = Apply("mul", (Read(0, affine_map(4, [n, k, j]), "f32"), Read(1, affine_map(4, [k, c]), "f32")))
    update = KernelStatement((32, 6, 16, 64), ("n", "c", "j", "k"), 2, affine_map(4, [n, c, j]), body, "add", 0)
    search = TileSearch(KernelModel(arrays, (update,), ("product",)), update, 2, TARGET.lanes(4), TARGET)
    tile = search.best((0, 1))
    assert dict(tile.rows)[1] == 6
    assert dict(tile.rows)[0] > 1
