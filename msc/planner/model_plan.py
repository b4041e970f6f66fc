"""The plan of a model's graph on a cluster: layouts of operators, moves, seconds by cause, memory, what lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from msc.parallel.layouts import Layout
from msc.parallel.mesh import Mesh
from msc.planner.choice import over_memory
from msc.planner.cluster import Cluster
from msc.planner.collectives import exposed_tail
from msc.planner.layout_costs import Cuts, LayoutCosts, PlannedCall
from msc.planner.layout_search import MODES, SearchMode, search, uniform_cuts
from msc.planner.operators import OperatorGraph
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.wording import memory_text, seconds_text

_AXES = 3
"""Axes of a mesh at most: the search tries every axis of an operator for each."""
_BUCKETS = (1 << 20, 4 << 20, 16 << 20, 64 << 20)
"""Bytes of gradients reduced together that are tried."""
_LINEAR = frozenset(
    "add sub reshape transpose bias_add cast concat pad slice split tile broadcast_to neg stack".split()
)
"""Operations whose gradients read none of their operands."""


@dataclass(frozen=True)
class GraphWish:
    """What a person asks of a plan for a graph."""

    devices: int
    mode: SearchMode = "dynamic_programming"
    train: bool = False
    mixed: bool = False
    """Whether products are computed in f16, with f32 copies of parameters in the optimizer."""
    optimizer_level: int = 0
    host: frozenset[str] = frozenset()
    """Parameters that stay in the host's memory."""
    computing: float | None = None
    """Seconds of forward and backward pass that were measured; those predicted for the fastest plan become them."""


@dataclass(frozen=True)
class Redistribution:
    """A tensor that goes from one layout to another between two operators."""

    tensor: str
    producer: str
    consumer: str
    source: tuple[int, ...]
    target: tuple[int, ...]
    steps: tuple[tuple[str, int], ...]
    """Kind of each collective, and the bytes that a rank passes to it."""
    seconds: float

    @property
    def bytes(self) -> int:
        """Bytes that a rank passes to the calls."""
        return sum(bytes_ for _, bytes_ in self.steps)


@dataclass(frozen=True)
class OperatorPlan:
    """One operator's layout: into how many parts each dimension of operands and result is cut."""

    name: str
    kind: str
    operands: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    seconds: float
    calls: tuple[PlannedCall, ...]
    layouts: tuple[Layout, ...] = ()
    """Those of the operands, by the axes of the mesh."""


@dataclass
class ModelPlan:
    """The plan."""

    cluster: Cluster
    mesh: Mesh
    wish: GraphWish
    operators: list[OperatorPlan]
    moves: list[Redistribution]
    seconds: dict[str, float]
    memory: dict[str, float]
    tails: dict[str, float]
    """Seconds of gradients' communication after the backward pass, by how they are reduced."""
    bucket: int
    lost: list[tuple[str, float, str]] = field(default_factory=list[tuple[str, float, str]])
    cuts: list[Cuts] = field(default_factory=list[Cuts])

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return sum(self.seconds.values())

    @property
    def computing(self) -> float:
        """Seconds of forward and backward pass without communication."""
        return self.seconds["forward"] + self.seconds.get("backward", 0.0)

    @property
    def peak(self) -> float:
        """Bytes of memory of a rank."""
        return sum(self.memory.values())

    @property
    def sent(self) -> int:
        """Bytes that a rank passes to collectives in a step."""
        calls = sum(call.bytes for op in self.operators for call in op.calls)
        return round(calls) + sum(move.bytes for move in self.moves) * (1 + self.wish.train)


def mesh_of(devices: int) -> Mesh:
    """A mesh of few axes, of its prime factors, the smallest ones joined if there are many."""
    factors, left, divisor = list[int](), devices, 2
    while left > 1:
        while left % divisor == 0:
            factors.append(divisor)
            left //= divisor
        divisor += 1
    while len(factors) > _AXES:
        factors.sort()
        factors = [*factors[2:], factors[0] * factors[1]]
    factors.sort()
    return Mesh(tuple((f"d{i}", size) for i, size in enumerate(factors))) if factors else Mesh((("d0", 1),))


