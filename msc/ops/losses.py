"""Losses, as functions. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import math

from msc.frontend import dtypes, expectations
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops.activation import clamp, log_softmax, relu, softplus
from msc.ops.arithmetic import add, div, maximum, minimum, mul, pow, sub
from msc.ops.comparison import equal, not_equal
from msc.ops.creation import one_hot
from msc.ops.operands import as_float, cast, flexible, only_tensor, pair
from msc.ops.reductions import mean, norm, sum
from msc.ops.selection import gather_elements, where
from msc.ops.shapes import expand_dims, movedim, reshape, squeeze
from msc.ops.unary import abs as absolute
from msc.ops.unary import exp, log, neg, sqrt, square

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cdist", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "focal_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss",
    "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy", "triplet_margin_loss",
]  # fmt: skip


def reduced(loss: Tensor, reduction: str, function: str = "the loss") -> Tensor:
    """The mean or the sum of a loss, or the loss of each element. Raises MSC0203."""
    match reduction:
        case "mean":
            return mean(loss)
        case "sum":
            return sum(loss)
        case "none":
            return loss
        case _:
            raise ApiValueError("MSC0203", f"{function}: reduction is {reduction!r}, not 'mean', 'sum' or 'none'")


def same_shape(function: str, input: Tensor, target: Tensor, name: str = "target") -> None:
    """Raise MSC0201 unless both have one shape: a loss that broadcasts hides a missing axis."""
    if input.shape != target.shape:
        raise ApiValueError("MSC0201", f"{function}: the {name} has shape {target.shape}; it must be {input.shape}")


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The square of the difference."""
    return reduced(square(sub(input, target)), reduction, "mse_loss")


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The absolute difference."""
    return reduced(absolute(sub(input, target)), reduction, "l1_loss")


def smooth_l1_loss(input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """Half the square over beta where the difference d is less than beta, |d| - beta / 2 elsewhere."""
    d = sub(input, target)
    size = absolute(d)
    loss = size if beta == 0 else where(size < beta, mul(square(d), 0.5 / beta), sub(size, 0.5 * beta))
    return reduced(loss, reduction, "smooth_l1_loss")


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half the square where the difference d is less than delta, delta (|d| - delta / 2) elsewhere."""
    d = sub(input, target)
    size = absolute(d)
    loss = where(size < delta, mul(square(d), 0.5), mul(sub(size, 0.5 * delta), delta))
    return reduced(loss, reduction, "huber_loss")


def at_least_0(margin: Tensor) -> Tensor:
    """What a margin is short of; on the margin itself it still has the gradient of what is beyond."""
    return clamp(margin, 0.0)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target input))."""
    return reduced(softplus(mul(mul(input, target), -1.0), 1, 1e30), reduction, "soft_margin_loss")


def hinge_embedding_loss(inputs: Tensor, targets: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """X where the target is 1, max(0, margin - x) where it is -1."""
    return reduced(where(equal(targets, 1), inputs, at_least_0(sub(margin, inputs))), reduction, "hinge_embedding_loss")


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -target (input1 - input2) + margin)."""
    loss = at_least_0(add(mul(mul(sub(input1, input2), target), -1.0), margin))
    return reduced(loss, reduction, "margin_ranking_loss")


@flexible
def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-08) -> Tensor:
    """The product of two vectors over that of their norms."""
    sizes = mul(norm(x1, 2, axis), norm(x2, 2, axis))
    return div(sum(mul(x1, x2), axis), clamp(sizes, float(eps)))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    axis, least = -1 if input1.ndim == 1 else 1, 1e-12
    squares = [add(sum(square(x), axis), least) for x in (input1, input2)]
    cosine = div(sum(mul(input1, input2), axis), sqrt(mul(*squares)))
    return reduced(where(equal(target, 1), sub(1.0, cosine), at_least_0(sub(cosine, margin))), reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: Tensor | float = 1.0, p: int = 2, eps: float = 1e-06,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, distance to the positive - distance to the negative + margin)."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return norm(add(sub(a, b), float(eps)), p, -1)

    far = distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    loss = at_least_0(
        add(sub(distance(anchor, positive), far), margin if isinstance(margin, Tensor) else float(margin))
    )
    return reduced(loss, reduction, "triplet_margin_loss")


