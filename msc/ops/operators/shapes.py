"""Operators that move, choose, reduce and make elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops import creation, images, joining, ordering, reductions, scattering, selection, shapes
from msc.ops.matrices import diag
from msc.ops.operands import cast
from msc.ops.primitive import operator
from msc.ops.scattering import tensor_scatter_elements
from msc.ops.shapes import axis_of, sizes_of

__all__ = [
    "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "BroadcastTo", "Concat", "CumProd", "CumSum",
    "DType", "DepthToSpace", "Diag", "DynamicShape", "ExpandDims", "Eye", "Fill", "FillV2", "Flatten", "Gather",
    "GatherD", "GatherNd", "GatherV2", "IndexAdd", "LinSpace", "MaskedFill", "MaskedSelect", "MeanExt", "Meshgrid",
    "MirrorPad", "NonZero", "OneHot", "Ones", "OnesLike", "Pack", "Pad", "PadV3", "Range", "Rank", "ReduceAll",
    "ReduceAny", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceStd", "ReduceSum", "Reshape",
    "ReverseSequence", "ReverseV2", "ScatterNd", "Shape", "Size", "Slice", "Sort", "SpaceToDepth", "Split",
    "SplitV", "SplitWithSize", "Squeeze", "Stack", "StridedSlice", "SumExt", "TensorScatterAdd",
    "TensorScatterElements", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate",
    "TensorShape", "Tile", "TopK", "Transpose", "Tril", "Triu", "Unique", "Unpack", "UnsortedSegmentSum",
    "Unstack", "Zeros", "ZerosLike", "dtype", "dyn_shape", "rank", "reverse_sequence", "shape", "size",
    "strided_slice",
]  # fmt: skip


def _reduction(function: Any, keep_type: bool = False) -> Any:
    """A reduction whose axes are an input; none means all."""

    def reduce(x: Tensor, axis: Any = (), *, keep_dims: bool = False, skip_mode: bool = False) -> Tensor:
        axes = sizes_of(axis)
        if skip_mode and not axes:
            return x
        result = function(x, axes or None, keep_dims)
        return cast(result, x.dtype) if keep_type else result

    reduce.__doc__ = function.__doc__
    return reduce


def _sum_ext(x: Tensor, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """The sum, of integers in Int64."""
    return reductions.sum(x, axis, keep_dims, dtype=dtype)


def _mean_ext(x: Tensor, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """The arithmetic mean."""
    return reductions.mean(x, axis, keep_dims, dtype=dtype)


def _argmax(x: Tensor, *, axis: int = -1, output_type: DTypeLike = dtypes.int32) -> Tensor:
    """Where the largest element stands along an axis."""
    return cast(reductions.argmax(x, axis), as_dtype(output_type))


def _argmin(x: Tensor, *, axis: int = -1, output_type: DTypeLike = dtypes.int32) -> Tensor:
    """Where the smallest element stands along an axis."""
    return cast(reductions.argmin(x, axis), as_dtype(output_type))


def _argmax_with_value(x: Tensor, *, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """Where the largest elements stand along an axis, and these."""
    values, places = reductions.max_with_index(x, axis, keep_dims)
    return places, values


def _argmin_with_value(x: Tensor, *, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """Where the smallest elements stand along an axis, and these."""
    values, places = reductions.min_with_index(x, axis, keep_dims)
    return places, values


def _cumsum(x: Tensor, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The sums of the elements up to each one along an axis."""
    return apply("cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)


def _cumprod(x: Tensor, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The products of the elements up to each one along an axis."""
    turned = joining.flip(x, axis) if reverse else x
    products = ordering.cumprod(turned, axis)
    if exclusive:
        a = axis_of(x, axis, "CumProd")
        first = creation.ones_like(joining.narrow(products, a, 0, 1))
        products = joining.concat([first, joining.narrow(products, a, 0, x.shape[a] - 1)], a)
    return joining.flip(products, axis) if reverse else products


def _concat(*inputs: Any, axis: int = 0) -> Tensor:
    """Tensors joined along an axis."""
    return joining.concat(inputs[0] if len(inputs) == 1 else inputs, axis)


def _stack(*inputs: Any, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return joining.stack(inputs[0] if len(inputs) == 1 else inputs, axis)


def _unstack(x: Tensor, *, axis: int = 0, num: int | None = None) -> tuple[Tensor, ...]:
    """The entries of an axis, without that axis."""
    del num
    return joining.unbind(x, axis)


def _split(x: Tensor, *, axis: int = 0, output_num: int = 1) -> tuple[Tensor, ...]:
    """So many parts of one size along an axis."""
    size = x.shape[axis_of(x, axis, "Split")]
    if output_num < 1 or size % output_num:
        raise ApiValueError("MSC0201", f"Split: axis {axis} of {x.shape} does not divide into {output_num} parts")
    return joining.split(x, size // output_num, axis)


def _split_v(
    x: Tensor, *, size_splits: Sequence[int], split_dim: int, num_split: int | None = None
) -> tuple[Tensor, ...]:
    """Parts of the sizes given along an axis; -1 is what is left."""
    del num_split
    size = x.shape[axis_of(x, split_dim, "SplitV")]
    rest = size - sum(n for n in size_splits if n != -1)
    return joining.split(x, [rest if n == -1 else n for n in size_splits], split_dim)


def strided_slice(
    x: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """x[begin:end:stride]; bit i of a mask is about entry i: no begin, no end, `...`, None, an integer."""
    index: list[Any] = []
    for i, (first, last, step) in enumerate(zip(*(sizes_of(v) for v in (begin, end, strides)), strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(first)
        else:
            index.append(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return x[tuple(index)]


def slice_(x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    """`size` elements of each axis from `begin` on; -1 is all that follow."""
    places = zip(sizes_of(begin), sizes_of(size), x.shape, strict=True)
    return x[tuple(slice(b, n if s == -1 else b + s) for b, s, n in places)]


def _gather(x: Tensor, indices: Tensor, axis: int = 0, *, batch_dims: int = 0) -> Tensor:
    """Slices along an axis, one for each index."""
    return selection.gather(x, indices, axis, batch_dims)


def _reverse(x: Tensor, *, axis: Any) -> Tensor:
    """Axes in reverse."""
    return joining.flip(x, axis)


def reverse_sequence(x: Tensor, seq_lengths: Tensor, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """The first `length` entries of each example in reverse, the others as they are."""
    a, b = axis_of(x, seq_dim, "reverse_sequence"), axis_of(x, batch_dim, "reverse_sequence")
    place = apply("iota", shape=x.shape, axis=a, dtype=dtypes.int64)
    wide = cast(seq_lengths, dtypes.int64).reshape([-1 if i == b else 1 for i in range(x.ndim)])
    return selection.gather_elements(x, a, selection.where(place < wide, wide - 1 - place, place))


def _fill(dtype: DTypeLike, shape: Any, value: Any) -> Tensor:
    """A number everywhere, of an element type."""
    return creation.full(shape, value, dtype=dtype)


def _pad(x: Tensor, *, paddings: Sequence[Sequence[int]]) -> Tensor:
    """Zeros added before and after each axis."""
    return images.padded(x, [(b, e) for b, e in paddings], "constant")


def _mirror_pad(x: Tensor, paddings: Any, *, mode: str = "REFLECT") -> Tensor:
    """Mirrored at the ends of each axis; "SYMMETRIC" repeats the edge."""
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    return images.padded(x, [(b, e) for b, e in pairs], mode.lower())


def _pad_v3(
    x: Tensor, paddings: Any, value: Any = 0, *, mode: str = "constant", paddings_contiguous: bool = True
) -> Tensor:
    """Elements added around axes: pairs, that of the last axis first."""
    amounts = sizes_of(paddings)
    if not paddings_contiguous:
        half = len(amounts) // 2
        amounts = tuple(v for pair in zip(amounts[:half], amounts[half:], strict=True) for v in pair)
    return images.pad(x, amounts, "replicate" if mode == "edge" else mode, value)


def _one_hot(indices: Tensor, depth: int, on_value: Any, off_value: Any, *, axis: int = -1) -> Tensor:
    """`on_value` at the index along a new axis, `off_value` elsewhere."""
    return creation.one_hot(indices, depth, on_value, off_value, axis)


def _range(start: Any, limit: Any, delta: Any, *, maxlen: int = 1000000) -> Tensor:
    """Numbers from start up to but without limit, delta apart."""
    del maxlen
    return creation.arange(start, limit, delta)


def _top_k(x: Tensor, k: int, *, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest elements along the last axis, and where they stand."""
    del sorted
    return ordering.topk(x, k)


def _sort(x: Tensor, *, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The elements in order along an axis, and where they stood (Int32)."""
    values, places = ordering.sort(x, axis, descending)
    return values, cast(places, dtypes.int32)


def shape(input_x: Tensor) -> tuple[int, ...]:
    """The sizes."""
    return input_x.shape


def rank(input_x: Tensor) -> int:
    """The number of axes."""
    return input_x.ndim


def size(input_x: Tensor) -> int:
    """The number of elements."""
    return input_x.size


def dtype(input_x: Tensor) -> Any:
    """The element type."""
    return input_x.dtype


def dyn_shape(input_x: Tensor) -> Tensor:
    """The sizes as a tensor."""
    return Tensor.of(np.array(input_x.shape, np.int64))


def _flatten(x: Tensor) -> Tensor:
    """All axes but the first as one."""
    return shapes.flatten(x)


def _squeeze(x: Tensor, *, axis: Any = ()) -> Tensor:
    """Without the axes named, or all of size 1."""
    return shapes.squeeze(x, axis if isinstance(axis, int) or len(axis) else None)


def _depth_to_space(x: Tensor, *, block_size: int) -> Tensor:
    """Channels moved into pixels."""
    return apply("depth_to_space", x, block_size=block_size)


def _space_to_depth(x: Tensor, *, block_size: int) -> Tensor:
    """Pixels moved into channels."""
    return apply("space_to_depth", x, block_size=block_size)


ReduceSum = operator("ReduceSum", _reduction(reductions.sum, True), "keep_dims skip_mode")
ReduceMean = operator("ReduceMean", _reduction(reductions.mean), "keep_dims")
ReduceMax = operator("ReduceMax", _reduction(reductions.amax), "keep_dims")
ReduceMin = operator("ReduceMin", _reduction(reductions.amin), "keep_dims")
ReduceProd = operator("ReduceProd", _reduction(reductions.prod, True), "keep_dims")
ReduceAll = operator("ReduceAll", _reduction(reductions.all), "keep_dims")
ReduceAny = operator("ReduceAny", _reduction(reductions.any), "keep_dims")
ReduceStd = operator("ReduceStd", reductions.std_mean, "axis ddof keepdims", ddof=1)
SumExt = operator("SumExt", _sum_ext)
MeanExt = operator("MeanExt", _mean_ext)
Argmax = operator("Argmax", _argmax, "axis output_type")
Argmin = operator("Argmin", _argmin, "axis output_type")
ArgMaxWithValue = operator("ArgMaxWithValue", _argmax_with_value, "axis keep_dims")
ArgMinWithValue = operator("ArgMinWithValue", _argmin_with_value, "axis keep_dims")
CumSum = operator("CumSum", _cumsum, "exclusive reverse")
CumProd = operator("CumProd", _cumprod, "exclusive reverse")
Reshape = operator("Reshape", shapes.reshape)
Transpose = operator("Transpose", shapes.transpose)
ExpandDims = operator("ExpandDims", shapes.expand_dims)
Squeeze = operator("Squeeze", _squeeze, "axis")
Flatten = operator("Flatten", _flatten)
Concat = operator("Concat", _concat, "axis")
Stack = operator("Stack", _stack, "axis")
Pack = operator("Pack", _stack, "axis")
Unstack = operator("Unstack", _unstack, "axis num")
Unpack = operator("Unpack", _unstack, "axis num")
Split = operator("Split", _split, "axis output_num")
SplitWithSize = operator("SplitWithSize", joining.split)
SplitV = operator("SplitV", _split_v, "size_splits split_dim num_split")
StridedSlice = operator(
    "StridedSlice", strided_slice, "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask"
)
Slice = operator("Slice", slice_)
Tile = operator("Tile", joining.tile)
BroadcastTo = operator("BroadcastTo", shapes.broadcast_to, "shape")
Gather = operator("Gather", _gather, "batch_dims")
GatherV2 = operator("GatherV2", _gather)
GatherD = operator("GatherD", selection.gather_elements)
GatherNd = operator("GatherNd", selection.gather_nd)
ScatterNd = operator("ScatterNd", scattering.scatter_nd)
TensorScatterUpdate = operator("TensorScatterUpdate", scattering.tensor_scatter_update)
TensorScatterAdd = operator("TensorScatterAdd", scattering.tensor_scatter_add)
TensorScatterSub = operator("TensorScatterSub", scattering.tensor_scatter_sub)
TensorScatterMax = operator("TensorScatterMax", scattering.tensor_scatter_max)
TensorScatterMin = operator("TensorScatterMin", scattering.tensor_scatter_min)
TensorScatterElements = operator("TensorScatterElements", tensor_scatter_elements, "axis reduction")
UnsortedSegmentSum = operator("UnsortedSegmentSum", scattering.unsorted_segment_sum)
IndexAdd = operator("IndexAdd", scattering.index_add, "axis")
ReverseV2 = operator("ReverseV2", _reverse, "axis")
ReverseSequence = operator("ReverseSequence", reverse_sequence, "seq_dim batch_dim")
MaskedFill = operator("MaskedFill", selection.masked_fill)
MaskedSelect = operator("MaskedSelect", selection.masked_select)
NonZero = operator("NonZero", selection.nonzero)
Unique = operator("Unique", selection.unique)
Fill = operator("Fill", _fill)
FillV2 = operator("FillV2", creation.full)
Ones = operator("Ones", creation.ones)
Zeros = operator("Zeros", creation.zeros)
OnesLike = operator("OnesLike", creation.ones_like)
ZerosLike = operator("ZerosLike", creation.zeros_like)
Eye = operator("Eye", creation.eye)
LinSpace = operator("LinSpace", creation.linspace)
Range = operator("Range", _range, "maxlen")
OneHot = operator("OneHot", _one_hot, "axis")
Meshgrid = operator("Meshgrid", creation.meshgrid, "indexing")
Tril = operator("Tril", creation.tril, "diagonal")
Triu = operator("Triu", creation.triu, "diagonal")
Diag = operator("Diag", diag)
Pad = operator("Pad", _pad, "paddings")
MirrorPad = operator("MirrorPad", _mirror_pad, "mode")
PadV3 = operator("PadV3", _pad_v3, "mode paddings_contiguous")
DepthToSpace = operator("DepthToSpace", _depth_to_space, "block_size")
SpaceToDepth = operator("SpaceToDepth", _space_to_depth, "block_size")
TopK = operator("TopK", _top_k, "sorted")
Sort = operator("Sort", _sort, "axis descending")
Shape = operator("Shape", shape)
TensorShape = operator("TensorShape", dyn_shape)
DynamicShape = operator("DynamicShape", dyn_shape)
Rank = operator("Rank", rank)
Size = operator("Size", size)
DType = operator("DType", dtype)
