"""Optimisers that are less common, with MindSpore's names, defaults and formulas."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

from typing import Any

from msc import ops
from msc.frontend.tensor import Tensor
from msc.nn.optim.optimizer import Optimizer

__all__ = ["AdaMax", "Adadelta", "ProximalAdagrad"]


class Adadelta(Optimizer):
    """Steps in the size of those before (Zeiler, 2012)."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho, self.epsilon = self._number("rho", rho), self._number("epsilon", epsilon)
        self.accum, self.accum_update = self.states("accum"), self.states("accum_update")

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        total = self.accum[number].value() * self.rho + ops.square(gradient) * (1 - self.rho)
        self.accum[number].replace(total.content)
        before = self.accum_update[number].value()
        update = ops.sqrt(before + self.epsilon) / ops.sqrt(total + self.epsilon) * gradient
        self.accum_update[number].replace((before * self.rho + ops.square(update) * (1 - self.rho)).content)
        return value - update * rate


class AdaMax(Optimizer):
    """Adam with the largest gradient in place of squares (Kingma and Ba, 2015)."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.beta1 = self._number("beta1", beta1, below_one=True)
        self.beta2 = self._number("beta2", beta2, below_one=True)
        self.eps = self._number("eps", eps, positive=True)
        self.moment1, self.moment2 = self.states("adam_m"), self.states("adam_v")

    def begin_step(self) -> Tensor:
        step = ops.cast(self.global_step.value() + 1, ops.Tensor(1.0).dtype)
        return 1.0 - ops.pow(ops.Tensor(self.beta1), step)

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        m = self.moment1[number].value() * self.beta1 + gradient * (1 - self.beta1)
        v = ops.maximum(self.moment2[number].value() * self.beta2, ops.abs(gradient))
        self.moment1[number].replace(m.content)
        self.moment2[number].replace(v.content)
        return value - m / (v + self.eps) * (rate / ops.cast(shared, value.dtype))


class ProximalAdagrad(Optimizer):
    """Adagrad's step, shrunk by l1 and l2 (Duchi and Singer, 2009)."""

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        from msc.frontend.settings import unused

        unused("ProximalAdagrad", use_locking=use_locking)
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.l1, self.l2 = self._number("l1", l1), self._number("l2", l2)
        self.accum = self.states("accum")
        for state in self.accum:
            state.set_data(ops.full_like(state.value(), self._number("accum", accum)))

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        total = self.accum[number].value() + ops.square(gradient)
        self.accum[number].replace(total.content)
        own = rate / ops.sqrt(total)
        moved = value - gradient * own
        return ops.sign(moved) * ops.relu(ops.abs(moved) - own * self.l1) / (own * self.l2 + 1.0)
