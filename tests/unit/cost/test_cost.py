"""The cost model: more work costs more, nothing is faster than the machine, and what fits a cache moves once."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from msc.cost.prediction import KernelCost, Prediction, busiest
from msc.cost.traffic import CountedLoop, Execution, Traffic
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Read, Scalar
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import from_lines
from msc.targets.catalogue import machine_named

MACHINE = machine_named("cascadelake")


def product(m: int, n: int, k: int) -> KernelModel:
    """`y[i, j] += a[i, p] * b[p, j]`."""
    i, j, p = dims(3)
    arrays = (Array((m, k), "f32", "input"), Array((k, n), "f32", "input"), Array((m, n), "f32", "output"))
    body = Apply("mul", (Read(0, affine_map(3, [i, p]), "f32"), Read(1, affine_map(3, [p, j]), "f32")))
    update = KernelStatement((m, n, k), ("m", "n", "k"), 2, affine_map(3, [i, j]), body, "add", 0)
    return KernelModel(arrays, (update,), ("product",))


def tree(m: int, n: int, k: int, rows: int = 6, outer: str = "n tile 32, m tile {rows}") -> Tree:
    """Tiles of some rows by 32 columns, whose sums stay in registers along k."""
    return from_lines(
        [
            *(f"axis n {n}: S0.1", f"axis m {m}: S0.0", f"axis k {k}: S0.2"),
            f"for {outer.format(rows=rows)}",
            *("  for k, m unroll, n vector", "    run S0"),
        ]
    )


def cost(m: int, n: int, k: int, rows: int = 6, threads: int = 1) -> Prediction:
    return KernelCost(product(m, n, k), MACHINE).prediction(tree(m, n, k, rows), threads)


SIZES = [(48, 64, 32), (96, 64, 32), (96, 128, 32), (96, 128, 64), (384, 512, 512), (768, 1024, 1024)]


def test_more_work_costs_more() -> None:
    cycles = [cost(*size).cycles for size in SIZES]
    assert cycles == sorted(cycles)


@pytest.mark.parametrize("size", SIZES)
def test_no_kernel_is_faster_than_the_machine(size: tuple[int, int, int]) -> None:
    """Multiply-adds over their ports, and all arrays, once they outgrow a cache twice, over what the next one gives."""
    found, (m, n, k) = cost(*size), size
    arithmetic = m * n * k / MACHINE.lanes(4) / MACHINE.ports.arithmetic
    arrays = 4 * (m * k + k * n + m * n)
    assert found.instruction_cycles >= arithmetic
    for cache, level in zip(MACHINE.caches, MACHINE.levels[1:], strict=True):
        if arrays >= 2 * cache.bytes:
            assert dict(found.levels)[level.name] >= arrays / level.bytes_per_cycle
    assert found.cycles >= max(found.instruction_cycles, found.memory_cycles)


def test_resources_have_names_and_shares() -> None:
    found = cost(384, 512, 512)
    assert [name for name, _ in found.levels] == ["L2", "L3", "DRAM"]
    parts = [found.instruction_cycles, *(cycles for _, cycles in found.levels)]
    assert max(parts) <= found.cycles <= sum(parts)


def test_memory_hides_less_behind_other_work_than_caches_do() -> None:
    code = replace(machine_named("generic").code, exposed=0.1, exposed_memory=0.5)
    assert Prediction(100, (("L2", 50), ("DRAM", 0)), code).cycles == pytest.approx(105)
    assert Prediction(100, (("L2", 0), ("DRAM", 50)), code).cycles == pytest.approx(125)
    assert Prediction(60, (("L2", 0), ("DRAM", 90)), code, stalls=40).cycles == pytest.approx(145)


def test_what_a_cache_keeps_is_not_moved_again() -> None:
    model = product(48, 64, 32)
    nest = CountedLoop({0: 0}, 48, (CountedLoop({0: 2}, 32, (CountedLoop({0: 1}, 64, (Execution(0),)),)),))
    moved = Traffic(model, MACHINE).of((nest,))
    assert [found.bytes for found in moved] == [0.0, 0.0, 0.0]
    cold = Traffic(model, MACHINE).of((nest,), calls=False)
    arrays = sum(prod(a.shape) * 4 * (2 if a.kind == "output" else 1) for a in model.arrays)
    assert cold[1].bytes == arrays


def test_the_operand_that_is_read_for_each_row_streams_where_it_does_not_fit() -> None:
    """With rows outermost all of `b` passes by for each; in a cache that holds it, it does so once."""
    m, n, k = 64, 512, 512
    nest = CountedLoop({0: 0}, m, (CountedLoop({0: 2}, k, (CountedLoop({0: 1}, n, (Execution(0),)),)),))
    small, large = (
        Traffic(product(m, n, k), MACHINE.with_bytes(L2=size)).of((nest,), calls=False)[1].bytes
        for size in (256 << 10, 2 << 20)
    )
    assert small >= m * 4 * k * n
    assert large <= 4 * (m * k + k * n + 2 * m * n)


def test_rows_that_share_sets_do_not_stay() -> None:
    """Columns of a matrix with rows of a page: 32 lines for eight places."""
    i, j = dims(2)
    arrays = (Array((32, 1024), "f32", "input"), Array((1024, 32), "f32", "output"))
    read = Read(0, affine_map(2, [j, i]), "f32")
    copy = KernelStatement((1024, 32), ("i", "j"), 1, affine_map(2, [i, j]), read, None, 0)
    even = KernelModel(arrays, (copy,), ("transpose",))
    odd = replace(even, arrays=(Array((32, 1040), "f32", "input"), arrays[1]))
    nest = CountedLoop({0: 0}, 1024, (CountedLoop({0: 1}, 32, (Execution(0),)),))
    shared, apart = (Traffic(model, MACHINE).of((nest,), calls=False)[0].bytes for model in (even, odd))
    assert shared > 4 * apart


def test_threads_share_the_work() -> None:
    model, shared = product(384, 512, 512), tree(384, 512, 512, outer="m tile {rows} parallel, n tile 32")
    kernel = KernelCost(model, MACHINE)
    alone, both = (kernel.prediction(shared, threads).cycles for threads in (1, 2))
    assert 0.4 * alone < both < 0.6 * alone


def test_threads_share_whole_tiles() -> None:
    """The calling thread alone runs the tail."""
    assert busiest(24, 8, 2) == 16
    assert busiest(28, 8, 2) == 20
    assert busiest(12, 7, 2) == 12
    shared = tree(12, 512, 512, rows=7, outer="m tile {rows} parallel, n tile 32")
    kernel = KernelCost(product(12, 512, 512), MACHINE)
    assert kernel.instructions(shared, 2) == kernel.instructions(shared, 1)


def test_what_two_accesses_have_in_common_moves_once() -> None:
    """`y[i] = x[i] + x[i + 1]` reads the lines of one array, `x[i] + z[i]` those of two."""
    (i,) = dims(1)
    x, z, y = Array((65536,), "f32", "input"), Array((65536,), "f32", "input"), Array((65536,), "f32", "output")

    def cold(array: int, shift: int) -> float:
        body = Apply("add", (Read(0, affine_map(1, [i]), "f32"), Read(array, affine_map(1, [i + shift]), "f32")))
        statement = KernelStatement((65535,), ("i",), 2, affine_map(1, [i]), body, None, 0)
        model = KernelModel((x, z, y), (statement,), ("sums",))
        return Traffic(model, MACHINE).of((CountedLoop({0: 0}, 65535, (Execution(0),)),), calls=False)[1].bytes

    assert cold(0, 1) == pytest.approx(3 * 4 * 65536, rel=1e-3)
    assert cold(1, 0) == pytest.approx(4 * 4 * 65536, rel=1e-3)


def test_an_array_within_an_iteration_stays_near_whatever_runs_beside_the_loop() -> None:
    """Rows pass through an array of the kernel; a border that another nest fills does not make it larger."""
    i, j = dims(2)
    rows, columns = 512, 512
    arrays = tuple(Array((rows, columns), "f32", kind) for kind in ("input", "internal", "output"))
    (p,) = dims(1)
    there, border = affine_map(2, [i, j]), affine_map(1, [p * 0, p])
    statements = (
        KernelStatement((rows, columns), ("i", "j"), 1, there, Read(0, there, "f32"), None, 0),
        KernelStatement((rows, columns), ("i", "j"), 2, there, Read(1, there, "f32"), None, 0),
        KernelStatement((rows,), ("p",), 2, border, Read(0, border, "f32"), None, 0),
    )
    row = CountedLoop({0: 0, 1: 0}, rows, tuple(CountedLoop({k: 1}, columns, (Execution(k),)) for k in (0, 1)))
    alone = KernelModel(arrays, statements[:2], ("copies",))
    beside = KernelModel(arrays, statements, ("copies",))
    one = Traffic(alone, MACHINE).of((row,), calls=False)[1].bytes
    two = Traffic(beside, MACHINE).of((row, CountedLoop({2: 0}, rows, (Execution(2),))), calls=False)[1].bytes
    assert one < 3.1 * 4 * rows * columns
    assert two < 1.2 * one + 3 * 64 * rows


def test_lines_on_pages_of_their_own_stall_what_reads_them() -> None:
    """A column of a large matrix in each iteration: its lines come from L3, or from L2 where that holds them."""
    i, j = dims(2)
    arrays = (Array((1024, 1024), "f32", "input"), Array((1024, 1024), "f32", "output"))
    copy = KernelStatement(
        (1024, 1024), ("i", "j"), 1, affine_map(2, [i, j]), Read(0, affine_map(2, [j, i]), "f32"), None, 0
    )
    model = KernelModel(arrays, (copy,), ("transpose",))
    down = from_lines(["axis i 1024: S0.0", "axis j 1024: S0.1", "for i, j", "  run S0"])
    large = MACHINE.with_bytes(L2=32 << 20)
    assert KernelCost(model, MACHINE).prediction(down, 1).stalls > 0
    assert KernelCost(model, large).prediction(down, 1).stalls == 0


def test_prefetching_follows_so_many_rows_of_all_arrays_together() -> None:
    """Eight rows side by side, each on pages of its own: of one array and of the result, or of four arrays and it."""
    i, j = dims(2)

    def stalls(count: int) -> float:
        every = (1024, 8192)
        arrays = (*(Array(every, "f32", "input") for _ in range(count)), Array(every, "f32", "output"))
        body: Scalar = Read(0, affine_map(2, [i, j]), "f32")
        for k in range(1, count):
            body = Apply("add", (body, Read(k, affine_map(2, [i, j]), "f32")))
        added = KernelStatement(every, ("i", "j"), count, affine_map(2, [i, j]), body, None, 0)
        rows = ["for i tile 8, j tile 16, i unroll, j vector", "  run S0"]
        tree = from_lines(["axis i 1024: S0.0", "axis j 8192: S0.1", *rows])
        return KernelCost(KernelModel(arrays, (added,), ("sum",)), MACHINE).prediction(tree, 1).stalls

    assert stalls(1) == 0
    assert stalls(4) > 0


def rows_a_line_at_a_time(rows: int, length: int, width: int) -> tuple[float, float]:
    """Lines lost to few sets as 16 x `width` elements of so many rows are written for each `j`: read, and written."""
    i, j, k = dims(3)
    arrays = (Array((1024,), "f32", "input"), Array((rows, length), "f32", "output"))
    place = affine_map(3, [i, j * width + k])
    body = Read(0, affine_map(3, [j * width + k]), "f32")
    fill = KernelStatement((rows, 1024 // width, width), ("i", "j", "k"), 1, place, body, None, 0)
    nest = CountedLoop(
        {0: 1},
        1024 // width,
        (CountedLoop({0: 0}, rows, (CountedLoop({0: 2}, width, (Execution(0),), unrolled=True),)),),
    )
    found = Traffic(KernelModel(arrays, (fill,), ("fill",)), machine_named("znver5")).of((nest,), calls=False)[0]
    return found.lost, found.lost_stores


def test_a_line_of_each_of_more_rows_than_a_set_has_ways_is_lost_before_it_is_written() -> None:
    """All of 32 rows 4 KiB apart lie in one set of L1, which has twelve places; 8 find room, and so do odd rows."""
    assert rows_a_line_at_a_time(32, 1024, 16) == (0, 32 * 64)
    assert rows_a_line_at_a_time(8, 1024, 16) == (0, 0)
    assert rows_a_line_at_a_time(32, 1040, 16) == (0, 0)


def test_of_two_lines_side_by_side_one_is_lost_and_longer_runs_are_fetched_ahead() -> None:
    assert rows_a_line_at_a_time(32, 1024, 32) == (0, 32 * 32)
    assert rows_a_line_at_a_time(32, 1024, 128) == (0, 0)


def test_rows_in_two_directions_meet_in_the_sets_of_both() -> None:
    """Two lines side by side of each of 16 rows a page apart: two sets, of twelve places each."""
    l1 = machine_named("znver5").caches[0]
    assert l1.lines_of([(2, 64), (16, 4096)]) == 24
    assert l1.lines_of([(16, 4096)]) == 12
    assert l1.lines_of([(64, 64), (16, 4096)]) == l1.bytes // l1.line


def test_statements_of_one_loop_share_what_they_read() -> None:
    """Four results of the same four elements: side by side they load these once, one after the other four times."""
    i, j = dims(2)
    inputs = [Array((64, 64), "f32", "input") for _ in range(4)]
    outputs = [Array((64, 64), "f32", "output") for _ in range(4)]
    read = [Read(k, affine_map(2, [i, j]), "f32") for k in range(4)]
    body = Apply("max", (Apply("max", (read[0], read[1])), Apply("max", (read[2], read[3]))))
    update = [KernelStatement((64, 64), ("i", "j"), 4 + k, affine_map(2, [i, j]), body, None, 0) for k in range(4)]
    cost = KernelCost(KernelModel((*inputs, *outputs), tuple(update), ("four",)), MACHINE)
    axes = ["axis i 64: S0.0 S1.0 S2.0 S3.0", "axis j 64: S0.1 S1.1 S2.1 S3.1"]
    together = from_lines([*axes, "for i, j vector", "  run S0 S1 S2 S3"])
    apart = from_lines([*axes, "for i", *(f"  {line}" for k in range(4) for line in ("for j vector", f"  run S{k}"))])
    assert cost.instructions(together, 1) < 0.9 * cost.instructions(apart, 1)
