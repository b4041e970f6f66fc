"""Initialisers of parameters: by object (`Normal(0.02)`) or by name ("normal").

Each is a class whose object, called with a shape and an element type, gives an array. Random ones draw from one
generator, which `msc.set_seed` seeds, unless they are given a seed of their own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dtypes import DType, DTypeLike, as_dtype
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.randomness import generator
from msc.frontend.tensor import Number, Tensor
from msc.support.arrays import Array
from msc.support.diagnostics import did_you_mean
from msc.support.wording import a

Shape: TypeAlias = tuple[int, ...]


class Initializer:
    """Base of initialisers: `values(shape)` gives the elements, in double precision."""

    def __call__(self, shape: Shape, dtype: DType = dtypes.float32) -> Array:
        """An array of a shape and an element type."""
        return np.asarray(self.values(tuple(shape)), np.float64).astype(dtype.numpy).reshape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"

    @abstractmethod
    def values(self, shape: Shape) -> Array:
        """The elements of an array of a shape."""
        raise TypeError(f"{type(self).__name__} does not say which values it gives")


class Constant(Initializer):
    """The same number everywhere, or an array of numbers that fits the shape."""

    def __init__(self, value: Number | Array) -> None:
        self.value = value

    def values(self, shape: Shape) -> Array:
        return np.broadcast_to(np.asarray(self.value, np.float64), shape)


class Zero(Constant):
    """0 everywhere; "zeros"."""

    def __init__(self) -> None:
        super().__init__(0)


class One(Constant):
    """1 everywhere; "ones"."""

    def __init__(self) -> None:
        super().__init__(1)


class Normal(Initializer):
    """Normally distributed, by default with standard deviation 0.01; "normal"."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        self.sigma = sigma
        self.mean = mean

    def values(self, shape: Shape) -> Array:
        return generator().normal(self.mean, self.sigma, shape)


class TruncatedNormal(Initializer):
    """Normally distributed, but drawn anew outside of [mean + a sigma, mean + b sigma]; "truncatedNormal"."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        if a >= b:
            raise ApiValueError("MSC0808", f"TruncatedNormal: a = {a} must be less than b = {b}")
        self.sigma = sigma
        self.mean = mean
        self.a = a
        self.b = b

    def values(self, shape: Shape) -> Array:
        found = generator().normal(size=shape)
        for _ in range(_MOST_DRAWS):
            outside = (found < self.a) | (found > self.b)
            if not outside.any():
                return self.mean + self.sigma * found
            found = np.where(outside, generator().normal(size=shape), found)
        raise ApiValueError("MSC0808", f"TruncatedNormal: hardly any number lies between a = {self.a} and b = {self.b}")


_MOST_DRAWS = 10_000


class Uniform(Initializer):
    """Uniform between -scale and scale, by default 0.07; "uniform"."""

    def __init__(self, scale: float = 0.07) -> None:
        self.scale = scale

    def values(self, shape: Shape) -> Array:
        return generator().uniform(-self.scale, self.scale, shape)


class XavierUniform(Initializer):
    """Uniform within gain sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010); "xavier_uniform"."""

    def __init__(self, gain: float = 1) -> None:
        self.gain = gain

    def values(self, shape: Shape) -> Array:
        limit = self.gain * math.sqrt(6 / sum(fans(shape)))
        return generator().uniform(-limit, limit, shape)


class XavierNormal(Initializer):
    """Normal with deviation gain sqrt(2 / (fan in + fan out)) (Glorot and Bengio, 2010); "xavier_normal"."""

    def __init__(self, gain: float = 1) -> None:
        self.gain = gain

    def values(self, shape: Shape) -> Array:
        return generator().normal(0, self.gain * math.sqrt(2 / sum(fans(shape))), shape)


class _He(Initializer):
    """Base of He's initialisers (He et al., 2015): gain / sqrt(fan) is the deviation."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        if mode not in ("fan_in", "fan_out"):
            raise ApiValueError("MSC0808", f"{type(self).__name__}: mode is {mode!r}, not 'fan_in' or 'fan_out'")
        self.negative_slope = negative_slope
        self.mode = mode
        self.nonlinearity = nonlinearity
        self.gain = gain_of(nonlinearity, negative_slope)

    def deviation(self, shape: Shape) -> float:
        fan_in, fan_out = fans(shape)
        return self.gain / math.sqrt(fan_in if self.mode == "fan_in" else fan_out)


class HeUniform(_He):
    """Uniform with the deviation that keeps the variance through rectified layers; "he_uniform"."""

    def values(self, shape: Shape) -> Array:
        limit = math.sqrt(3) * self.deviation(shape)
        return generator().uniform(-limit, limit, shape)


class HeNormal(_He):
    """Normal with the deviation that keeps the variance through rectified layers; "he_normal"."""

    def values(self, shape: Shape) -> Array:
        return generator().normal(0, self.deviation(shape), shape)


