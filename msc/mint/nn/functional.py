"""MindSpore's `mint.nn.functional`: functions of layers with PyTorch's arguments."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

from typing import Any

from msc import ops
from msc.frontend.boundary import elsewhere, publish
from msc.frontend.tensor import Tensor
from msc.mint import torch_keywords
from msc.ops import windows

_SAME = (
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity cross_entropy "
    "elu embedding fold gelu glu grid_sample group_norm hardshrink hardsigmoid hardswish hardtanh interpolate "
    "kl_div l1_loss layer_norm log_softmax logsigmoid mish mse_loss nll_loss one_hot pad pixel_shuffle prelu relu "
    "relu6 selu sigmoid silu smooth_l1_loss soft_margin_loss softmax softplus softshrink tanh threshold unfold "
    "upsample flatten"
)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The input times the transposed weight, plus a bias."""
    return ops.dense(input, weight, bias)


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """X, below 0 times a slope."""
    return ops.leaky_relu(input, negative_slope)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements dropped with a probability, the others divided by the rest of it."""
    del inplace
    return ops.dropout(input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Channels dropped with a probability, the others divided by the rest of it."""
    return ops.dropout2d(input, p, training)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along an axis, divided by their norm, `eps` at least."""
    return ops.div(input, ops.maximum(ops.vector_norm(input, p, dim, True), eps))


def _convolution(count: int) -> Any:
    def convolve(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        if isinstance(padding, str):
            return windows.convolution(input, weight, bias, stride, padding, 0, dilation, groups, count)
        return windows.convolution(input, weight, bias, stride, "pad", padding, dilation, groups, count)

    convolve.__name__ = convolve.__qualname__ = f"conv{count}d"
    convolve.__doc__ = f"Convolution along {count} axes, with zeros around by `padding`, or 'same' or 'valid'."
    return convolve


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution of images."""
    return windows.transposed_convolution(
        input, weight, bias, stride, "pad", padding, output_padding, dilation, groups, 2
    )


def _pool(name: str, function: Any) -> Any:
    def pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, *args: Any, **keywords: Any
    ) -> Tensor:
        return function(input, kernel_size, kernel_size if stride is None else stride, padding, *args, **keywords)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = function.__doc__
    return pool


avg_pool1d, avg_pool2d, max_pool2d = (
    _pool("avg_pool1d", ops.avg_pool1d),
    _pool("avg_pool2d", ops.avg_pool2d),
    _pool("max_pool2d", ops.max_pool2d),
)


def batch_norm(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """The normalised batch; in training by its own statistics, which move the running ones by `momentum`."""
    weight = ops.ones_like(running_mean) if weight is None else weight
    bias = ops.zeros_like(running_mean) if bias is None else bias
    return ops.BatchNorm(training, eps, momentum)(input, weight, bias, running_mean, running_var)[0]


globals().update({name: torch_keywords(getattr(ops, name), name) for name in _SAME.split() if hasattr(ops, name)})
_OWN = (
    "linear leaky_relu dropout dropout2d normalize conv1d conv2d conv3d conv_transpose2d avg_pool1d avg_pool2d "
    "max_pool2d batch_norm"
)
_PUBLIC = sorted([name for name in _SAME.split() if name in globals()] + _OWN.split())
__all__ = list(_PUBLIC)
publish(globals(), __all__, "mint.nn.functional")


def __getattr__(name: str) -> Any:
    return elsewhere("msc.mint.nn.functional", name, __all__)
