"""Layers of mathematics and of images that MindSpore's early releases have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Number, Tensor
from msc.nn.activation import Activation, get_activation
from msc.nn.arguments import positive
from msc.nn.basic import Dense
from msc.nn.cell import Cell
from msc.nn.convolution import Conv2d
from msc.nn.normalisation import BatchNorm1d, BatchNorm2d

__all__ = [
    "PSNR", "SSIM", "CentralCrop", "ClipByNorm", "Conv2dBnAct", "DenseBnAct", "DiGamma", "IGamma", "ImageGradients",
    "L1Regularizer", "LBeta", "LGamma", "MatDet", "MatInverse", "MatMul", "MatrixDiag", "MatrixDiagPart",
    "MatrixSetDiag", "Moments", "Norm", "OneHot", "Range", "ReduceLogSumExp", "ResizeBilinear", "SyncBatchNorm",
    "Tril", "Triu",
]  # fmt: skip


class ClipByNorm(Cell):
    """x, scaled to a length if it is longer: over all axes, or those given."""

    def __init__(self, axis: int | Sequence[int] | None = None) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor, clip_norm: Any) -> Tensor:
        wide = x if x.dtype is dtypes.float32 else ops.cast(x, dtypes.float32)
        axes = tuple(range(x.ndim)) if self.axis is None else self.axis
        squares = ops.sum(ops.square(wide), axes, True)
        lengths = ops.where(
            ops.greater(squares, 0), ops.sqrt(ops.where(ops.greater(squares, 0), squares, 1.0)), squares
        )
        most = (
            ops.cast(clip_norm, dtypes.float32) if isinstance(clip_norm, Tensor) else Tensor(clip_norm, dtypes.float32)
        )
        return ops.cast(ops.div(ops.mul(wide, most), ops.maximum(lengths, most)), x.dtype)


class OneHot(Cell):
    """`on_value` at the index along a new axis, `off_value` elsewhere."""

    def __init__(
        self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = dtypes.float32
    ) -> None:
        super().__init__()
        self.axis, self.depth = axis, depth
        self.on_value, self.off_value = Tensor(on_value, dtype), Tensor(off_value, dtype)

    def construct(self, indices: Tensor) -> Tensor:
        return ops.one_hot(indices, self.depth, self.on_value, self.off_value, self.axis)


class Norm(Cell):
    """The root of the sum of squares along axes, of all without any."""

    def __init__(self, axis: int | tuple[int, ...] = (), keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        return ops.sqrt(ops.sum(ops.square(x), None if self.axis == () else self.axis, self.keep_dims))


class MatMul(Cell):
    """The product of matrices in the last two axes, either of them transposed first."""

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        self.transpose_x1, self.transpose_x2 = transpose_x1, transpose_x2

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        first = ops.swapaxes(x1, -1, -2) if self.transpose_x1 else x1
        return ops.matmul(first, ops.swapaxes(x2, -1, -2) if self.transpose_x2 else x2)


class Range(Cell):
    """Numbers from start up to but without limit, delta apart; from 0 to start without a limit."""

    def __init__(self, start: Number, limit: Number | None = None, delta: Number = 1) -> None:
        super().__init__()
        if delta == 0:
            raise ApiValueError("MSC0824", "Range: delta is 0")
        array = np.arange(start, limit, delta) if limit is not None else np.arange(0, start, delta)
        self.result = Tensor(array.astype(np.float32 if array.dtype.kind == "f" else np.int32))

    def construct(self) -> Tensor:
        return self.result


class Moments(Cell):
    """The mean and the variance (divisor N) along axes, of all without any."""

    def __init__(self, axis: int | tuple[int, ...] | None = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, bool(keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = None if self.axis in (None, ()) else self.axis
        mean = ops.mean(x, axes, True)
        variance = ops.mean(ops.square(ops.sub(x, mean)), axes, self.keep_dims)
        return mean if self.keep_dims else ops.reshape(mean, variance.shape), variance


class ReduceLogSumExp(Cell):
    """log(sum of e^x) along axes."""

    def __init__(self, axis: int | tuple[int, ...], keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        return ops.logsumexp(x, self.axis, self.keep_dims)


class Tril(Cell):
    """The lower triangle, 0 above the k-th diagonal."""

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.tril(x, k)


class Triu(Cell):
    """The upper triangle, 0 below the k-th diagonal."""

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return ops.triu(x, k)


class CentralCrop(Cell):
    """The middle part of images `[c, h, w]` or `[n, c, h, w]`."""

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        if not 0 < central_fraction <= 1:
            raise ApiValueError("MSC0824", f"CentralCrop: central_fraction is {central_fraction}, not in (0, 1]")
        self.central_fraction = central_fraction

    def construct(self, image: Tensor) -> Tensor:
        for axis in (-2, -1):
            size = image.shape[axis]
            begin = int((size - size * self.central_fraction) / 2)
            image = ops.narrow(image, axis, begin, size - 2 * begin)
        return image


class PSNR(Cell):
    """The peak signal-to-noise ratio of images in decibels: 10 log10(max_val^2 / mean square error)."""

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        if max_val <= 0:
            raise ApiValueError("MSC0824", f"PSNR: max_val is {max_val}; it must be above 0")
        self.max_val = max_val

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        error = ops.mean(ops.square(ops.sub(img1, img2)), (-3, -2, -1))
        return ops.mul(ops.log10(ops.div(float(self.max_val) ** 2, error)), 10.0)


class SSIM(Cell):
    """The structural similarity of images `[n, c, h, w]` under a Gaussian window (Wang et al., 2004): `[n]`."""

    def __init__(
        self, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03
    ) -> None:
        super().__init__()
        positive("SSIM", filter_size=filter_size)
        distance = np.arange(filter_size) - (filter_size - 1) / 2
        line = np.exp(-(distance**2) / (2 * filter_sigma**2))
        self.window = Tensor((np.outer(line, line) / line.sum() ** 2).astype(np.float32)[None, None])
        self.c1, self.c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        mean1, mean2 = self._local(img1), self._local(img2)
        product, squares = ops.mul(mean1, mean2), ops.add(ops.square(mean1), ops.square(mean2))
        alike = ops.div(ops.add(ops.mul(product, 2.0), self.c1), ops.add(squares, self.c1))
        covariance = ops.sub(self._local(ops.mul(img1, img2)), product)
        variances = ops.sub(self._local(ops.add(ops.square(img1), ops.square(img2))), squares)
        structure = ops.div(ops.add(ops.mul(covariance, 2.0), self.c2), ops.add(variances, self.c2))
        return ops.mean(ops.mul(alike, structure), (-3, -2, -1))

    def _local(self, x: Tensor) -> Tensor:
        """The means under the window, channel by channel."""
        planes = ops.reshape(x, (x.shape[0] * x.shape[1], 1, *x.shape[2:]))
        means = ops.conv2d(planes, self.window, pad_mode="valid")
        return ops.reshape(means, (*x.shape[:2], *means.shape[2:]))


class SyncBatchNorm(BatchNorm2d):
    """Batch normalisation over all processes: of one, its own."""

    RANKS = (2, 3, 4)


class _BnAct(Cell):
    """What follows a layer: a batch norm and an activation, each if it is asked for."""

    batchnorm: Any
    activation: Any

    def _finished(self, x: Tensor) -> Any:
        x = x if self.batchnorm is None else self.batchnorm(x)
        return x if self.activation is None else self.activation(x)


class Conv2dBnAct(_BnAct):
    """A convolution, a batch norm and an activation, each of the latter two if it is asked for."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: Activation = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init,
        )  # fmt: skip
        self.after_fake, self.has_bn = after_fake, has_bn
        self.batchnorm = BatchNorm2d(out_channels, eps, momentum) if has_bn else None
        self.activation = _activation(activation, alpha)

    def construct(self, x: Tensor) -> Any:
        return self._finished(self.conv(x))


