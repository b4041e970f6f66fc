"""Losses of counts, of several classes an example, of margins. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import math

from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops.activation import log_softmax, relu, softplus
from msc.ops.arithmetic import add, div, maximum, mul, pow, sub
from msc.ops.creation import one_hot
from msc.ops.losses import reduced, same_shape
from msc.ops.operands import cast
from msc.ops.reductions import mean, sum
from msc.ops.selection import gather_elements, where
from msc.ops.shapes import expand_dims, movedim
from msc.ops.unary import exp, log, neg, square


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-08,
    reduction: str = "mean",
) -> Tensor:
    """exp(x) - target x, of logarithms of rates x; x - target log(x + eps) of rates; `full` adds Stirling's log n!."""
    same_shape("poisson_nll_loss", input, target)
    loss = sub(exp(input), mul(target, input)) if log_input else sub(input, mul(target, log(add(input, eps))))
    if full:
        counted = maximum(target, 2.0)
        stirling = add(sub(mul(counted, log(counted)), counted), mul(log(mul(counted, 2 * math.pi)), 0.5))
        loss = add(loss, where(target > 1, stirling, 0.0))
    return reduced(loss, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    x: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """Half of log(var) + (x - target)^2 / var, with var at least eps; `full` adds half of log(2 pi)."""
    same_shape("gaussian_nll_loss", x, target)
    if var.shape == x.shape[:-1]:
        var = expand_dims(var, -1)
    spread = maximum(var, eps)
    loss = mul(add(log(spread), div(square(sub(x, target)), spread)), 0.5)
    return reduced(add(loss, 0.5 * math.log(2 * math.pi)) if full else loss, reduction, "gaussian_nll_loss")


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of the binary cross entropy of sigmoid(x), for classes of which any number is true."""
    same_shape("multilabel_soft_margin_loss", input, target)
    loss = sub(softplus(input), mul(target, input))
    loss = loss if weight is None else mul(loss, weight)
    return reduced(mean(loss, -1), reduction, "multilabel_soft_margin_loss")


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of max(0, margin - x[class] + x)^p, but for the class itself; p is 1 or 2."""
    if input.ndim != 2 or target.shape != input.shape[:1]:
        message = f"input has shape {input.shape}, target {target.shape}; they must be [examples, classes], [examples]"
        raise ApiValueError("MSC0201", f"multi_margin_loss: {message}")
    if p not in (1, 2):
        raise ApiValueError("MSC0203", f"multi_margin_loss: p is {p}; it must be 1 or 2")
    own = gather_elements(input, 1, expand_dims(target, 1))
    found = relu(add(sub(input, own), margin))
    loss = found if p == 1 else square(found)
    is_own = one_hot(target, input.shape[1], 1.0, 0.0)
    if weight is not None:
        loss = mul(loss, sum(mul(is_own, weight), 1, True))
    return reduced(mean(mul(loss, sub(1.0, is_own)), 1), reduction, "multi_margin_loss")


def focal_loss(
    logits: Tensor, labels: Tensor, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean"
) -> Tensor:
    """-(1 - p)^gamma log(p) of the chance p of the class. Classes are axis 1; labels are classes, or one-hot."""
    chances = log_softmax(logits, 1)
    if labels.ndim == logits.ndim and labels.shape[1] == logits.shape[1]:
        chosen = cast(labels, logits.dtype)
    else:
        found = labels if labels.ndim == logits.ndim - 1 else labels.squeeze(1)
        chosen = movedim(one_hot(found, logits.shape[1], 1.0, 0.0), -1, 1)
    same_shape("focal_loss", logits, chosen, "one-hot form of labels")
    loss = neg(mul(mul(pow(sub(1.0, exp(chances)), gamma), chances), chosen))
    if weight is not None:
        loss = mul(loss, weight.reshape((1, -1) + (1,) * (logits.ndim - 2)))
    return reduced(sum(loss, 1), reduction, "focal_loss")
