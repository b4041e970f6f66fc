"""Schedules on a machine with a matrix unit and scratchpads: chosen, proved, run; and clauses that do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msc.poly.contraction import contraction_of
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.nest import generate
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.matrix_units import unit_schedule
from msc.schedule.schedule_kernels import illegal
from msc.schedule.storage.capacity import check_capacity
from msc.targets.abilities import Abilities, Scope, Shape, Unit, UnitOperand
from msc.targets.catalogue import machine_named
from msc.targets.machine import Machine, Scratchpad
from tests.unit.poly.kernels import executed, matmul_relu, stencil
from tests.unit.poly.trees import tree

UNIT = Unit(
    name="cube",
    computes="c[m, n] += a[m, k] * b[k, n]",
    shape=Shape(4, 4, 2),
    a=UnitOperand(("f32",), "PAD"),
    b=UnitOperand(("f32",), "PAD"),
    c=UnitOperand(("f32",), "SUMS"),
    cycles=1,
    latency=4,
)
ABILITIES = Abilities({**Abilities().scopes, "PAD": Scope("PAD", 192, 32), "SUMS": Scope("SUMS", 128)}, {"cube": UNIT})

LEGAL = """
axis m 6: S0.0 S1.0 S2.0
axis n 5: S0.1 S1.1 S2.1
axis k 8: S1.2
for m tile 4, n tile 4
  place t0 in SUMS
  for m, n
    run S0
  for k tile 4
    place in0, in1 in PAD
    for k tile 2, m intrinsic cube, n, k
      run S1
  for m, n
    run S2
"""


def machine(bytes_: int) -> Machine:
    plain = machine_named("x86-64-v3")
    pads = (
        Scratchpad(name="PAD", bytes=bytes_, bytes_per_cycle=64, latency=10, align=32, beside="L2"),
        Scratchpad(name="SUMS", bytes=bytes_, bytes_per_cycle=64, latency=10, align=32, beside="PAD"),
    )
    return replace(plain, instructions=(UNIT,), scratchpads=pads)


def problem(text: str, model: KernelModel | None = None) -> str:
    kernel = model or matmul_relu(6, 5, 8)
    return str(illegal(kernel, dependences(kernel), tree(text), ABILITIES))


def test_a_tree_that_fits_is_proved() -> None:
    assert problem(LEGAL) == "None"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("intrinsic cube", "intrinsic cub", "line 10: the machine has no unit cub: there are cube"),
        ("k tile 2, m intrinsic", "m intrinsic", "line 10: cube takes 2 iterations of k, but its loops have 4"),
        ("place in0, in1 in PAD", "place in0 in PAD", "in1 is placed in memory, but cube accesses it in PAD"),
        ("place t0 in SUMS", "place t0 in stack", "t0 is placed in stack, but cube accesses it in SUMS"),
        ("place t0 in SUMS", "place t0 in SUM", "there is no scope SUM"),
        ("m intrinsic cube, n, k", "m intrinsic cube, n unroll, k", "performs loops over the points of one sum"),
        ("for m, n\n    run S0", "for m intrinsic cube, n\n    run S0", "performs loops over the points of one sum"),
        ("for k tile 4\n", "for k tile 4 pipeline 2\n", "this machine has no pipelines"),
        ("for k tile 4\n", "for k tile 8\n", r"in1 takes 128 bytes of PAD, which has 192, 128 of them taken"),
    ],
)
def test_clauses_that_the_machine_cannot_honour(old: str, new: str, message: str) -> None:
    assert message in problem(LEGAL.strip().replace(old, new, 1))


def test_a_pipeline_has_as_many_buffers_as_it_says() -> None:
    model, text = matmul_relu(6, 5, 8), LEGAL.replace("for k tile 4\n", "for k tile 4 pipeline 3\n")
    overlapping = replace(ABILITIES, overlaps=True)
    refused = illegal(model, dependences(model), tree(text), overlapping)
    assert "in1 takes 192 bytes of PAD, which has 192, 192 of them taken" in str(refused)
    assert "and there are none" in str(
        illegal(model, dependences(model), tree(text.replace("    place in0, in1 in PAD\n", "")), overlapping)
    )


def test_places_side_by_side_share_the_room() -> None:
    model, text = stencil(16), "axis i 17: S0.0\naxis j 16: S1.0\nplace t0 in PAD\nfor i\n  run S0\nfor j\n  run S1"
    schedule = tree(text)
    check_capacity(model, schedule, ABILITIES)


@pytest.mark.parametrize("sizes", [(6, 5, 8), (4, 4, 2), (1, 9, 3), (17, 3, 5), (6, 5, 1), (4, 4, 1)])
def test_the_strategy_uses_the_unit(sizes: tuple[int, int, int]) -> None:
    model = matmul_relu(*sizes)
    found = unit_schedule(model, dependences(model), machine(512))
    assert found is not None
    schedule, _ = found
    assert any("intrinsic cube" in line for line in to_lines(schedule))
    assert illegal(model, dependences(model), schedule, ABILITIES_OF_512) is None
    runs = list(executed(generate(model, schedule)))
    assert len(runs) == len(set(runs)) == sum(s.points for s in model.statements)


ABILITIES_OF_512 = replace(
    ABILITIES, scopes={**ABILITIES.scopes, "PAD": Scope("PAD", 512, 32), "SUMS": Scope("SUMS", 512, 32)}
)


def test_the_strategy_counts_the_room_that_alignment_takes() -> None:
    model = matmul_relu(6, 5, 8)
    aligned = machine(1024)
    pads = tuple(replace(pad, align=512) for pad in aligned.scratchpads)
    found = unit_schedule(model, dependences(model), replace(aligned, scratchpads=pads))
    assert found is not None
    rooms = {**ABILITIES.scopes, "PAD": Scope("PAD", 1024, 512), "SUMS": Scope("SUMS", 1024, 512)}
    assert illegal(model, dependences(model), found[0], replace(ABILITIES, scopes=rooms)) is None
    small = tuple(replace(pad, bytes=512) for pad in pads)
    assert unit_schedule(model, dependences(model), replace(aligned, scratchpads=small)) is None


def test_no_unit_takes_other_kernels_and_types() -> None:
    model = matmul_relu()
    narrow = replace(machine(512), instructions=(replace(UNIT, a=UnitOperand(("f16",), "PAD")),))
    assert unit_schedule(model, dependences(model), narrow) is None
    assert unit_schedule(stencil(), dependences(stencil()), machine(512)) is None


def test_the_roles_of_dimensions() -> None:
    found = contraction_of(matmul_relu(), 1)
    assert found is not None
    assert (found.batch, found.m, found.n, found.k) == ((), (0,), (1,), (2,))
    assert contraction_of(matmul_relu(), 0) is None
