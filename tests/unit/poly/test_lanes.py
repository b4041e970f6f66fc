"""Which vector loops of a tree have no vector form."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.ir.affine import AffineExpr

from msc.poly.compute import dims
from msc.poly.lanes import check_lanes, refused_vectors, without_vectors
from msc.poly.model import KernelModel
from msc.poly.scalar import Index, Scalar
from msc.poly.schedule_tree.nodes import ScheduleError, Tree
from msc.poly.schedule_tree.nodes import loops as loops_of
from tests.unit.poly.kernels import array, read, statement
from tests.unit.poly.trees import tree

ROW, COLUMN = dims(2)
PLAIN = """
    axis i 6: S0.0
    axis j 24: S0.1
    for i, j vector
      run S0
"""
TILED = """
    axis i 6: S0.0
    axis j 24: S0.1
    for i, j tile 8, j vector
      run S0
"""


def copy(body: Scalar) -> KernelModel:
    arrays = (array(6, 24, kind="input"), array(6, 24, kind="output"))
    return KernelModel(arrays, (statement((6, 24), 1, (ROW, COLUMN), body),), ("copy",))


def at(*index: AffineExpr) -> KernelModel:
    return copy(read(0, 2, *index))


def refused(model: KernelModel, schedule: Tree) -> Sequence[str]:
    return list(refused_vectors(model, schedule).values())


@pytest.mark.parametrize(
    ("model", "text", "reasons"),
    [
        (at(ROW, COLUMN), PLAIN, []),
        (at(ROW, COLUMN // 3), PLAIN, ["an index divides by a constant"]),
        (at(ROW // 3, COLUMN), PLAIN, []),
        (at(COLUMN // 8, COLUMN % 8), PLAIN, ["an index divides by a constant"]),
        (at(COLUMN // 8, COLUMN % 8), TILED, []),
        (copy(Index(ROW)), PLAIN, []),
        (copy(Index(2 * COLUMN + ROW)), TILED, []),
        (copy(Index(COLUMN // 3)), TILED, ["it divides its induction variable by a constant"]),
    ],
)
def test_lanes_are_a_step_apart_in_indices_and_in_numbers(model: KernelModel, text: str, reasons: list[str]) -> None:
    """A quotient that a tile decides is none."""
    assert refused(model, tree(text)) == reasons


def test_unrolled_loops_go_with_the_vectors_of_their_tile() -> None:
    """They would unroll elements. Another statement keeps its tile."""
    i, j = ROW, COLUMN
    arrays = (array(6, 24, kind="input"), array(6, 24, kind="output"), array(6, 24, kind="output"))
    bodies = (read(0, 2, i, j // 3), read(0, 2, i, j))
    model = KernelModel(arrays, tuple(statement((6, 24), k, (i, j), b) for k, b in enumerate(bodies, 1)), ("copy",))
    text = "axis i 6: S0.0 S1.0\naxis j 24: S0.1 S1.1"
    for name in ("S0", "S1"):
        text += f"\nfor i tile 3, j tile 8, i unroll, j vector\n  run {name}"
    schedule = tree(text)
    plain = without_vectors(schedule, refused_vectors(model, schedule))
    assert [loop.mark for loop in loops_of(plain)] == ["", "", "", "", "", "", "unroll", "vector"]


def test_a_refused_loop_is_plain() -> None:
    model, schedule = copy(Index(COLUMN // 3)), tree(PLAIN)
    plain = without_vectors(schedule, refused_vectors(model, schedule))
    assert [loop.mark for loop in loops_of(plain)] == ["", ""]
    with pytest.raises(ScheduleError, match="line 3: j is no vector loop: it divides its induction variable"):
        check_lanes(model, schedule)