def kl_div(logits: Tensor, labels: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Labels (log(labels) - logits), where logits are logarithms of probabilities; 0 where the label is 0."""
    if log_target:
        loss = mul(exp(labels), sub(labels, logits))
    else:
        safe = where(labels > 0, labels, 1.0)
        loss = where(labels > 0, mul(labels, sub(log(safe), logits)), 0.0)
    if reduction == "batchmean":
        return div(sum(loss), float(logits.shape[0]))
    return reduced(loss, reduction, "kl_div")


def binary_cross_entropy(
    logits: Tensor, labels: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """-(y log(x) + (1 - y) log(1 - x)), of probabilities x; the logarithm is at least -100."""
    same_shape("binary_cross_entropy", logits, labels, "label")
    loss = apply("binary_cross_entropy", *map(as_float, pair("binary_cross_entropy", logits, labels)))
    return reduced(loss if weight is None else mul(loss, weight), reduction, "binary_cross_entropy")


def binary_cross_entropy_with_logits(
    logits: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of sigmoid(x), without overflow."""
    same_shape("binary_cross_entropy_with_logits", logits, label, "label")
    positive = label if pos_weight is None else mul(label, pos_weight)
    loss = add(mul(sub(1.0, label), apply("softplus", logits)), mul(positive, apply("softplus", neg(logits))))
    return reduced(loss if weight is None else mul(loss, weight), reduction, "binary_cross_entropy_with_logits")


def nll_loss(
    inputs: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-weight[t] x[t], of logarithms of probabilities x `[n, c, ...]` and classes `[n, ...]`."""
    x = as_float(only_tensor(inputs, "nll_loss"))
    single = x.ndim == 1
    wanted = x.shape[:1] * (not single) + x.shape[2:]
    if target.shape != wanted:
        message = f"the classes have shape {target.shape}; for an input of {x.shape} it must be {wanted}"
        advice = "the input is one example: a data set gives batches after .batch(32)" if single else None
        if x.ndim > 1 and target.shape == (*wanted[:1], 1, *wanted[1:]):
            advice = "classes.squeeze(1) leaves out the dimension of 1"
        raise ApiValueError("MSC0201", f"nll_loss: {message}", help=advice)
    if single:
        x, target = expand_dims(x, 0), reshape(target, (1,))
    classes = x.shape[1]
    expectations.expect_labels("nll_loss", target, classes, ignore_index)
    kept = not_equal(target, ignore_index)
    place = where(kept, cast(target, dtypes.int64), 0)
    expectations.stays_within(place, 0, classes - 1)
    chosen = squeeze(apply("gather_elements", x, expand_dims(place, 1), axis=1), 1)
    factor = cast(kept, x.dtype) if weight is None else mul(apply("gather", weight, place, axis=0), cast(kept, x.dtype))
    loss = where(kept, mul(mul(chosen, factor), -1.0), 0.0)
    if label_smoothing > 0:
        weights = x if weight is None else mul(x, reshape(weight, (-1, *(1,) * (x.ndim - 2))))
        smooth = where(kept, mul(sum(weights, 1), -1.0), 0.0)
        loss = add(mul(loss, 1 - label_smoothing), mul(smooth, label_smoothing / classes))
    if reduction == "mean":
        return div(sum(loss), sum(factor))
    return (
        squeeze(reduced(loss, reduction, "nll_loss"), 0) if single and reduction == "none" else reduced(loss, reduction)
    )


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log likelihood of softmax; the target is classes, or probabilities in the shape of the input."""
    axis = 0 if input.ndim == 1 else 1
    logs = log_softmax(input, axis)
    if target.dtype.is_integer:
        return nll_loss(logs, target, weight, ignore_index, reduction, label_smoothing)
    if target.shape == input.shape[:axis] + input.shape[axis + 1 :]:
        what = f"cross_entropy: the target has a class for each example, but is {target.dtype}; classes are integers"
        raise ApiTypeError("MSC0201", what, help=f"target.astype(msc.int32); probabilities have shape {input.shape}")
    same_shape("cross_entropy", input, target)
    classes = input.shape[axis]
    target = target if not label_smoothing else add(mul(target, 1 - label_smoothing), label_smoothing / classes)
    terms = mul(logs, target)
    if weight is not None:
        terms = mul(terms, reshape(weight, (-1, *(1,) * (input.ndim - 2)) if input.ndim > 1 else (-1,)))
    loss = mul(sum(terms, axis), -1.0)
    if reduction == "mean":
        return div(sum(loss), float(loss.size))
    return reduced(loss, reduction, "cross_entropy")


def softmax_cross_entropy_with_logits(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross entropy of each row with a row of probabilities."""
    same_shape("softmax_cross_entropy_with_logits", logits, labels, "labels")
    return mul(sum(mul(log_softmax(logits, -1), labels), -1), -1.0)


def sparse_softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross entropy of each row with a class."""
    if labels.shape != logits.shape[:-1]:
        message = f"the classes have shape {labels.shape}; for logits of {logits.shape} it must be {logits.shape[:-1]}"
        raise ApiValueError("MSC0201", f"sparse_softmax_cross_entropy: {message}")
    classes = logits.shape[-1]
    expectations.expect_labels("sparse_softmax_cross_entropy", labels, classes)
    return softmax_cross_entropy_with_logits(logits, cast(one_hot(labels, classes, 1.0, 0.0), logits.dtype))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows."""
    return norm(sub(expand_dims(x1, -2), expand_dims(x2, -3)), p, -1)


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
    spread = clamp(var, eps)
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
    expectations.expect_labels("multi_margin_loss", target, input.shape[1])
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
        expectations.expect_labels("focal_loss", found, logits.shape[1])
        chosen = movedim(one_hot(found, logits.shape[1], 1.0, 0.0), -1, 1)
    same_shape("focal_loss", logits, chosen, "one-hot form of labels")
    loss = neg(mul(mul(pow(sub(1.0, exp(chances)), gamma), chances), chosen))
    if weight is not None:
        loss = mul(loss, weight.reshape((1, -1) + (1,) * (logits.ndim - 2)))
    return reduced(sum(loss, 1), reduction, "focal_loss")
