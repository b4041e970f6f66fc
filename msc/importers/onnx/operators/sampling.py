"""Images read at computed places: grid sampling, regions of interest, deformable convolution, boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.arithmetic import folded
from msc.importers.onnx.operators.windows import WindowAttributes, window_attributes
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


def _inside(node: Node, at: OnnxValue, size: int) -> OnnxValue:
    return node(ms.LogicalAndOp, node(ms.GreaterEqualOp, at, 0.0), node(ms.LessEqualOp, at, float(size - 1)))


def read_at(
    node: Node, flat: OnnxValue, sizes: Sequence[int], at: Sequence[OnnxValue], zero_outside: bool
) -> OnnxValue:
    """Elements of images `[n, c, pixels]` at whole places: one float tensor `[n, points]` an axis.

    Outside the image it is the nearest element, or zero.
    """
    n, c, _ = flat.shape
    place: OnnxValue | None = None
    for coordinate, size in zip(at, sizes, strict=True):
        whole = node.cast(node(ms.ClipOp, coordinate, min=0.0, max=float(size - 1)), "i64")
        place = whole if place is None else node(ms.AddOp, node(ms.MulOp, place, size), whole)
    assert place is not None
    points = place.shape[1]
    everywhere = node(ms.BroadcastToOp, node.reshape(place, (n, 1, points)), shape=[n, c, points])
    taken = _gathered(node, flat, everywhere)
    if not zero_outside:
        return taken
    inside = [_inside(node, coordinate, size) for coordinate, size in zip(at, sizes, strict=True)]
    whole = inside[0]
    for more in inside[1:]:
        whole = node(ms.LogicalAndOp, whole, more)
    return node(ms.SelectOp, node.reshape(whole, (n, 1, points)), taken, node.scalar(0, taken.dtype))


def _gathered(node: Node, flat: OnnxValue, places: OnnxValue) -> OnnxValue:
    return node(ms.GatherElementsOp, flat, places, axis=2)


def interpolate(
    node: Node, flat: OnnxValue, sizes: Sequence[int], at: Sequence[OnnxValue], zero_outside: bool
) -> OnnxValue:
    """Linear interpolation of images `[n, c, pixels]` at real places, one tensor `[n, points]` an axis."""
    return folded(node, ms.AddOp, corners(node, flat, sizes, at, zero_outside))


def corners(
    node: Node, flat: OnnxValue, sizes: Sequence[int], at: Sequence[OnnxValue], zero_outside: bool
) -> list[OnnxValue]:
    """The elements around real places, each times its share in the linear interpolation."""
    n, _, _ = flat.shape
    points = at[0].shape[1]
    low = [node(ms.FloorOp, coordinate) for coordinate in at]
    fractions = [node(ms.SubOp, coordinate, floor) for coordinate, floor in zip(at, low, strict=True)]
    terms: list[OnnxValue] = []
    for corner in np.ndindex(*(2,) * len(at)):
        places = [node(ms.AddOp, floor, 1.0) if up else floor for floor, up in zip(low, corner, strict=True)]
        weight: OnnxValue | None = None
        for fraction, up in zip(fractions, corner, strict=True):
            share = fraction if up else node(ms.SubOp, node.scalar(1, fraction.dtype), fraction)
            weight = share if weight is None else node(ms.MulOp, weight, share)
        assert weight is not None
        value = read_at(node, flat, sizes, places, zero_outside)
        terms.append(node(ms.MulOp, value, node.reshape(weight, (n, 1, points))))
    return terms


@importer("GridSample")
def _grid_sample(node: Node) -> OnnxValue:
    """The grid's last axis holds x, y, ... from -1 to 1. ONNX GridSample."""
    x, grid = node[0], node[1]
    n, c, *sizes = node.shape_of(x)
    *lead, rank = node.shape_of(grid)
    if not len(lead) - 1 == len(sizes) == rank or lead[0] != n:
        raise node.failure("MSC0711", f"a grid of {grid.type} gives no positions in {x.type}")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.word("mode", "linear"), node.word("mode", "linear"))
    padding = node.choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    corners, points = node.flag("align_corners"), math.prod(lead[1:])
    flat = node.reshape(x, (n, c, math.prod(sizes)))
    rows = node.reshape(node.cast(grid, x.dtype), (n, points, rank))
    at = [_denormal(node, rows, rank - 1 - axis, size, corners) for axis, size in enumerate(sizes)]
    sampler = _Sampler(node, flat, sizes, padding, corners)
    y = sampler.sample(at, mode)
    return node.reshape(y, (n, c, *lead[1:]))


