"""Which dimensions of statements are the same: by the axes of arrays that they index."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir.affine import AffineExpr

from msc.poly.alignment import aligned
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Read, apply


def statement(
    target: int, write: list[AffineExpr | int], source: int, read: list[AffineExpr | int], *extents: int
) -> KernelStatement:
    """`target[write] = source[read]` over a box."""
    rank = len(extents)
    body = Read(source, affine_map(rank, read), "f32")
    return KernelStatement(extents, tuple("ijklm"[:rank]), target, affine_map(rank, write), body, None, 0)


def model(*statements: KernelStatement) -> KernelModel:
    kinds = ("input", "internal", "output")
    return KernelModel(tuple(Array((8, 8), "f32", kind) for kind in kinds), statements, ("ms.x",))


ROW, COLUMN = dims(2)


def test_dimensions_of_one_axis_are_aligned_in_any_order() -> None:
    found = aligned(
        model(statement(1, [ROW, COLUMN], 0, [ROW, COLUMN], 8, 4), statement(2, [COLUMN, ROW], 1, [COLUMN, ROW], 4, 8)),
        (0, 1),
    )
    assert {frozenset(loop.items()) for loop in found.loops} == {
        frozenset({(0, 0), (1, 1)}),
        frozenset({(0, 1), (1, 0)}),
    }
    assert found.is_complete


def test_a_dimension_that_others_index_by_constants_is_not_shared() -> None:
    parts = [statement(1, [ROW, k], 0, [ROW, COLUMN], 8, 4) for k in range(2)]
    found = aligned(model(*parts, statement(2, [ROW, COLUMN], 1, [ROW, 0], 8, 4)), (0, 1, 2))
    assert [dict(loop) for loop in found.loops] == [{0: 0, 1: 0, 2: 0}]
    assert found.is_complete


def test_loops_of_different_extents_and_of_one_iteration_are_none() -> None:
    found = aligned(
        model(statement(1, [ROW, COLUMN], 0, [ROW, COLUMN], 8, 1), statement(2, [ROW, COLUMN], 1, [ROW, COLUMN], 7, 1)),
        (0, 1),
    )
    assert found.loops == ()


def test_sums_and_two_dimensions_on_an_axis_leave_others_to_find() -> None:
    shifted = aligned(
        model(
            statement(1, [ROW, COLUMN], 0, [ROW, COLUMN], 8, 4), statement(2, [ROW, COLUMN], 1, [ROW + 1, COLUMN], 7, 4)
        ),
        (0, 1),
    )
    assert not shifted.is_complete
    straight, turned = (Read(1, affine_map(2, index), "f32") for index in ((ROW, COLUMN), (COLUMN, ROW)))
    both = replace(statement(2, [ROW, COLUMN], 1, [ROW, COLUMN], 8, 8), body=apply("add", straight, turned))
    assert not aligned(model(statement(1, [ROW, COLUMN], 0, [ROW, COLUMN], 8, 8), both), (0, 1)).is_complete
