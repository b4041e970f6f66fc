"""The optimisers: how each one updates a parameter. Names, defaults and formulas are MindSpore's."""

from __future__ import annotations

from typing import Any

from msc import ops
from msc.frontend import dtypes
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.nn.optim.optimizer import Optimizer

__all__ = [
    "FTRL", "SGD", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamWeightDecay", "Lamb", "Momentum",
    "ProximalAdagrad", "RMSProp",
]  # fmt: skip


def _set(state: Parameter, value: Tensor) -> Tensor:
    """Give a state a value, and use it."""
    state.replace(value.content)
    return value


class SGD(Optimizer):
    """p - lr * b, with b the gradient, or with momentum b = momentum * b + (1 - dampening) * gradient.

    The first b is the gradient; with nesterov the step is gradient + momentum * b (Sutskever et al., 2013).
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: Any = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = self._number("momentum", momentum)
        self.dampening = self._number("dampening", dampening)
        self.nesterov = nesterov
        self.accum = self.states("accum") if self.momentum else ParameterTuple(())

    def begin_step(self) -> Tensor | None:
        return ops.equal(self.global_step.value(), 0) if self.momentum and self.dampening else None

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        if not self.momentum:
            return value - gradient * rate
        before = self.accum[number]
        moved = before.value() * self.momentum + gradient * (1 - self.dampening)
        if shared is not None:
            moved = ops.select(shared, gradient, moved)
        step = _set(before, moved)
        return value - (gradient + step * self.momentum if self.nesterov else step) * rate


class Momentum(Optimizer):
    """v = momentum * v + gradient; p - lr * v, or with use_nesterov p - lr * (gradient + momentum * v)."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = self._number("momentum", momentum)
        self.use_nesterov = use_nesterov
        self.moments = self.states("moments")

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        v = _set(self.moments[number], self.moments[number].value() * self.momentum + gradient)
        return value - (gradient + v * self.momentum if self.use_nesterov else v) * rate