def plan_graph(graph: OperatorGraph, cluster: Cluster, wish: GraphWish) -> ModelPlan:
    """The plan of least time that fits.

    Raises MSC1123 for more devices than there are, MSC1121 for parameters on a host that is not there or that the graph
    does not have, and MSC1122 with the breakdown if no layout fits the memory of a device.
    """
    if wish.devices > cluster.devices:
        message = f"{wish.devices} devices are wanted, and {cluster.name} has {cluster.devices}"
        raise MscError(Diagnostic("MSC1123", message, help="give fewer devices, or a larger cluster"))
    names = {graph.tensors[number].name for number in graph.parameters}
    for name in sorted(wish.host - names):
        message = f"the model has no parameter '{name}' that could stay on the host"
        raise MscError(Diagnostic("MSC1121", message, help=f"it has {', '.join(sorted(names)[:8])}"))
    mesh = mesh_of(wish.devices)
    costs = LayoutCosts(
        graph, cluster, mesh, train=wish.train, states=6 if wish.mixed else 2,
        precision="f16" if wish.mixed else None, host=wish.host, optimizer_level=wish.optimizer_level,
    )  # fmt: skip
    tried = list(_tried(costs, wish))
    plans = [(name, _planned(costs, cuts, wish)) for name, cuts in tried]
    fitting = [plan for _, plan in plans if plan.peak <= cluster.free_memory]
    if wish.computing is not None and fitting:
        scale = wish.computing / min(fitting, key=lambda plan: plan.step).computing
        plans = [(name, _planned(costs, cuts, wish, scale)) for name, cuts in tried]
        fitting = [plan for _, plan in plans if plan.peak <= cluster.free_memory]
    if not fitting:
        least = min((plan for _, plan in plans), key=lambda plan: plan.peak)
        raise over_memory(least.memory, cluster, f"on {wish.devices} device{'s' * (wish.devices > 1)}")
    best = min(fitting, key=lambda plan: plan.step)
    best.lost = [_lost(name, plan, best) for name, plan in plans if plan.cuts != best.cuts]
    best.lost.sort(key=lambda each: each[1])
    return best


def _tried(costs: LayoutCosts, wish: GraphWish) -> Iterator[tuple[str, list[Cuts]]]:
    """Names of plans, and their cuts: that of the search first; its memory is the limit where it can be."""
    modes: list[SearchMode] = [wish.mode, *(mode for mode in MODES[1:] if mode != wish.mode)]
    for mode in modes:
        found = search(costs, mode, costs.cluster.free_memory)
        yield mode, found if found is not None else _smallest(costs)
    fixed = {n: costs.candidates(op)[0] for n, op in enumerate(costs.graph.operators) if op.given is not None}
    data, whole = uniform_cuts(costs, fixed)
    yield "first axis cut everywhere (data parallel)", data
    yield "whole everywhere", whole


def _lost(name: str, plan: ModelPlan, best: ModelPlan) -> tuple[str, float, str]:
    """A plan that is not taken, and why."""
    if plan.peak > plan.cluster.free_memory:
        return name, plan.step, f"needs {memory_text(plan.peak)} of {memory_text(plan.cluster.free_memory)}"
    if plan.step <= best.step * (1 + 1e-3):
        return name, plan.step, "as fast"
    causes = {cause: seconds - best.seconds.get(cause, 0.0) for cause, seconds in plan.seconds.items()}
    worst = max(causes, key=lambda cause: causes[cause])
    now, then = seconds_text(plan.seconds[worst]), seconds_text(best.seconds.get(worst, 0.0))
    return name, plan.step, f"{worst} takes {now}, not {then}"


def _smallest(costs: LayoutCosts) -> list[Cuts]:
    """The cuts with the least memory."""
    return [
        min(costs.candidates(op), key=lambda cuts: costs.operator(number, cuts).memory)
        for number, op in enumerate(costs.graph.operators)
    ]


def _planned(costs: LayoutCosts, cuts: Sequence[Cuts], wish: GraphWish, scale: float = 1.0) -> ModelPlan:
    graph = costs.graph
    found = [costs.operator(number, each) for number, each in enumerate(cuts)]
    operators = [
        OperatorPlan(
            op.name,
            op.kind,
            tuple(costs.strategy(use, each) for use in op.operands),
            costs.strategy(op.result, each),
            cost.seconds,
            tuple(cost.calls),
            tuple(costs.named_layout(use, each) for use in op.operands),
        )
        for op, each, cost in zip(graph.operators, cuts, found, strict=True)
    ]
    moves = _moves(costs, cuts)
    forward, backward = sum(cost.compute for cost in found), sum(cost.backward for cost in found)
    tails, bucket = _tails(costs, cuts, scale)
    seconds = {"forward": forward * scale}
    if wish.train:
        seconds["backward"] = backward * scale
    seconds |= {
        "sums": sum(cost.communication for cost in found),
        "redistributions": sum(move.seconds for move in moves),
    }
    if wish.train:
        seconds |= {"gradients, exposed": tails["buckets"], "optimizer": sum(cost.update for cost in found)}
    return ModelPlan(
        costs.cluster, costs.mesh, wish, operators, moves, seconds, _memory(costs, cuts), tails, bucket, cuts=list(cuts)
    )


