"""Normalisation: of batches, layers, groups and instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike
from msc.frontend.errors import ApiValueError
from msc.frontend.initializers import Init
from msc.frontend.tensor import Tensor
from msc.nn.arguments import positive
from msc.nn.cell import Cell
from msc.nn.parameters import parameter
from msc.ops.normalisation import batch_statistics, move_statistics

__all__ = [
    "LRN", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "RMSNorm",
]  # fmt: skip


class BatchNorm(Cell):
    """Base: (x - mean) / sqrt(variance + eps) * gamma + beta for each channel of `[n, c, ...]`.

    While the cell is trained (or `use_batch_statistics` is True) mean and variance are those of the batch, and the
    moving ones become momentum * moving + (1 - momentum) * batch; else the moving ones count. The variance of the batch
    has divisor N where it normalises, N - 1 where it moves: it then estimates that of all data.
    """

    RANKS: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        moving_mean_init: Init = "zeros",
        moving_var_init: Init = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        positive(name, num_features=num_features)
        if not 0 <= momentum <= 1:
            raise ApiValueError("MSC0824", f"{name}: momentum is {momentum}; it must be between 0 and 1")
        if data_format not in ("NCHW", "NCDHW"):
            raise ApiValueError("MSC0824", f"{name}: data_format is {data_format!r}; only channels first is there")
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.use_batch_statistics = use_batch_statistics
        shape = (num_features,)
        self.moving_mean = parameter(moving_mean_init, shape, "mean", dtype)
        self.moving_variance = parameter(moving_var_init, shape, "variance", dtype)
        self.gamma = parameter(gamma_init, shape, "gamma", dtype)
        self.beta = parameter(beta_init, shape, "beta", dtype)
        self.moving_mean.requires_grad = self.moving_variance.requires_grad = False
        self.gamma.requires_grad = self.beta.requires_grad = affine

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim not in self.RANKS:
            ranks = " or ".join(map(str, self.RANKS))
            raise ApiValueError("MSC0201", f"{type(self).__name__}: x has shape {x.shape}; its rank must be {ranks}")
        measured = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        mean, variance = self.measured(x) if measured else (self.moving_mean, self.moving_variance)
        return apply("batch_norm", x, self.gamma, self.beta, mean, variance, epsilon=float(self.eps))

    def measured(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the batch (divisor N), which move the moving ones."""
        mean, variance = batch_statistics(x)
        move_statistics(self.moving_mean, self.moving_variance, x, mean, variance, 1 - self.momentum)
        return ops.cast(mean, self.gamma.dtype), ops.cast(variance, self.gamma.dtype)

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class BatchNorm1d(BatchNorm):
    """Batch normalisation of `[n, c]` or `[n, c, w]`."""

    RANKS: ClassVar[tuple[int, ...]] = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch normalisation of images `[n, c, h, w]`."""

    RANKS: ClassVar[tuple[int, ...]] = (4,)


class BatchNorm3d(BatchNorm):
    """Batch normalisation of volumes `[n, c, d, h, w]`."""

    RANKS: ClassVar[tuple[int, ...]] = (5,)


class LayerNorm(Cell):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the axes from `begin_norm_axis` on.

    gamma and beta have `normalized_shape`, the sizes from `begin_params_axis` on.
    """

    MEMBERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "layer_norm": lambda self: ops.LayerNorm(self.begin_norm_axis, self.begin_params_axis, self.epsilon)
    }

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        epsilon: float = 1e-7,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.begin_norm_axis = begin_norm_axis
        self.begin_params_axis = begin_params_axis
        self.epsilon = epsilon
        self.gamma = parameter(gamma_init, self.normalized_shape, "gamma", dtype)
        self.beta = parameter(beta_init, self.normalized_shape, "beta", dtype)

    def construct(self, x: Tensor) -> Tensor:
        begin = self.begin_norm_axis % x.ndim
        if x.shape[begin:] == self.normalized_shape:
            return apply("layer_norm", x, self.gamma, self.beta, begin_norm_axis=begin, epsilon=float(self.epsilon))
        axes = tuple(range(begin, x.ndim))
        mean = ops.mean(x, axes, True)
        variance = ops.mean(ops.square(ops.sub(x, mean)), axes, True)
        normal = ops.mul(ops.sub(x, mean), ops.rsqrt(ops.add(variance, self.epsilon)))
        return ops.add(ops.mul(normal, self.gamma), self.beta)

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma}, beta={self.beta}"
        )


class GroupNorm(Cell):
    """Normalisation of `[n, c, ...]` over the spatial axes and over groups of channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-05,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        positive("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ApiValueError("MSC0824", f"GroupNorm: {num_groups} groups do not divide {num_channels} channels")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.gamma = parameter(gamma_init, (num_channels,), "gamma", dtype)
        self.beta = parameter(beta_init, (num_channels,), "beta", dtype)
        self.gamma.requires_grad = self.beta.requires_grad = affine

    def construct(self, x: Tensor) -> Tensor:
        return ops.group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class _InstanceNorm(Cell):
    """Base: normalisation of each channel of each example over its spatial axes."""

    RANK: ClassVar[int]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        positive(type(self).__name__, num_features=num_features)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.gamma = parameter(gamma_init, (num_features,), "gamma", dtype)
        self.beta = parameter(beta_init, (num_features,), "beta", dtype)
        self.gamma.requires_grad = self.beta.requires_grad = affine

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim != self.RANK:
            raise ApiValueError(
                "MSC0201", f"{type(self).__name__}: x has shape {x.shape}; its rank must be {self.RANK}"
            )
        return apply("instance_norm", x, self.gamma, self.beta, epsilon=float(self.eps))

    def extend_repr(self) -> str:
        return f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}"


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of `[n, c, w]`."""

    RANK: ClassVar[int] = 3


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images `[n, c, h, w]`."""

    RANK: ClassVar[int] = 4


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes `[n, c, d, h, w]`."""

    RANK: ClassVar[int] = 5


class RMSNorm(Cell):
    """x / sqrt(mean of x squared + epsilon) * gamma over the last axes, of the shape of gamma."""

    def __init__(
        self, normalized_shape: int | Sequence[int], epsilon: float = 1e-6, dtype: DTypeLike = dtypes.float32
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.epsilon = epsilon
        self.weight = parameter("ones", shape, "weight", dtype)

    def construct(self, x: Tensor) -> Tensor:
        return ops.rms_norm(x, self.weight, self.epsilon)[0]


class LRN(Cell):
    """Local response normalisation over near channels."""

    def __init__(
        self,
        depth_radius: int = 5,
        bias: float = 1.0,
        alpha: float = 1.0,
        beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS",
    ) -> None:
        super().__init__()
        self.depth_radius = depth_radius
        self.bias = bias
        self.alpha = alpha
        self.beta = beta
        self.norm_region = norm_region

    def construct(self, x: Tensor) -> Tensor:
        return ops.lrn(x, self.depth_radius, self.bias, self.alpha, self.beta, self.norm_region)
