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

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "FastGelu", "HShrink", "HSigmoid", "HSwish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SeLU", "SiLU", "Sigmoid", "SoftShrink",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softsign", "Tanh", "Tanhshrink", "Threshold", "get_activation",
]  # fmt: skip

Activation: TypeAlias = "str | Cell | Callable[[Any], Any] | None"


class _Plain(Cell):
    """Base: a function of a tensor, and of what the cell holds."""

    FUNCTION: ClassVar[Callable[..., Tensor]]
    _held: tuple[str, ...] = ()

    def construct(self, x: Tensor) -> Tensor:
        return type(self).FUNCTION(x, *(getattr(self, name) for name in self._held))


class _Holding(_Plain):
    """Base of those with arguments: they are attributes, and the function's further arguments."""

    def __init__(self, **held: Any) -> None:
        super().__init__()
        self._held = tuple(held)
        for name, value in held.items():
            setattr(self, name, value)


def _plain(name: str, function: Callable[..., Tensor]) -> type[_Plain]:
    """The cell of a function of one tensor."""
    space = {"FUNCTION": staticmethod(function), "__doc__": function.__doc__, "__module__": __name__}
    return type(name, (_Plain,), space)


ReLU = _plain("ReLU", ops.relu)
ReLU6 = _plain("ReLU6", ops.relu6)
Sigmoid = _plain("Sigmoid", ops.sigmoid)
Tanh = _plain("Tanh", ops.tanh)
SiLU = _plain("SiLU", ops.silu)
Mish = _plain("Mish", ops.mish)
HSwish = _plain("HSwish", ops.hardswish)
HSigmoid = _plain("HSigmoid", ops.hardsigmoid)
SeLU = _plain("SeLU", ops.selu)
Softsign = _plain("Softsign", ops.softsign)
LogSigmoid = _plain("LogSigmoid", ops.logsigmoid)
FastGelu = _plain("FastGelu", ops.fast_gelu)
Tanhshrink = _plain("Tanhshrink", ops.tanhshrink)
Softplus = _plain("Softplus", ops.softplus)


class GELU(Cell):
    """x times the probability that a normal number is less than x; by tanh if `approximate`, the default."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = approximate

    def construct(self, x: Tensor) -> Tensor:
        return ops.gelu(x, "tanh" if self.approximate else "none")


class LeakyReLU(_Holding):
    """x where it is positive, alpha x elsewhere."""

    FUNCTION = staticmethod(ops.leaky_relu)

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__(alpha=alpha)


class ELU(_Holding):
    """x where it is positive, alpha (e^x - 1) elsewhere."""

    FUNCTION = staticmethod(ops.elu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class CELU(_Holding):
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))."""

    FUNCTION = staticmethod(ops.celu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class PReLU(Cell):
    """x where it is positive, w x elsewhere; `channel` weights, which begin at w."""

    def __init__(self, channel: int = 1, w: Init = 0.25) -> None:
        super().__init__()
        self.w = parameter(w, (channel,), "a")

    def construct(self, x: Tensor) -> Tensor:
        return ops.prelu(x, self.w)


class Softmax(_Holding):
    """exp(x) / sum of exp(x) along an axis."""

    FUNCTION = staticmethod(ops.softmax)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)

    def extend_repr(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(_Holding):
    """log of softmax along an axis."""

    FUNCTION = staticmethod(ops.log_softmax)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class Softmin(_Holding):
    """Softmax of -x along an axis."""

    FUNCTION = staticmethod(ops.softmin)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class Softmax2d(Cell):
    """Softmax along the channels of images."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.softmax(x, -3)


class GLU(_Holding):
    """The first half of an axis times the sigmoid of the second."""

    FUNCTION = staticmethod(ops.glu)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class Hardtanh(_Holding):
    """x clipped to an interval."""

    FUNCTION = staticmethod(ops.hardtanh)

    def __init__(self, min_val: Number = -1.0, max_val: Number = 1.0) -> None:
        super().__init__(min_val=min_val, max_val=max_val)


class HShrink(_Holding):
    """x where |x| is above lambd, 0 elsewhere."""

    FUNCTION = staticmethod(ops.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class SoftShrink(_Holding):
    """x moved towards 0 by lambd, as far as 0."""

    FUNCTION = staticmethod(ops.softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Threshold(_Holding):
    """x where it is above a threshold, a value elsewhere."""

    FUNCTION = staticmethod(ops.threshold)

    def __init__(self, threshold: Number, value: Number) -> None:
        super().__init__(threshold=threshold, value=value)


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


class RReLU(Cell):
    """x, below 0 times a slope that is drawn between two numbers; in evaluation times their mean."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        self.lower, self.upper = lower, upper

    def construct(self, x: Tensor) -> Tensor:
        if self.training:
            return ops.rrelu(x, self.lower, self.upper)
        return ops.leaky_relu(x, (self.lower + self.upper) / 2)
