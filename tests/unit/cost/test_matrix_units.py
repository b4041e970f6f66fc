"""What a product costs on a matrix unit, and the copies of its operands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msc.cost.matrix_units import copies, unit_cycles, unit_of
from msc.cost.prediction import KernelCost, predict
from msc.cost.statement_loops import statement_loops
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import from_lines
from msc.targets.abilities import Shape, Unit, UnitOperand
from msc.targets.catalogue import machine_named
from msc.targets.machine import Machine, Scratchpad
from tests.unit.cost.test_cost import product

PLAIN = machine_named("x86-64-v3")
UNIT = Unit(
    name="cube",
    computes="c[m, n] += a[m, k] * b[k, n]",
    shape=Shape(16, 16, 16),
    a=UnitOperand(("f32",), "PAD"),
    b=UnitOperand(("f32",), "PAD"),
    c=UnitOperand(("f32",), "memory"),
    cycles=2,
    latency=20,
)
PAD = Scratchpad(name="PAD", bytes=1 << 20, bytes_per_cycle=128, latency=30, align=64, beside="L2")
CUBE = replace(PLAIN, instructions=(UNIT,), scratchpads=(PAD,))


def tiles(mark: str = " intrinsic cube") -> Tree:
    """40 x 60 x 50 in tiles of 32 x 60, whose operands are copied, in blocks of 16 x 16 x 16."""
    return from_lines(
        [
            *("axis m 40: S0.0", "axis n 60: S0.1", "axis k 50: S0.2"),
            *("for m tile 32", "  place in0 in PAD"),
            *(f"  for m tile 16, n tile 16, k tile 16, m{mark}, n, k", "    run S0"),
        ]
    )


def cycles(machine: Machine, tree: Tree) -> float | None:
    around = statement_loops(tree)[0].around
    unit = unit_of(around, machine)
    return None if unit is None else unit_cycles(tree, around, unit, product(40, 60, 50), 0)


def test_each_instruction_takes_the_cycles_of_its_unit() -> None:
    assert cycles(CUBE, tiles()) == 2 * 2 * 4 * 4 * 2 + 20
    assert cycles(CUBE, tiles("")) is None
    assert cycles(PLAIN, tiles()) is None


def test_copies_take_the_rate_of_their_scratchpad() -> None:
    """Of 32 rows of 50 elements, and of the 8 rows that are left."""
    found = copies(product(40, 60, 50), tiles(), CUBE)
    assert found == {"PAD": pytest.approx((32 + 8) * 50 * 4 / 128 + 2 * 30)}
    assert copies(product(40, 60, 50), tiles(), PLAIN) == {}


def test_both_are_resources_of_the_prediction() -> None:
    model = product(40, 60, 50)
    found = predict(model, tiles(), CUBE, 1)
    assert dict(found.levels)["PAD"] == pytest.approx(copies(model, tiles(), CUBE)["PAD"])
    assert found.levels[-1][0] == "DRAM"
    assert KernelCost(model, CUBE).instructions(tiles(), 1) == cycles(CUBE, tiles())


def test_the_peak_is_that_of_the_fastest_unit() -> None:
    assert PLAIN.flops == PLAIN.vector_flops == 2 * 8 * 2
    assert CUBE.flops == 16**3
    assert machine_named("x86-64-v2").vector_flops == 2 * 4
    assert machine_named("znver4").vector_flops == 16 * 2  # a multiply-add of 512 bits in each cycle, in two halves
