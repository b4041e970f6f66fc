"""Functions that can be undone, with the logs of how they stretch."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from msc import ops
from msc.frontend import dtypes
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]


def _float(value: Any) -> Tensor:
    return ops.cast(value if isinstance(value, Tensor) else Tensor(value), dtypes.float32)


class Bijector(Cell):
    """Base: `forward`, `inverse`, and the logs of the sizes of their derivatives."""

    def __init__(self, name: str = "Bijector") -> None:
        super().__init__()
        self.bijector_name = name

    @abstractmethod
    def forward(self, value: Any) -> Tensor:
        """The function."""

    @abstractmethod
    def inverse(self, value: Any) -> Tensor:
        """What undoes it."""

    @abstractmethod
    def forward_log_jacobian(self, value: Any) -> Tensor:
        """The log of the size of the derivative."""

    def inverse_log_jacobian(self, value: Any) -> Tensor:
        """The same of what undoes it."""
        return ops.neg(self.forward_log_jacobian(self.inverse(value)))

    def construct(self, name: str, *args: Any) -> Tensor:
        return getattr(self, name)(*args)


class PowerTransform(Bijector):
    """(1 + power x)^(1 / power), and e^x for power 0."""

    def __init__(self, power: float = 0.0, name: str = "PowerTransform") -> None:
        super().__init__(name)
        self.power = power

    def forward(self, value: Any) -> Tensor:
        x = _float(value)
        return ops.exp(x) if self.power == 0 else ops.exp(ops.div(ops.log1p(ops.mul(x, self.power)), self.power))

    def inverse(self, value: Any) -> Tensor:
        y = _float(value)
        return ops.log(y) if self.power == 0 else ops.div(ops.expm1(ops.mul(ops.log(y), self.power)), self.power)

    def forward_log_jacobian(self, value: Any) -> Tensor:
        x = _float(value)
        return x if self.power == 0 else ops.mul(ops.log1p(ops.mul(x, self.power)), 1 / self.power - 1)


class Exp(PowerTransform):
    """e^x."""

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(0.0, name)


class ScalarAffine(Bijector):
    """scale * x + shift."""

    def __init__(self, scale: Any = 1.0, shift: Any = 0.0, name: str = "ScalarAffine") -> None:
        super().__init__(name)
        self.scale, self.shift = _float(scale), _float(shift)

    def forward(self, value: Any) -> Tensor:
        return ops.add(ops.mul(self.scale, _float(value)), self.shift)

    def inverse(self, value: Any) -> Tensor:
        return ops.div(ops.sub(_float(value), self.shift), self.scale)

    def forward_log_jacobian(self, value: Any) -> Tensor:
        del value
        return ops.log(ops.abs(self.scale))


class Softplus(Bijector):
    """log(1 + e^(sharpness x)) / sharpness."""

    def __init__(self, sharpness: Any = 1.0, name: str = "Softplus") -> None:
        super().__init__(name)
        self.sharpness = _float(sharpness)

    def forward(self, value: Any) -> Tensor:
        return ops.div(ops.softplus(ops.mul(self.sharpness, _float(value))), self.sharpness)

    def inverse(self, value: Any) -> Tensor:
        y = ops.mul(self.sharpness, _float(value))
        return ops.div(ops.add(y, ops.log(ops.neg(ops.expm1(ops.neg(y))))), self.sharpness)

    def forward_log_jacobian(self, value: Any) -> Tensor:
        return ops.neg(ops.softplus(ops.neg(ops.mul(self.sharpness, _float(value)))))


class GumbelCDF(Bijector):
    """exp(-exp(-(x - loc) / scale))."""

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, name: str = "GumbelCDF") -> None:
        super().__init__(name)
        self.loc, self.scale = _float(loc), _float(scale)

    def forward(self, value: Any) -> Tensor:
        z = ops.div(ops.sub(_float(value), self.loc), self.scale)
        return ops.exp(ops.neg(ops.exp(ops.neg(z))))

    def inverse(self, value: Any) -> Tensor:
        return ops.sub(self.loc, ops.mul(self.scale, ops.log(ops.neg(ops.log(_float(value))))))

    def forward_log_jacobian(self, value: Any) -> Tensor:
        z = ops.div(ops.sub(_float(value), self.loc), self.scale)
        return ops.sub(ops.sub(ops.neg(z), ops.exp(ops.neg(z))), ops.log(self.scale))


class Invert(Bijector):
    """Another one, the other way round."""

    def __init__(self, bijector: Bijector, name: str = "") -> None:
        super().__init__(name or f"Invert{bijector.bijector_name}")
        self.bijector = bijector

    def forward(self, value: Any) -> Tensor:
        return self.bijector.inverse(value)

    def inverse(self, value: Any) -> Tensor:
        return self.bijector.forward(value)

    def forward_log_jacobian(self, value: Any) -> Tensor:
        return self.bijector.inverse_log_jacobian(value)
