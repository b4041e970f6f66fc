"""Operators that take one step of an optimiser: they change parameters, and give them back."""

from __future__ import annotations

from typing import Any

from msc.frontend.errors import ApiTypeError
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.ops import arithmetic, comparison, selection, unary
from msc.ops.primitive import operator
from msc.support.argument_values import described

__all__ = [
    "SGD",
    "Adam",
    "AdamWeightDecay",
    "ApplyAdaMax",
    "ApplyAdadelta",
    "ApplyAdagrad",
    "ApplyAdagradV2",
    "ApplyGradientDescent",
    "ApplyMomentum",
    "ApplyProximalAdagrad",
    "ApplyProximalGradientDescent",
    "ApplyRMSProp",
]  # fmt: skip


def _set(target: Any, value: Tensor, name: str) -> Tensor:
    """Give a parameter a value, and use it. Raises MSC0807."""
    if not isinstance(target, Parameter):
        raise ApiTypeError("MSC0807", f"{name} changes a Parameter, not {described(target)}")
    target.set_data(value)
    return target.value()


def _now(x: Any) -> Tensor:
    return x.value() if isinstance(x, Parameter) else x


def _mean(old: Any, rate: Any, new: Tensor) -> Tensor:
    """Rate * old + (1 - rate) * new."""
    return arithmetic.add(arithmetic.mul(_now(old), rate), arithmetic.mul(new, arithmetic.sub(1.0, rate)))


def _adam(
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    gradient: Tensor,
    *,
    use_locking: bool = False,
    use_nesterov: bool = False,
) -> tuple[Any, Any, Any]:
    """A step of Adam, with the powers of beta1 and beta2 for its correction (Kingma and Ba, 2015)."""
    del use_locking
    mean = _set(m, _mean(m, beta1, gradient), "Adam")
    square = _set(v, _mean(v, beta2, unary.square(gradient)), "Adam")
    rate = arithmetic.div(
        arithmetic.mul(lr, unary.sqrt(arithmetic.sub(1.0, _now(beta2_power)))), arithmetic.sub(1.0, _now(beta1_power))
    )
    step = (
        arithmetic.add(arithmetic.mul(mean, beta1), arithmetic.mul(gradient, arithmetic.sub(1.0, beta1)))
        if use_nesterov
        else mean
    )
    _set(
        var,
        arithmetic.sub(
            _now(var), arithmetic.div(arithmetic.mul(step, rate), arithmetic.add(unary.sqrt(square), epsilon))
        ),
        "Adam",
    )
    return var, m, v


def _adam_weight_decay(
    var: Any,
    m: Any,
    v: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    decay: Any,
    gradient: Tensor,
    *,
    use_locking: bool = False,
) -> tuple[Any, Any, Any]:
    """A step of Adam without correction, and with a decay of the parameter (Loshchilov and Hutter, 2019)."""
    del use_locking
    mean = _set(m, _mean(m, beta1, gradient), "AdamWeightDecay")
    square = _set(v, _mean(v, beta2, unary.square(gradient)), "AdamWeightDecay")
    step = arithmetic.add(
        arithmetic.div(mean, arithmetic.add(unary.sqrt(square), epsilon)), arithmetic.mul(_now(var), decay)
    )
    _set(var, arithmetic.sub(_now(var), arithmetic.mul(step, lr)), "AdamWeightDecay")
    return var, m, v


def _momentum(
    variable: Any,
    accumulation: Any,
    learning_rate: Any,
    gradient: Tensor,
    momentum: Any,
    *,
    use_nesterov: bool = False,
    use_locking: bool = False,
    gradient_scale: float = 1.0,
) -> Any:
    """Accumulation = momentum * accumulation + gradient; variable - rate * accumulation."""
    del use_locking
    scaled = gradient if gradient_scale == 1.0 else arithmetic.mul(gradient, gradient_scale)
    moved = _set(accumulation, arithmetic.add(arithmetic.mul(_now(accumulation), momentum), scaled), "ApplyMomentum")
    step = arithmetic.add(scaled, arithmetic.mul(moved, momentum)) if use_nesterov else moved
    _set(variable, arithmetic.sub(_now(variable), arithmetic.mul(step, learning_rate)), "ApplyMomentum")
    return variable


