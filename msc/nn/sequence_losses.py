"""Losses of label sequences and of sets of labels, as cells."""

from __future__ import annotations

from msc import ops
from msc.frontend.tensor import Tensor
from msc.nn.losses import LossBase
from msc.ops.sequence_losses import Lengths


class CTCLoss(LossBase):
    """The loss of connectionist temporal classification, of logs of chances `[steps, batch, classes]`.

    One example without its axis, `[steps, classes]`, has targets `[labels]`, and lengths `[1]` or of rank 0.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def construct(self, log_probs: Tensor, targets: Tensor, input_lengths: Lengths, target_lengths: Lengths) -> Tensor:
        one = log_probs.ndim == 2
        if one:
            log_probs = ops.expand_dims(log_probs, 1)
            input_lengths = _one_length(input_lengths)
            target_lengths = _one_length(target_lengths)
        loss, _ = ops.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
        return ops.reshape(loss, ()) if one else loss


def _one_length(length: Lengths) -> Lengths:
    return ops.reshape(length, (1,)) if isinstance(length, Tensor) else length


class MultilabelMarginLoss(LossBase):
    """The mean over classes of max(0, 1 - x[label] + x[other]), for the labels in front of the first -1."""

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return ops.multilabel_margin_loss(x, target, self.reduction)
