"""What register tiles and their epilogues read from beyond a cache is prefetched, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.ir.affine import AffineExpr

from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.scalar import Constant
from msc.poly.schedule_tree.moves import without_prefetches
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.prefetching.prefetches import with_epilogue_prefetches
from msc.schedule.prefetching.tile_prefetches import with_tile_prefetches
from msc.schedule.schedule_kernels import illegal
from msc.schedule.tuning.neighbours import Neighbourhood
from msc.targets.catalogue import machine_named
from tests.unit.poly.kernels import apply, array, dims, read, statement
from tests.unit.poly.trees import tree

MACHINE = machine_named("x86-64-v4").with_bytes(L1=4096, L2=16384)
"""With 16 lanes; what is requested ahead is 1 KiB further."""


def product(rows: int, columns: int, steps: int, *, panels: int = 0) -> KernelModel:
    """in0[m, k] in1[k, n] + in2[m, n] in out0; with `panels` in1 lies in panels of so many columns."""
    (m, n), (m1, n1, k) = dims(2), dims(3)
    shape = (columns // panels, steps, panels) if panels else (steps, columns)
    right: Sequence[AffineExpr] = (n1 // panels, k, n1 % panels) if panels else (k, n1)
    kinds = [array(*s, kind="input") for s in ((rows, steps), shape, (rows, columns))]
    arrays = (*kinds, array(rows, columns, kind="output"), array(rows, columns))
    statements = (
        statement((rows, columns), 4, (m, n), Constant(0.0, "f32")),
        statement((rows, columns, steps), 4, (m1, n1), apply("mul", read(0, 3, m1, k), read(1, 3, *right)), "add"),
        statement((rows, columns), 3, (m, n), apply("add", read(4, 2, m, n), read(2, 2, m, n))),
    )
    return KernelModel(arrays, statements, ("product",))


def schedule(model: KernelModel, loops: str = "n tile 32, m tile 4", step: str = "m unroll, n vector") -> Tree:
    rows, columns, steps = model.statements[1].extents
    axes = [f"axis m {rows}: S0.0 S1.0 S2.0", f"axis n {columns}: S0.1 S1.1 S2.1", f"axis k {steps}: S1.2"]
    points = ("  for m unroll, n vector", "    run")
    body = ["  place t0 in register", *points, f"  for k, {step}", "    run", *points]
    lines = [*axes, f"for {loops}", *body]
    numbers = iter(("S0", "S1", "S2"))
    return tree("\n".join(f"{line} {next(numbers)}" if line.endswith("run") else line for line in lines))


def prefetches(found: Tree) -> list[str]:
    return [line.strip().removeprefix("prefetch ") for line in to_lines(found) if "prefetch" in line]


def of_tiles(model: KernelModel, given: Tree) -> list[str]:
    found = with_tile_prefetches(model, given, MACHINE)
    assert illegal(model, dependences(model), found) is None
    return prefetches(found)


@pytest.mark.parametrize(
    ("steps", "step", "expected"),
    [
        (64, "m unroll, n vector", ["in1 ahead 8 of k"]),
        (16, "m unroll, n vector", []),
        (64, "m, n vector", []),
    ],
    ids=["a panel of 8 KiB", "one that stays in L1", "rows that are no tile"],
)
def test_the_vectors_that_rows_share_are_a_stream(steps: int, step: str, expected: list[str]) -> None:
    model = product(8, 32, steps)
    assert of_tiles(model, schedule(model, "n tile 32, m tile 4", step)) == expected


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (24, 128, ["in1 ahead 32 of n", "in1 ahead 8 of k"]),
        (24, 32, ["in1 ahead 8 of k"]),
        (4, 128, ["in1 ahead 8 of k"]),
        (200, 128, []),
    ],
    ids=["read by six tiles", "the only one", "read by one tile", "read by 50, which would ask for what is in L2"],
)
def test_the_next_panel_of_what_l2_does_not_hold(rows: int, columns: int, expected: list[str]) -> None:
    model = product(rows, columns, 64, panels=32)
    assert [each for each in of_tiles(model, schedule(model)) if "in1" in each] == expected


def test_a_panel_of_an_operand_in_rows_lies_in_pieces() -> None:
    model = product(24, 128, 64)
    assert "in1 ahead 32 of n" not in of_tiles(model, schedule(model))


@pytest.mark.parametrize(
    ("rows", "loops", "expected"),
    [(256, "n tile 32, m tile 4", True), (16, "n tile 32, m tile 4", False), (256, "m tile 4, n tile 32", False)],
    ids=["a block", "what L2 holds", "the same rows for other columns"],
)
def test_the_rows_of_the_next_tile(rows: int, loops: str, expected: bool) -> None:
    model = product(rows, 64, 32)
    assert ("in0 ahead 4 of m" in of_tiles(model, schedule(model, loops))) is expected


def of_epilogue(rows: int, steps: int) -> Tree:
    model = product(rows, 64, steps)
    found = with_epilogue_prefetches(model, schedule(model), MACHINE)
    assert illegal(model, dependences(model), found) is None
    return found


def test_parts_of_a_sum_request_what_comes_after_it() -> None:
    found = of_epilogue(256, 100)
    assert prefetches(found) == ["in2 ahead 0 of m"]
    assert "for k tile 25" in "\n".join(to_lines(found))
    assert without_prefetches(found) == schedule(product(256, 64, 100))


@pytest.mark.parametrize(
    ("rows", "steps"), [(16, 100), (256, 48), (256, 67)], ids=["what L2 holds", "short parts", "no even parts"]
)
def test_an_epilogue_that_waits(rows: int, steps: int) -> None:
    assert of_epilogue(rows, steps) == schedule(product(rows, 64, steps))


def test_a_neighbour_sums_without_parts() -> None:
    model = product(256, 64, 100)
    start = of_epilogue(256, 100)
    near = list(Neighbourhood(model, dependences(model), MACHINE, 1).of(start))
    assert schedule(model) in near
    assert start not in near
