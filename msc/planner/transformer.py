"""A GPT-like model as figures: its products of matrices, the bytes of its element-wise work, its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msc.targets.abilities import figure

Recompute: TypeAlias = Literal["none", "selective", "full"]
"""What the backward pass computes again: nothing, the scores of attention, or layers whole."""


@dataclass(frozen=True)
class Gpt:
    """A decoder: embedding, `layers` of attention and a multi-layer perceptron, and a head tied to the embedding."""

    layers: int = figure("how many layers", least=1)
    hidden: int = figure("features of a token", least=1)
    heads: int = figure("heads of attention", least=1)
    sequence: int = figure("tokens of a sequence", least=1)
    vocabulary: int = figure("tokens that there are", least=1)
    kind: Literal["gpt"] = figure("the kind of model", "gpt")
    inner: int = figure("features inside the perceptron; 0: four times hidden", 0)
    experts: int = figure("perceptrons among which a token's is chosen", 1, least=1)
    chosen: int = figure("experts of each token", 1, least=1)
    attention: Literal["stored", "fused"] = figure("whether scores go through memory, or stay in one kernel", "stored")

    @property
    def features(self) -> int:
        """Features inside the perceptron."""
        return self.inner or 4 * self.hidden

    @property
    def expert_parameters(self) -> int:
        """Parameters of one expert."""
        return 2 * self.hidden * self.features + self.features + self.hidden

    @property
    def shared_parameters(self) -> int:
        """Parameters of a layer beside its experts."""
        return 4 * self.hidden**2 + 8 * self.hidden + (self.hidden * self.experts if self.experts > 1 else 0)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding of tokens."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; the head has those of the embedding."""
        layer = self.shared_parameters + self.experts * self.expert_parameters
        return self.layers * layer + self.embedding_parameters + (self.sequence + 2) * self.hidden

    def flops(self, batch: int, recompute: Recompute) -> float:
        """Operations of a training step: 96*B*s*l*h^2*(1 + s/(6h) + V/(16lh)) if layers are recomputed, else 72, ... .

        Selective recomputation counts as none: what it repeats is no work of the model. Experts count as chosen.
        """
        tokens = batch * self.sequence
        products = 8 * self.hidden**2 + 4 * self.hidden * self.features * self.chosen
        layer = tokens * (products + 4 * self.sequence * self.hidden)
        passes = 4 if recompute == "full" else 3
        return passes * self.layers * layer + 6 * tokens * self.hidden * self.vocabulary


@dataclass(frozen=True)
class LayerPart:
    """What one rank computes of a layer, for one micro-batch: its sequences and cuts."""

    batch: int
    tensor: int = 1
    context: int = 1
    sequence_cut: bool = False
    """Whether norms and residuals are cut along the sequence as well (sequence parallelism)."""


@dataclass(frozen=True)
class Product:
    """`count` products [m, k] by [k, n] of 2-byte elements."""

    m: float
    n: float
    k: float
    count: float = 1

    @property
    def moved(self) -> float:
        """Bytes of its operands and its result."""
        return 2 * (self.m * self.k + self.k * self.n + self.m * self.n)

    def backward(self) -> tuple[Product, Product]:
        """The gradients of both factors."""
        return Product(self.m, self.k, self.n, self.count), Product(self.k, self.n, self.m, self.count)


def attention_products(model: Gpt, part: LayerPart) -> list[Product]:
    """The two products of attention: scores, and their weighted sums."""
    head, count = model.hidden / model.heads, part.batch * model.heads / part.tensor
    rows = model.sequence / part.context
    return [Product(rows, model.sequence, head, count), Product(rows, head, model.sequence, count)]


def dense_products(model: Gpt, part: LayerPart) -> list[Product]:
    """The products with weights: query, key and value; the projection; both of the perceptron."""
    h, t, f = model.hidden, part.tensor, model.features
    rows = part.batch * model.sequence / part.context
    return [
        Product(rows, 3 * h / t, h),
        Product(rows, h, h / t),
        Product(rows * model.chosen, f / t, h),
        Product(rows * model.chosen, h, f / t),
    ]


def score_bytes(model: Gpt, part: LayerPart) -> tuple[float, float]:
    """Bytes that softmax and dropout of the scores move, forward and backward; none if attention is one kernel.

    Forward: softmax reads and writes 2 bytes, dropout too and a mask of 1. Backward: dropout 5, softmax 6.
    """
    if model.attention == "fused":
        return 0.0, 0.0
    scores = part.batch * model.heads / part.tensor * model.sequence**2 / part.context
    return 9 * scores, 11 * scores


def elementwise_bytes(model: Gpt, part: LayerPart) -> tuple[float, float]:
    """Bytes of a layer's other element-wise work, forward and backward.

    Two norms (4 and 6 bytes an element), two dropouts with bias and residual (7 and 5); on the cut features: bias with
    GeLU (4 and 6), and the transposes about attention (16 and 16 for a token's features).
    """
    tokens = part.batch * model.sequence / part.context
    whole = tokens * model.hidden / (part.tensor if part.sequence_cut else 1)
    inner, cut = tokens * model.features * model.chosen / part.tensor, tokens * model.hidden / part.tensor
    return 22 * whole + 4 * inner + 16 * cut, 22 * whole + 6 * inner + 16 * cut


def activation_bytes(model: Gpt, part: LayerPart, recompute: Recompute) -> float:
    """Bytes that one layer keeps for the backward pass of one micro-batch.

    s*b*h*(10 + 24/t + 5as/(ht)) for tensor parallelism t, s*b*h/t*(34 + 5as/h) with the sequence cut, too, and 2*s*b*h
    for layers that are recomputed whole.
    """
    h, t = model.hidden, part.tensor
    tokens = part.batch * model.sequence / part.context
    if recompute == "full":
        return 2 * tokens * h / (t if part.sequence_cut else 1)
    stored = recompute == "none" and model.attention == "stored"
    scores = 5 * model.heads * model.sequence / (h * t) if stored else 0.0
    inside = (8 + 4 * model.chosen * model.features / h) / t
    return tokens * h * ((10 / t if part.sequence_cut else 10) + inside + scores)


def working_bytes(model: Gpt, part: LayerPart) -> float:
    """Bytes of what one layer needs while it runs, beyond what it keeps: one layer's activations with scores."""
    return activation_bytes(model, part, "none")
