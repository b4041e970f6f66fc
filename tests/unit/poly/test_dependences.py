"""Dependences that isl finds are those that running the kernel shows."""

from __future__ import annotations

import pytest

from msc.poly.compute import dims
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel, with_accumulators
from msc.poly.outer_band import linked
from msc.poly.scalar import Constant, apply
from tests.unit.poly.kernels import (
    KERNELS,
    array,
    conflicts,
    flow_pairs,
    joined,
    matmul_relu,
    pairs_of,
    read,
    statement,
)

every_kernel = pytest.mark.parametrize("model", KERNELS.values(), ids=KERNELS)


@every_kernel
def test_flow_is_from_every_write_before(model: KernelModel) -> None:
    assert pairs_of(dependences(model).flow) == flow_pairs(model)


@every_kernel
def test_strict_order_is_every_conflict(model: KernelModel) -> None:
    """Each directly: what happens between two accesses may be reordered."""
    assert pairs_of(dependences(model).strict) == set(conflicts(model))


@every_kernel
def test_order_goes_forward(model: KernelModel) -> None:
    assert all(source < sink for source, sink in pairs_of(dependences(model).order))


def test_updates_of_one_place_may_be_reordered() -> None:
    deps = dependences(matmul_relu())
    between_updates = {(a, b) for a, b in pairs_of(deps.order) if a[0] == b[0] == 1}
    assert between_updates == pairs_of(deps.updates)
    assert not between_updates & pairs_of(deps.strict)


def test_accesses_that_never_meet_are_in_no_dependence() -> None:
    """Not even beyond the ends of their loops, where they would: so many images are joined in time for each of them."""
    deps = dependences(joined())
    assert linked(deps) == {frozenset((0, 2)), frozenset((1, 2))}
    assert deps.anywhere is not None
    assert linked(deps.anywhere) == linked(deps)


def test_every_update_follows_its_initialisation() -> None:
    """Not just the first one in program order: another may come to run first."""
    deps = dependences(matmul_relu(2, 2, 3))
    initialised = {(a, b) for a, b in pairs_of(deps.strict) if a[0] == 0 and b[0] == 1}
    assert initialised == {((0, (i, j)), (1, (i, j, k))) for i in range(2) for j in range(2) for k in range(3)}


def test_sums_into_outputs_go_through_accumulators() -> None:
    """They can live in registers, and are written once at the end."""
    (i, j, r), zero = dims(3), Constant(0.0, "f32")
    product = apply("mul", read(0, 3, i, r), read(1, 3, r, j))
    arrays = (array(3, 4, kind="input"), array(4, 5, kind="input"), array(3, 5, kind="output"))
    statements = (statement((3, 5), 2, (i, j), zero), statement((3, 5, 4), 2, (i, j), product, "add"))
    made = with_accumulators(KernelModel(arrays, statements, ("matmul",)))
    assert [(s.target, s.combine) for s in made.statements] == [(3, None), (3, "add"), (2, None)]
    assert made.arrays == (*arrays, array(3, 5))
