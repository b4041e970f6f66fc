"""The optimisers: how each one updates a parameter. Names, defaults and formulas are MindSpore's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msc import ops
from msc.frontend import dtypes
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.nn.optim.optimizer import Optimizer
from msc.support.wording import a

__all__ = [
    "ASGD", "FTRL", "LARS", "SGD", "AdaFactor", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamWeightDecay", "Lamb",
    "LazyAdam", "Momentum", "ProximalAdagrad", "RMSProp", "Rprop",
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


class LazyAdam(Adam):
    """Adam: gradients are dense here, so that each row of a parameter is updated in each step."""

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
    ) -> None:
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


class ASGD(Optimizer):
    """p * (1 - lambd * eta) - eta * gradient, and the mean of the values in `ax` (Polyak and Juditsky, 1992).

    Eta falls from lr with the step's power `alpha`; from step `t0` on `ax` is a mean, before that the value.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.lambd, self.alpha = self._number("lambd", lambd), self._number("alpha", alpha)
        self.t0 = self._number("t0", t0)
        self.ax = self.states("ax_")
        self.eta = ParameterTuple(
            [Parameter(Tensor(0.0, p.dtype), f"eta_{p.name}", requires_grad=False) for p in self.parameters]
        )

    def begin_step(self) -> Tensor:
        return ops.cast(self.global_step.value() + 1, dtypes.float32)

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        step = ops.cast(shared, value.dtype)
        eta = ops.select(ops.equal(step, 1), rate, self.eta[number].value())
        new = value * (1.0 - eta * self.lambd) - eta * gradient
        share = 1.0 / ops.maximum(step - 1.0 - self.t0, 1.0)
        mean = self.ax[number].value()
        _set(self.ax[number], ops.select(ops.equal(share, 1), new, mean + (new - mean) * share))
        _set(self.eta[number], rate / ops.pow(1.0 + rate * self.lambd * step, self.alpha))
        return new


class Rprop(Optimizer):
    """A step of its own for each element, longer while its gradient keeps its sign (Riedmiller and Braun, 1993)."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.etaminus = self._number("etaminus", etas[0], positive=True, below_one=True)
        self.etaplus = self._number("etaplus", etas[1], positive=True)
        self.step_size_min, self.step_size_max = (self._number("step_sizes", s) for s in step_sizes)
        if self.etaplus <= 1 or self.step_size_min > self.step_size_max:
            raise ApiValueError("MSC0858", "Rprop: etas are below and above 1, step_sizes from the least to the most")
        self.prev, self.step_size = self.states("prev"), self.states("step_size")

    def begin_step(self) -> Tensor:
        return ops.equal(self.global_step.value(), 0)

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        turn = gradient * self.prev[number].value()
        factor = ops.select(turn > 0, self.etaplus, ops.select(turn < 0, self.etaminus, ops.ones_like(turn)))
        size = ops.select(shared, ops.ones_like(value) * rate, self.step_size[number].value()) * factor
        size = _set(self.step_size[number], ops.clamp(size, self.step_size_min, self.step_size_max))
        kept = _set(self.prev[number], ops.select(turn < 0, ops.zeros_like(gradient), gradient))
        return value - ops.sign(kept) * size


def _root_mean_square(x: Tensor) -> Tensor:
    return ops.sqrt(ops.mean(ops.square(x)))


class AdaFactor(Optimizer):
    """A step by squares of gradients of which matrices keep means of rows and columns alone (Shazeer and Stern, 2018).

    Without a learning rate (`relative_step`) it falls with the step. Raises MSC0858 for a rate beside
    `relative_step`, neither, or `compression`.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = 0.8,
        beta1: float | None = 0.9,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
        compression: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        if (learning_rate is None) != relative_step or (warmup_init and not relative_step) or compression:
            message = "AdaFactor takes a learning rate, or relative_step=True, which warmup_init needs"
            raise ApiValueError("MSC0858", message, notes=("compression is not there",) if compression else ())
        super().__init__(0.0 if learning_rate is None else learning_rate, params, 0.0, loss_scale)
        self.eps, self.clip_threshold = eps, self._number("clip_threshold", clip_threshold)
        self.decay_rate = self._number("decay_rate", decay_rate, positive=True, below_one=True)
        self.beta1, self.shrinks = self._number("beta1", beta1 or 0.0), self._number("weight_decay", weight_decay)
        self.scale_parameter = scale_parameter and not self._schedules
        self.relative_step, self.warmup_init = relative_step, warmup_init
        self.exp_avg = self.states("exp_avg") if self.beta1 else ParameterTuple(())
        shapes = [p.shape for p in self.parameters]
        self.exp_avg_sq_row = self._means("row", [s[:-1] if len(s) > 1 else (1,) for s in shapes])
        self.exp_avg_sq_col = self._means("col", [(*s[:-2], s[-1]) if len(s) > 1 else (1,) for s in shapes])
        self.exp_avg_sq = self._means("", [(1,) if len(s) > 1 else s for s in shapes])

    def _means(self, kind: str, shapes: list[tuple[int, ...]]) -> ParameterTuple:
        prefix = f"exp_avg_sq_{kind}_".replace("__", "_")
        pairs = zip(self.parameters, shapes, strict=True)
        return ParameterTuple(
            [Parameter(ops.zeros(s, p.dtype), f"{prefix}{p.name}", requires_grad=False) for p, s in pairs]
        )

    def begin_step(self) -> tuple[Tensor, Tensor | None]:
        step = ops.cast(self.global_step.value() + 1, dtypes.float32)
        rate = None
        if self.relative_step:
            most = step * 1e-6 if self.warmup_init else Tensor(1e-2, dtypes.float32)
            rate = ops.minimum(most, ops.rsqrt(step))
        return 1.0 - ops.pow(step, -self.decay_rate), rate

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        keep, own = shared
        keep, rate = ops.cast(keep, value.dtype), rate if own is None else ops.cast(own, value.dtype)
        if self.scale_parameter:
            rate = rate * ops.maximum(_root_mean_square(value), self.eps[1])
        squares = ops.square(gradient) + self.eps[0]
        if value.ndim > 1:
            row, col = (
                _set(state[number], state[number].value() * keep + ops.mean(squares, axis) * (1.0 - keep))
                for state, axis in ((self.exp_avg_sq_row, -1), (self.exp_avg_sq_col, -2))
            )
            scaled = ops.rsqrt(row / ops.mean(row, -1, keep_dims=True))
            update = gradient * ops.expand_dims(scaled, -1) * ops.expand_dims(ops.rsqrt(col), -2)
        else:
            total = _set(self.exp_avg_sq[number], self.exp_avg_sq[number].value() * keep + squares * (1.0 - keep))
            update = gradient * ops.rsqrt(total)
        update = update / ops.maximum(_root_mean_square(update) / self.clip_threshold, 1.0) * rate
        if self.beta1:
            before = self.exp_avg[number].value()
            update = _set(self.exp_avg[number], before * self.beta1 + update * (1 - self.beta1))
        return value - value * (rate * self.shrinks) - update if self.shrinks else value - update


