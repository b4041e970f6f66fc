"""Which dimensions of statements are the same: by the axes of arrays that they index."""

from __future__ import annotations

from dataclasses import replace

import pytest
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


def test_groups_and_channels_are_digits_of_an_index() -> None:
    """As in a grouped convolution. Statements with the same digits share their loops, and nobody else does."""
    group, channel = dims(2)
    packed: list[AffineExpr | int] = [group * 4 + channel]
    fill = statement(1, packed, 0, packed, 2, 4)
    first = KernelModel(tuple(Array((8,), "f32", kind) for kind in ("input", "internal", "output")), (), ("ms.x",))
    alike = aligned(replace(first, statements=(fill, statement(2, packed, 1, packed, 2, 4))), (0, 1))
    assert [dict(loop) for loop in alike.by_digits] == [{0: 0, 1: 0}, {0: 1, 1: 1}]
    assert alike.loops == ()
    (whole,) = dims(1)
    other = aligned(replace(first, statements=(fill, statement(2, [whole], 1, [whole], 8))), (0, 1))
    assert other.loops == other.by_digits == ()
    assert alike.is_complete
    assert other.is_complete


def test_a_group_of_one_channel_is_a_dimension() -> None:
    """As in a depthwise convolution."""
    packed: list[AffineExpr | int] = [ROW + COLUMN]
    (whole,) = dims(1)
    arrays = tuple(Array((8,), "f32", kind) for kind in ("input", "internal", "output"))
    statements = (statement(1, packed, 0, packed, 8, 1), statement(2, [whole], 1, [whole], 8))
    found = aligned(KernelModel(arrays, statements, ("ms.x",)), (0, 1))
    assert [dict(loop) for loop in found.by_digits] == [{0: 0, 1: 0}]
    assert found.is_complete


@pytest.mark.parametrize(
    ("index", "extents"),
    [
        ((ROW * 2 + COLUMN), (2, 4)),  # two points are one element
        ((ROW * 4 + COLUMN * -1 + 3), (2, 4)),
        ((ROW * 4 + COLUMN), (2, 3)),  # other digits: rows may be shared
        ((ROW * 2 + COLUMN), (4, 2)),
    ],
)
def test_other_digits_leave_loops_to_find(index: AffineExpr, extents: tuple[int, int]) -> None:
    fill = statement(1, [ROW * 4 + COLUMN], 0, [ROW * 4 + COLUMN], 2, 4)
    arrays = tuple(Array((8,), "f32", kind) for kind in ("input", "internal", "output"))
    reading = statement(2, [index], 1, [index], *extents)
    assert not aligned(KernelModel(arrays, (fill, reading), ("ms.x",)), (0, 1)).is_complete
