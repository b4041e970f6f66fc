"""Losses of label sequences and of sets of labels. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from msc.frontend import dtypes
from msc.frontend.control import scan
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops.activation import clamp, relu
from msc.ops.arithmetic import add, div, maximum, mul, sub
from msc.ops.comparison import logical_and, not_equal
from msc.ops.creation import arange, full, one_hot
from msc.ops.joining import concat, stack
from msc.ops.losses import reduced, same_shape
from msc.ops.methods import stop_gradient
from msc.ops.operands import cast
from msc.ops.reductions import amax, cumsum, sum
from msc.ops.selection import gather_elements, where
from msc.ops.shapes import expand_dims, reshape, transpose
from msc.ops.unary import exp, log, neg

__all__ = ["ctc_loss", "multilabel_margin_loss"]

Lengths: TypeAlias = Tensor | Sequence[int]

_NEVER = -1e30
"""The log of a chance of 0. It is finite: the difference of two infinities is a NaN."""
_UNLIKELY = -1e29
"""A sum of logs with `_NEVER` in it is less than this."""


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """The loss of connectionist temporal classification, and the logs of the forward chances (Graves et al., 2006).

    `log_probs` `[steps, batch, classes]` are logs of chances; `targets` are `[batch, labels]`, or all labels in one
    row. Returns the loss, `[batch]` if nothing is reduced, and `[batch, steps, 2 labels + 1]`. "mean" divides by the
    target's length first. Labels that no path gives cost infinity, or 0 with `zero_infinity`; their gradient is 0.
    Raises MSC0201 and MSC0203.
    """
    _check_ctc(log_probs, targets, blank)
    given, batch = log_probs.dtype, log_probs.shape[1]
    chances = log_probs if given is dtypes.float64 else cast(log_probs, dtypes.float32)
    many = _lengths("target_lengths", target_lengths, batch)
    states = _with_blanks(clamp(_rows(targets, many), 0, log_probs.shape[2] - 1), blank)
    paths = _forward(maximum(chances, _NEVER), states, _lengths("input_lengths", input_lengths, batch), blank)
    loss = neg(_of_targets(paths[-1], many))
    loss = where(loss < -_UNLIKELY, loss, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        loss = div(loss, cast(maximum(many, 1), loss.dtype))
    forward = transpose(where(paths > _UNLIKELY, paths, float("-inf")), (1, 0, 2))
    return cast(reduced(loss, reduction, "ctc_loss"), given), cast(forward, given)


def _check_ctc(log_probs: Tensor, targets: Tensor, blank: int) -> None:
    if log_probs.ndim != 3 or not log_probs.dtype.is_float:
        message = (
            f"log_probs has shape {log_probs.shape} of {log_probs.dtype}; it must be floats [steps, batch, classes]"
        )
        raise ApiValueError("MSC0201", f"ctc_loss: {message}")
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and targets.shape[0] != log_probs.shape[1]):
        message = f"targets has shape {targets.shape}; it must be [{log_probs.shape[1]}, labels] or [all labels]"
        raise ApiValueError("MSC0201", f"ctc_loss: {message}")
    if not 0 <= blank < log_probs.shape[2]:
        raise ApiValueError("MSC0203", f"ctc_loss: blank is {blank}; it must be from 0 to {log_probs.shape[2] - 1}")


def _lengths(name: str, lengths: Lengths, batch: int) -> Tensor:
    found = lengths if isinstance(lengths, Tensor) else Tensor(np.asarray(lengths, np.int32))
    if found.shape != (batch,):
        raise ApiValueError("MSC0201", f"ctc_loss: {name} has shape {found.shape}; it must be ({batch},)")
    return cast(found, dtypes.int32)


def _rows(targets: Tensor, many: Tensor) -> Tensor:
    """The labels, a row for each example `[batch, labels]`; what lies behind a row's length is of no account."""
    targets = cast(targets, dtypes.int32)
    if targets.ndim == 2:
        return targets
    size, batch = targets.shape[0], many.shape[0]
    first = sub(cast(cumsum(many, 0), dtypes.int32), many)
    places = clamp(add(expand_dims(first, 1), arange(size, dtype=dtypes.int32)), 0, max(size - 1, 0))
    return reshape(gather_elements(targets, 0, reshape(places, (-1,))), (batch, size))


