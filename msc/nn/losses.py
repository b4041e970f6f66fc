"""Losses as cells. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from msc import ops
from msc.frontend.tensor import Tensor
from msc.nn.activation import get_activation
from msc.nn.arguments import checked, word
from msc.nn.cell import Cell
from msc.ops.losses import at_least_0, reduced
from msc.ops.reductions import length
from msc.ops.sequence_losses import Lengths

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "DiceLoss", "FocalLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LossBase", "MAELoss", "MSELoss",
    "MarginRankingLoss", "MultiClassDiceLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "MultilabelMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss", "RMSELoss", "SmoothL1Loss", "SoftMarginLoss", "SoftmaxCrossEntropyWithLogits",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class LossBase(Cell):
    """Base of losses: `get_loss(x, weights)` reduces the losses of the elements."""

    REDUCTIONS: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = word(type(self).__name__, "reduction", reduction, self.REDUCTIONS, "..., reduction")

    def __init_subclass__(cls, **keywords: Any) -> None:
        """The losses of the library check their arguments."""
        if cls.__module__.startswith("msc.") and "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__, cls.__name__)
        super().__init_subclass__(**keywords)

    def get_loss(self, x: Tensor, weights: Tensor | float = 1.0) -> Tensor:
        """The reduced loss of the elements' losses times weights."""
        return reduced(ops.mul(x, weights), self.reduction)


class MSELoss(LossBase):
    """The square of the difference."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.mse_loss(logits, labels, self.reduction)


class L1Loss(LossBase):
    """The absolute difference."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.l1_loss(logits, labels, self.reduction)


class MAELoss(L1Loss):
    """The absolute difference."""


class RMSELoss(LossBase):
    """The root of the mean square difference."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return length(ops.mse_loss(logits, label))


class SmoothL1Loss(LossBase):
    """Half the square over beta where the difference is less than beta, linear elsewhere."""

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = beta

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """Half the square where the difference is at most delta, linear elsewhere."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.huber_loss(logits, labels, self.reduction, self.delta)


class SoftMarginLoss(LossBase):
    """log(1 + exp(-label x))."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.soft_margin_loss(logits, labels, self.reduction)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """The cross entropy of softmax of each row: with classes if `sparse`, with probabilities otherwise."""

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = sparse

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        loss = ops.sparse_softmax_cross_entropy if self.sparse else ops.softmax_cross_entropy_with_logits
        return self.get_loss(loss(logits, labels))


class CrossEntropyLoss(LossBase):
    """The cross entropy of softmax; labels are classes, or probabilities in the shape of the logits."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = weight
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(LossBase):
    """The negative of the logarithm of the probability of the class."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight
        self.ignore_index = ignore_index

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class BCELoss(LossBase):
    """The binary cross entropy of probabilities."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """The binary cross entropy of sigmoid(x)."""

    def __init__(self, reduction: str = "mean", weight: Tensor | None = None, pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.weight = weight
        self.pos_weight = pos_weight

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)


class KLDivLoss(LossBase):
    """labels (log(labels) - logits), where logits are logarithms of probabilities."""

    REDUCTIONS = (*LossBase.REDUCTIONS, "batchmean")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.kl_div(logits, labels, self.reduction)


class CosineEmbeddingLoss(LossBase):
    """1 - cos where the label is 1, max(0, cos - margin) where it is -1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        return ops.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """x where the label is 1, max(0, margin - x) where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """max(0, -label (x1 - x2) + margin)."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def construct(self, logits1: Tensor, logits2: Tensor, labels: Tensor) -> Tensor:
        return ops.margin_ranking_loss(logits1, logits2, labels, self.margin, self.reduction)


class TripletMarginLoss(LossBase):
    """max(0, distance to the positive - distance to the negative + margin)."""

    def __init__(
        self, p: int = 2, swap: bool = False, eps: float = 1e-06, reduction: str = "mean", margin: float = 1.0
    ) -> None:
        super().__init__(reduction)
        self.p = p
        self.swap = swap
        self.eps = eps
        self.margin = margin

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor, margin: Tensor | float | None = None) -> Tensor:
        least = self.margin if margin is None else margin
        return ops.triplet_margin_loss(x, positive, negative, least, self.p, self.eps, self.swap, self.reduction)


class DiceLoss(LossBase):
    """1 less twice the overlap over the sum of the squares."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = smooth

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        overlap = ops.sum(ops.mul(logits, label))
        union = ops.add(ops.sum(ops.square(logits)), ops.sum(ops.square(label)))
        return ops.sub(1.0, ops.div(ops.mul(overlap, 2.0), ops.add(union, self.smooth)))


class MultiClassDiceLoss(LossBase):
    """The mean of `DiceLoss` of the classes, whose logits pass an activation; `weights` are of classes."""

    def __init__(
        self, weights: Tensor | None = None, ignore_indiex: int | None = None, activation: Any = "softmax"
    ) -> None:
        super().__init__()
        self.weights, self.ignore_indiex = weights, ignore_indiex
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        self.binarydiceloss = DiceLoss()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        logits = logits if self.activation is None else self.activation(logits)
        total = ops.zeros((), logits.dtype)
        for i in range(label.shape[1]):
            if i != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, i], label[:, i])
                total = total + (loss if self.weights is None else loss * self.weights[i])
        return total / label.shape[1]


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


class PoissonNLLLoss(LossBase):
    """The negative log-likelihood of counts, of rates or their logarithms (`log_input`)."""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-08, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.poisson_nll_loss(logits, labels, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(LossBase):
    """The negative log-likelihood of labels under means and variances."""

    def __init__(self, *, full: bool = False, eps: float = 1e-06, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def construct(self, logits: Tensor, labels: Tensor, var: Tensor) -> Tensor:
        return ops.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    """The binary cross entropy of sigmoid(x), averaged over classes of which any number is true."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return ops.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class MultiMarginLoss(LossBase):
    """The mean over the other classes of max(0, margin - x[class] + x)^p."""

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.p, self.margin, self.weight = p, margin, weight

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return ops.multi_margin_loss(x, target, self.p, self.margin, self.weight, self.reduction)


class FocalLoss(LossBase):
    """The cross entropy that counts rows the less the better they are predicted (Lin et al., 2017)."""

    def __init__(self, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.gamma = weight, gamma

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.focal_loss(logits, labels, self.weight, self.gamma, self.reduction)


class TripletMarginWithDistanceLoss(LossBase):
    """max(0, distance to the positive - distance to the negative + margin), for a distance that is given.

    Without one it is the Euclidean distance. With `swap` the negative's distance to the positive counts, if it is less.
    """

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        swap: bool = False,
        reduction: str = "mean",
        margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        self.distance = _euclidean if distance_function is None else distance_function
        self.swap, self.margin = swap, margin

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        far = self.distance(x, negative)
        if self.swap:
            far = ops.minimum(far, self.distance(positive, negative))
        return self.get_loss(at_least_0(ops.add(ops.sub(self.distance(x, positive), far), self.margin)))


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    """The distance of rows; 1e-6 is added to differences, so that equal rows have a gradient."""
    return ops.sqrt(ops.sum(ops.square(ops.add(ops.sub(x, y), 1e-6)), -1))
