"""What the cycles of a statement depend on: registers, rests, what steps share, and chains of additions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msc.cost.instructions import StatementCost, share_split
from msc.cost.statement_tiles import StatementTile
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Constant, Index, Read, Scalar
from msc.targets.catalogue import machine_named
from msc.targets.machine import Machine

TARGET = machine_named("x86-64-v4").with_bytes(L1=48 << 10)
LANES = TARGET.lanes(4)


def window(rows: int, columns: int, taps: int, channels: int = 16) -> StatementCost:
    """`y[i, j, c] += x[i, j + k, c] * w[k, c]`: a window that moves along the columns, channels are lanes."""
    i, j, c, k = dims(4)
    arrays = (
        Array((rows, columns + taps - 1, channels), "f32", "input"),
        Array((taps, channels), "f32", "input"),
        Array((rows, columns, channels), "f32", "internal"),
    )
    body = Apply("mul", (Read(0, affine_map(4, [i, j + k, c]), "f32"), Read(1, affine_map(4, [k, c]), "f32")))
    write = affine_map(4, [i, j, c])
    update = KernelStatement((rows, columns, channels, taps), ("i", "j", "c", "k"), 2, write, body, "add", 0)
    return StatementCost(KernelModel(arrays, (update,), ("window",)), update, LANES, TARGET)


def product(rows: int, columns: int, steps: int) -> StatementCost:
    """`y[i, j] += a[i, k] * b[k, j]`, columns are lanes."""
    i, j, k = dims(3)
    arrays = (
        Array((rows, steps), "f32", "input"),
        Array((steps, columns), "f32", "input"),
        Array((rows, columns), "f32", "internal"),
    )
    body = Apply("mul", (Read(0, affine_map(3, [i, k]), "f32"), Read(1, affine_map(3, [k, j]), "f32")))
    update = KernelStatement((rows, columns, steps), ("i", "j", "k"), 2, affine_map(3, [i, j]), body, "add", 0)
    return StatementCost(KernelModel(arrays, (update,), ("product",)), update, LANES, TARGET)


def of_product(cost: StatementCost, rows: int, vectors: int) -> float:
    return cost.cycles(StatementTile(((0, rows),), 1, vectors * LANES, (2,)))


def test_rests_cost_what_they_take() -> None:
    """Nine rows are a tile of eight and one of one, which waits for its additions."""
    eight, nine = of_product(product(8, 32, 512), 8, 2), of_product(product(9, 32, 512), 8, 2)
    assert nine > 1.3 * eight


def test_sums_enough_to_keep_the_multiply_adds_busy() -> None:
    cost = product(240, 32, 512)
    assert of_product(cost, 2, 1) > 1.8 * of_product(cost, 8, 1)


@pytest.mark.parametrize(("vectors", "most", "least"), [(1, 1.2, 1.04), (2, 1.03, 1.0)])
def test_requests_take_the_place_of_loads(vectors: int, most: float, least: float) -> None:
    """A tile one vector wide loads as often as it multiplies."""
    cost, tile = product(240, 32, 512), StatementTile(((0, 10),), 1, vectors * LANES, (2,))
    assert least <= cost.cycles(replace(tile, requested=("in1",))) / cost.cycles(tile) < most


def test_registers_are_few() -> None:
    """Twenty rows of two vectors are more than there are registers."""
    cost = product(240, 32, 512)
    assert of_product(cost, 20, 2) > 1.5 * of_product(cost, 10, 2)


def test_chains_of_short_sums_overlap() -> None:
    """A core adds up several tiles at once, if each is short: so one row at a time is nearly as good as eight."""
    assert of_product(product(240, 16, 8), 1, 1) < 1.8 * of_product(product(240, 16, 8), 8, 1)
    assert of_product(product(240, 16, 512), 1, 1) > 3 * of_product(product(240, 16, 512), 8, 1)


def test_what_steps_share_takes_registers() -> None:
    """Rows along which the window moves keep what they read for the next step: twelve find place, twenty-four do not.

    Rows across it read nothing in common.
    """
    cost = window(48, 48, 3)
    along = {n: cost.cycles(StatementTile(((1, n),), 2, 16, (3,))) for n in (12, 24)}
    across = {n: cost.cycles(StatementTile(((0, n),), 2, 16, (3,))) for n in (12, 24)}
    assert along[12] < across[12]
    assert along[24] > across[24]


def test_two_dimensions_of_rows_hold_operands_of_both() -> None:
    """Six rows by five vectors of a second dimension: 30 sums, and five operands that each is used with."""
    i, j, v, k = dims(4)
    arrays = (Array((6, 64), "f32", "input"), Array((64, 5, 16), "f32", "input"), Array((6, 5, 16), "f32", "internal"))
    body = Apply("mul", (Read(0, affine_map(4, [i, k]), "f32"), Read(1, affine_map(4, [k, j, v]), "f32")))
    update = KernelStatement((6, 5, 16, 64), ("i", "j", "v", "k"), 2, affine_map(4, [i, j, v]), body, "add", 0)
    cost = StatementCost(KernelModel(arrays, (update,), ("product",)), update, LANES, TARGET)
    both, one = (
        cost.cycles(StatementTile(((0, 6), (1, 5)), 2, 16, (3,))),
        cost.cycles(StatementTile(((0, 6),), 2, 16, (3,))),
    )
    assert both > one


def test_vectors_across_blocks_are_elements() -> None:
    i, j, k = dims(3)
    arrays = (Array((8, 64), "f32", "input"), Array((2, 64, 16), "f32", "input"), Array((8, 32), "f32", "internal"))
    body = Apply("mul", (Read(0, affine_map(3, [i, k]), "f32"), Read(1, affine_map(3, [j // 16, k, j % 16]), "f32")))
    update = KernelStatement((8, 32, 64), ("i", "j", "k"), 2, affine_map(3, [i, j]), body, "add", 0)
    cost = StatementCost(KernelModel(arrays, (update,), ("product",)), update, LANES, TARGET)
    assert of_product(cost, 8, 2) > 4 * of_product(cost, 8, 1)


def test_a_sum_along_the_lanes_needs_no_register_for_each_vector() -> None:
    """Sixty-four vectors of a row go into as many sums as hide the latency of an addition."""
    i, j = dims(2)
    arrays = (Array((256, 1024), "f32", "input"), Array((256,), "f32", "internal"))

    def cycles(columns: int) -> float:
        body = Read(0, affine_map(2, [i, j]), "f32")
        update = KernelStatement((256, columns), ("i", "j"), 1, affine_map(2, [i]), body, "add", 0)
        cost = StatementCost(KernelModel(arrays, (update,), ("sums",)), update, LANES, TARGET)
        return cost.cycles(StatementTile((), 1, columns, (1,)))

    assert cycles(64 * LANES) < 2.2 * cycles(32 * LANES)


def elementwise(body: Scalar, rows: int = 64, columns: int = 64, machine: Machine = TARGET) -> StatementCost:
    """`y[i, j] = body`, where the body reads `x` of 64x64 and 64 indices."""
    i, j = dims(2)
    arrays = (
        Array((64, 64), "f32", "input"),
        Array((64,), "i64", "input"),
        Array((rows, columns), "f32", "output"),
    )
    statement = KernelStatement((rows, columns), ("i", "j"), 2, affine_map(2, [i, j]), body, None, 0)
    return StatementCost(KernelModel(arrays, (statement,), ("copy",)), statement, LANES, machine)


def x() -> Read:
    return Read(0, affine_map(2, list(dims(2))), "f32")


def narrow_units() -> Machine:
    return replace(TARGET, vectors=replace(TARGET.vectors, unit=TARGET.vectors.bits // 2))


def test_half_a_vector_takes_half_of_the_units_where_these_are_narrow() -> None:
    """Sixteen rows of eight columns, beside sixteen rows of sixteen."""
    wide, narrow = (
        [elementwise(x(), 16, columns, machine).cycles(StatementTile((), 1, columns)) for columns in (16, 8)]
        for machine in (TARGET, narrow_units())
    )
    assert wide[0] == wide[1]
    assert narrow[0] == wide[0]
    assert narrow[1] < 0.7 * narrow[0]


def test_a_whole_vector_takes_as_long_with_narrow_units() -> None:
    cost = product(48, 32, 64)
    narrow = StatementCost(cost.model, cost.statement, LANES, narrow_units())
    assert of_product(narrow, 8, 2) == pytest.approx(of_product(cost, 8, 2))


def test_additions_run_beside_products_where_they_have_ports() -> None:
    """Ten products and ten additions of maxima, which do not fuse."""
    body: Scalar = x()
    for _ in range(10):
        body = Apply("max", (Apply("mul", (body, Constant(2.0, "f32"))), Constant(1.0, "f32")))
    beside = replace(TARGET, ports=replace(TARGET.ports, beside=TARGET.ports.arithmetic))
    tile = StatementTile((), 1, 64)
    assert elementwise(body, machine=beside).cycles(tile) < 0.6 * elementwise(body).cycles(tile)


def test_a_product_that_is_added_is_one_instruction() -> None:
    added: Scalar = x()
    compared: Scalar = x()
    for _ in range(10):
        added = Apply("add", (Apply("mul", (added, Constant(2.0, "f32"))), Constant(1.0, "f32")))
        compared = Apply("max", (Apply("mul", (compared, Constant(2.0, "f32"))), Constant(1.0, "f32")))
    tile = StatementTile((), 1, 64)
    assert elementwise(added).cycles(tile) < 0.6 * elementwise(compared).cycles(tile)


def test_compilers_make_vectors_of_the_rows_that_a_gather_picks() -> None:
    """Along a row, but not across rows, where each element has an index of its own."""
    i, j = dims(2)
    index = Read(1, affine_map(2, [i]), "i64")
    zero = affine_map(2, [i, j]).results[0] * 0
    rows = elementwise(Read(0, affine_map(2, [zero, j]), "f32", ((0, index),)))
    across = elementwise(Read(0, affine_map(2, [i, j]), "f32", ((0, Index(i)),)))
    assert rows.cycles(StatementTile((), None, 1, loops=(0, 1))) < 0.3 * rows.cycles(
        StatementTile((), None, 1, loops=(0,))
    )
    assert across.cycles(StatementTile((), None, 1, loops=(0, 1))) == rows.cycles(
        StatementTile((), None, 1, loops=(0, 1))
    )


def test_what_was_loaded_before_is_not_loaded_again() -> None:
    body, tile = Apply("max", (Apply("max", (x(), x())), Apply("max", (x(), x())))), StatementTile((), 1, 64)
    assert elementwise(body).cycles(tile, loaded={2, 3, 4}) < elementwise(body).cycles(tile)


def copied(columns: int, index: tuple[int, int] = (0, 1)) -> StatementCost:
    """`y[i, j] = x[i, j]` of 64 rows, or of `x[j, i]`."""
    extents, axes = (64, columns), dims(2)
    shape = tuple(extents[k] for k in index)
    arrays = (Array(shape, "f32", "input"), Array(extents, "f32", "output"))
    body = Read(0, affine_map(2, [axes[k] for k in index]), "f32")
    statement = KernelStatement(extents, ("i", "j"), 1, affine_map(2, list(axes)), body, None, 0)
    return StatementCost(KernelModel(arrays, (statement,), ("copy",)), statement, LANES, TARGET)


def test_loops_over_vectors_are_a_part_of_what_they_cost_unless_rows_are_copied() -> None:
    """Four vectors side by side are one iteration, a row of 32 is as many. A function copies whole rows."""
    computed, moved = elementwise(Apply("max", (x(), x())), columns=512), copied(512)
    loop = TARGET.code.iteration * (512 // LANES) * 64
    wide, whole = (StatementTile((), 1, width) for width in (4 * LANES, 512))
    assert computed.cycles(whole) - computed.cycles(wide) == pytest.approx(3 / 4 * loop)
    assert moved.cycles(wide) - moved.cycles(whole) == pytest.approx(1 / 4 * loop)


def test_statements_of_a_loop_share_its_iterations() -> None:
    cost, alone = elementwise(Apply("max", (x(), x())), columns=512), StatementTile((), 1, 512)
    loop = TARGET.code.iteration * (512 // LANES) * 64
    assert cost.cycles(alone) - cost.cycles(replace(alone, beside=4)) == pytest.approx(3 / 4 * loop)


def test_vectors_that_lie_in_two_lines_take_longer() -> None:
    """Rows of 65 columns begin at any place of a line, those of 80 at the first one. Both have five vectors."""
    split, whole = (copied(columns).cycles(StatementTile((), 1, columns)) for columns in (65, 80))
    assert split > 1.5 * whole


def test_the_part_of_vectors_that_lie_in_two_lines() -> None:
    """Of 16 places in a line where rows of an odd length begin, vectors from one of them end with the line."""
    for columns, share in ((65, 15 / 16), (72, 1 / 2), (80, 0)):
        cost = copied(columns)
        found = share_split(cost.model, cost.statement, 1, 1, LANES, TARGET)
        assert found == pytest.approx(share), columns


def test_narrow_units_cross_a_line_once_where_a_vector_crosses_it() -> None:
    cost, machine = copied(65), narrow_units()
    shares = [share_split(cost.model, cost.statement, 1, 1, LANES, each) for each in (TARGET, machine)]
    assert shares == pytest.approx([15 / 16, 7 / 16])


def test_rows_that_are_turned_cost_less_than_elements() -> None:
    """A vector of a column in each of sixteen iterations: sixteen rows are loaded whole, one row is not."""
    cost = copied(64, (1, 0))
    assert cost.cycles(StatementTile(((0, LANES),), 1, LANES)) < 0.6 * cost.cycles(StatementTile((), 1, LANES))


def test_rows_are_turned_only_for_tiles_one_vector_wide() -> None:
    """Generated code turns the rows of one vector at a time: wider tiles move their elements one by one."""
    cost = copied(64, (1, 0))
    assert cost.cycles(StatementTile(((0, LANES),), 1, 2 * LANES)) > 1.5 * cost.cycles(
        StatementTile(((0, LANES),), 1, LANES)
    )


def test_compilers_make_other_vectors_only_of_moves() -> None:
    """Lanes that lie apart: a copy becomes vectors along the loop of neighbours, arithmetic stays as it is written."""
    copy, added = elementwise(x()), elementwise(Apply("add", (x(), x())))
    down, plain = StatementTile((), 0, 64, loops=(1,)), StatementTile((), None, 1, loops=(0, 1))
    assert copy.cycles(down) == copy.cycles(plain)
    assert added.cycles(down) > 4 * added.cycles(plain)


def test_additions_have_a_latency_of_their_own() -> None:
    """One chain of additions waits for each of them; a product is added with the multiplication."""
    i, j, k = dims(3)
    fast = replace(TARGET, latency=replace(TARGET.latency, add=TARGET.latency.multiply_add / 2))

    def cycles(body: Scalar, machine: Machine) -> float:
        arrays = (Array((8, 512, 16), "f32", "input"), Array((8, 16), "f32", "internal"))
        write = affine_map(3, [i, j])
        update = KernelStatement((8, 16, 512), ("i", "j", "k"), 1, write, body, "add", 0)
        cost = StatementCost(KernelModel(arrays, (update,), ("sums",)), update, LANES, machine)
        return cost.cycles(StatementTile((), 1, LANES, (2,)))

    read = Read(0, affine_map(3, [i, k, j]), "f32")
    assert cycles(read, fast) < 0.6 * cycles(read, TARGET)
    assert cycles(Apply("mul", (read, read)), fast) == cycles(Apply("mul", (read, read)), TARGET)


def with_ports(**figures: float) -> Machine:
    return replace(TARGET, ports=replace(TARGET.ports, **figures))


def across(columns: int, machine: Machine, stride: int = 0) -> StatementCost:
    """`y[i, j] = x[j, i]`, or `y[i, j] = x[i, stride * j]`; columns are lanes."""
    i, j = dims(2)
    shape, index = ((16, columns * stride), [i, j * stride]) if stride else ((columns, 16), [j, i])
    arrays = (Array(shape, "f32", "input"), Array((16, columns), "f32", "output"))
    body = Apply("add", (Read(0, affine_map(2, index), "f32"), Constant(1.0, "f32")))
    statement = KernelStatement((16, columns), ("i", "j"), 1, affine_map(2, [i, j]), body, None, 0)
    return StatementCost(KernelModel(arrays, (statement,), ("y",)), statement, LANES, machine)


def test_shuffles_join_lanes_that_lie_apart() -> None:
    """Each lane but the first is joined to the others: on one port that takes longer than two loads a cycle."""
    few, many = (across(64, with_ports(shuffle=n)) for n in (1, 8))
    tile = StatementTile((), 1, 64)
    assert few.cycles(tile) > 1.5 * many.cycles(tile)


def test_rows_that_are_transposed_wait_for_shuffles() -> None:
    few, many = (across(64, with_ports(shuffle=n)) for n in (1, 4))
    tile = StatementTile(((0, LANES),), 1, LANES)
    assert few.cycles(tile) > 1.4 * many.cycles(tile)


def test_shuffles_take_the_ports_of_arithmetic() -> None:
    """Where arithmetic is the busiest, shuffles beside it cost as much as they take of its ports."""
    one, two = (across(64, with_ports(shuffle=8, arithmetic=n, load=32)) for n in (1, 2))
    tile = StatementTile((), 1, 64)
    assert one.cycles(tile) > 1.7 * two.cycles(tile)


def test_lanes_of_a_part_of_a_vector_that_lie_apart_are_moved_one_by_one() -> None:
    """A whole vector of every other element is two loads and a shuffle, fewer lanes are as many loads."""
    whole, part = across(16, TARGET, 2), across(12, TARGET, 2)
    assert part.cycles(StatementTile((), 1, 12)) > 2 * whole.cycles(StatementTile((), 1, 16))


def test_compilers_unroll_no_steps_that_move_many_lanes_one_by_one() -> None:
    """What a row has in common with the next one is read once only if both steps stand side by side."""
    along_channels, along_columns = window(1, 64, 3), window(1, 64, 3)
    in_steps = StatementTile(((1, 6),), 2, LANES, (3,))
    apart = StatementTile(((2, 3), (1, 1)), 1, LANES, (3,))
    whole, lanes = along_channels.cycles(in_steps), along_columns.cycles(apart)
    assert lanes > 4 * whole
