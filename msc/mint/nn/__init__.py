"""MindSpore's `mint.nn`: layers with PyTorch's arguments, made of those of `msc.nn`."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from msc import nn, ops
from msc.frontend import dtypes
from msc.frontend.boundary import elsewhere
from msc.frontend.initializers import HeUniform, Uniform
from msc.frontend.tensor import Tensor

_SAME = (
    "BCELoss BCEWithLogitsLoss CosineEmbeddingLoss ELU Flatten GELU GroupNorm Hardtanh Identity KLDivLoss L1Loss "
    "LogSigmoid MSELoss Mish PReLU PixelShuffle ReLU ReLU6 SELU SiLU Sigmoid SmoothL1Loss SoftMarginLoss Tanh "
    "Threshold AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "CrossEntropyLoss NLLLoss ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d "
    "ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad2d Upsample Embedding LayerNorm Unfold"
)
_OTHER = {
    "Hardshrink": "HShrink", "Hardsigmoid": "HSigmoid", "Hardswish": "HSwish", "SELU": "SeLU",
    "Softshrink": "SoftShrink",
}  # fmt: skip


class Linear(nn.Dense):
    """The input times the transposed weight, plus a bias."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(in_features, out_features, weight_init, bias_init, bias, dtype=dtype)
        self.in_features, self.out_features = in_features, out_features


def _pads(kind: type[Any]) -> Any:
    def made(
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = dtypes.float32,
    ) -> Any:
        del padding_mode
        words = {"pad_mode": padding} if isinstance(padding, str) else {"pad_mode": "pad", "padding": padding}
        kernel = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        fan = in_channels // groups * math.prod(kernel * (kind.SPATIAL if len(kernel) == 1 else 1))
        init = HeUniform(math.sqrt(5))
        return kind(
            in_channels, out_channels, kernel_size, stride, dilation=dilation, group=groups, has_bias=bias,
            weight_init=init, bias_init=Uniform(1 / math.sqrt(fan)), dtype=dtype, **words,
        )  # fmt: skip

    made.__doc__ = kind.__doc__
    return made


Conv1d, Conv2d, Conv3d, ConvTranspose2d = map(_pads, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Conv2dTranspose))


def _norm(kind: type[Any]) -> Any:
    def made(
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = dtypes.float32,
    ) -> Any:
        del dtype
        return kind(num_features, eps, 1 - momentum, affine, use_batch_statistics=None if track_running_stats else True)

    made.__doc__ = kind.__doc__
    return made


BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm = map(
    _norm, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
)


def _axis(kind: type[Any]) -> Any:
    def made(dim: int = -1) -> Any:
        return kind(dim)

    made.__doc__ = kind.__doc__
    return made


Softmax, LogSoftmax = map(_axis, (nn.Softmax, nn.LogSoftmax))


def Dropout(p: float = 0.5, inplace: bool = False) -> nn.Cell:
    """Elements dropped with a probability in training."""
    del inplace
    return nn.Dropout(p=p)


def Dropout2d(p: float = 0.5, inplace: bool = False) -> nn.Cell:
    """Channels dropped with a probability in training."""
    del inplace
    return nn.Dropout2d(p)


def LeakyReLU(negative_slope: float = 0.01, inplace: bool = False) -> nn.Cell:
    """X, below 0 times a slope."""
    del inplace
    return nn.LeakyReLU(negative_slope)


class _Pool(nn.Cell):
    """Windows of a function of `functional`."""

    def __init__(self, name: str, kernel_size: Any, stride: Any, padding: Any, **others: Any) -> None:
        super().__init__()
        self.name, self.kernel_size, self.stride, self.padding, self.others = name, kernel_size, stride, padding, others

    def construct(self, x: Tensor) -> Tensor:
        function = getattr(import_module("msc.mint.nn.functional"), self.name)
        return function(x, self.kernel_size, self.stride, self.padding, **self.others)


def _pool(name: str) -> Any:
    def made(kernel_size: Any, stride: Any = None, padding: Any = 0, **others: Any) -> nn.Cell:
        return _Pool(name, kernel_size, stride, padding, **others)

    made.__doc__ = f"Windows, as functional.{name}."
    return made


AvgPool1d, AvgPool2d, MaxPool2d = map(_pool, ("avg_pool1d", "avg_pool2d", "max_pool2d"))


def _average_of_volumes(
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> nn.Cell:
    """A layer of the means of windows of volumes; the stride is the size of the window."""
    options: Any = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    stride = kernel_size if stride is None else stride
    return nn.AvgPool3d(kernel_size, stride, "pad", padding, **options)


AvgPool3d = _average_of_volumes


class Fold(nn.Cell):
    """Windows added into images."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.arguments = (output_size, kernel_size, dilation, padding, stride)

    def construct(self, input: Tensor) -> Tensor:
        return ops.fold(input, *self.arguments)


class Unfold(nn.Cell):
    """The windows of images as columns."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.arguments = (kernel_size, dilation, padding, stride)

    def construct(self, input: Tensor) -> Tensor:
        return ops.unfold(input, *self.arguments)


_OWN = (
    "Linear Conv1d Conv2d Conv3d ConvTranspose2d BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm Softmax "
    "LogSoftmax Dropout Dropout2d LeakyReLU AvgPool1d AvgPool2d AvgPool3d MaxPool2d Fold Unfold"
)
for _name in (*_SAME.split(), *_OTHER):
    if _name not in globals() and hasattr(nn, _OTHER.get(_name, _name)):
        globals()[_name] = getattr(nn, _OTHER.get(_name, _name))
_PUBLIC = sorted({n for n in (*_OWN.split(), *_SAME.split(), *_OTHER) if n in globals()})
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name == "functional":
        return import_module("msc.mint.nn.functional")
    return elsewhere("msc.mint.nn", name, __all__)
