"""What one training step of a GPT costs on a cluster: seconds by cause, bytes passed to collectives, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import ceil
from typing import Literal, TypeAlias

from msc.planner import collectives
from msc.planner.cluster import Cluster
from msc.planner.collectives import RankGroup, exposed_tail
from msc.planner.transformer import (
    Gpt,
    LayerPart,
    Product,
    Recompute,
    activation_bytes,
    attention_products,
    dense_products,
    elementwise_bytes,
    score_bytes,
)

Schedule: TypeAlias = Literal["gpipe", "1f1b", "interleaved"]
BUCKET = 1 << 25
"""Bytes of gradients that are reduced together."""
_WEIGHT, _STATE = 2, 12
"""Bytes of a parameter: its f16 value, as its gradient; Adam's f32 copy and two moments."""
_UPDATE = 34
"""Bytes that the update of one parameter moves: the norm of gradients, then gradient, state and value."""
_KERNELS = 12
"""Element-wise kernels of a layer, each way."""
_LOSS = 30, 10
"""Bytes that the cross entropy moves for each logit, forward and backward, in f32."""


@dataclass(frozen=True)
class Degrees:
    """How many ranks cut what. Ranks of `tp` are neighbours, then come `cp`, `dp` and `pp`; `ep` is within `dp`."""

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1

    @property
    def devices(self) -> int:
        """How many ranks there are."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def tensor(self) -> RankGroup:
        """Ranks that share each product."""
        return RankGroup(self.tp)

    @property
    def context(self) -> RankGroup:
        """Ranks that share a sequence."""
        return RankGroup(self.cp, self.tp)

    @property
    def data(self) -> RankGroup:
        """Ranks that hold the same weights."""
        return RankGroup(self.dp * self.cp, self.tp)

    @property
    def expert(self) -> RankGroup:
        """Ranks that share the experts."""
        return RankGroup(self.ep, self.tp * self.cp)

    @property
    def replicas(self) -> RankGroup:
        """Ranks that hold the same experts."""
        return RankGroup(self.dp * self.cp // self.ep, self.tp * self.ep)

    @property
    def stages(self) -> RankGroup:
        """Ranks that follow each other in the pipeline."""
        return RankGroup(self.pp, self.tp * self.cp * self.dp)

    def __str__(self) -> str:
        more = "".join(f",{name}={n}" for name, n in (("cp", self.cp), ("ep", self.ep)) if n > 1)
        return f"dp={self.dp},tp={self.tp},pp={self.pp}{more}"


@dataclass(frozen=True)
class Plan:
    """How a step runs: the mesh, the batch and its parts, the pipeline's schedule, and what is kept."""

    mesh: Degrees
    global_batch: int
    micro_batch: int = 1
    schedule: Schedule = "1f1b"
    chunks: int = 1
    """Parts of the model on each stage; more than one if the schedule is interleaved."""
    recompute: Recompute = "none"
    optimizer_level: int = 0
    """What is cut among data-parallel ranks: 1 the optimizer's state, 2 gradients too, 3 weights as well."""
    sequence_parallel: bool = False
    overlap: bool = True
    """Whether gradients are reduced in buckets while the backward pass runs."""

    @property
    def micro_batches(self) -> int:
        """How many micro-batches each replica computes."""
        return self.global_batch // (self.mesh.dp * self.micro_batch)

    @property
    def bubble(self) -> float:
        """Idle time of the pipeline over its busy time: (p-1)/m, with v chunks (p-1)/(vm)."""
        return (self.mesh.pp - 1) / (self.chunks * self.micro_batches)

    def __str__(self) -> str:
        chunks = f" x{self.chunks}" if self.chunks > 1 else ""
        pipeline = f", {self.schedule}{chunks}" if self.mesh.pp > 1 else ""
        level = f", optimizer level {self.optimizer_level}" if self.optimizer_level else ""
        return f"{self.mesh}, micro-batch {self.micro_batch}{pipeline}, recompute {self.recompute}{level}"