def _moves(costs: LayoutCosts, cuts: Sequence[Cuts]) -> list[Redistribution]:
    ops = costs.graph.operators
    moves: list[Redistribution] = []
    for u, v, place in costs.graph.edges():
        made, used = ops[u].result, ops[v].operands[place]
        source, target = costs.layout(made, cuts[u]), costs.layout(used, cuts[v])
        whole = costs.whole_bytes(made)
        steps = tuple(
            (kind, round(share * whole / (costs.sizes[axis] if kind == "all_gather" else 1)))
            for kind, axis, share in costs.steps(source, target)
        )
        seconds = costs.edge_seconds(u, v, place, cuts[u], cuts[v])
        if source != target and (steps or seconds):
            rank = range(len(costs.graph.tensors[made.tensor].shape))
            parts = [tuple(costs.parts(layout, d) for d in rank) for layout in (source, target)]
            name = costs.graph.tensors[made.tensor].name
            moves.append(Redistribution(name, ops[u].name, ops[v].name, parts[0], parts[1], steps, seconds))
    return moves


def _tails(costs: LayoutCosts, cuts: Sequence[Cuts], scale: float) -> tuple[dict[str, float], int]:
    """Seconds after the backward pass: with the best buckets, with one reduction of all, with one for each gradient."""
    if not costs.train:
        return {}, 0
    time, known = 0.0, dict[tuple[int, ...], list[tuple[float, float]]]()
    for number in reversed(range(len(cuts))):
        cost = costs.operator(number, cuts[number])
        time += cost.backward * scale
        for call in cost.calls:
            if call.why == "gradient":
                known.setdefault(call.axes, []).append((time, call.bytes))
    if not known:
        return {"buckets": 0.0, "one reduction at the end": 0.0, "each gradient at the end": 0.0}, 0

    def reduction(axes: tuple[int, ...]) -> Callable[[float], float]:
        fixed, each = costs.line("all_reduce", axes)
        return lambda bytes_: fixed + each * bytes_

    def tail(limit: float, late: bool) -> float:
        return sum(
            exposed_tail([(time if late else t, b) for t, b in row], time, limit, reduction(axes))
            for axes, row in known.items()
        )

    tails = {limit: tail(limit, late=False) for limit in _BUCKETS}
    best = min(tails, key=lambda limit: tails[limit])
    ends = {"one reduction at the end": tail(float("inf"), late=True), "each gradient at the end": tail(0, late=True)}
    return {"buckets": tails[best], **ends}, best


def _memory(costs: LayoutCosts, cuts: Sequence[Cuts]) -> dict[str, float]:
    """Bytes of a rank by cause; results live from the operator that makes them to the last that needs them."""
    graph = costs.graph
    held = {"weights": 0.0, "gradients": 0.0, "optimizer state": 0.0}
    counted: set[int] = set()
    for op, each in zip(graph.operators, cuts, strict=True):
        for use in op.operands:
            tensor = graph.tensors[use.tensor]
            if tensor.parameter and tensor.name not in costs.host and use.tensor not in counted:
                counted.add(use.tensor)
                for cause, bytes_ in costs.parameter_bytes(use, each).items():
                    held[cause] += bytes_
    local = {
        op.result.tensor: costs.local_bytes(op.result, each) for op, each in zip(graph.operators, cuts, strict=True)
    }
    held["activations"] = _kept(costs, local) if costs.train else 0.0
    held["buffers"] = _live(graph, local) if not costs.train else 2 * max(local.values(), default=0.0)
    return {cause: bytes_ for cause, bytes_ in held.items() if bytes_}


def _kept(costs: LayoutCosts, local: dict[int, float]) -> float:
    """Bytes of results that a gradient reads."""
    read = {use.tensor for op in costs.graph.operators if op.kind not in _LINEAR for use in op.operands}
    return sum(bytes_ for tensor, bytes_ in local.items() if tensor in read)


def _live(graph: OperatorGraph, local: dict[int, float]) -> float:
    """The most bytes of results that are needed at once."""
    last = {use.tensor: number for number, op in enumerate(graph.operators) for use in op.operands}
    now = most = 0.0
    for number, op in enumerate(graph.operators):
        now += local[op.result.tensor]
        most = max(most, now)
        now -= sum(local[t] for t in {use.tensor for use in op.operands} if t in local and last[t] == number)
    return most


def ranks_text(mesh: Mesh) -> str:
    """A picture of the mesh: ranks in rows along its last axis."""
    width, last = len(str(mesh.size - 1)), mesh.shape[-1]
    rows = [range(start, start + last) for start in range(0, mesh.size, last)]
    shown = [" ".join(f"{rank:{width}}" for rank in row) for row in rows[:16]]
    if len(rows) > 16:
        shown.append(f"... {prod(mesh.shape[:-1]) - 16} more rows")
    return "\n".join(f"  {row}" for row in shown)
