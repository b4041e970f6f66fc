"""Optimisers with PyTorch's arguments. `optimizer(gradients)` takes a step; a schedule changes the rates."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msc import ops
from msc.frontend import dtypes
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.support.argument_values import described

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]


class Optimizer(Cell):
    """Base: `param_groups` with `params`, `lr` (a Parameter, which schedules set) and the other options. MSC0858."""

    STATES: Sequence[str] = ()

    def __init__(self, params: Any, defaults: Mapping[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        groups = list(params)
        if not groups:
            raise ApiValueError("MSC0858", f"{type(self).__name__} has no parameters", help="net.trainable_params()")
        groups = groups if isinstance(groups[0], Mapping) else [{"params": groups}]
        self.param_groups: list[dict[str, Any]] = []
        self.defaults = dict(defaults)
        for number, given in enumerate(groups):
            group: dict[str, Any] = {**defaults, **given}
            group["params"] = [self._parameter(p) for p in group["params"]]
            rate = group["lr"]
            if isinstance(rate, bool) or float(rate) < 0:
                raise ApiValueError("MSC0858", f"{type(self).__name__}: lr is {described(rate)}; it must be from 0 on")
            group["initial_lr"] = float(rate)
            group["lr"] = Parameter(
                Tensor(float(rate), dtypes.float32), name=f"learning_rate_group_{number}", requires_grad=False
            )
            self.param_groups.append(group)
        self.parameters = ParameterTuple([p for group in self.param_groups for p in group["params"]])
        self.rates = ParameterTuple([group["lr"] for group in self.param_groups])
        self.steps = Parameter(Tensor(0.0, dtypes.float32), name="state_step", requires_grad=False)
        for name in self.STATES:
            setattr(
                self,
                name,
                ParameterTuple(
                    [
                        Parameter(ops.zeros_like(p.value()), name=f"{name}.{p.name}", requires_grad=False)
                        for p in self.parameters
                    ]
                ),
            )

    def _parameter(self, given: object) -> Parameter:
        if not isinstance(given, Parameter):
            raise ApiTypeError(
                "MSC0858",
                f"{type(self).__name__} updates Parameters; this is {described(given)}",
                help="net.trainable_params()",
            )
        return given

    def state(self, name: str, number: int) -> Tensor:
        """What is kept of a parameter."""
        return getattr(self, name)[number].value()

    def keep(self, name: str, number: int, value: Tensor) -> Tensor:
        """Keep something of a parameter, and use it."""
        getattr(self, name)[number].replace(value.content)
        return value

    def construct(self, gradients: Any) -> bool:
        step = self.steps.value() + 1.0
        self.steps.replace(step.content)
        number = 0
        for group in self.param_groups:
            rate = group["lr"].value()
            for parameter in group["params"]:
                value, gradient = parameter.value(), gradients[number]
                gradient = -gradient if group.get("maximize") else gradient
                after = self.updated(group, number, value, gradient, rate, step)
                parameter.replace(ops.cast(after, value.dtype).content)
                number += 1
        return True

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        """The value of a parameter after a step."""
        raise ApiTypeError("MSC0858", f"{type(self).__name__} does not say how it updates", help="define construct")

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Groups are given when an optimiser is made. Raises MSC0858."""
        raise ApiValueError(
            "MSC0858", f"{type(self).__name__}: {len(param_group)} more entries", help="give all groups"
        )


def _decayed(group: dict[str, Any], value: Tensor, gradient: Tensor) -> Tensor:
    return gradient + value * group["weight_decay"] if group["weight_decay"] else gradient