@dataclass
class StepCost:
    """A step's cost on its slowest rank."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """By cause; together they are the step."""
    sent: dict[str, float] = field(default_factory=dict[str, float])
    """Bytes that a rank passes to collectives in a step, by cause."""
    memory: dict[str, float] = field(default_factory=dict[str, float])
    """Bytes of the fullest rank, by cause."""

    @property
    def step(self) -> float:
        """Seconds of the step."""
        return sum(self.seconds.values())

    @property
    def bytes(self) -> float:
        """Bytes that a rank passes to collectives in a step."""
        return sum(self.sent.values())

    @property
    def peak(self) -> float:
        """Bytes of memory of the fullest rank."""
        return sum(self.memory.values())


def step_cost(model: Gpt, cluster: Cluster, plan: Plan) -> StepCost:
    """The cost of a step that is laid out as the plan says."""
    return _Step(model, cluster, plan).cost()


@cache
def _product_seconds(cluster: Cluster, products: Sequence[Product]) -> float:
    return sum(cluster.matrix_seconds(p.m, p.n, p.k, "f16", p.count, p.moved) for p in products)


def _backward_seconds(cluster: Cluster, products: Sequence[Product]) -> float:
    return _product_seconds(cluster, tuple(each for product in products for each in product.backward()))


class _Step:
    def __init__(self, model: Gpt, cluster: Cluster, plan: Plan) -> None:
        self.model, self.cluster, self.plan, self.mesh = model, cluster, plan, plan.mesh
        self.part = LayerPart(plan.micro_batch, self.mesh.tp, self.mesh.cp, plan.sequence_parallel)
        self.layers = ceil(model.layers / self.mesh.pp)
        self.tokens = plan.micro_batch * model.sequence / self.mesh.cp
        self.hidden_bytes = _WEIGHT * self.tokens * model.hidden

    def cost(self) -> StepCost:
        """All parts of the cost."""
        cost, m = StepCost(), self.plan.micro_batches
        layer = self._layer()
        for cause, each in layer.items():
            cost.seconds[cause] = m * self.layers * each
        head = self._head()
        # The last stage has the head as well; others wait for it.
        stage, last = self.layers * sum(layer.values()), sum(head.values())
        for cause, each in head.items():
            cost.seconds[cause] = cost.seconds.get(cause, 0.0) + m * each
        cost.seconds["pipeline bubble"] = (self.mesh.pp - 1) * stage / self.plan.chunks
        cost.seconds["pipeline messages"] = m * self._messages()
        backward = self.layers * (sum(layer.values()) * self._backward_share) + last * 2 / 3
        cost.seconds["gradients"] = self._gradients(backward)
        cost.seconds["optimizer"] = self._update()
        self._count_bytes(cost)
        cost.memory = self._memory()
        return cost

    @property
    def _backward_share(self) -> float:
        return 3 / 4 if self.plan.recompute == "full" else 2 / 3

    def _layer(self) -> dict[str, float]:
        """Seconds of one layer's passes for one micro-batch, by cause."""
        cluster, plan = self.cluster, self.plan
        dense, scores = tuple(dense_products(self.model, self.part)), tuple(attention_products(self.model, self.part))
        again = {"none": (0, 0), "selective": (0, 1), "full": (1, 1)}[plan.recompute]
        products = (1 + again[0]) * _product_seconds(cluster, dense) + _backward_seconds(cluster, dense)
        products += (1 + again[1]) * _product_seconds(cluster, scores) + _backward_seconds(cluster, scores)
        forward, backward = elementwise_bytes(self.model, self.part)
        score_forward, score_backward = score_bytes(self.model, self.part)
        moved = (1 + again[0]) * forward + backward + (1 + again[1]) * score_forward + score_backward
        found = {
            "products": products,
            "element-wise": cluster.moving_seconds(moved, (2 + again[0]) * _KERNELS),
            "tensor parallel": (4 + 2 * again[0]) * self._collective("all_reduce", self.hidden_bytes, self.mesh.tensor),
        }
        if self.mesh.cp > 1:
            found["context parallel"] = self._ring_attention(_product_seconds(cluster, scores), 3 + again[1])
        if self.mesh.ep > 1:
            sent = self.hidden_bytes * self.model.chosen
            found["expert parallel"] = (4 + 2 * again[0]) * self._collective("all_to_all", sent, self.mesh.expert)
        if plan.optimizer_level == 3:
            gathered = self._collective("all_gather", _WEIGHT * self._layer_parameters, self.mesh.data)
            found["weights"] = max(0.0, (2 + again[0]) * gathered - products)
        return found

    def _ring_attention(self, compute: float, passes: int) -> float:
        """What exceeds the products: each of cp - 1 steps sends keys and values while those before are used."""
        sent = 2 * self.hidden_bytes / self.mesh.tp
        step = self._collective("send", sent, self.mesh.context)
        return passes * (self.mesh.cp - 1) * max(0.0, step - compute / self.mesh.cp)

    def _head(self) -> dict[str, float]:
        """Seconds of embedding, head and loss for one micro-batch."""
        logits = self.model.vocabulary / self.mesh.tp
        product = (Product(self.tokens, logits, self.model.hidden),)
        compute = _product_seconds(self.cluster, product) + _backward_seconds(self.cluster, product)
        moved = self.cluster.moving_seconds(sum(_LOSS) * self.tokens * logits, 2 * _KERNELS)
        reduced = 2 * self._collective("all_reduce", self.hidden_bytes, self.mesh.tensor)
        return {"products": compute, "element-wise": moved, "tensor parallel": reduced}

    def _messages(self) -> float:
        """Seconds of one micro-batch's messages between stages: cut among tensor-parallel ranks, then gathered."""
        if self.mesh.pp == 1:
            return 0.0
        cut = self._collective("send", self.hidden_bytes / self.mesh.tp, self.mesh.stages)
        whole = 0.0 if self.plan.sequence_parallel else self._collective(
            "all_gather", self.hidden_bytes, self.mesh.tensor
        )  # fmt: skip
        return 2 * self.plan.chunks * (cut + whole)

    def _gradients(self, backward: float) -> float:
        """Seconds by which the reduction of gradients exceeds the backward pass of the last micro-batch."""
        experts, shared = self._expert_parameters, self._parameters - self._expert_parameters
        level = self.plan.optimizer_level
        kind = "reduce_scatter" if level >= 2 else "all_reduce"

        def reduce(bytes_: float) -> float:
            part = experts / (experts + shared)
            return self._collective(kind, bytes_ * (1 - part), self.mesh.data) + self._collective(
                kind, bytes_ * part, self.mesh.replicas
            )

        total = _WEIGHT * self._parameters
        if self.mesh.data.ranks == 1:
            return 0.0
        if not self.plan.overlap:
            exposed = reduce(total)
        else:
            each = total / self.layers
            known = [(backward * (i + 1) / self.layers, each) for i in range(self.layers)]
            exposed = exposed_tail(known, backward, BUCKET, reduce)
        gathered = self._collective("all_gather", total, self.mesh.data) if level in (1, 2) else 0.0
        return exposed + gathered

    def _update(self) -> float:
        share = self.mesh.data.ranks if self.plan.optimizer_level else 1
        return self.cluster.moving_seconds(_UPDATE * self._parameters / share)

    def _collective(self, kind: collectives.Kind, bytes_: float, group: RankGroup) -> float:
        return collectives.seconds(self.cluster, kind, bytes_, group)

    @property
    def _layer_parameters(self) -> float:
        experts = self.model.expert_parameters * self.model.experts / self.mesh.ep
        return (self.model.shared_parameters + experts) / self.mesh.tp

    @property
    def _expert_parameters(self) -> float:
        """Parameters of a rank that only ranks with the same experts hold."""
        if self.mesh.ep == 1:
            return 0.0
        return self.layers * self.model.expert_parameters * self.model.experts / (self.mesh.ep * self.mesh.tp)

    @property
    def _parameters(self) -> float:
        """Parameters of a rank on the first or the last stage: its layers and the embedding."""
        return self.layers * self._layer_parameters + self.model.embedding_parameters / self.mesh.tp

    def _count_bytes(self, cost: StepCost) -> None:
        """Fill in what a rank passes to each call: elements times their size, without factors of rings."""
        plan, mesh, m = self.plan, self.mesh, self.plan.micro_batches
        again = plan.recompute == "full"
        if mesh.tp > 1:
            calls = m * ((4 + 2 * again) * self.layers + 2)
            # A reduce-scatter gets the whole, the all-gather after it a part.
            share = (1 + 1 / mesh.tp) if plan.sequence_parallel else 1.0
            cost.sent["tensor parallel"] = calls * self.hidden_bytes * share
        if mesh.cp > 1:
            cost.sent["context parallel"] = 3 * m * self.layers * (mesh.cp - 1) * 2 * self.hidden_bytes / mesh.tp
        if mesh.ep > 1:
            cost.sent["expert parallel"] = (4 + 2 * again) * m * self.layers * self.hidden_bytes * self.model.chosen
        if mesh.pp > 1:
            cost.sent["pipeline messages"] = 2 * m * plan.chunks * self.hidden_bytes / mesh.tp
        if mesh.data.ranks > 1:
            cost.sent["gradients"] = _WEIGHT * self._parameters
            if plan.optimizer_level:
                times = 1 if plan.optimizer_level < 3 else m * (2 + again)
                cost.sent["weights"] = times * _WEIGHT * self._parameters / mesh.data.ranks

    def _memory(self) -> dict[str, float]:
        """Bytes of the fullest rank: the first stage has most micro-batches in flight, the last has the logits."""
        plan, mesh, m, p = self.plan, self.mesh, self.plan.micro_batches, self.mesh.pp
        ranks, level = mesh.data.ranks, plan.optimizer_level
        parameters = self._parameters
        kept = {
            "weights": _WEIGHT * parameters / (ranks if level >= 3 else 1),
            "gradients": _WEIGHT * parameters / (ranks if level >= 2 else 1),
            "optimizer state": _STATE * parameters / (ranks if level >= 1 else 1),
        }
        flight: dict[Schedule, float] = {
            "gpipe": m,
            "1f1b": min(m, p),
            "interleaved": min(m, p * (1 + (p - 1) / (p * plan.chunks))),
        }
        layer = activation_bytes(self.model, self.part, plan.recompute)
        first = flight[plan.schedule] * self.layers * layer
        logits = 6 * self.tokens * self.model.vocabulary / mesh.tp
        last = (m if plan.schedule == "gpipe" else 1) * self.layers * layer + logits
        working = activation_bytes(self.model, self.part, "none") if plan.recompute != "none" else 0.0
        gathered = 2 * _WEIGHT * self._layer_parameters if level >= 3 else 0.0
        buffers = working + gathered + (2 * BUCKET if ranks > 1 else 0)
        return kept | {"activations": first if p > 1 and first > last else max(first, last), "buffers": buffers}