@importer("AffineGrid")
def _affine_grid(node: Node) -> OnnxValue:
    """Positions from -1 to 1 in an image, (x, y, ..., 1), each times the affine matrix of its batch."""
    theta = node[0]
    n, _, *sizes = node.known_ints(1, "size")
    rank = len(sizes)
    if theta.shape != (n, rank, rank + 1):
        raise node.failure("MSC0711", f"a grid of {n} images in {rank} axes needs theta of {n}x{rank}x{rank + 1}")
    node.check_table(*sizes)
    axes = [_normal_positions(size, node.flag("align_corners")) for size in sizes]
    places = [grid.reshape(-1) for grid in np.meshgrid(*axes, indexing="ij")]
    rows = np.stack([*reversed(places), np.ones(math.prod(sizes))], axis=-1)
    at = node.cast(node.constant(np.tile(rows.astype(np.float32), (n, 1, 1))), theta.dtype)
    return node.reshape(node(ms.BatchMatmulOp, at, theta, transpose_b=True), (n, *sizes, rank))


def _normal_positions(size: int, corners: bool) -> Array:
    """The positions of the elements of an axis from -1 to 1: these are the first and last element, or their edges."""
    if corners:
        return np.linspace(-1, 1, size)
    return (2 * np.arange(size) + 1) / size - 1


def _denormal(node: Node, rows: OnnxValue, column: int, size: int, corners: bool) -> OnnxValue:
    n, points, _ = rows.shape
    g = node.reshape(node(ms.SliceOp, rows, begin=[0, 0, column], end=[n, points, column + 1]), (n, points))
    if corners:
        return node(ms.MulOp, node(ms.AddOp, g, 1.0), (size - 1) / 2)
    return node(ms.DivOp, node(ms.SubOp, node(ms.MulOp, node(ms.AddOp, g, 1.0), float(size)), 1.0), 2.0)


class _Sampler:
    def __init__(self, node: Node, flat: OnnxValue, sizes: Sequence[int], padding: str, corners: bool) -> None:
        self.node, self.flat, self.sizes, self.padding, self.corners = node, flat, sizes, padding, corners

    def sample(self, at: Sequence[OnnxValue], mode: str) -> OnnxValue:
        node = self.node
        if mode == "nearest":
            return self._read([node(ms.RoundOp, self._kept(a, n)) for a, n in zip(at, self.sizes, strict=True)])
        if mode == "linear":
            kept = [self._kept(a, n) for a, n in zip(at, self.sizes, strict=True)]
            return interpolate(node, self.flat, self.sizes, kept, self.padding == "zeros")
        if mode == "cubic" and len(at) == 2:
            return self._cubic(at)
        raise node.failure("MSC0711", f"mode '{mode[:40]}' in {len(at)} axes is not supported")

    def _read(self, places: Sequence[OnnxValue]) -> OnnxValue:
        return read_at(self.node, self.flat, self.sizes, places, self.padding == "zeros")

    def _kept(self, at: OnnxValue, size: int) -> OnnxValue:
        """A coordinate as the padding mode brings it into the image."""
        node = self.node
        if self.padding == "border":
            return node(ms.ClipOp, at, min=0.0, max=float(size - 1))
        return self._reflected(at, size) if self.padding == "reflection" else at

    def _reflected(self, at: OnnxValue, size: int) -> OnnxValue:
        """Mirrored at the first and last element, or at the outer edges of their pixels, as often as it takes."""
        node = self.node
        low, high = (0.0, size - 1.0) if self.corners else (-0.5, size - 0.5)
        span = high - low
        if span <= 0:
            return node(ms.MulOp, at, 0.0)
        distance = node(ms.AbsOp, node(ms.SubOp, at, low))
        turns = node(ms.FloorOp, node(ms.DivOp, distance, span))
        extra = node(ms.SubOp, distance, node(ms.MulOp, turns, span))
        odd = node(ms.EqualOp, node(ms.RemOp, turns, 2.0), 1.0)
        mirrored = node(ms.SelectOp, odd, node(ms.SubOp, node.scalar(span, at.dtype), extra), extra)
        return node(ms.ClipOp, node(ms.AddOp, mirrored, low), min=0.0, max=float(size - 1))

    def _cubic(self, at: Sequence[OnnxValue]) -> OnnxValue:
        """Four taps an axis, with the kernel of Keys (1981), a = -0.75; each tap is padded on its own."""
        node = self.node
        low = [node(ms.FloorOp, a) for a in at]
        fractions = [node(ms.SubOp, a, floor) for a, floor in zip(at, low, strict=True)]
        shares = [[self._share(f, tap) for tap in range(-1, 3)] for f in fractions]
        terms: list[OnnxValue] = []
        for i, j in itertools.product(range(4), range(4)):
            places = [
                self._kept(node(ms.AddOp, floor, float(tap - 1)), size)
                for floor, tap, size in zip(low, (i, j), self.sizes, strict=True)
            ]
            weight = node(ms.MulOp, shares[0][i], shares[1][j])
            n, points = weight.shape
            terms.append(node(ms.MulOp, self._read(places), node.reshape(weight, (n, 1, points))))
        return folded(node, ms.AddOp, terms)

    def _share(self, fraction: OnnxValue, tap: int, a: float = -0.75) -> OnnxValue:
        node = self.node
        d = node(ms.AbsOp, node(ms.SubOp, fraction, float(tap)))
        inner, outer = (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)
        c3, c2, c1, c0 = inner if tap in (0, 1) else outer
        y = node(ms.AddOp, node(ms.MulOp, d, c3), c2)
        y = node(ms.AddOp, node(ms.MulOp, y, d), c1)
        return node(ms.AddOp, node(ms.MulOp, y, d), c0)


