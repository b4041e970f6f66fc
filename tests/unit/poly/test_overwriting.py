"""Which internal arrays may lie in an output: found in time that grows with the kernel, not with its paths."""

from __future__ import annotations

import pytest

from msc.poly import overwriting
from msc.poly.compute import dims
from msc.poly.model import KernelModel
from msc.poly.overwriting import aliased_outputs, may_overwrite
from msc.poly.scalar import apply
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Run, Tree
from tests.unit.poly.kernels import array, read, statement
from tests.unit.poly.trees import tree


def doubling(count: int) -> KernelModel:
    """Each array is the sum of both before it: the number of paths grows exponentially."""
    (i,) = dims(1)
    arrays = (
        array(4, kind="input"),
        array(4, kind="input"),
        *(array(4) for _ in range(count)),
        array(4, kind="output"),
    )
    statements = tuple(
        statement((4,), k, (i,), apply("add", read(k - 1, 1, i), read(k - 2, 1, i))) for k in range(2, len(arrays))
    )
    return KernelModel(arrays, statements, ("add",) * len(statements))


def test_every_array_is_looked_at_once() -> None:
    model = doubling(40)
    count = range(len(model.statements))
    schedule = Tree(
        tuple(Axis(f"i{k}", 4, {k: 0}) for k in count),
        Block(tuple(Loop(f"i{k}", Block((Run((k,)),))) for k in count)),
    )
    found = aliased_outputs(model, schedule, range(2, 42))
    assert set(found.values()) <= {42}


def two_sums() -> KernelModel:
    """y = -a, z = y + b: y may lie on a, z on a and on b; y not on b, which is read after y is written."""
    i, j = dims(2)
    arrays = (*(array(4, 12, kind="input"),) * 2, *(array(4, 12, kind="output"),) * 2)
    negation = statement((4, 12), 2, (i, j), apply("neg", read(0, 2, i, j)))
    total = statement((4, 12), 3, (i, j), apply("add", read(2, 2, i, j), read(1, 2, i, j)))
    return KernelModel(arrays, (negation, total), ("neg", "add"))


_AXES = "axis i 4: S0.0 S1.0\naxis j 12: S0.1 S1.1\n"
_ONE_NEST = (
    "for i, j vector\n  run S0 S1",
    "for i\n  for j tile 8\n    for j vector\n      run S0\n      run S1",
)
_TWO_NESTS = (
    "for i\n  for j\n    run S0\n  for j\n    run S1",
    "for i, j\n  run S0\nfor i, j\n  run S1",
)
_PAIRS = ((0, 2), (1, 2), (0, 3), (1, 3))


@pytest.mark.parametrize("loops", _ONE_NEST)
def test_elements_of_one_point_need_no_isl(loops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, schedule = two_sums(), tree(_AXES + loops)
    monkeypatch.setattr(overwriting, "to_isl", None)
    monkeypatch.setattr(overwriting, "domain", None)
    assert [may_overwrite(model, schedule, *pair) for pair in _PAIRS] == [True, False, True, True]


def unknown(*question: object) -> None:
    """What leaves a question to isl."""
    del question


@pytest.mark.parametrize("loops", _ONE_NEST + _TWO_NESTS)
def test_isl_says_the_same_of_elements_of_one_point(loops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, schedule = two_sums(), tree(_AXES + loops)
    found = [may_overwrite(model, schedule, *pair) for pair in _PAIRS]
    monkeypatch.setattr(overwriting, "_order_at_one_point", unknown)
    assert found == [may_overwrite(model, schedule, *pair) for pair in _PAIRS]