class SGD(Optimizer):
    """p - lr * b, with b = momentum * b + (1 - dampening) * gradient, which is the gradient at first."""

    STATES = ("accum",)

    def __init__(
        self,
        params: Any,
        lr: Any,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient = _decayed(group, value, gradient)
        momentum = group["momentum"]
        if not momentum:
            return value - gradient * rate
        moved = self.state("accum", number) * momentum + gradient * (1 - group["dampening"])
        moved = self.keep("accum", number, ops.where(step <= 1.0, gradient, moved))
        return value - (gradient + moved * momentum if group["nesterov"] else moved) * rate


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015); `amsgrad` divides by the largest mean of squares so far."""

    STATES = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )

    def decayed(self, group: dict[str, Any], value: Tensor, gradient: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
        """The value and the gradient with their decay."""
        del rate
        return value, _decayed(group, value, gradient)

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        value, gradient = self.decayed(group, value, gradient, rate)
        first, second = group["betas"]
        m = self.keep("exp_avg", number, self.state("exp_avg", number) * first + gradient * (1 - first))
        v = self.keep(
            "exp_avg_sq", number, self.state("exp_avg_sq", number) * second + ops.square(gradient) * (1 - second)
        )
        if group["amsgrad"]:
            v = self.keep("max_exp_avg_sq", number, ops.maximum(self.state("max_exp_avg_sq", number), v))
        root = ops.sqrt(v) / ops.sqrt(1.0 - ops.pow(Tensor(second, dtypes.float32), step)) + group["eps"]
        return value - m / root * (rate / (1.0 - ops.pow(Tensor(first, dtypes.float32), step)))


class AdamW(Adam):
    """Adam with a decay of the parameter itself (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def decayed(self, group: dict[str, Any], value: Tensor, gradient: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
        return value * (1.0 - rate * group["weight_decay"]), gradient


class Adamax(Optimizer):
    """Adam with the largest gradient in place of squares."""

    STATES = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        )

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient = _decayed(group, value, gradient)
        first, second = group["betas"]
        m = self.keep("exp_avg", number, self.state("exp_avg", number) * first + gradient * (1 - first))
        most = self.keep(
            "exp_inf", number, ops.maximum(self.state("exp_inf", number) * second, ops.abs(gradient) + group["eps"])
        )
        return value - m / most * (rate / (1.0 - ops.pow(Tensor(first, dtypes.float32), step)))


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016)."""

    STATES = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay},
        )
        self.products = Parameter(Tensor(1.0, dtypes.float32), name="mu_product", requires_grad=False)

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient = _decayed(group, value, gradient)
        first, second = group["betas"]
        base = Tensor(0.96, dtypes.float32)
        mu, after = (first * (1.0 - 0.5 * ops.pow(base, s * group["momentum_decay"])) for s in (step, step + 1.0))
        if number == 0:
            self.products.replace((self.products.value() * mu).content)
        product = self.products.value()
        m = self.keep("exp_avg", number, self.state("exp_avg", number) * first + gradient * (1 - first))
        v = self.keep(
            "exp_avg_sq", number, self.state("exp_avg_sq", number) * second + ops.square(gradient) * (1 - second)
        )
        root = ops.sqrt(v / (1.0 - ops.pow(Tensor(second, dtypes.float32), step))) + group["eps"]
        value = value - gradient / root * (rate * (1.0 - mu) / (1.0 - product))
        return value - m / root * (rate * after / (1.0 - product * after))


class RAdam(Optimizer):
    """Adam whose step is rectified while few squares are known (Liu et al., 2020)."""

    STATES = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient = _decayed(group, value, gradient)
        first, second = group["betas"]
        m = self.keep("exp_avg", number, self.state("exp_avg", number) * first + gradient * (1 - first))
        v = self.keep(
            "exp_avg_sq", number, self.state("exp_avg_sq", number) * second + ops.square(gradient) * (1 - second)
        )
        power = ops.pow(Tensor(second, dtypes.float32), step)
        most = 2 / (1 - second) - 1
        length = most - step * 2.0 * power / (1.0 - power)
        safe = ops.maximum(length, 5.0)
        shape = (safe - 4.0) * (safe - 2.0) * most / (safe * ((most - 4) * (most - 2)))
        mean = m / (1.0 - ops.pow(Tensor(first, dtypes.float32), step))
        adapted = mean * ops.sqrt(shape) * ops.sqrt(1.0 - power) / (ops.sqrt(v) + group["eps"])
        return value - ops.where(length > 5.0, adapted, mean) * rate


class Adagrad(Optimizer):
    """p - lr / (1 + t * lr_decay) * gradient / sqrt(sum of squares) (Duchi et al., 2011)."""

    STATES = ("accum",)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "maximize": maximize}
        )
        for state in getattr(self, "accum"):  # noqa: B009
            state.set_data(ops.full_like(state.value(), float(initial_accumulator_value)))

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient = _decayed(group, value, gradient)
        total = self.keep("accum", number, self.state("accum", number) + ops.square(gradient))
        own = rate / (1.0 + (step - 1.0) * group["lr_decay"])
        return value - gradient / (ops.sqrt(total) + group["eps"]) * own


class Adadelta(Optimizer):
    """Steps in the size of those before (Zeiler, 2012)."""

    STATES = ("accum", "accum_update")

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient, rho, eps = _decayed(group, value, gradient), group["rho"], group["eps"]
        total = self.keep("accum", number, self.state("accum", number) * rho + ops.square(gradient) * (1 - rho))
        update = ops.sqrt(self.state("accum_update", number) + eps) / ops.sqrt(total + eps) * gradient
        self.keep("accum_update", number, self.state("accum_update", number) * rho + ops.square(update) * (1 - rho))
        return value - update * rate


class RMSprop(Optimizer):
    """p - lr * gradient / (sqrt(mean of squares) + eps), with a momentum (Tieleman and Hinton, 2012)."""

    STATES = ("mean_square", "moment", "mean_grad")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
            },
        )

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient, alpha = _decayed(group, value, gradient), group["alpha"]
        square = self.keep(
            "mean_square", number, self.state("mean_square", number) * alpha + ops.square(gradient) * (1 - alpha)
        )
        if group["centered"]:
            mean = self.keep("mean_grad", number, self.state("mean_grad", number) * alpha + gradient * (1 - alpha))
            square = square - ops.square(mean)
        step_ = gradient / (ops.sqrt(square) + group["eps"])
        if group["momentum"]:
            step_ = self.keep("moment", number, self.state("moment", number) * group["momentum"] + step_)
        return value - step_ * rate


from msc.experimental.optim import lr_scheduler as lr_scheduler  # noqa: E402


class ASGD(Optimizer):
    """As `nn.ASGD`: a rate that falls with the step, and the mean of the values in `ax`."""

    STATES = ("ax", "eta")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize})

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        gradient, lambd = _decayed(group, value, gradient), group["lambd"]
        eta = ops.where(step <= 1.0, rate, self.state("eta", number))
        new = value * (1.0 - eta * lambd) - eta * gradient
        share = 1.0 / ops.maximum(step - 1.0 - group["t0"], Tensor(1.0, dtypes.float32))
        mean = self.state("ax", number)
        self.keep("ax", number, ops.where(share >= 1.0, new, mean + (new - mean) * share))
        self.keep("eta", number, ops.ones_like(value) * (rate / ops.pow(1.0 + rate * lambd * step, group["alpha"])))
        return new


class Rprop(Optimizer):
    """As `nn.Rprop`: a step of its own for each element, longer while its gradient keeps its sign."""

    STATES = ("prev", "step_size")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def updated(
        self, group: dict[str, Any], number: int, value: Tensor, gradient: Tensor, rate: Tensor, step: Tensor
    ) -> Tensor:
        (shorter, longer), (least, most) = group["etas"], group["step_sizes"]
        turn = gradient * self.state("prev", number)
        factor = ops.where(turn > 0, longer, ops.where(turn < 0, shorter, ops.ones_like(turn)))
        size = ops.where(step <= 1.0, ops.ones_like(value) * rate, self.state("step_size", number)) * factor
        size = self.keep("step_size", number, ops.clamp(size, least, most))
        kept = self.keep("prev", number, ops.where(turn < 0, ops.zeros_like(gradient), gradient))
        return value - ops.sign(kept) * size
