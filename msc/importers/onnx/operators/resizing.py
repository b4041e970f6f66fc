"""Resizing images along any axes, axis by axis."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array, numpy_dtype
from msc.importers.onnx.node import MAXIMUM_TABLE, Node
from msc.importers.onnx.operators.interpolation import AxisResize
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue

MAXIMUM_ROWS = 1 << 19
"""Of the matrix that resizes an axis, which is made a row at a time."""

GATHERED_TAPS = 8
"""A place that takes more elements than these is a row of a matrix product."""

TRANSFORMATIONS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@importer("Upsample")
@importer("Resize")
def _upsample(node: Node) -> OnnxValue:
    """Resize with asymmetric coordinates and floor, as Resize of opset 10; scales as an attribute before opset 9."""
    scales = node.reals("scales") if node.given("scales") else [float(s) for s in node.known(1, "scales")]
    mode = "linear" if node.word("mode", "nearest") in ("linear", "bilinear") else "nearest"
    shape = node.shape_of(node[0])
    sizes = [math.floor(n * s) for n, s in zip(shape, scales, strict=True)]
    axes = {
        a: AxisResize(n, m, s, (0, 1), "asymmetric", mode, "floor", -0.75, False, False)
        for a, (n, m, s) in enumerate(zip(shape, sizes, scales, strict=True))
        if n != m
    }
    return resized(node, node[0], axes, 0.0)


@importer("Resize", since=11)
def _resize(node: Node) -> OnnxValue:
    x = node[0]
    axes = [node.axis(a, x.rank) for a in node.ints("axes")] or list(range(x.rank))
    old = [node.shape_of(x)[a] for a in axes]
    sizes, scales = _sizes_and_scales(node, old)
    known = TRANSFORMATIONS if node.opset >= 13 else (*TRANSFORMATIONS, "tf_half_pixel_for_nn")
    transformation = node.choice("coordinate_transformation_mode", "half_pixel", known)
    roi = [0.0] * len(axes) + [1.0] * len(axes)
    if transformation == "tf_crop_and_resize":
        roi = [float(v) for v in node.known(1, "roi")]
    resizes = {
        a: _axis(node, n, m, s, (roi[i], roi[len(axes) + i]), transformation)
        for i, (a, n, m, s) in enumerate(zip(axes, old, sizes, scales, strict=True))
        if n != m or (s != 1 and transformation != "tf_crop_and_resize") or roi[i] != 0 or roi[len(axes) + i] != 1
    }
    return resized(node, x, resizes, node.real("extrapolation_value", 0.0))


def _axis(node: Node, old: int, new: int, scale: float, roi: tuple[float, float], transformation: str) -> AxisResize:
    return AxisResize(
        old,
        new,
        scale,
        roi,
        transformation,
        node.choice("mode", "nearest", ("nearest", "linear", "cubic")),
        node.choice("nearest_mode", "round_prefer_floor", ROUNDINGS),
        node.real("cubic_coeff_a", -0.75),
        node.flag("exclude_outside"),
        node.flag("antialias"),
    )


def _sizes_and_scales(node: Node, old: list[int]) -> tuple[list[int], list[float]]:
    """New sizes, and what coordinates are divided by."""
    if node.has(2) and node[2].shape != (0,):
        scales = [float(s) for s in node.known(2, "scales")]
        if len(scales) != len(old):
            raise node.failure("MSC0711", f"{len(scales)} scales, for {len(old)} axes")
        return [math.floor(n * s) for n, s in zip(old, scales, strict=True)], scales
    sizes = node.known_ints(3, "sizes")
    if len(sizes) != len(old):
        raise node.failure("MSC0711", f"{len(sizes)} sizes, for axes of sizes {old}")
    scales = [m / n if n else 1.0 for n, m in zip(old, sizes, strict=True)]
    policy = node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    if policy != "stretch":
        scale = min(scales) if policy == "not_larger" else max(scales)
        return [math.floor(scale * n + 0.5) for n in old], [scale] * len(old)
    return sizes, scales


def _check_tables(node: Node, axes: dict[int, AxisResize]) -> None:
    for resize in axes.values():
        if not (resize.old > 0 < resize.new <= MAXIMUM_ROWS and resize.old * resize.new <= MAXIMUM_TABLE):
            raise node.failure("MSC0708", f"an axis of {resize.old} elements cannot be resized to {resize.new}")


def resized(node: Node, x: OnnxValue, axes: dict[int, AxisResize], extrapolation: float) -> OnnxValue:
    """Resize axis by axis; with "tf_crop_and_resize" what lies outside the image has one value.

    Integers are interpolated as floats. As in ONNX Runtime, antialiasing rounds them (halves up), and other modes
    truncate.
    """
    sizes = [axes[axis].new if axis in axes else size for axis, size in enumerate(x.shape)]
    if 0 in x.shape and 0 in sizes:
        return node.reshape(x, sizes)
    _check_tables(node, axes)
    y = x
    whole = x.dtype if x.dtype[0] in "fb" else "f32"
    for axis, resize in axes.items():
        y = _along(node, y, axis, resize, whole)
    if x.dtype != y.dtype:
        if any(resize.antialias for resize in axes.values()):
            y = node(ms.FloorOp, node(ms.AddOp, y, 0.5))
        y = node.cast(y, x.dtype)
    return _extrapolated(node, y, axes, extrapolation)


def _along(node: Node, x: OnnxValue, axis: int, resize: AxisResize, wide: str) -> OnnxValue:
    weights = resize.weights()
    taps = int((weights != 0).sum(1).max(initial=1))
    places = np.argsort(weights == 0, axis=1, kind="stable")[:, :taps]
    shares = np.take_along_axis(weights, places, axis=1)
    if taps == 1 and bool((shares == 1).all()):
        return _chosen(node, x, axis, resize, places[:, 0])
    if taps > GATHERED_TAPS:
        return _multiplied(node, node.cast(x, wide), axis, weights)
    return _weighted(node, node.cast(x, wide), axis, places, shares)


def _chosen(node: Node, x: OnnxValue, axis: int, resize: AxisResize, places: Array) -> OnnxValue:
    """One element for each place; by the operation if the places are those that it takes."""
    if np.array_equal(places, np.arange(resize.new) * resize.old // resize.new):
        return node(ms.ResizeNearestOp, x, size=[*x.shape[:axis], resize.new, *x.shape[axis + 1 :]])
    return node(ms.GatherOp, x, node.constant(places.astype(np.int64)), axis=axis)


def _weighted(node: Node, x: OnnxValue, axis: int, places: Array, shares: Array) -> OnnxValue:
    total: OnnxValue | None = None
    for tap in range(places.shape[1]):
        taken = node(ms.GatherOp, x, node.constant(places[:, tap].astype(np.int64)), axis=axis)
        share = shares[:, tap].reshape([-1 if a == axis else 1 for a in range(x.rank)])
        term = node(ms.MulOp, taken, node.constant(share.astype(numpy_dtype(x.dtype))))
        total = term if total is None else node(ms.AddOp, total, term)
    assert total is not None
    return total


def _multiplied(node: Node, x: OnnxValue, axis: int, weights: Array) -> OnnxValue:
    """The axis as the columns of a matrix product."""
    last = [a for a in range(x.rank) if a != axis] + [axis]
    moved = node(ms.TransposeOp, x, perm=last)
    flat = node.reshape(moved, (math.prod(moved.shape[:-1]), moved.shape[-1]))
    y = node(ms.MatmulOp, flat, node.constant(weights.astype(numpy_dtype(x.dtype))), transpose_b=True)
    y = node.reshape(y, (*moved.shape[:-1], weights.shape[0]))
    return node(ms.TransposeOp, y, perm=[last.index(a) for a in range(x.rank)])


def _extrapolated(node: Node, y: OnnxValue, axes: dict[int, AxisResize], value: float) -> OnnxValue:
    for axis, resize in axes.items():
        if resize.transformation != "tf_crop_and_resize":
            continue
        at = resize.coordinates()
        inside = ((at >= 0) & (at <= resize.old - 1)).reshape([-1 if a == axis else 1 for a in range(y.rank)])
        if not inside.all():
            y = node(ms.SelectOp, node.constant(inside), y, node.scalar(value, y.dtype))
    return y