class _Adaptive(Optimizer):
    """Base of what keeps running means of gradients and of their squares."""

    def __init__(
        self, params: Any, rate: Any, betas: tuple[float, float], eps: float, decay: Any, loss_scale: float = 1.0
    ) -> None:
        super().__init__(rate, params, decay, loss_scale)
        self.beta1 = self._number("beta1", betas[0], below_one=True)
        self.beta2 = self._number("beta2", betas[1], below_one=True)
        self.eps = self._number("eps", eps, positive=True)
        self.moments1 = self.states("adam_m")
        self.moments2 = self.states("adam_v")

    def moments(self, number: int, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """The running means, with this gradient."""
        first, second = self.moments1[number], self.moments2[number]
        m = _set(first, first.value() * self.beta1 + gradient * (1 - self.beta1))
        v = _set(second, second.value() * self.beta2 + ops.square(gradient) * (1 - self.beta2))
        return m, v

    def corrections(self) -> tuple[Tensor, Tensor]:
        """1 - beta ^ step for both means, which start at 0."""
        step = ops.cast(self.global_step.value() + 1, dtypes.float32)
        first, second = (1.0 - ops.pow(Tensor(b, dtypes.float32), step) for b in (self.beta1, self.beta2))
        return first, second


class Adam(_Adaptive):
    """p - lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps) (Kingma and Ba, 2015).

    `use_nesterov` steps with beta1 * m + (1 - beta1) * gradient, `use_amsgrad` divides by the largest v so far.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
        use_lazy: bool = False,
        use_offload: bool = False,
    ) -> None:
        unused("Adam", use_locking=use_locking, use_lazy=use_lazy, use_offload=use_offload)
        super().__init__(params, learning_rate, (beta1, beta2), eps, weight_decay, loss_scale)
        self.use_nesterov, self.use_amsgrad = use_nesterov, use_amsgrad
        self.vhat = self.states("vhat") if use_amsgrad else ParameterTuple(())

    def begin_step(self) -> Tensor:
        first, second = self.corrections()
        return ops.sqrt(second) / first

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        m, v = self.moments(number, gradient)
        if self.use_amsgrad:
            v = _set(self.vhat[number], ops.maximum(self.vhat[number].value(), v))
        if self.use_nesterov:
            m = m * self.beta1 + gradient * (1 - self.beta1)
        return value - m / (ops.sqrt(v) + self.eps) * (rate * ops.cast(shared, value.dtype))


class AdamWeightDecay(_Adaptive):
    """p - lr * (m / (sqrt(v) + eps) + weight_decay * p), with no correction of the means (Loshchilov and Hutter)."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(params, learning_rate, (beta1, beta2), eps, weight_decay)

    def decayed(self, number: int, value: Tensor, gradient: Tensor) -> Tensor:
        return gradient

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        m, v = self.moments(number, gradient)
        step = m / (ops.sqrt(v) + self.eps)
        return value - super().decayed(number, value, step) * rate


class Lamb(_Adaptive):
    """Adam's step with its decay, scaled to the length of the parameter, ten times at most (You et al., 2020)."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(params, learning_rate, (beta1, beta2), eps, weight_decay)

    def begin_step(self) -> tuple[Tensor, Tensor]:
        return self.corrections()

    def decayed(self, number: int, value: Tensor, gradient: Tensor) -> Tensor:
        return gradient

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        m, v = self.moments(number, gradient)
        first, second = (ops.cast(c, value.dtype) for c in shared)
        step = super().decayed(number, value, m / first / (ops.sqrt(v / second) + self.eps))
        length, own = ops.sqrt(ops.square(step).sum()), ops.sqrt(ops.square(value).sum())
        one = Tensor(1.0, value.dtype)
        ratio = ops.select(ops.greater(own, 0), ops.select(ops.greater(length, 0), own / length, one), one)
        return value - step * (ops.minimum(ratio, Tensor(10.0, value.dtype)) * rate)


class Adagrad(Optimizer):
    """a = a + gradient squared; p - lr * gradient / sqrt(a), from a = accum on (Duchi et al., 2011)."""

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.update_slots = update_slots
        self.accum = self.states("accum")
        for state in self.accum:
            state.set_data(ops.full_like(state.value(), self._number("accum", accum)))

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        accum = self.accum[number].value()
        if self.update_slots:
            accum = _set(self.accum[number], accum + ops.square(gradient))
        return value - gradient / ops.sqrt(accum) * rate


class RMSProp(Optimizer):
    """s = decay * s + (1 - decay) * gradient squared; b = momentum * b + lr * gradient / sqrt(s + epsilon); p - b.

    If `centered`, the square of a running mean of gradients is taken from s. s starts at 1 (Tieleman and Hinton, 2012).
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        unused("RMSProp", use_locking=use_locking)
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay, self.momentum = self._number("decay", decay), self._number("momentum", momentum)
        self.epsilon, self.centered = self._number("epsilon", epsilon, positive=True), centered
        self.ms = self.states("mean_square", "ones")
        self.moment = self.states("moment")
        self.mg = self.states("mean_grad") if centered else ParameterTuple(())

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        square, moment, keep = self.ms[number], self.moment[number], 1 - self.decay
        s = _set(square, square.value() * self.decay + ops.square(gradient) * keep)
        if self.centered:
            mean = _set(self.mg[number], self.mg[number].value() * self.decay + gradient * keep)
            s = s - ops.square(mean)
        step = moment.value() * self.momentum + gradient / ops.sqrt(s + self.epsilon) * rate
        return value - _set(moment, step)


class FTRL(Optimizer):
    """Follow the regularised leader, with l1 and l2 (McMahan et al., 2013)."""

    def __init__(
        self,
        params: Any,
        initial_accum: float = 0.1,
        learning_rate: Any = 0.001,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        unused("FTRL", use_locking=use_locking)
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.lr_power, self.l1, self.l2 = float(lr_power), self._number("l1", l1), self._number("l2", l2)
        self.moments = self.states("moments")
        self.linear = self.states("linear")
        for state in self.moments:
            state.set_data(ops.full_like(state.value(), self._number("initial_accum", initial_accum)))

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        before = self.moments[number].value()
        after = _set(self.moments[number], before + ops.square(gradient))
        powers = self._power(after), self._power(before)
        linear = self.linear[number].value() + gradient - (powers[0] - powers[1]) / rate * value
        linear = _set(self.linear[number], linear)
        scale = powers[0] / rate + 2 * self.l2
        reached = ops.greater(ops.abs(linear), self.l1)
        return ops.select(reached, (ops.sign(linear) * self.l1 - linear) / scale, ops.zeros_like(linear))

    def _power(self, accum: Tensor) -> Tensor:
        return ops.sqrt(accum) if self.lr_power == -0.5 else ops.pow(accum, -self.lr_power)


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
        total = _set(self.accum[number], self.accum[number].value() * self.rho + ops.square(gradient) * (1 - self.rho))
        before = self.accum_update[number].value()
        update = ops.sqrt(before + self.epsilon) / ops.sqrt(total + self.epsilon) * gradient
        _set(self.accum_update[number], before * self.rho + ops.square(update) * (1 - self.rho))
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
        m = _set(self.moment1[number], self.moment1[number].value() * self.beta1 + gradient * (1 - self.beta1))
        v = _set(self.moment2[number], ops.maximum(self.moment2[number].value() * self.beta2, ops.abs(gradient)))
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
        unused("ProximalAdagrad", use_locking=use_locking)
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.l1, self.l2 = self._number("l1", l1), self._number("l2", l2)
        self.accum = self.states("accum")
        for state in self.accum:
            state.set_data(ops.full_like(state.value(), self._number("accum", accum)))

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        total = _set(self.accum[number], self.accum[number].value() + ops.square(gradient))
        own = rate / ops.sqrt(total)
        moved = value - gradient * own
        return ops.sign(moved) * ops.relu(ops.abs(moved) - own * self.l1) / (own * self.l2 + 1.0)