class LARS(Cell):
    """An optimiser whose gradients are scaled to the lengths of the parameters (You et al., 2017).

    The gradient with its decay is multiplied by coefficient * |p| / (|gradient| + decay * |p| + epsilon), with
    `use_clip` by that over the rate, 1 at most; but for parameters that `lars_filter` leaves out. Raises MSC0858.
    """

    def __init__(
        self,
        optimizer: Any,
        epsilon: float = 1e-5,
        coefficient: float = 0.001,
        use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = lambda x: "LayerNorm" not in x.name and "bias" not in x.name,
    ) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(optimizer, Optimizer):
            raise ApiTypeError("MSC0858", f"LARS takes an optimizer, not {a(type(optimizer).__name__)}")
        self.opt: Optimizer = optimizer
        self.parameters = self.opt.parameters
        self.epsilon, self.coefficient, self.use_clip = epsilon, coefficient, use_clip
        self.lars_flag = tuple(bool(lars_filter(p)) for p in self.parameters)
        self.decays = self.opt.without_decay()

    def get_lr(self) -> Any:
        """The learning rate of this step."""
        return self.opt.get_lr()

    def construct(self, gradients: Any) -> Any:
        """Scale the gradients, and update all parameters."""
        rates = self.opt.get_lr() if self.use_clip else 1.0
        scaled = [
            self._scaled(p.value(), g, decay, rates[n] if isinstance(rates, tuple) else rates) if flag else g
            for n, (p, g, decay, flag) in enumerate(
                zip(self.parameters, gradients, self.decays, self.lars_flag, strict=True)
            )
        ]
        return self.opt(tuple(scaled))

    def _scaled(self, value: Tensor, gradient: Tensor, decay: Any, rate: Any) -> Tensor:
        decay = decay(self.opt.global_step.value()) if isinstance(decay, Cell) else decay
        gradient = gradient if self.opt.loss_scale == 1 else gradient * (1 / self.opt.loss_scale)
        length, slope = ops.norm(value), ops.norm(gradient)
        trust = length * self.coefficient / (slope + length * decay + self.epsilon)
        trust = ops.minimum(trust / rate, 1.0) if self.use_clip else trust
        return (gradient + value * decay) * trust * self.opt.loss_scale
