"""Products, convolutions, pooling, normalisations and reductions."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects.arrays import numpy_dtype
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.quantisation import PackedMatmulOp
from msc.dialects.ms.windows import WindowOp
from msc.dialects.packed_weights import bytes_of, from_panels, values_from_panels
from msc.exporters.onnx.operators.elementwise import as_type, result_type
from msc.exporters.onnx.writer import TYPES, Writer, form, known_shape, no_form, shape

# Products.


def _turned(w: Writer, op: MsOp, index: int, x: str) -> str:
    rank = len(op.shape(index))
    return w("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


@form("matmul", "batch_matmul")
def _matmul(w: Writer, op: MsOp, a: str, b: str) -> str:
    left = _turned(w, op, 0, a) if op.flag("transpose_a") else a
    right = _turned(w, op, 1, b) if op.flag("transpose_b") else b
    return _product(w, op, left, right)


def _product(w: Writer, op: MsOp, a: str, b: str) -> str:
    """MatMul of ONNX is of the operands' type: narrow integers are widened first."""
    kinds = (op.dtype(0), op.dtype(1), result_type(op))
    return w("MatMul", as_type(w, a, kinds[0], kinds[2]), as_type(w, b, kinds[1], kinds[2]))


@form("dense")
def _dense(w: Writer, op: MsOp, x: str, weight: str, bias: str | None = None) -> str:
    if bias is not None and len(op.shape(0)) == 2 and result_type(op) == op.dtype(0):
        return w("Gemm", x, weight, bias, transB=1)
    y = _product(w, op, x, w("Transpose", weight, perm=[1, 0]))
    return y if bias is None else w("Add", y, bias)


# Windows.


def _window(op: MsOp) -> tuple[dict[str, list[int]], list[int], list[int]]:
    """The attributes that all windows have, and the padding before and after."""
    assert isinstance(op, WindowOp)
    if -1 in op.shape(0)[2:]:
        raise no_form(op, "a spatial size is open that it needs")
    padding = op.padding()
    before, after = [b for b, _ in padding], [a for _, a in padding]
    attributes = {"strides": list(op.ints("stride")), "dilations": list(op.ints("dilation"))}
    return attributes, before, after


@form("conv1d", "conv2d", "conv3d")
def _conv(w: Writer, op: MsOp, x: str, weight: str, *bias: str) -> str:
    attributes, before, after = _window(op)
    operands = [as_type(w, value, op.dtype(i), result_type(op)) for i, value in enumerate((x, weight, *bias))]
    return w("Conv", *operands, pads=[*before, *after], group=op.int_("group"), **attributes)