def _with_blanks(labels: Tensor, blank: int) -> Tensor:
    """The states of a path: a blank before, between and behind the labels, `[batch, 2 labels + 1]`."""
    batch, size = labels.shape
    pairs = reshape(stack([full((batch, size), blank, dtype=dtypes.int32), labels], 2), (batch, 2 * size))
    return concat([pairs, full((batch, 1), blank, dtype=dtypes.int32)], 1)


def _forward(chances: Tensor, states: Tensor, steps: Tensor, blank: int) -> Tensor:
    """The logs of the chances of all paths to each state, `[steps, batch, states]`; they stay at an example's end."""
    count, batch, _ = chances.shape
    size = states.shape[1]
    index = add(expand_dims(states, 0), full((count, 1, 1), 0, dtype=dtypes.int32))
    emitted = gather_elements(chances, 2, index)
    live = reshape(arange(count, dtype=dtypes.int32), (count, 1, 1)) < reshape(steps, (1, batch, 1))
    never = full((batch, 2), _NEVER, dtype=chances.dtype)
    before = concat([full((batch, min(2, size)), blank, dtype=dtypes.int32), states[:, :-2]], 1)
    skips = cast(logical_and(not_equal(states, blank), not_equal(states, before)), chances.dtype)
    barred = mul(sub(1.0, skips), _NEVER)

    def step(state: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> tuple[list[Tensor], list[Tensor]]:
        (alpha,), (here, counts) = state, inputs
        padded = concat([never, alpha], 1)
        ways = stack([alpha, padded[:, 1 : size + 1], add(padded[:, :size], barred)], 0)
        most = stop_gradient(amax(ways, 0))
        reached = add(add(log(sum(exp(sub(ways, most)), 0)), most), here)
        alpha = where(cast(counts, dtypes.bool_), reached, alpha)
        return [alpha], [alpha]

    start = cast(Tensor(np.where(np.arange(size) == 0, 0.0, _NEVER)), chances.dtype)
    first = add(full((batch, 1), 0.0, dtype=chances.dtype), start)
    return scan(step, (first,), (emitted, cast(live, dtypes.int32)))[1][0]


def _of_targets(alpha: Tensor, many: Tensor) -> Tensor:
    """The log of the chance of the targets `[batch]`: paths end on the last label or on the blank behind it."""
    end = mul(expand_dims(many, 1), 2)
    on_blank = gather_elements(alpha, 1, end)
    on_label = where(end > 0, gather_elements(alpha, 1, maximum(sub(end, 1), 0)), _NEVER)
    most = stop_gradient(maximum(on_blank, on_label))
    both = add(log(add(exp(sub(on_blank, most)), exp(sub(on_label, most)))), most)
    return reshape(both, (-1,))


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean over classes of max(0, 1 - x[label] + x[other]), summed over an example's labels and all other classes.

    `target` has the shape of `input`, `[batch, classes]` or `[classes]`: the labels in front, and -1 behind the last.
    """
    same_shape("multilabel_margin_loss", input, target)
    if input.ndim not in (1, 2):
        message = f"input has shape {input.shape}; it must be [batch, classes] or [classes]"
        raise ApiValueError("MSC0201", f"multilabel_margin_loss: {message}")
    if input.ndim == 1:
        loss = multilabel_margin_loss(expand_dims(input, 0), expand_dims(target, 0), "none")
        return reduced(reshape(loss, ()), reduction, "multilabel_margin_loss")
    classes = input.shape[1]
    ended = cumsum(cast(target < 0, dtypes.int32), 1)
    counts = cast(ended < 1, input.dtype)
    labels = where(ended < 1, cast(target, dtypes.int32), 0)
    is_label = amax(mul(one_hot(labels, classes, 1.0, 0.0).astype(input.dtype), expand_dims(counts, 2)), 1)
    margins = relu(sub(add(expand_dims(input, 1), 1.0), expand_dims(gather_elements(input, 1, labels), 2)))
    counted = mul(mul(margins, expand_dims(counts, 2)), expand_dims(sub(1.0, is_label), 1))
    return reduced(div(sum(counted, (1, 2)), float(classes)), reduction, "multilabel_margin_loss")
