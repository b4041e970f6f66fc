"""A model's plan with its pipeline: the graph in stages, each planned on its share of the devices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from msc.parallel.mesh import Mesh
from msc.planner import collectives
from msc.planner.choice import over_memory
from msc.planner.cluster import Cluster
from msc.planner.collectives import RankGroup
from msc.planner.layout_costs import LayoutCosts
from msc.planner.model_plan import GraphWish, ModelPlan, plan_graph
from msc.planner.operators import OperatorGraph
from msc.planner.pipeline import PipelineEvent, simulate
from msc.planner.step import Schedule
from msc.support.diagnostics import Diagnostic, MscError

_ONCE = ("gradients, exposed", "optimizer")
"""Causes of seconds that a step has once, whatever its number of micro-batches."""


@dataclass(frozen=True)
class StagedPlan:
    """The stages of a model, in order, and when each computes which micro-batch."""

    stages: tuple[ModelPlan, ...]
    micro_batches: int
    schedule: Schedule
    events: tuple[PipelineEvent, ...]
    message: float
    """Seconds of a message from one stage to the next."""
    message_bytes: int

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of a step by cause, on the slowest stage; what is left of the step is the pipeline's bubble."""
        slow = max(self.stages, key=lambda stage: stage.step)
        found = {c: s * (1 if c in _ONCE else self.micro_batches) for c, s in slow.seconds.items()}
        if len(self.stages) > 1:
            end = max(event.end for event in self.events)
            found["pipeline bubble and messages"] = end - sum(s for c, s in found.items() if c not in _ONCE)
        return found

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return sum(self.seconds.values())

    @property
    def bubble(self) -> float:
        """Idle time over busy time of the slowest stage."""
        busy = self.micro_batches * max(_passes(stage)[0] + _passes(stage)[1] for stage in self.stages)
        return max(event.end for event in self.events) / busy - 1 if busy else 0.0

    @property
    def fullest(self) -> ModelPlan:
        """The stage that needs most memory."""
        return max(self.stages, key=lambda stage: stage.peak)

    @property
    def devices(self) -> int:
        """All devices."""
        return sum(stage.mesh.size for stage in self.stages)

    @property
    def mesh(self) -> Mesh:
        """The mesh, with an axis for the stages if there are several."""
        inner = self.stages[0].mesh
        return Mesh((("stage", len(self.stages)), *inner.axes)) if len(self.stages) > 1 else inner

    @property
    def sent(self) -> int:
        """Bytes that a rank of the stage that sends most passes to collectives in a step."""
        messages = 2 * self.micro_batches * self.message_bytes if len(self.stages) > 1 else 0
        return max(stage.sent for stage in self.stages) + messages


def plan_model(
    graph: OperatorGraph, cluster: Cluster, wish: GraphWish, stages: int = 1, micro_batches: int = 1,
    schedule: Schedule = "1f1b",
) -> StagedPlan:  # fmt: skip
    """The plan of a model in a number of stages, each on as many devices.

    Raises MSC1123 if devices or operators do not divide into stages, and what `plan_graph` raises.
    """
    if wish.devices % stages or stages > len(graph.operators):
        message = f"{wish.devices} devices and {len(graph.operators)} operators do not make {stages} stages"
        raise MscError(Diagnostic("MSC1123", message, help="the number of stages divides that of devices"))
    each = replace(wish, devices=wish.devices // stages)
    plans: list[ModelPlan] = []
    parts = cut_in_stages(graph, cluster, stages)
    for number, part in enumerate(parts):
        flight = min(micro_batches, stages - number if schedule == "1f1b" else micro_batches) if wish.train else 1
        plan = plan_graph(part, cluster, each)
        plan.memory = {c: b * (flight if c == "activations" else 1) for c, b in plan.memory.items()}
        if plan.peak > cluster.free_memory:
            raise over_memory(plan.memory, cluster, f"on stage {number} with {flight} micro-batches in flight")
        plans.append(plan)
    passed = _passed(parts) // each.devices if stages > 1 else 0
    message = collectives.seconds(cluster, "send", passed, RankGroup(stages, each.devices))
    forward, backward = (list(seconds) for seconds in zip(*map(_passes, plans), strict=True))
    events = simulate(schedule, forward, backward, micro_batches, 1, message)
    return StagedPlan(tuple(plans), micro_batches, schedule, tuple(events), message, passed)


def _passes(plan: ModelPlan) -> tuple[float, float]:
    """Seconds of the forward and of the backward pass of one micro-batch, each with its communication."""
    forward, backward = plan.seconds["forward"], plan.seconds.get("backward", 0.0)
    rest = sum(s for c, s in plan.seconds.items() if c not in (*_ONCE, "forward", "backward"))
    share = forward / (forward + backward) if forward + backward else 1.0
    return forward + share * rest, backward + (1 - share) * rest


def cut_in_stages(graph: OperatorGraph, cluster: Cluster, stages: int) -> list[OperatorGraph]:
    """Runs of operators that take about as long as each other."""
    if stages == 1:
        return [graph]
    costs = LayoutCosts(graph, cluster, Mesh((("all", 1),)), train=True)
    work = list(accumulate(costs.operator(n, (-1,)).seconds for n in range(len(graph.operators))))
    ends = [next(n for n, done in enumerate(work) if done >= work[-1] * (i + 1) / stages) for i in range(stages - 1)]
    bounds = [0]
    for i, end in enumerate(ends):
        bounds.append(min(max(end + 1, bounds[-1] + 1), len(graph.operators) - (stages - 1 - i)))
    bounds.append(len(graph.operators))
    return [OperatorGraph(graph.tensors, graph.operators[a:b]) for a, b in pairwise(bounds)]


def _passed(parts: list[OperatorGraph]) -> int:
    """The most bytes of results that one stage makes and later ones read."""
    most = 0
    for number, part in enumerate(parts[:-1]):
        made = {op.result.tensor for op in part.operators}
        later = {use.tensor for rest in parts[number + 1 :] for op in rest.operators for use in op.operands}
        most = max(most, sum(part.tensors[tensor].bytes for tensor in made & later))
    return most