@form("conv1d_transpose", "conv2d_transpose", "conv3d_transpose")
def _conv_transpose(w: Writer, op: MsOp, x: str, weight: str, *bias: str) -> str:
    stride, dilation, kernel = op.ints("stride"), op.ints("dilation"), shape(op.operands[1])[2:]
    more = list(op.ints("output_padding"))
    pad = op.ints("pad")
    before, after = list(pad[0::2]), list(pad[1::2])
    if op.word("pad_mode") == "same":
        spare = [(k - 1) * d + 1 - s for k, d, s in zip(kernel, dilation, stride, strict=True)]
        before, after = [max(n, 0) // 2 for n in spare], [n - max(n, 0) // 2 for n in spare]
        more = [max(-a, 0) for a in after]
        after = [max(a, 0) for a in after]
    return w(
        *("ConvTranspose", x, weight, *bias),
        pads=[*before, *after],
        strides=list(stride),
        dilations=list(dilation),
        output_padding=more,
        group=op.int_("group"),
    )


@form("max_pool1d", "max_pool2d", "max_pool3d")
def _max_pool(w: Writer, op: MsOp, x: str) -> str:
    attributes, before, after = _window(op)
    ceil = int(op.flag("ceil_mode") and op.word("pad_mode") != "same")
    return w(
        "MaxPool", x, kernel_shape=list(op.ints("kernel_size")), pads=[*before, *after], ceil_mode=ceil, **attributes
    )


@form("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(w: Writer, op: MsOp, x: str) -> str:
    attributes, before, after = _window(op)
    if any(d != 1 for d in attributes.pop("dilations")):
        raise no_form(op, "AveragePool of opset 18 has no dilations")
    ceil = int(op.flag("ceil_mode") and op.word("pad_mode") != "same")
    counted = int(op.flag("count_include_pad"))
    kernel = list(op.ints("kernel_size"))
    return w(
        *("AveragePool", x), kernel_shape=kernel, pads=[*before, *after], ceil_mode=ceil, count_include_pad=counted,
        **attributes,
    )  # fmt: skip


@form("sum_pool1d", "sum_pool2d", "sum_pool3d")
def _sum_pool(w: Writer, op: MsOp, x: str) -> str:
    """The mean with the padding counted, times the size of the window."""
    attributes, before, after = _window(op)
    if any(d != 1 for d in attributes.pop("dilations")) or op.flag("ceil_mode"):
        raise no_form(op, "AveragePool has no such windows")
    kernel, kind = list(op.ints("kernel_size")), result_type(op)
    mean = w(
        "AveragePool",
        as_type(w, x, op.dtype(0), kind),
        kernel_shape=kernel,
        pads=[*before, *after],
        count_include_pad=1,
        **attributes,
    )
    return w("Mul", mean, w.scalar(math.prod(kernel), kind))


# Normalisations.


@form("batch_norm")
def _batch_norm(w: Writer, op: MsOp, *inputs: str) -> str:
    return w("BatchNormalization", *inputs, epsilon=op.real("epsilon"))


@form("layer_norm")
def _layer_norm(w: Writer, op: MsOp, *inputs: str) -> str:
    return w("LayerNormalization", *inputs, axis=op.int_("begin_norm_axis"), epsilon=op.real("epsilon"))


@form("instance_norm")
def _instance_norm(w: Writer, op: MsOp, *inputs: str) -> str:
    return w("InstanceNormalization", *inputs, epsilon=op.real("epsilon"))


@form("group_norm")
def _group_norm(w: Writer, op: MsOp, x: str, gamma: str, beta: str) -> str:
    """Groups as the channels of an InstanceNormalization, then scale and offset of each channel."""
    sizes, groups, kind = known_shape(op), op.int_("num_groups"), op.dtype(0)
    neutral = [w.constant(np.full(groups, value, numpy_dtype(kind))) for value in (1, 0)]
    grouped = w("Reshape", x, w.ints([sizes[0], groups, -1]))
    normal = w("InstanceNormalization", grouped, *neutral, epsilon=op.real("epsilon"))
    channels = w.ints([sizes[1], *[1] * (len(sizes) - 2)])
    scale, offset = (w("Reshape", v, channels) for v in (gamma, beta))
    return w("Add", w("Mul", w("Reshape", normal, w.ints(sizes)), scale), offset)


@form("rms_norm")
def _rms_norm(w: Writer, op: MsOp, x: str, gamma: str) -> str:
    rank, axes = len(op.shape(0)), len(shape(op.operands[1]))
    mean = w("ReduceMean", w("Mul", x, x), w.ints(range(rank - axes, rank)), keepdims=1)
    root = w("Sqrt", w("Add", mean, w.scalar(op.real("epsilon"), op.dtype(0))))
    return w("Mul", w("Div", x, root), gamma)


@form("l2_normalize")
def _l2_normalize(w: Writer, op: MsOp, x: str) -> str:
    total = w("ReduceSumSquare", x, w.ints(op.ints("axis")), keepdims=1)
    return w("Div", x, w("Sqrt", w("Max", total, w.scalar(op.real("epsilon"), op.dtype(0)))))


# Reductions.

_REDUCTIONS = {
    "reduce_sum": "ReduceSum", "reduce_prod": "ReduceProd", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
    "reduce_mean": "ReduceMean", "reduce_all": "ReduceMin", "reduce_any": "ReduceMax",
}  # fmt: skip


@form(*_REDUCTIONS)
def _reduce(w: Writer, op: MsOp, x: str) -> str:
    axes, kind = op.ints("axis") or range(len(op.shape(0))), op.dtype(0)
    inner = "i32" if kind == "i1" else result_type(op)
    y = w(_REDUCTIONS[op.name[3:]], as_type(w, x, kind, inner), w.ints(axes), keepdims=int(op.flag("keep_dims")))
    return as_type(w, y, inner, result_type(op))


@form("argmax", "argmin")
def _arg(w: Writer, op: MsOp, x: str) -> str:
    keep, last = int(op.flag("keep_dims")), int(op.flag("select_last"))
    operator = "ArgMax" if op.name == "ms.argmax" else "ArgMin"
    found = w(operator, x, axis=op.int_("axis"), keepdims=keep, select_last_index=last)
    return found if result_type(op) == "i64" else w("Cast", found, to=TYPES[result_type(op)])


@form("argsort")
def _argsort(w: Writer, op: MsOp, x: str) -> str:
    axis = op.int_("axis")
    count = op.result_shape()[axis]
    if count < 0:
        raise no_form(op, "the size of the axis is open")
    return w.many(2, "TopK", x, w.ints([count]), axis=axis, largest=int(op.flag("descending")))[1]


@form("cumsum")
def _cumsum(w: Writer, op: MsOp, x: str) -> str:
    axis = w.constant(np.array(op.int_("axis"), np.int64))
    return w("CumSum", x, axis, exclusive=int(op.flag("exclusive")), reverse=int(op.flag("reverse")))


@form("packed_matmul")
def _packed_product(w: Writer, op: PackedMatmulOp, x: str, *packed: str) -> str:
    """MatMulNBits of ONNX Runtime, whose bytes are the rows of the weights."""
    known = [array for array in map(w.known, packed) if array is not None]
    if len(known) < len(packed):
        raise no_form(op, "its weights are no constants")
    codes, scale, *zero = known
    bits, blocks = op.int_("bits"), codes.shape[1]
    whole = from_panels(codes, bits)
    n, k = whole.shape
    given = [bytes_of(whole, bits).reshape(n, blocks, -1), values_from_panels(scale)]
    for each in zero:
        rows = values_from_panels(each)
        given.append(bytes_of(rows, bits).reshape(-1) if rows.dtype == np.uint8 else rows)
    names = [w.constant(np.ascontiguousarray(each), f"{packed[0]}_{k}") for k, each in enumerate(given)]
    level = {"accuracy_level": 4} if op.flag("rounds") else {}
    y = w("MatMulNBits", x, *names, K=k, N=n, bits=bits, block_size=k // blocks, **level)
    w.nodes[-1].domain = "com.microsoft"
    return y
