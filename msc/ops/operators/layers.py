"""Operators of layers: products, windows, normalisation, losses, and those that change parameters."""

from __future__ import annotations

from typing import Any

from msc.frontend import expectations
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.ops import images, linear, losses, normalisation, random
from msc.ops.arithmetic import add, mul, sub
from msc.ops.normalisation import batch_statistics, move_statistics
from msc.ops.operands import cast
from msc.ops.primitive import operator
from msc.ops.reductions import mean, sum
from msc.ops.selection import gather, where
from msc.ops.shapes import sizes_of
from msc.ops.unary import rsqrt, square
from msc.ops.windows import convolution, in_format, pooling
from msc.support.wording import a

__all__ = [
    "LRN", "Assign", "AssignAdd", "AssignSub", "AvgPool", "AvgPool3D", "BCEWithLogitsLoss", "BatchMatMul",
    "BatchNorm", "BiasAdd", "BinaryCrossEntropy", "Conv2D", "Conv3D", "Depend", "Dropout", "KLDivLoss", "L2Loss",
    "L2Normalize", "LayerNorm", "MakeTuple", "MatMul", "MatMulExt", "MaxPool", "MaxPool3D", "NLLLoss", "Print",
    "ResizeBilinear", "ResizeBilinearV2", "ResizeNearestNeighbor", "ResizeNearestNeighborV2", "RmsNorm",
    "SigmoidCrossEntropyWithLogits", "SmoothL1Loss", "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits", "StandardNormal", "TupleGetItem", "assign", "assign_add", "assign_sub",
    "depend", "l2_loss", "print_",
]  # fmt: skip


def _matmul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """The product of two matrices, either of them transposed first."""
    return linear.products(a, b, transpose_a, transpose_b, "MatMul")


def _batch_matmul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Products of the matrices in the last two axes, either of them transposed first."""
    return linear.products(a, b, transpose_a, transpose_b, "BatchMatMul")


def _bias_add(x: Tensor, bias: Tensor, *, data_format: str = "NCHW") -> Tensor:
    """X plus a bias a channel."""
    return add(x, bias) if data_format == "NHWC" else linear.bias_add(x, bias)


def _convolution(name: str, count: int) -> Any:
    def convolve(
        x: Tensor,
        weight: Tensor,
        *,
        out_channel: int,
        kernel_size: Any,
        mode: int = 1,
        pad_mode: str = "valid",
        pad: Any = 0,
        stride: Any = 1,
        dilation: Any = 1,
        group: int = 1,
        data_format: str,
    ) -> Tensor:
        """Convolution of images or volumes."""
        if weight.shape[0] != out_channel:
            raise ApiValueError("MSC0201", f"{name}: out_channel is {out_channel}, the weight is {weight.shape}")
        unused(name, mode=mode)
        kernel = sizes_of(kernel_size)
        if tuple(weight.shape[2:]) != (kernel * count if len(kernel) == 1 else kernel):
            raise ApiValueError("MSC0201", f"{name}: kernel_size is {kernel_size}, the weight is {weight.shape}")

        def convolved(x: Tensor) -> Tensor:
            return convolution(x, weight, None, stride, pad_mode, pad, dilation, group, count)

        return in_format(data_format, convolved, x)

    return convolve


def _pool(kind: str, count: int) -> Any:
    def pool(x: Tensor, *, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "valid", data_format: str) -> Tensor:
        def pooled(x: Tensor) -> Tensor:
            return pooling(kind, x, kernel_size, strides, pad_mode, 0, count)

        return in_format(data_format, pooled, x)

    pool.__doc__ = "The largest element of each window." if kind == "max" else "The mean of each window."
    return pool


def _batch_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    average: Tensor,
    variance: Tensor,
    *,
    is_training: bool = False,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    data_format: str = "NCHW",
) -> tuple[Tensor, ...]:
    """The normalised batch, and the statistics that it was normalised with (twice)."""
    del data_format
    if is_training:
        mean_, var_ = batch_statistics(x)
        move_statistics(average, variance, x, mean_, var_, momentum)
        average, variance = cast(mean_, average.dtype), cast(var_, variance.dtype)
    y = normalisation.batch_norm(x, average, variance, scale, bias, False, momentum, epsilon)
    return y, average, variance, average, variance


def _layer_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    begin_norm_axis: int = 1,
    begin_params_axis: int = 1,
    epsilon: float = 1e-7,
) -> tuple[Tensor, Tensor, Tensor]:
    """The normalised tensor, the means and the variances."""
    del begin_params_axis
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    average = mean(x, axes, True)
    variance = mean(square(sub(x, average)), axes, True)
    normal = mul(sub(x, average), rsqrt(add(variance, float(epsilon))))
    return add(mul(normal, gamma), beta), average, variance


def _dropout(x: Tensor, *, keep_prob: float = 0.5, Seed0: int = 0, Seed1: int = 0) -> tuple[Tensor, Tensor]:
    """The tensor with dropped elements, and the mask that was applied."""
    mask = random.keep_mask(x, 1 - keep_prob, x.shape, Seed0 or Seed1 or None)
    return mul(mul(x, mask), 1 / keep_prob), mask


def _resize_nearest(x: Tensor, *, size: Any, align_corners: bool = False) -> Tensor:
    """Images resized to a size, each pixel the nearest one."""
    return images.interpolate(x, size, mode="nearest", align_corners=align_corners)


def _resize_bilinear(x: Tensor, *, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Images resized to a size by linear interpolation."""
    if not align_corners and not half_pixel_centers:
        raise ApiValueError("MSC0203", "ResizeBilinear: set align_corners or half_pixel_centers")
    return images.interpolate(x, size, mode="bilinear", align_corners=align_corners)


