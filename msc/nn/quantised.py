"""Layers of quantisation-aware training: reals that take the values that integers will have.

A fake quantisation rounds to `(clip(round(x / scale) + zero, least, most) - zero) * scale`. Its gradient is 1 where
nothing is cut, else 0 (the straight-through estimator). Source: Jacob et al. 2017 (arXiv:1712.05877), and MindSpore's
nn.FakeQuantWithMinMaxObserver, nn.Conv2dQuant and their like of versions 0.2 to 1.x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from msc import ops
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import float32
from msc.frontend.errors import ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.nn.activation import get_activation
from msc.nn.basic import Dense
from msc.nn.cell import Cell
from msc.nn.convolution import Conv2d
from msc.nn.normalisation import BatchNorm2d
from msc.nn.parameters import parameter

__all__ = [
    "ActQuant", "Conv2dBnFoldQuant", "Conv2dBnFoldQuantOneConv", "Conv2dBnWithoutFoldQuant", "Conv2dQuant",
    "DenseQuant", "FakeQuantWithLearnedStep", "FakeQuantWithMinMaxObserver", "MulQuant", "TensorAddQuant",
]  # fmt: skip

_LEAST = 1e-30


class FakeQuantization(Cell):
    """Base of fake quantisations: the integers that there are, and which axis has scales of its own."""

    def __init__(
        self,
        per_channel: bool,
        channel_axis: int,
        num_channels: int,
        num_bits: int,
        symmetric: bool,
        narrow_range: bool,
        quant_delay: int,
    ) -> None:
        super().__init__()
        if num_bits not in range(2, 9):
            raise ApiValueError("MSC0824", f"{type(self).__name__}: num_bits is {num_bits}; it must be 2 to 8")
        self.per_channel, self.channel_axis, self.num_channels = per_channel, channel_axis, num_channels
        self.num_bits, self.symmetric, self.narrow_range = num_bits, symmetric, narrow_range
        self.quant_delay = quant_delay
        self.steps = Parameter(ops.zeros((1,), float32), name="steps", requires_grad=False)

    @property
    def least(self) -> int:
        """The least integer."""
        return (-(1 << (self.num_bits - 1)) if self.symmetric else 0) + self.narrow_range

    @property
    def most(self) -> int:
        """The greatest integer."""
        return (1 << (self.num_bits - 1 if self.symmetric else self.num_bits)) - 1

    def grid(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point, of the shape `[1]` or `[num_channels]`."""
        raise NotImplementedError

    def delayed(self, x: Tensor, given: Tensor) -> Tensor:
        """What is fake-quantised, after `quant_delay` steps of training."""
        if not self.training or self.quant_delay == 0:
            return given
        return ops.where(self.steps <= float(self.quant_delay), x, given)

    def along(self, x: Tensor) -> tuple[int, ...]:
        """The shape in which scales broadcast to x."""
        return tuple(-1 if self.per_channel and axis == self.channel_axis else 1 for axis in range(x.ndim))

    def others(self, x: Tensor) -> tuple[int, ...]:
        """The axes of x that share a scale."""
        return tuple(axis for axis in range(x.ndim) if not (self.per_channel and axis == self.channel_axis))