class DenseBnAct(_BnAct):
    """A dense layer, a batch norm and an activation, each of the latter two if it is asked for."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: Activation = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.after_fake, self.has_bn = after_fake, has_bn
        self.batchnorm = BatchNorm1d(out_channels, eps, momentum) if has_bn else None
        self.activation = _activation(activation, alpha)

    def construct(self, x: Tensor) -> Any:
        return self._finished(self.dense(x))


def _activation(given: Activation, alpha: float) -> Any:
    if not isinstance(given, str):
        return given
    made: Any = get_activation(given)
    if given.lower() == "leakyrelu":
        made.alpha = alpha
    return made


def _cell(name: str, function: Callable[..., Any], description: str) -> type[Cell]:
    """A layer without arguments that calls a function."""

    def construct(self: Cell, *inputs: Tensor) -> Any:
        del self
        return function(*inputs)

    own, formal = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), signature(function)
    vars(construct)["__signature__"] = formal.replace(parameters=[own, *list(formal.parameters.values())[:2]])
    return type(name, (Cell,), {"__doc__": description, "__module__": __name__, "construct": construct})


def _log_beta(x: Tensor, y: Tensor) -> Tensor:
    return ops.lgamma(x) + ops.lgamma(y) - ops.lgamma(x + y)


def _image_gradients(images: Tensor) -> tuple[Tensor, Tensor]:
    if images.ndim != 4:
        raise ApiValueError("MSC0201", f"ImageGradients: images have shape {images.shape}, not [n, c, h, w]")
    dy = ops.pad(images[:, :, 1:] - images[:, :, :-1], (0, 0, 0, 1))
    return dy, ops.pad(images[:, :, :, 1:] - images[:, :, :, :-1], (0, 1, 0, 0))


DiGamma = _cell("DiGamma", ops.digamma, "The derivative of the logarithm of the gamma function.")
LGamma = _cell("LGamma", ops.lgamma, "The logarithm of the gamma function.")
IGamma = _cell("IGamma", ops.igamma, "The incomplete gamma function of a and x, over the whole.")
LBeta = _cell("LBeta", _log_beta, "The logarithm of the beta function.")
MatDet = _cell("MatDet", ops.det, "The determinants of matrices.")
MatInverse = _cell("MatInverse", ops.inverse, "The inverses of matrices.")
MatrixDiag = _cell("MatrixDiag", ops.matrix_diag, "Matrices with vectors on the diagonal.")
MatrixDiagPart = _cell("MatrixDiagPart", ops.matrix_diag_part, "The diagonals of matrices.")
MatrixSetDiag = _cell("MatrixSetDiag", ops.matrix_set_diag, "Matrices with other diagonals.")
ImageGradients = _cell("ImageGradients", _image_gradients, "Differences of images downwards and to the right.")


class L1Regularizer(Cell):
    """The sum of absolute values, times a scale."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def construct(self, weights: Tensor) -> Tensor:
        return ops.sum(ops.abs(weights)) * self.scale


class ResizeBilinear(Cell):
    """Images in another size, which `size` or `scale_factor` says, by linear interpolation."""

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = half_pixel_centers

    def construct(
        self, x: Tensor, size: Any = None, scale_factor: int | None = None, align_corners: bool = False
    ) -> Tensor:
        if (size is None) == (scale_factor is None):
            raise ApiValueError("MSC0203", "ResizeBilinear takes a size or a scale_factor")
        wanted = (x.shape[2] * scale_factor, x.shape[3] * scale_factor) if scale_factor else tuple(size)
        return ops.ResizeBilinearV2(align_corners, self.half_pixel_centers)(x, wanted)
