"""Activations as cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from msc import ops
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.initializers import Init
from msc.frontend.tensor import Number, Tensor
from msc.nn.cell import Cell
from msc.nn.parameters import parameter
from msc.support.diagnostics import did_you_mean
from msc.support.wording import a

Activation: TypeAlias = "str | Cell | Callable[[Any], Any] | None"


class _Plain(Cell):
    """Base: a function of one tensor, without arguments."""

    FUNCTION: ClassVar[Callable[[Any], Tensor]]

    def construct(self, x: Tensor) -> Tensor:
        return type(self).FUNCTION(x)


class ReLU(_Plain):
    """max(0, x)."""

    FUNCTION = staticmethod(ops.relu)


class ReLU6(_Plain):
    """min(max(0, x), 6)."""

    FUNCTION = staticmethod(ops.relu6)


class Sigmoid(_Plain):
    """1 / (1 + e^-x)."""

    FUNCTION = staticmethod(ops.sigmoid)


class Tanh(_Plain):
    """The hyperbolic tangent."""

    FUNCTION = staticmethod(ops.tanh)


class SiLU(_Plain):
    """x sigmoid(x)."""

    FUNCTION = staticmethod(ops.silu)


class Mish(_Plain):
    """x tanh(log(1 + e^x))."""

    FUNCTION = staticmethod(ops.mish)


class HSwish(_Plain):
    """x min(max(0, x + 3), 6) / 6."""

    FUNCTION = staticmethod(ops.hardswish)


class HSigmoid(_Plain):
    """min(max(0, x / 6 + 1 / 2), 1)."""

    FUNCTION = staticmethod(ops.hardsigmoid)


class SeLU(_Plain):
    """The self-normalising exponential unit (Klambauer et al., 2017)."""

    FUNCTION = staticmethod(ops.selu)


class Softsign(_Plain):
    """x / (1 + |x|)."""

    FUNCTION = staticmethod(ops.softsign)


class LogSigmoid(_Plain):
    """log(sigmoid(x))."""

    FUNCTION = staticmethod(ops.logsigmoid)


class FastGelu(_Plain):
    """x sigmoid(1.702 x)."""

    FUNCTION = staticmethod(ops.fast_gelu)


class Tanhshrink(_Plain):
    """x - tanh(x)."""

    FUNCTION = staticmethod(ops.tanhshrink)


class Softplus(_Plain):
    """log(1 + e^x)."""

    FUNCTION = staticmethod(ops.softplus)


class GELU(Cell):
    """x times the probability that a normal number is less than x; by tanh if `approximate`, the default."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = approximate

    def construct(self, x: Tensor) -> Tensor:
        return ops.gelu(x, "tanh" if self.approximate else "none")


class LeakyReLU(Cell):
    """x where it is positive, alpha x elsewhere."""

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return ops.leaky_relu(x, self.alpha)


class ELU(Cell):
    """x where it is positive, alpha (e^x - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return ops.elu(x, self.alpha)


class CELU(Cell):
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return ops.celu(x, self.alpha)


class PReLU(Cell):
    """x where it is positive, w x elsewhere; `channel` weights, which begin at w."""

    def __init__(self, channel: int = 1, w: Init = 0.25) -> None:
        super().__init__()
        self.w = parameter(w, (channel,), "a")

    def construct(self, x: Tensor) -> Tensor:
        return ops.prelu(x, self.w)


class _AlongAxis(Cell):
    """Base: a function along an axis."""

    FUNCTION: ClassVar[Callable[[Any, int], Tensor]]

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return type(self).FUNCTION(x, self.axis)


class Softmax(_AlongAxis):
    """exp(x) / sum of exp(x) along an axis."""

    FUNCTION = staticmethod(ops.softmax)

    def extend_repr(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(_AlongAxis):
    """log of softmax along an axis."""

    FUNCTION = staticmethod(ops.log_softmax)


class Softmin(_AlongAxis):
    """Softmax of -x along an axis."""

    FUNCTION = staticmethod(ops.softmin)


class Softmax2d(Cell):
    """Softmax along the channels of images."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.softmax(x, -3)


class GLU(_AlongAxis):
    """The first half of an axis times the sigmoid of the second."""

    FUNCTION = staticmethod(ops.glu)


class Hardtanh(Cell):
    """x clipped to an interval."""

    def __init__(self, min_val: Number = -1.0, max_val: Number = 1.0) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val

    def construct(self, x: Tensor) -> Tensor:
        return ops.hardtanh(x, self.min_val, self.max_val)


class HShrink(Cell):
    """x where |x| is above lambd, 0 elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def construct(self, x: Tensor) -> Tensor:
        return ops.hardshrink(x, self.lambd)


class SoftShrink(Cell):
    """x moved towards 0 by lambd, as far as 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def construct(self, x: Tensor) -> Tensor:
        return ops.softshrink(x, self.lambd)


class Threshold(Cell):
    """x where it is above a threshold, a value elsewhere."""

    def __init__(self, threshold: Number, value: Number) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value

    def construct(self, x: Tensor) -> Tensor:
        return ops.threshold(x, self.threshold, self.value)


_BY_NAME: dict[str, type[Cell]] = {
    "softmax": Softmax,
    "softmax2d": Softmax2d,
    "softmin": Softmin,
    "logsoftmax": LogSoftmax,
    "relu": ReLU,
    "relu6": ReLU6,
    "tanh": Tanh,
    "gelu": GELU,
    "fast_gelu": FastGelu,
    "elu": ELU,
    "celu": CELU,
    "selu": SeLU,
    "silu": SiLU,
    "swish": SiLU,
    "mish": Mish,
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "softplus": Softplus,
    "prelu": PReLU,
    "leakyrelu": LeakyReLU,
    "hswish": HSwish,
    "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid,
    "softshrink": SoftShrink,
    "hshrink": HShrink,
    "threshold": Threshold,
}


def get_activation(name: str | None) -> Cell | None:
    """The activation of a name. Raises MSC0825."""
    if name is None:
        return None
    if name.lower() not in _BY_NAME:
        raise ApiValueError("MSC0825", f"there is no activation {name!r}", help=did_you_mean(name, _BY_NAME))
    return _BY_NAME[name.lower()]()


def activation_of(value: Activation) -> Cell | Callable[[Any], Any] | None:
    """The activation that a layer was given: by name, as a cell or a function, or none."""
    if isinstance(value, str):
        return get_activation(value)
    if value is None or callable(value):
        return value
    raise ApiTypeError("MSC0825", f"an activation is a name or a Cell, not {a(type(value).__name__)}")
