"""Losses of counts, of several classes an example, of margins, as cells."""

from __future__ import annotations

from collections.abc import Callable

from msc import ops
from msc.frontend.tensor import Tensor
from msc.nn.losses import LossBase


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
        return self.get_loss(ops.relu(ops.add(ops.sub(self.distance(x, positive), far), self.margin)))


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    """The distance of rows; 1e-6 is added to differences, so that equal rows have a gradient."""
    return ops.sqrt(ops.sum(ops.square(ops.add(ops.sub(x, y), 1e-6)), -1))