class FakeQuantWithMinMaxObserver(FakeQuantization):
    """Fake quantisation over a range that training observes: `minq`, `maxq`, one of each or one a channel.

    While it is trained the range is that of the batch, or its moving average with `ema`. The first `quant_delay` steps
    give x as it is. `num_bits` from 2 to 8 are signed if `symmetric`, and then without the least one if `narrow_range`.
    """

    def __init__(
        self,
        min_init: float = -6,
        max_init: float = 6,
        ema: bool = False,
        ema_decay: float = 0.999,
        per_channel: bool = False,
        channel_axis: int = 1,
        num_channels: int = 1,
        num_bits: int = 8,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__(per_channel, channel_axis, num_channels, num_bits, symmetric, narrow_range, quant_delay)
        if not min_init <= 0 <= max_init:
            message = f"FakeQuantWithMinMaxObserver: the range {min_init} to {max_init} does not hold 0"
            raise ApiValueError("MSC0824", message)
        self.ema, self.ema_decay = ema, ema_decay
        shape = (num_channels,) if per_channel else (1,)
        self.minq = Parameter(ops.full(shape, float(min_init), dtype=float32), name="minq", requires_grad=False)
        self.maxq = Parameter(ops.full(shape, float(max_init), dtype=float32), name="maxq", requires_grad=False)

    def grid(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point of the range, of the shape `[1]` or `[num_channels]`."""
        if self.symmetric:
            ends = ops.maximum(ops.abs(self.minq), ops.abs(self.maxq))
            scale = ops.maximum(ends / float(self.most), _LEAST)
            return scale, ops.zeros_like(scale)
        low, high = ops.minimum(self.minq, 0.0), ops.maximum(self.maxq, 0.0)
        scale = ops.maximum((high - low) / float(self.most - self.least), _LEAST)
        zero = ops.clamp(apply("round", self.least - low / scale), float(self.least), float(self.most))
        return scale, zero

    def construct(self, x: Tensor) -> Tensor:
        if self.training:
            self._observe(x)
        scale, zero = (ops.reshape(each, self.along(x)) for each in self.grid())
        rounded = ops.clamp(apply("round", x / scale) + zero, float(self.least), float(self.most))
        low, high = (self.least - zero) * scale, (self.most - zero) * scale
        cut = ops.minimum(ops.maximum(x, low), high)
        return self.delayed(x, cut + ops.stop_gradient((rounded - zero) * scale - cut))

    def _observe(self, x: Tensor) -> None:
        x = ops.stop_gradient(x)
        axes = self.others(x)
        least, most = ops.amin(x, axes).reshape(self.minq.shape), ops.amax(x, axes).reshape(self.maxq.shape)
        least, most = ops.minimum(least, 0.0), ops.maximum(most, 0.0)
        if self.ema:
            first = self.steps < 0.5
            least = ops.where(first, least, self.ema_decay * self.minq + (1 - self.ema_decay) * least)
            most = ops.where(first, most, self.ema_decay * self.maxq + (1 - self.ema_decay) * most)
        ops.assign(self.minq, least)
        ops.assign(self.maxq, most)
        ops.assign(self.steps, self.steps + 1.0)


class FakeQuantWithLearnedStep(FakeQuantization):
    """Fake quantisation whose step is trained: zero point 0, integers with a sign if `symmetric`.

    The step starts at `2 mean|x| / sqrt(most)` of the first batch. Its gradient, `round(x / s) - x / s` inside of the
    range and the end that was cut at outside, is divided by the root of the number of elements times the greatest
    integer. Source: Esser et al. 2019 (arXiv:1902.08153); mindspore_gs LearnedStepSizeQuantizationAwareTraining.
    """

    def __init__(
        self,
        per_channel: bool = False,
        channel_axis: int = 1,
        num_channels: int = 1,
        num_bits: int = 8,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__(per_channel, channel_axis, num_channels, num_bits, symmetric, narrow_range, quant_delay)
        self.scale = Parameter(ops.ones((num_channels if per_channel else 1,), float32), name="scale")

    @classmethod
    def like(cls, other: FakeQuantization, symmetric: bool) -> FakeQuantWithLearnedStep:
        """With the integers of another fake quantisation."""
        where = (other.per_channel, other.channel_axis, other.num_channels)
        return cls(*where, other.num_bits, symmetric, other.narrow_range, other.quant_delay)

    def grid(self) -> tuple[Tensor, Tensor]:
        scale = ops.maximum(self.scale, _LEAST)
        return scale, ops.zeros_like(scale)

    def construct(self, x: Tensor) -> Tensor:
        if self.training:
            size = ops.stop_gradient(ops.abs(x))
            start = ops.mean(size, self.others(x)).reshape(self.scale.shape) * (2 / self.most**0.5)
            ops.assign(self.scale, ops.where(self.steps < 0.5, ops.maximum(start, 1e-8), self.scale))
            ops.assign(self.steps, self.steps + 1.0)
        scale, _ = self.grid()
        part = (x.size / self.num_channels * self.most) ** -0.5
        scale = ops.reshape(scale * part + ops.stop_gradient(scale - scale * part), self.along(x))
        inside = ops.clamp(x / scale, float(self.least), float(self.most))
        return self.delayed(x, (inside + ops.stop_gradient(apply("round", inside) - inside)) * scale)


class FrozenQuant(Cell):
    """Quantisation and back by constants: what a trained fake quantisation becomes in an exported model."""

    def __init__(self, trained: FakeQuantization) -> None:
        super().__init__()
        scale, zero = (each.asnumpy() for each in trained.grid())
        self.channel_axis = trained.channel_axis if trained.per_channel else None
        kind = "int8" if trained.symmetric else "uint8"
        shape = () if self.channel_axis is None else scale.shape
        self.scale, self.zero = Tensor(scale.reshape(shape)), Tensor(zero.reshape(shape).astype(kind))
        self.cut = None if trained.num_bits == 8 and not trained.narrow_range else (trained.least, trained.most)

    def construct(self, x: Tensor) -> Tensor:
        scale, zero = self.scale, self.zero
        if self.channel_axis is not None:
            shape = (-1, *(1 for _ in range(x.ndim - self.channel_axis - 1)))
            scale, zero = ops.reshape(scale, shape), ops.reshape(zero, shape)
        whole = apply("quantize", x, scale, zero, dtype=zero.dtype)
        if self.cut is not None:
            whole = ops.minimum(ops.maximum(whole, Tensor(self.cut[0], zero.dtype)), Tensor(self.cut[1], zero.dtype))
        return apply("dequantize", whole, scale, zero)


def _weight_range(
    channels: int, num_bits: int, per_channel: bool, symmetric: bool, narrow_range: bool, quant_delay: int
) -> dict[str, Any]:
    """The arguments of the fake quantisation of a weight, whose axis 0 is the outputs."""
    return {
        **{"channel_axis": 0, "num_channels": channels, "num_bits": num_bits, "per_channel": per_channel},
        **{"symmetric": symmetric, "narrow_range": narrow_range, "quant_delay": quant_delay},
    }


class Conv2dQuant(Conv2d):
    """nn.Conv2d with a fake-quantised weight."""

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
        weight_init: Any = None,
        bias_init: Any = None,
        num_bits: int = 8,
        per_channel: bool = False,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init,
        )  # fmt: skip
        self.fake_quant_weight: Any = FakeQuantWithMinMaxObserver(
            **_weight_range(out_channels, num_bits, per_channel, symmetric, narrow_range, quant_delay)
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.convolved(x, self.fake_quant_weight(self.weight), self.bias)


class Conv2dBnWithoutFoldQuant(Conv2dQuant):
    """A convolution with a fake-quantised weight, then batch normalisation."""

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
        weight_init: Any = None,
        bias_init: Any = None,
        eps: float = 1e-5,
        momentum: float = 0.997,
        num_bits: int = 8,
        per_channel: bool = False,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, num_bits, per_channel, symmetric, narrow_range, quant_delay,
        )  # fmt: skip
        self.batchnorm = BatchNorm2d(self.out_channels, eps, momentum)

    def construct(self, x: Tensor) -> Tensor:
        return self.batchnorm(super().construct(x))


class Conv2dBnFoldQuant(Conv2dQuant):
    """A convolution whose weight is fake-quantised with batch normalisation folded in.

    While it is trained the fold takes the statistics of the batch, of `freeze_bn` steps; then, and in evaluation, the
    moving ones. So the weight in training is the one that integers will have.
    """

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
        weight_init: Any = None,
        bias_init: Any = None,
        eps: float = 1e-5,
        momentum: float = 0.997,
        freeze_bn: int = 100000,
        num_bits: int = 8,
        per_channel: bool = False,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, num_bits, per_channel, symmetric, narrow_range, quant_delay,
        )  # fmt: skip
        self.freeze_bn = freeze_bn
        self.batchnorm = BatchNorm2d(self.out_channels, eps, momentum)
        self.steps = parameter("zeros", (1,), "steps")
        self.steps.requires_grad = False

    def construct(self, x: Tensor) -> Tensor:
        norm = self.batchnorm
        mean, variance = norm.moving_mean, norm.moving_variance
        if self.training:
            batch = norm.measured(self.convolved(x, self.weight, None))
            is_frozen = self.steps >= float(self.freeze_bn)
            mean, variance = ops.where(is_frozen, mean, batch[0]), ops.where(is_frozen, variance, batch[1])
            ops.assign(self.steps, self.steps + 1.0)
        weight, bias = self.folded(mean, variance)
        return self.convolved(x, self.fake_quant_weight(weight), bias)

    def folded(self, mean: Any, variance: Any) -> tuple[Tensor, Tensor]:
        """The weight and the bias with batch normalisation in them."""
        factor = self.batchnorm.gamma / ops.sqrt(variance + self.batchnorm.eps)
        before = -mean if self.bias is None else self.bias - mean
        return self.weight * factor.reshape(-1, 1, 1, 1), self.batchnorm.beta + before * factor


class Conv2dBnFoldQuantOneConv(Conv2dBnFoldQuant):
    """As Conv2dBnFoldQuant; MindSpore's name for the form that later versions use."""


class DenseQuant(Dense):
    """nn.Dense with a fake-quantised weight."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        num_bits: int = 8,
        per_channel: bool = False,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, weight_init, bias_init, has_bias, activation)
        self.fake_quant_weight: Any = FakeQuantWithMinMaxObserver(
            **_weight_range(out_channels, num_bits, per_channel, symmetric, narrow_range, quant_delay)
        )

    def construct(self, x: Tensor) -> Tensor:
        y = ops.dense(x, self.fake_quant_weight(self.weight), self.bias)
        return y if self.activation is None else self.activation(y)


class ActQuant(Cell):
    """An activation, and the fake quantisation of what it gives; without one, of x."""

    def __init__(
        self,
        activation: Any = None,
        ema: bool = True,
        ema_decay: float = 0.999,
        num_bits: int = 8,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__()
        self.act = get_activation(activation) if isinstance(activation, str) else activation
        self.fake_quant_act: Any = FakeQuantWithMinMaxObserver(
            ema=ema, ema_decay=ema_decay, num_bits=num_bits, symmetric=symmetric, narrow_range=narrow_range,
            quant_delay=quant_delay,
        )  # fmt: skip

    def construct(self, x: Tensor) -> Tensor:
        return self.fake_quant_act(x if self.act is None else self.act(x))


class _QuantOfTwo(Cell):
    """Base: what an operator gives for two tensors, fake-quantised."""

    OPERATOR: ClassVar[Callable[[Tensor, Tensor], Tensor]]

    def __init__(
        self,
        ema_decay: float = 0.999,
        num_bits: int = 8,
        symmetric: bool = False,
        narrow_range: bool = False,
        quant_delay: int = 0,
    ) -> None:
        super().__init__()
        self.fake_quant_act: Any = FakeQuantWithMinMaxObserver(
            ema=True, ema_decay=ema_decay, num_bits=num_bits, symmetric=symmetric, narrow_range=narrow_range,
            quant_delay=quant_delay,
        )  # fmt: skip

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.fake_quant_act(type(self).OPERATOR(x1, x2))


class TensorAddQuant(_QuantOfTwo):
    """A sum, fake-quantised."""

    OPERATOR = staticmethod(ops.add)


class MulQuant(_QuantOfTwo):
    """A product element by element, fake-quantised."""

    OPERATOR = staticmethod(ops.mul)
