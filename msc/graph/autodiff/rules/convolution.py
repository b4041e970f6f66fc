"""Gradients of convolutions and of pooling. Those of a convolution are convolutions again."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from msc.dialects import ms
from msc.dialects.ms.convolution import ConvolutionOp, WeightedWindowOp
from msc.dialects.ms.elementwise import constant
from msc.dialects.ms.pooling import MaxPoolOp
from msc.dialects.ms.transposed_convolution import TransposedConvolutionOp
from msc.graph.autodiff.derived import computed
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient
from msc.poly.adjoint import summed
from msc.poly.compute import Statement, affine_map, dims
from msc.poly.scalar import Index, Read, Scalar, apply

FORWARD = (ms.Conv1dOp, ms.Conv2dOp, ms.Conv3dOp)
TRANSPOSED = (ms.Conv1dTransposeOp, ms.Conv2dTransposeOp, ms.Conv3dTransposeOp)


@gradient(*FORWARD)
def _convolution(op: ConvolutionOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    x, weight = (emit.cast(v, emit.dtype(g)) for v in op.operands[:2])
    found: list[SSAValue | None] = [None] * len(op.operands)
    if emit.wants(0):
        found[0] = emit.cast(_spread(op, g, weight, emit), op.dtype(0))
    if emit.wants(1):
        found[1] = emit.cast(_weight_gradient(op, x, g, emit), op.dtype(1))
    if emit.wants(2):
        found[2] = emit.cast(_bias_gradient(g, emit), op.dtype(2))
    return found


@gradient(*TRANSPOSED)
def _transposed(op: TransposedConvolutionOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """A transposed convolution is the gradient of a convolution; so its gradient is that one."""
    found: list[SSAValue | None] = [None] * len(op.operands)
    if emit.wants(0):
        forward = emit(FORWARD[op.SPATIAL - 1], g, op.weight, **_windows(op), **_padding(op))
        found[0] = _cut(forward, op.shape(0), emit)
    if emit.wants(1):
        found[1] = _weight_gradient(op, g, op.x, emit)
    if emit.wants(2):
        found[2] = _bias_gradient(g, emit)
    return found


def _windows(op: WeightedWindowOp) -> dict[str, list[int] | int]:
    return {"stride": list(op.ints("stride")), "dilation": list(op.ints("dilation")), "group": op.int_("group")}


def _padding(op: WeightedWindowOp) -> dict[str, str | list[int]]:
    pad = [n for pair in op.padding() for n in pair]
    return {"pad_mode": "pad", "pad": pad} if any(pad) else {}


def _spread(op: ConvolutionOp, g: SSAValue, weight: SSAValue, emit: GradientEmitter) -> SSAValue:
    """The gradient by x: each element of g times the weight, added to its window. What no window reads gets zero."""
    axes = zip(op.spatial(), emit.shape(g)[2:], op.windows(), op.padding(), strict=True)
    more = [n + sum(pad) - ((o - 1) * w.stride + w.span) for n, o, w, pad in axes]
    return emit(TRANSPOSED[op.SPATIAL - 1], g, weight, output_padding=more, **_windows(op), **_padding(op))


def _weight_gradient(op: WeightedWindowOp, x: SSAValue, g: SSAValue, emit: GradientEmitter) -> SSAValue:
    """A convolution of x with g, whose channels are the batch; strides and dilations change places.

    x `[n, group ic, ...]`, g `[n, oc, ...]` to `[oc, ic, kernel...]`, where x is read in windows. x is padded, and cut
    where windows end, before it is transposed: so its convolution may read the same padded image.
    Of an axis on which windows are one element, only those elements are left.
    """
    group, spatial = op.int_("group"), list(range(2, op.SPATIAL + 2))
    axes = zip(emit.shape(x)[2:], emit.shape(g)[2:], op.windows(), op.padding(), strict=True)
    pads = [(begin, (o - 1) * w.stride + w.span - n - begin) for n, o, w, (begin, _) in axes]
    steps = [w.stride if w.size == 1 else 1 for w in op.windows()]
    x = emit.pad_spatial(x, [(b, e if step == 1 else max(e, 0)) for (b, e), step in zip(pads, steps, strict=True)])
    x = _every(x, steps, emit.shape(g)[2:], emit)
    n, channels, *sizes = emit.shape(x)
    inputs = channels // group
    if group == 1:
        image = emit(ms.TransposeOp, x, perm=[1, 0, *spatial])
    else:
        apart = emit.reshape(x, [n, group, inputs, *sizes])
        turned = emit(ms.TransposeOp, apart, perm=[2, 1, 0, *(k + 1 for k in spatial)])
        image = emit.reshape(turned, [inputs, group * n, *sizes])
    kernel = emit(ms.TransposeOp, g, perm=[1, 0, *spatial])
    dilation = [w.stride // step for w, step in zip(op.windows(), steps, strict=True)]
    sizes_of = {"stride": list(op.ints("dilation")), "dilation": dilation, "group": group}
    found = emit(FORWARD[op.SPATIAL - 1], image, kernel, **sizes_of)
    return emit(ms.TransposeOp, found, perm=[1, 0, *spatial])


def _every(x: SSAValue, steps: Sequence[int], counts: Sequence[int], emit: GradientEmitter) -> SSAValue:
    """An image `[n, c, ...]` with `counts` elements of each spatial axis with a step, so far apart."""
    if all(step == 1 for step in steps):
        return x
    n, channels, *sizes = emit.shape(x)
    ends = [size if s == 1 else (o - 1) * s + 1 for size, s, o in zip(sizes, steps, counts, strict=True)]
    begin, strides = [0] * len(emit.shape(x)), [1, 1, *steps]
    return emit(ms.SliceOp, x, begin=begin, end=[n, channels, *ends], strides=strides)


def _cut(value: SSAValue, shape: Sequence[int], emit: GradientEmitter) -> SSAValue:
    """The beginning of a tensor along each axis."""
    if emit.shape(value) == tuple(shape):
        return value
    return emit(ms.SliceOp, value, begin=[0] * len(shape), end=list(shape))


def _bias_gradient(g: SSAValue, emit: GradientEmitter) -> SSAValue:
    return emit(ms.ReduceSumOp, g, axis=[0, *range(2, len(emit.shape(g)))])


@gradient(ms.MaxPool1dOp, ms.MaxPool2dOp, ms.MaxPool3dOp)
def _max_pool(op: MaxPoolOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """To the first of the largest elements of each window. A padded input is padded anew, and its border cut off."""
    if op.is_basic:
        return [_to_first(op, op.x, op.results[0], g, emit)]
    pad = [(b, e + more) for (b, e), more in zip(op.padding(), op.overhang(), strict=True)]
    padded = emit.pad_spatial(op.x, pad, float("-inf"))
    sizes: dict[str, list[int]] = {k: list(op.ints(k)) for k in ("kernel_size", "stride", "dilation")}
    basic = type(op)(padded, result_types=None, **sizes)
    gradient_ = _to_first(basic, padded, op.results[0], g, emit)
    basic.erase()
    return [emit.pad_spatial(gradient_, [(-b, -e) for b, e in pad])]


def _to_first(op: MaxPoolOp, x: SSAValue, y: SSAValue, g: SSAValue, emit: GradientEmitter) -> SSAValue:
    shape, rank, kernel = emit.shape(y), op.SPATIAL + 2, tuple(op.kernel())
    extents = (*shape, *kernel)
    d, dtype = dims(len(extents)), emit.dtype(x)
    here, taps = affine_map(len(d), d[:rank]), affine_map(len(d), (*d[:2], *op.taps(d[2:rank], d[rank:])))
    names = ("n", "c", *op.axis_names("o"), *op.axis_names("k"))
    number = Index(_number(d[rank:], kernel))
    largest = apply("eq", Read(0, taps, dtype), Read(1, here, dtype))
    first = apply("select", largest, number, constant(prod(kernel), "i64"))
    places = computed([Statement(extents, names, here, first, "min")], shape, "i64", (x, y), emit)
    chosen = apply("eq", Read(0, here, "i64"), number)
    part: Scalar = apply("select", chosen, Read(1, here, dtype), constant(0, dtype))
    statement = Statement(extents, names, taps, part, "add", accumulate=True)
    return computed(summed([statement], emit.shape(x), dtype), emit.shape(x), dtype, (places, g), emit)


def _number(taps: Sequence[AffineExpr], kernel: Sequence[int]) -> AffineExpr:
    """The number of an element in its window, in row-major order."""
    total = taps[0]
    for tap, size in zip(taps[1:], kernel[1:], strict=True):
        total = total * size + tap
    return total