def _resize_v2(mode: str) -> Any:
    def resize(x: Tensor, size: Any, *, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
        unused(f"Resize of {mode}", half_pixel_centers=half_pixel_centers)
        return images.interpolate(x, size, mode=mode, align_corners=align_corners)

    resize.__doc__ = "Images resized to a size."
    return resize


def _softmax_cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The cross entropy of each row with probabilities, and its gradient."""
    gradient = sub(losses.exp(losses.log_softmax(logits, -1)), labels)
    return losses.softmax_cross_entropy_with_logits(logits, labels), gradient


def _sparse_cross_entropy(logits: Tensor, labels: Tensor, *, is_grad: bool = False) -> Tensor:
    """The mean cross entropy with classes, or its gradient."""
    if not is_grad:
        return mean(losses.sparse_softmax_cross_entropy(logits, labels))
    expectations.expect_labels("SparseSoftmaxCrossEntropyWithLogits", labels, logits.shape[-1])
    hot = losses.one_hot(labels, logits.shape[-1], 1.0, 0.0)
    return mul(sub(losses.exp(losses.log_softmax(logits, -1)), hot), 1 / logits.shape[0])


def _sigmoid_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The binary cross entropy of sigmoid(x) of each element."""
    return losses.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def _bce_with_logits(
    logits: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of sigmoid(x)."""
    return losses.binary_cross_entropy_with_logits(logits, label, weight, pos_weight, reduction)


def _nll_loss(
    logits: Tensor, labels: Tensor, weight: Tensor, *, reduction: str = "mean", ignore_index: int = -100
) -> tuple[Tensor, Tensor]:
    """The negative log likelihood of classes, and the sum of the weights."""
    loss = losses.nll_loss(logits, labels, weight, ignore_index, reduction)
    kept = cast(losses.not_equal(labels, ignore_index), weight.dtype)

    place = where(losses.not_equal(labels, ignore_index), labels, 0)
    return loss, sum(mul(gather(weight, place, 0), kept))


def l2_loss(input_x: Tensor) -> Tensor:
    """Half the sum of squares."""
    return mul(sum(square(input_x)), 0.5)


def _parameter(value: Any, function: str) -> Parameter:
    if not isinstance(value, Parameter):
        raise ApiTypeError("MSC0807", f"{function} changes a Parameter, not {a(type(value).__name__)}")
    return value


def assign(variable: Parameter, value: Tensor) -> Parameter:
    """Give a parameter a value."""
    return _parameter(variable, "assign").set_data(value)


def assign_add(variable: Parameter, value: Tensor) -> Parameter:
    """Add to a parameter."""
    return _parameter(variable, "assign_add").set_data(add(variable, value))


def assign_sub(variable: Parameter, value: Tensor) -> Parameter:
    """Subtract from a parameter."""
    return _parameter(variable, "assign_sub").set_data(sub(variable, value))


def depend(value: Any, expr: Any) -> Any:
    """The value itself: what is written first runs first."""
    del expr
    return value


def _make_tuple(*values: Any) -> tuple[Any, ...]:
    """The values as a tuple."""
    return values


def _tuple_item(values: Any, index: int) -> Any:
    """The value at a place of a tuple."""
    return values[index]


def print_(*values: Any) -> None:
    """Print values."""
    print(*values)


MatMul = operator("MatMul", _matmul, "transpose_a transpose_b")
MatMulExt = operator("MatMulExt", linear.matmul)
BatchMatMul = operator("BatchMatMul", _batch_matmul, "transpose_a transpose_b")
BiasAdd = operator("BiasAdd", _bias_add, "data_format")
Conv2D = operator(
    "Conv2D",
    _convolution("Conv2D", 2),
    "out_channel kernel_size mode pad_mode pad stride dilation group data_format",
    data_format="NCHW",
)
Conv3D = operator(
    "Conv3D",
    _convolution("Conv3D", 3),
    "out_channel kernel_size mode pad_mode pad stride dilation group data_format",
    data_format="NCDHW",
)
MaxPool = operator("MaxPool", _pool("max", 2), "kernel_size strides pad_mode data_format", data_format="NCHW")
AvgPool = operator("AvgPool", _pool("avg", 2), "kernel_size strides pad_mode data_format", data_format="NCHW")
MaxPool3D = operator("MaxPool3D", _pool("max", 3), "kernel_size strides pad_mode data_format", data_format="NCDHW")
AvgPool3D = operator("AvgPool3D", _pool("avg", 3), "kernel_size strides pad_mode data_format", data_format="NCDHW")
BatchNorm = operator("BatchNorm", _batch_norm, "is_training epsilon momentum data_format")
LayerNorm = operator("LayerNorm", _layer_norm, "begin_norm_axis begin_params_axis epsilon")
RmsNorm = operator("RmsNorm", normalisation.rms_norm, "epsilon")
L2Normalize = operator("L2Normalize", normalisation.l2_normalize, "axis epsilon")
LRN = operator("LRN", normalisation.lrn, "depth_radius bias alpha beta norm_region")
Dropout = operator("Dropout", _dropout, "keep_prob Seed0 Seed1")
ResizeNearestNeighbor = operator("ResizeNearestNeighbor", _resize_nearest, "size align_corners")
ResizeNearestNeighborV2 = operator("ResizeNearestNeighborV2", _resize_v2("nearest"), "align_corners half_pixel_centers")
ResizeBilinear = operator("ResizeBilinear", _resize_bilinear, "size align_corners half_pixel_centers")
ResizeBilinearV2 = operator("ResizeBilinearV2", _resize_v2("bilinear"), "align_corners half_pixel_centers")
SoftmaxCrossEntropyWithLogits = operator("SoftmaxCrossEntropyWithLogits", _softmax_cross_entropy)
SparseSoftmaxCrossEntropyWithLogits = operator("SparseSoftmaxCrossEntropyWithLogits", _sparse_cross_entropy, "is_grad")
SigmoidCrossEntropyWithLogits = operator("SigmoidCrossEntropyWithLogits", _sigmoid_cross_entropy)
BCEWithLogitsLoss = operator("BCEWithLogitsLoss", _bce_with_logits, "reduction")
BinaryCrossEntropy = operator("BinaryCrossEntropy", losses.binary_cross_entropy, "reduction")
SmoothL1Loss = operator("SmoothL1Loss", losses.smooth_l1_loss, "beta reduction")
KLDivLoss = operator("KLDivLoss", losses.kl_div, "reduction")
NLLLoss = operator("NLLLoss", _nll_loss, "reduction ignore_index")
L2Loss = operator("L2Loss", l2_loss)
StandardNormal = operator("StandardNormal", random.standard_normal)
Assign = operator("Assign", assign)
AssignAdd = operator("AssignAdd", assign_add)
AssignSub = operator("AssignSub", assign_sub)
Depend = operator("Depend", depend)
MakeTuple = operator("MakeTuple", _make_tuple)
TupleGetItem = operator("TupleGetItem", _tuple_item)
Print = operator("Print", print_)
