"""What an optimiser of a user's own calls in its `construct`, on the gradients of all parameters."""

from __future__ import annotations

from collections.abc import Sequence

from msc.frontend.parameter import ParameterTuple
from msc.frontend.tensor import Tensor


def centralised(gradient: Tensor) -> Tensor:
    """The gradient less its mean over all axes but the first, if it has more than one (Yong et al., 2020)."""
    if gradient.ndim < 2:
        return gradient
    return gradient - gradient.mean(axis=tuple(range(1, gradient.ndim)), keep_dims=True)


class OwnSteps:
    """A part of `Optimizer`: from a tuple of gradients, in the order of `parameters`, to another one."""

    parameters: ParameterTuple
    loss_scale: float

    def decayed(self, number: int, value: Tensor, gradient: Tensor) -> Tensor:
        """The gradient with the decay of the weight."""
        raise NotImplementedError

    def is_centralised(self, number: int) -> bool:
        """Whether the gradient of a parameter is centralised."""
        raise NotImplementedError

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients with the decays of their weights."""
        pairs = zip(self.parameters, gradients, strict=True)
        return tuple(self.decayed(n, p.value(), g) for n, (p, g) in enumerate(pairs))

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients divided by the scale of the loss."""
        return tuple(g if self.loss_scale == 1 else g * (1 / self.loss_scale) for g in gradients)

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients less their means, in the groups that ask for it."""
        return tuple(centralised(g) if self.is_centralised(n) else g for n, g in enumerate(gradients))
