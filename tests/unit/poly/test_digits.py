"""Which dimensions are split into the digits of an index, in kernels written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.ir.affine import AffineExpr

from msc.poly.compute import affine_map, dims
from msc.poly.digits import with_dimensions_as_digits
from msc.poly.model import Array, KernelModel, KernelStatement, Materialized
from msc.poly.scalar import Apply, Cast, Constant, Index, Read

GROUPS, CHANNELS, K = 2, 3, 4
ALL = GROUPS * CHANNELS
ZERO = Constant(0.0, "f32")
g, c, k = dims(3)


def grouped(channel: AffineExpr | None = None, extents: tuple[int, ...] = (GROUPS, CHANNELS, K)) -> KernelModel:
    """`t[g * 3 + c] = sum(x[g * 3 + c, k]); y[i] = t[i] + b[i] * i`, unless the sums have other places."""
    channel = g * CHANNELS + c if channel is None else channel
    arrays = (
        Array((ALL, K), "f32", "input"),
        Array((ALL,), "f32", "input"),
        Array((ALL,), "f32", "output"),
        Array((ALL,), "f32", "internal"),
    )
    (i,) = dims(1)
    names = ("g", "c", "k")
    clear = KernelStatement(extents[:2], names[:2], 3, affine_map(2, [channel]), ZERO, None, 0)
    sums = KernelStatement(
        extents, names, 3, affine_map(3, [channel]), Read(0, affine_map(3, [channel, k]), "f32"), "add", 0
    )
    line = affine_map(1, [i])
    scaled = Apply("mul", (Read(1, line, "f32"), Cast(Index(i), "f32")))
    bias = KernelStatement((ALL,), ("i",), 2, line, Apply("add", (Read(3, line, "f32"), scaled)), None, 1)
    return KernelModel(arrays, (clear, sums, bias), ("sum", "add"))


def test_what_follows_grouped_sums_runs_through_groups_too() -> None:
    clear, sums, bias = with_dimensions_as_digits(grouped()).statements
    assert (clear, sums) == grouped().statements[:2]
    assert (bias.extents, bias.names) == ((GROUPS, CHANNELS), ("g", "c"))
    place = affine_map(2, [g * CHANNELS + c])
    scaled = Apply("mul", (Read(1, place, "f32"), Cast(Index(g * CHANNELS + c), "f32")))
    assert bias.write == place
    assert bias.body == Apply("add", (Read(3, place, "f32"), scaled))


def test_what_is_computed_of_that_follows() -> None:
    model = grouped()
    arrays = (*model.arrays, Array((ALL,), "f32", "internal"))
    bias, (i,) = replace(model.statements[2], target=4), dims(1)
    copy = KernelStatement((ALL,), ("i",), 2, affine_map(1, [i]), Read(4, affine_map(1, [i]), "f32"), None, 2)
    model = replace(model, arrays=arrays, statements=(*model.statements[:2], bias, copy))
    assert with_dimensions_as_digits(model).statements[3].names == ("g", "c")


def test_sums_with_gaps_or_in_blocks_split_nothing() -> None:
    gaps = grouped(g * (CHANNELS + 1) + c, (GROUPS, CHANNELS - 1, K))
    blocks = replace(grouped(), materialized=(Materialized(3, (0,), 1),))
    for model in (grouped(g, (ALL, 1, K)), gaps, blocks):
        assert with_dimensions_as_digits(model) == model


@pytest.mark.parametrize("change", [{"combine": "add"}, {"bounds": (AffineExpr.symbol(0),)}])
def test_sums_and_what_ends_early_stay_whole(change: dict[str, object]) -> None:
    model = grouped()
    bias = replace(model.statements[2], **change)
    if bias.combine:
        bias = replace(bias, write=affine_map(1, [AffineExpr.constant(0)]))
    model = replace(model, statements=(*model.statements[:2], bias))
    assert with_dimensions_as_digits(model) == model