def _sgd(
    parameters: Any,
    gradient: Tensor,
    learning_rate: Any,
    accum: Any,
    momentum: Any,
    stat: Any,
    *,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> Any:
    """Accum = momentum * accum + (1 - dampening) * gradient, which is the gradient where `stat` is above 0."""
    if weight_decay:
        gradient = arithmetic.add(gradient, arithmetic.mul(_now(parameters), weight_decay))
    moved = arithmetic.add(arithmetic.mul(_now(accum), momentum), arithmetic.mul(gradient, 1.0 - dampening))
    moved = _set(accum, selection.where(comparison.greater(_now(stat), 0.0), gradient, moved), "SGD")
    _set(stat, arithmetic.mul(_now(stat), 0.0), "SGD")
    step = arithmetic.add(gradient, arithmetic.mul(moved, momentum)) if nesterov else moved
    _set(parameters, arithmetic.sub(_now(parameters), arithmetic.mul(step, learning_rate)), "SGD")
    return parameters


def _descent(var: Any, alpha: Any, delta: Tensor) -> Any:
    """Var - alpha * delta."""
    _set(var, arithmetic.sub(_now(var), arithmetic.mul(delta, alpha)), "ApplyGradientDescent")
    return var


def _adagrad(var: Any, accum: Any, lr: Any, grad: Tensor, *, update_slots: bool = True) -> tuple[Any, Any]:
    """Accum = accum + gradient squared; var - lr * gradient / sqrt(accum)."""
    total = _now(accum)
    if update_slots:
        total = _set(accum, arithmetic.add(total, unary.square(grad)), "ApplyAdagrad")
    _set(var, arithmetic.sub(_now(var), arithmetic.div(arithmetic.mul(grad, lr), unary.sqrt(total))), "ApplyAdagrad")
    return var, accum


def _adagrad_v2(
    var: Any, accum: Any, lr: Any, grad: Tensor, *, epsilon: float, update_slots: bool = True
) -> tuple[Any, Any]:
    """Accum = accum + gradient squared; var - lr * gradient / (sqrt(accum) + epsilon)."""
    total = _now(accum)
    if update_slots:
        total = _set(accum, arithmetic.add(total, unary.square(grad)), "ApplyAdagradV2")
    step = arithmetic.div(arithmetic.mul(grad, lr), arithmetic.add(unary.sqrt(total), epsilon))
    _set(var, arithmetic.sub(_now(var), step), "ApplyAdagradV2")
    return var, accum


def _ada_max(
    var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Tensor
) -> tuple[Any, Any, Any]:
    """M = beta1 m + (1 - beta1) gradient; v = max(beta2 v, |gradient|); var - lr / (1 - power) m / (v + epsilon)."""
    mean = _set(m, _mean(m, beta1, grad), "ApplyAdaMax")
    most = _set(v, arithmetic.maximum(arithmetic.mul(_now(v), beta2), unary.abs(grad)), "ApplyAdaMax")
    rate = arithmetic.div(lr, arithmetic.sub(1.0, _now(beta1_power)))
    _set(
        var,
        arithmetic.sub(_now(var), arithmetic.div(arithmetic.mul(mean, rate), arithmetic.add(most, epsilon))),
        "ApplyAdaMax",
    )
    return var, m, v


def _adadelta(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Tensor
) -> tuple[Any, Any, Any]:
    """A step of Adadelta (Zeiler, 2012)."""
    total = _set(accum, _mean(accum, rho, unary.square(grad)), "ApplyAdadelta")
    ratio = arithmetic.div(arithmetic.add(_now(accum_update), epsilon), arithmetic.add(total, epsilon))
    update = arithmetic.mul(unary.sqrt(ratio), grad)
    _set(accum_update, _mean(accum_update, rho, unary.square(update)), "ApplyAdadelta")
    _set(var, arithmetic.sub(_now(var), arithmetic.mul(update, lr)), "ApplyAdadelta")
    return var, accum, accum_update


def _shrunk(x: Tensor, rate: Any, l1: Any, l2: Any) -> Tensor:
    """sign(x) max(|x| - rate l1, 0) / (1 + rate l2)."""
    most = arithmetic.maximum(arithmetic.sub(unary.abs(x), arithmetic.mul(rate, l1)), 0.0)
    return arithmetic.div(arithmetic.mul(unary.sign(x), most), arithmetic.add(arithmetic.mul(rate, l2), 1.0))


def _proximal_descent(var: Any, alpha: Any, l1: Any, l2: Any, delta: Tensor) -> Any:
    """A step of descent, shrunk by l1 and l2."""
    moved = arithmetic.sub(_now(var), arithmetic.mul(delta, alpha))
    _set(var, _shrunk(moved, alpha, l1, l2), "ApplyProximalGradientDescent")
    return var


def _proximal_adagrad(
    var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Tensor, *, use_locking: bool = False
) -> tuple[Any, Any]:
    """A step of Adagrad, shrunk by l1 and l2."""
    del use_locking
    total = _set(accum, arithmetic.add(_now(accum), unary.square(grad)), "ApplyProximalAdagrad")
    rate = arithmetic.div(lr, unary.sqrt(total))
    _set(var, _shrunk(arithmetic.sub(_now(var), arithmetic.mul(grad, rate)), rate, l1, l2), "ApplyProximalAdagrad")
    return var, accum


def _rms_prop(
    var: Any,
    mean_square: Any,
    moment: Any,
    learning_rate: Any,
    grad: Tensor,
    decay: Any,
    momentum: Any,
    epsilon: Any,
    *,
    use_locking: bool = False,
) -> Any:
    """A step of RMSProp (Tieleman and Hinton, 2012)."""
    del use_locking
    square = _set(mean_square, _mean(mean_square, decay, unary.square(grad)), "ApplyRMSProp")
    step = arithmetic.div(arithmetic.mul(grad, learning_rate), unary.sqrt(arithmetic.add(square, epsilon)))
    moved = _set(moment, arithmetic.add(arithmetic.mul(_now(moment), momentum), step), "ApplyRMSProp")
    _set(var, arithmetic.sub(_now(var), moved), "ApplyRMSProp")
    return var


Adam = operator("Adam", _adam, "use_locking use_nesterov")
AdamWeightDecay = operator("AdamWeightDecay", _adam_weight_decay, "use_locking")
ApplyAdaMax = operator("ApplyAdaMax", _ada_max)
ApplyAdadelta = operator("ApplyAdadelta", _adadelta)
ApplyAdagrad = operator("ApplyAdagrad", _adagrad, "update_slots")
ApplyAdagradV2 = operator("ApplyAdagradV2", _adagrad_v2, "epsilon update_slots")
ApplyGradientDescent = operator("ApplyGradientDescent", _descent)
ApplyMomentum = operator("ApplyMomentum", _momentum, "use_nesterov use_locking gradient_scale")
ApplyProximalAdagrad = operator("ApplyProximalAdagrad", _proximal_adagrad, "use_locking")
ApplyProximalGradientDescent = operator("ApplyProximalGradientDescent", _proximal_descent)
ApplyRMSProp = operator("ApplyRMSProp", _rms_prop, "use_locking")
SGD = operator("SGD", _sgd, "dampening weight_decay nesterov")
