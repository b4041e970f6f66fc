"""The operators of `com.microsoft` that ONNX Runtime's quantiser writes, by what they mean in standard operations.

Where the text says integers, sums are integers; the others are dequantised, computed and quantised again, which gives
ONNX Runtime's values but for the last step where a real lies next to a tie.
Source: ONNX Runtime's ContribOperators.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.dialects.packed_weights import codes_of_bytes, in_panels, values_in_panels
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.linear import product
from msc.importers.onnx.operators.pooling import AVG_POOLS, pooled, pooling_window
from msc.importers.onnx.operators.quantization import (
    MICROSOFT,
    dequantized,
    dynamically_quantized,
    integer_product,
    quantized,
    requantized,
)
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


def _one(node: Node, x: OnnxValue | None) -> OnnxValue | None:
    """A scale or zero point of one element without axes."""
    return x if x is None or x.shape != (1,) else node.reshape(x, ())


def _scale(node: Node, index: int) -> OnnxValue:
    return _one(node, node[index]) or node[index]


def _zero(node: Node, index: int) -> OnnxValue | None:
    return _one(node, node.get(index))


def _real(node: Node, index: int) -> OnnxValue:
    """What inputs `index` (values), `index + 1` (scale) and `index + 2` (zero point, maybe absent) stand for."""
    return dequantized(node, node[index], _scale(node, index + 1), _zero(node, index + 2))


def _again(node: Node, x: OnnxValue, scale: int, like: OnnxValue) -> OnnxValue:
    """Reals quantised by inputs `scale` and the next one, in the type of `like` if there is no zero point."""
    zero = _zero(node, scale + 1)
    return quantized(node, x, _scale(node, scale), zero, like.dtype if zero is None else zero.dtype)


def _binary(operation: type[MsOp]) -> Callable[[Node], OnnxValue]:
    def import_(node: Node) -> OnnxValue:
        return _again(node, node(operation, _real(node, 0), _real(node, 3)), 6, node[0])

    return import_


importer("QLinearAdd", domain=MICROSOFT)(_binary(ms.AddOp))
importer("QLinearMul", domain=MICROSOFT)(_binary(ms.MulOp))


@importer("QLinearSigmoid", domain=MICROSOFT)
def _sigmoid(node: Node) -> OnnxValue:
    return _again(node, node(ms.SigmoidOp, _real(node, 0)), 3, node[0])


@importer("QLinearLeakyRelu", domain=MICROSOFT)
def _leaky_relu(node: Node) -> OnnxValue:
    return _again(node, node(ms.LeakyReluOp, _real(node, 0), alpha=node.real("alpha", 0.01)), 3, node[0])


@importer("QLinearSoftmax", domain=MICROSOFT)
def _softmax(node: Node) -> OnnxValue:
    """Along one axis, or, as before opset 13, along all from it on."""
    x = _real(node, 0)
    axis = node.axis(node.int_("axis", -1), x.rank)
    if node.int_("opset", 13) >= 13 or axis == x.rank - 1:
        return _again(node, node(ms.SoftmaxOp, x, axis=axis), 3, node[0])
    flat = node(ms.SoftmaxOp, node(ms.FlattenOp, x, axis=axis), axis=1)
    return _again(node, node.reshape(flat, node.shape_of(x)), 3, node[0])


@importer("QLinearWhere", domain=MICROSOFT)
def _where(node: Node) -> OnnxValue:
    return _again(node, node(ms.SelectOp, node[0], _real(node, 1), _real(node, 4)), 7, node[1])


@importer("QLinearConcat", domain=MICROSOFT)
def _concat(node: Node) -> OnnxValue:
    """Inputs: scale and zero point of the result, then three for each tensor."""
    if len(node) < 5 or (len(node) - 2) % 3:
        raise node.failure("MSC0711", f"it has {len(node)} inputs, not a scale, a zero point and three for each tensor")
    reals = [_real(node, index) for index in range(2, len(node), 3)]
    joined = node(ms.ConcatOp, *reals, axis=node.axis(node.int_("axis", 0), reals[0].rank))
    return _again(node, joined, 0, node[2])


@importer("QLinearReduceMean", domain=MICROSOFT)
def _reduce_mean(node: Node) -> OnnxValue:
    x = _real(node, 0)
    mean = node(ms.ReduceMeanOp, x, axis=node.ints("axes"), keep_dims=node.flag("keepdims", True))
    return _again(node, mean, 3, node[0])


@importer("QLinearGlobalAveragePool", domain=MICROSOFT)
def _global_average(node: Node) -> OnnxValue:
    """The sum is an integer; its scale is that of x divided by the number of pixels."""
    x, zero = node[0], _zero(node, 2)
    axes = [a for a in range(1, x.rank) if a != (x.rank - 1 if node.flag("channels_last") else 1)]
    wide = node.cast(x, "i32")
    wide = wide if zero is None else node(ms.SubOp, wide, node.cast(zero, "i32"))
    total = node(ms.ReduceSumOp, wide, axis=axes, keep_dims=True)
    pixels = float(np.prod([node.size_of(x, a) for a in axes]))
    y_zero = _zero(node, 4) or node.scalar(0, x.dtype)
    return requantized(node, total, _scale(node, 1), node(ms.MulOp, _scale(node, 3), pixels), y_zero)


@importer("QLinearAveragePool", domain=MICROSOFT)
def _average_pool(node: Node) -> OnnxValue:
    if node.flag("channels_last"):
        raise node.failure("MSC0711", "msc has it for channels in dimension 1, not for channels_last")
    window = pooling_window(node)
    mean = pooled(node, AVG_POOLS, _real(node, 0), window, count_include_pad=node.flag("count_include_pad"))
    return _again(node, mean, 3, node[0])


def _columns(node: Node, x: OnnxValue, transposed: bool) -> OnnxValue:
    return node(ms.TransposeOp, x, perm=[1, 0]) if transposed else x


@importer("QGemm", domain=MICROSOFT)
def _gemm(node: Node) -> OnnxValue:
    """Integers if the result has a scale, else f32; C is i32, of the scale of the sums."""
    a, b = _columns(node, node[0], node.flag("transA")), _columns(node, node[3], node.flag("transB"))
    total = integer_product(node, a, _zero(node, 2), b, _zero(node, 5))
    c = node.get(6)
    total = total if c is None else node(ms.AddOp, total, c)
    alpha = node.real("alpha", 1.0)
    scale = node(ms.MulOp, _scale(node, 1), _scale(node, 4))
    scale = scale if alpha == 1.0 else node(ms.MulOp, node(ms.MulOp, _scale(node, 1), alpha), _scale(node, 4))
    if node.get(7) is None:
        return node(ms.DequantizeOp, total, scale)
    return requantized(node, total, scale, _scale(node, 7), _zero(node, 8) or node.scalar(0, node[0].dtype))


def _scaled_sums(
    node: Node,
    a: tuple[OnnxValue, OnnxValue, OnnxValue | None],
    b: tuple[OnnxValue, OnnxValue | None, OnnxValue | None],
    bias: OnnxValue | None,
) -> OnnxValue:
    """Reals from the sums of quantised operands (values, scale, zero point), and a bias."""
    total = integer_product(node, a[0], a[2], b[0], b[2])
    real = node(ms.DequantizeOp, total, a[1] if b[1] is None else node(ms.MulOp, a[1], b[1]))
    return real if bias is None else node(ms.AddOp, real, bias)


@importer("MatMulIntegerToFloat", domain=MICROSOFT)
def _product_to_float(node: Node) -> OnnxValue:
    a = (node[0], _scale(node, 2), _zero(node, 4))
    return _scaled_sums(node, a, (node[1], _scale(node, 3), _zero(node, 5)), node.get(6))


@importer("DynamicQuantizeMatMul", domain=MICROSOFT)
def _dynamic_product(node: Node) -> OnnxValue:
    values, scale, zero = dynamically_quantized(node, node[0])
    return _scaled_sums(node, (values, scale, zero), (node[1], _scale(node, 2), _zero(node, 3)), node.get(4))


@importer("MatMulNBits", domain=MICROSOFT)
def _product_of_bits(node: Node) -> OnnxValue:
    """A times the transposed B, which has N rows of K numbers of 2, 4 or 8 bits in blocks with a scale each.

    B is [N, blocks, bytes], the first number in the lowest bits. Zero points are packed likewise, a row a byte border,
    or have the type of the scales; without them it is half of the range. Accuracy level 4 lets A be rounded to 8 bits.
    """
    k, n, bits, size = (node.int_(name, 0) for name in ("K", "N", "bits", "block_size"))
    if bits not in (2, 4, 8) or size < 16 or size & (size - 1) or k < 1 or n < 1:
        message = f"K, N, bits and block_size are {k}, {n}, {bits} and {size}; msc has it for 2, 4 and 8 bits"
        raise node.failure("MSC0711", f"{message} in blocks of a power of two from 16 on")
    blocks = -(-k // size)
    packed = node.known(1, "weights").reshape(-1)
    if packed.dtype != np.uint8 or packed.size != n * blocks * (size * bits // 8):
        raise node.failure("MSC0711", f"the weights have {packed.size} bytes, not {n * blocks * (size * bits // 8)}")
    codes = codes_of_bytes(packed.reshape(n * blocks, -1), bits).reshape(n, blocks * size)
    zero = _zeros_of_bits(node, n, blocks, bits)
    order = node.get(4)
    block = node.arange(k) // size if order is None else node.known(4, "g_idx").reshape(-1)[:k].astype(np.int64)
    places = np.argsort(block, kind="stable")
    if np.array_equal(block[places], node.arange(k) // size):
        y = _packed_product(node, codes, zero, None if order is None else places)
    else:
        spread = [
            node(ms.GatherOp, each, node.constant(block), axis=1)
            for each in (node.reshape(node[2], (n, blocks)), node.constant(zero))
        ]
        real = node.cast(node.unevaluated(node.constant(codes[:, :k])), spread[0].dtype)
        weights = node(ms.MulOp, node(ms.SubOp, real, node.cast(spread[1], spread[0].dtype)), spread[0])
        y = product(node, node[0], node(ms.TransposeOp, node.cast(weights, node[0].dtype), perm=[1, 0]))
    bias = node.get(5)
    return y if bias is None else node(ms.AddOp, y, bias)


def _packed_product(node: Node, codes: Array, zero: Array, places: Array | None) -> OnnxValue:
    """The product by weights that stay packed, columns of A taken in the order of the blocks."""
    x, k, n, bits, size = node.cast(node[0], "f32"), *(node.int_(name, 0) for name in ("K", "N", "bits", "block_size"))
    if places is not None:
        codes = codes[:, [*places, *range(k, codes.shape[1])]]
        x = node(ms.GatherOp, x, node.constant(places), axis=len(x.shape) - 1)
    rows = node.reshape(x, (math.prod(x.shape[:-1]), k))
    if codes.shape[1] > k:
        rows = node(ms.PadOp, rows, pad=[0, 0, 0, codes.shape[1] - k])
    scale = node.known(2, "scales").reshape(n, -1)
    given = [] if zero.dtype == np.uint8 and np.all(zero == 1 << (bits - 1)) else [values_in_panels(zero)]
    constants = (in_panels(codes, bits, size), values_in_panels(scale), *given)
    y = node(
        ms.PackedMatmulOp, rows, *map(node.constant, constants), bits=bits, rounds=node.int_("accuracy_level", 0) == 4
    )
    if y.shape[-1] > n:
        y = node(ms.SliceOp, y, begin=[0, 0], end=[y.shape[0], n])
    return node.cast(node.reshape(y, (*x.shape[:-1], n)), node[0].dtype)


def _zeros_of_bits(node: Node, n: int, blocks: int, bits: int) -> Array:
    """The zero points of the rows' blocks: half of the range if there are none, else packed, or numbers."""
    given = node.get(3)
    if given is None:
        return np.full((n, blocks), 1 << (bits - 1), np.uint8)
    zero = node.known(3, "zero points")
    if given.dtype != "ui8":
        return zero.reshape(n, blocks)
    return codes_of_bytes(zero.reshape(n, -1), bits)[:, :blocks]