class Identity(Initializer):
    """The identity matrix, of rank 2; "identity"."""

    def values(self, shape: Shape) -> Array:
        if len(shape) != 2:
            raise ApiValueError("MSC0808", f"Identity fills matrices; the shape is {shape}")
        return np.eye(*shape)


class Orthogonal(Initializer):
    """A matrix with orthogonal rows or columns, times `gain` (Saxe et al., 2013); "orthogonal"."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def values(self, shape: Shape) -> Array:
        if len(shape) < 2:
            raise ApiValueError("MSC0808", f"Orthogonal needs two axes or more; the shape is {shape}")
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = generator().normal(size=(max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        q = q * np.sign(np.diagonal(r))
        return self.gain * (q.T if rows < columns else q).reshape(shape)


class VarianceScaling(Initializer):
    """Variance scale / fan, normal, truncated or uniform; "varianceScaling"."""

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal") -> None:
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ApiValueError("MSC0808", f"VarianceScaling: mode is {mode!r}, not 'fan_in', 'fan_out' or 'fan_avg'")
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ApiValueError("MSC0808", f"VarianceScaling: there is no distribution {distribution!r}")
        self.scale = scale
        self.mode = mode
        self.distribution = distribution

    def values(self, shape: Shape) -> Array:
        fan_in, fan_out = fans(shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            return Uniform(math.sqrt(3 * variance)).values(shape)
        if self.distribution == "untruncated_normal":
            return Normal(math.sqrt(variance)).values(shape)
        return TruncatedNormal(math.sqrt(variance) / 0.87962566103423978).values(shape)


_BY_NAME: dict[str, type[Initializer]] = {
    "zeros": Zero,
    "zero": Zero,
    "ones": One,
    "one": One,
    "normal": Normal,
    "truncatednormal": TruncatedNormal,
    "truncated_normal": TruncatedNormal,
    "uniform": Uniform,
    "xavier_uniform": XavierUniform,
    "xavieruniform": XavierUniform,
    "xavier_normal": XavierNormal,
    "xaviernormal": XavierNormal,
    "he_uniform": HeUniform,
    "heuniform": HeUniform,
    "he_normal": HeNormal,
    "henormal": HeNormal,
    "identity": Identity,
    "orthogonal": Orthogonal,
    "variancescaling": VarianceScaling,
    "variance_scaling": VarianceScaling,
}

Init: TypeAlias = "Initializer | Tensor | str | bool | int | float | Array | None"
"""What says how a parameter begins: an initialiser, its name, a number, or the elements."""


def initializer(
    init: Initializer | Tensor | str | Number | Array,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Tensor:
    """A tensor of a shape filled by an initialiser, given as object, name, number or tensor of that shape.

    Raises MSC0808 for names that are none and tensors of another shape.
    """
    sizes = (shape,) if isinstance(shape, int) else None if shape is None else tuple(shape)
    if isinstance(init, Tensor | np.ndarray):
        if sizes is not None and tuple(init.shape) != sizes:
            raise ApiValueError("MSC0808", f"the initial value has shape {tuple(init.shape)}; it must have {sizes}")
        return Tensor(init)
    if sizes is None:
        raise ApiTypeError("MSC0808", "an initialiser needs a shape")
    if any(n < 1 for n in sizes):
        raise ApiValueError("MSC0808", f"an initialiser needs sizes of 1 or more; the shape is {sizes}")
    return Tensor.of(_object(init)(sizes, as_dtype(dtype)))


def _object(init: object) -> Initializer:
    if isinstance(init, Initializer):
        return init
    if isinstance(init, str):
        if init.lower() not in _BY_NAME:
            raise ApiValueError("MSC0808", f"there is no initialiser {init!r}", help=did_you_mean(init, _BY_NAME))
        return _BY_NAME[init.lower()]()
    if isinstance(init, bool | int | float):
        return Constant(init)
    raise ApiTypeError("MSC0808", f"{a(type(init).__name__)} is no initialiser")


def fans(shape: Shape) -> tuple[float, float]:
    """How many inputs an output has, and outputs an input, of a weight `[out, in, kernel...]`."""
    if len(shape) < 2:
        raise ApiValueError("MSC0808", f"a weight of shape {shape} has no inputs and outputs: it needs two axes")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def gain_of(nonlinearity: str, slope: float = 0) -> float:
    """By how much a layer must scale to keep the variance of what a nonlinearity gives."""
    gains = {
        "sigmoid": 1.0,
        "linear": 1.0,
        "conv1d": 1.0,
        "conv2d": 1.0,
        "conv3d": 1.0,
        "tanh": 5 / 3,
        "relu": math.sqrt(2),
        "leaky_relu": math.sqrt(2 / (1 + slope**2)),
    }
    if nonlinearity not in gains:
        raise ApiValueError("MSC0808", f"there is no gain for {nonlinearity!r}", help=did_you_mean(nonlinearity, gains))
    return gains[nonlinearity]