@importer("DeformConv")
def _deform_conv(node: Node) -> OnnxValue:
    """Every tap of every window reads the image at an offset of its own; then a matrix product (Dai et al., 2017)."""
    x, weight, offset = node[0], node[1], node[2]
    n, c, *sizes = node.shape_of(x)
    oc, per_group, *kernel = node.shape_of(weight)
    window = window_attributes(node, sizes, kernel)
    outputs, taps = list(offset.shape[2:]), math.prod(kernel)
    groups, group = node.int_("offset_group", 1), node.int_("group", 1)
    points = taps * math.prod(outputs)
    moves = node.reshape(offset, (n * groups, taps, len(sizes), math.prod(outputs)))
    at = [_deformed(node, moves, axis, window, outputs, kernel) for axis in range(len(sizes))]
    flat = node.reshape(x, (n * groups, c // groups, math.prod(sizes)))
    columns = interpolate(node, flat, sizes, at, True)
    if node.has(4):
        mask = node.reshape(node[4], (n * groups, 1, points))
        columns = node(ms.MulOp, columns, mask)
    columns = node.reshape(columns, (n, group, per_group * taps, math.prod(outputs)))
    matrix = node.reshape(weight, (1, group, oc // group, per_group * taps))
    y = node.reshape(node(ms.BatchMatmulOp, matrix, columns), (n, oc, *outputs))
    if not node.has(3):
        return y
    return node(ms.AddOp, y, node.reshape(node[3], (1, oc, *(1 for _ in outputs))))


def _deformed(
    node: Node, moves: OnnxValue, axis: int, window: WindowAttributes, outputs: Sequence[int], kernel: Sequence[int]
) -> OnnxValue:
    images, taps, rank, positions = moves.shape
    node.check_table(2 * rank, *kernel, *outputs)
    grid = np.indices((*kernel, *outputs))
    base = grid[rank + axis] * window.stride[axis] + grid[axis] * window.dilation[axis] - window.pads[axis][0]
    move = node(ms.SliceOp, moves, begin=[0, 0, axis, 0], end=[images, taps, axis + 1, positions])
    start = node.cast(node.constant(base.reshape(1, taps * positions).astype(np.float32)), moves.dtype)
    return node(ms.AddOp, node.reshape(move, (images, taps * positions)), start)


@importer("RoiAlign")
def _roi_align(node: Node) -> OnnxValue:
    """The mean or the largest of samples in each bin of a region (He et al., 2017); a fixed number of samples a bin."""
    x, rois, batch = node[0], node[1], node[2]
    _, c, height, width = node.shape_of(x)
    count = node.size_of(rois, 0)
    rows, columns = node.int_("output_height", 1), node.int_("output_width", 1)
    ratio = node.int_("sampling_ratio", 0)
    if ratio == 0:
        rows_each, columns_each = _adaptive(node, rois, rows, columns)
    else:
        rows_each = columns_each = ratio
    half = node.word("coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel")
    frames = [_edges(node, rois, place, half == "half_pixel") for place in range(4)]
    ys = _samples(node, frames[1], frames[3], rows, rows_each, half)
    xs = _samples(node, frames[0], frames[2], columns, columns_each, half)
    grid = [count, rows * rows_each, columns * columns_each]
    at = [
        node.reshape(node(ms.BroadcastToOp, node.reshape(ys, (count, -1, 1)), shape=grid), (count, -1)),
        node.reshape(node(ms.BroadcastToOp, node.reshape(xs, (count, 1, -1)), shape=grid), (count, -1)),
    ]
    images = node(ms.GatherOp, node.reshape(x, (x.shape[0], c, height * width)), batch, axis=0)
    largest = node.choice("mode", "avg", ("avg", "max")) == "max"
    values = _roi_values(node, images, (height, width), at, largest)
    bins = node.reshape(values, (count, c, rows, rows_each, columns, columns_each))
    return node(ms.ReduceMaxOp if largest else ms.ReduceMeanOp, bins, axis=[3, 5])


def _adaptive(node: Node, rois: OnnxValue, rows: int, columns: int) -> tuple[int, int]:
    """Samples a bin by the size of the regions, which must be known and ask for one number."""
    boxes = node.known_value(rois, "regions, as sampling_ratio is 0,").astype(np.float64) * node.real(
        "spatial_scale", 1.0
    )
    tall = {math.ceil(max(v, 1e-9) / rows) for v in boxes[:, 3] - boxes[:, 1]}
    wide = {math.ceil(max(v, 1e-9) / columns) for v in boxes[:, 2] - boxes[:, 0]}
    if len(tall) > 1 or len(wide) > 1:
        raise node.failure("MSC0711", "its regions ask for different numbers of samples; give sampling_ratio")
    return tall.pop(), wide.pop()


def _edges(node: Node, rois: OnnxValue, column: int, half_pixel: bool) -> OnnxValue:
    count = rois.shape[0]
    edge = node(ms.SliceOp, rois, begin=[0, column], end=[count, column + 1])
    scaled = node(ms.MulOp, edge, node.real("spatial_scale", 1.0))
    return node(ms.SubOp, scaled, 0.5) if half_pixel else scaled


def _samples(node: Node, begin: OnnxValue, end: OnnxValue, bins: int, each: int, half: str) -> OnnxValue:
    length = node(ms.SubOp, end, begin)
    if half != "half_pixel":
        length = node(ms.MaximumOp, length, 1.0)
    node.check_table(bins, each)
    steps = (np.arange(bins * each) // each + (np.arange(bins * each) % each + 0.5) / each) / bins
    share = node.cast(node.constant(steps.reshape(1, -1).astype(np.float32)), begin.dtype)
    return node(ms.AddOp, begin, node(ms.MulOp, length, share))


def _roi_values(
    node: Node, images: OnnxValue, sizes: tuple[int, int], at: Sequence[OnnxValue], largest: bool
) -> OnnxValue:
    """Linear interpolation; up to a pixel outside counts as the edge, beyond that as zero.

    For `largest` it is the largest share instead of their sum, as ONNX has it.
    """
    kept = [node(ms.ClipOp, a, min=0.0, max=float(size - 1)) for a, size in zip(at, sizes, strict=True)]
    values = folded(node, ms.MaximumOp if largest else ms.AddOp, corners(node, images, sizes, kept, False))
    near = [
        node(ms.LogicalAndOp, node(ms.GreaterEqualOp, a, -1.0), node(ms.LessEqualOp, a, float(size)))
        for a, size in zip(at, sizes, strict=True)
    ]
    both = node(ms.LogicalAndOp, near[0], near[1])
    mask = node.reshape(both, (both.shape[0], 1, both.shape[1]))
    return node(ms.SelectOp, mask, values, node.scalar(0, values.dtype))
