"""What layouts of operators cost: work, the collectives that their cuts need, memory, and moves between layouts.

A layout is a tuple: for each axis of the mesh, which dimension of the tensor it cuts, or -1 for none. A cut of an
operator is such a tuple of its own axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from msc.dialects.element_types import BYTES
from msc.parallel.layouts import Layout
from msc.parallel.mesh import Mesh
from msc.planner import collectives
from msc.planner.cluster import Cluster
from msc.planner.collectives import RankGroup
from msc.planner.operators import GraphOperator, OperatorGraph, Use
from msc.support.diagnostics import Diagnostic, MscError

Cuts: TypeAlias = tuple[int, ...]
NONE = -1
_UPDATE = 7
"""Values that the update of one parameter moves: gradient, value and Adam's moments, read and written."""


@dataclass(frozen=True)
class PlannedCall:
    """A collective: its kind, the axes of the mesh, and the bytes that a rank passes to it."""

    kind: collectives.Kind
    axes: tuple[int, ...]
    bytes: float
    why: str


@dataclass
class OperatorCost:
    """Seconds and bytes of one operator under one cut."""

    compute: float = 0.0
    backward: float = 0.0
    communication: float = 0.0
    gradients: float = 0.0
    update: float = 0.0
    memory: float = 0.0
    calls: list[PlannedCall] = field(default_factory=list[PlannedCall])

    @property
    def seconds(self) -> float:
        """All of it, nothing overlapped."""
        return self.compute + self.backward + self.communication + self.gradients + self.update


class LayoutCosts:
    """The costs of a graph's operators on a mesh of a cluster, for inference or for a training step.

    In training an operator's operands have gradients: products are computed twice more, and a gradient is summed over
    the axes of the mesh that cut the operator but not the operand. Parameters have a gradient and `states` values of an
    optimizer each; results are kept for the backward pass.
    """

    def __init__(
        self, graph: OperatorGraph, cluster: Cluster, mesh: Mesh, *, train: bool = False, states: int = 2,
        precision: str | None = None, host: frozenset[str] = frozenset(), optimizer_level: int = 0,
    ) -> None:  # fmt: skip
        self.graph, self.cluster, self.mesh, self.train, self.states = graph, cluster, mesh, train, states
        self.sizes = [size for _, size in mesh.axes]
        self.strides = [prod(self.sizes[i + 1 :]) for i in range(len(self.sizes))]
        self.precision, self.host, self.optimizer_level = precision, host, optimizer_level
        self._lines: dict[tuple[Cuts, Cuts], tuple[float, float]] = {}
        self._links: dict[tuple[collectives.Kind, tuple[int, ...]], tuple[float, float]] = {}
        self._costs: dict[tuple[object, ...], OperatorCost] = {}
        self._candidates: dict[tuple[object, ...], list[Cuts]] = {}
        self._made = graph.producers().keys()
        seen: set[int] = set()
        self._first: list[frozenset[int]] = []
        for op in graph.operators:
            mine = {use.tensor for use in op.operands if graph.tensors[use.tensor].parameter} - seen
            self._first.append(frozenset(mine))
            seen |= mine

    def group(self, axes: Sequence[int]) -> RankGroup:
        """The ranks along axes of the mesh."""
        return RankGroup(prod(self.sizes[i] for i in axes), min((self.strides[i] for i in axes), default=1))

    def layout(self, use: Use, cuts: Cuts) -> Cuts:
        """How an operand or result lies when its operator is cut so."""
        where = {axis: d for d, axis in enumerate(use.axes) if axis is not None}
        return tuple(where.get(axis, NONE) if axis >= 0 else NONE for axis in cuts)

    def named_layout(self, use: Use, cuts: Cuts) -> Layout:
        """How an operand or result lies, by the names of the mesh's axes."""
        layout = self.layout(use, cuts)
        dimensions = range(len(use.axes))
        return Layout(
            self.mesh,
            tuple(tuple(n for n, at in zip(self.mesh.names, layout, strict=True) if at == d) for d in dimensions),
        )

    def candidates(self, op: GraphOperator) -> list[Cuts]:
        """All ways to cut an operator, the whole one last; only the given one if a person says how."""
        key = (op.axes, op.given, tuple(use.axes for use in op.operands) if op.given else None)
        if key not in self._candidates:
            found = [cuts for cuts in self._assignments(op) if op.given is None or self._is_given(op, cuts)]
            if not found:
                message = f"{op.name} cannot be cut as {list(op.given or ())} on the mesh {self.mesh}"
                raise MscError(Diagnostic("MSC1125", message, help=self._advice(op)))
            self._candidates[key] = found
        return self._candidates[key]

    def _advice(self, op: GraphOperator) -> str:
        names = [[op.axes[axis].size if axis is not None else 1 for axis in use.axes] for use in op.operands]
        return f"parts divide {names}, equal axes are cut alike, and there are {self.mesh.size} devices"

    def _assignments(self, op: GraphOperator) -> Iterable[Cuts]:
        choices = [*range(len(op.axes)), NONE]
        for cuts in itertools.product(choices, repeat=len(self.sizes)):
            if all(axis.size % self.parts(cuts, number) == 0 for number, axis in enumerate(op.axes)):
                yield cuts

    def _is_given(self, op: GraphOperator, cuts: Cuts) -> bool:
        assert op.given is not None
        pairs = zip(op.operands, op.given, strict=False)
        return all(wanted is None or self.strategy(use, cuts) == wanted for use, wanted in pairs)

    def parts(self, cuts: Cuts, axis: int) -> int:
        """Into how many parts an axis of an operator, or a dimension of a tensor, is cut."""
        return prod(size for size, cut in zip(self.sizes, cuts, strict=True) if cut == axis)

    def strategy(self, use: Use, cuts: Cuts) -> tuple[int, ...]:
        """Into how many parts each dimension of a tensor is cut, as MindSpore writes it."""
        return tuple(1 if axis is None else self.parts(cuts, axis) for axis in use.axes)

    def local_bytes(self, use: Use, cuts: Cuts) -> float:
        """Bytes of one rank's part."""
        return self._element_bytes(use) * prod(self.graph.tensors[use.tensor].shape) / prod(self.strategy(use, cuts))

    def _element_bytes(self, use: Use) -> int:
        dtype = self.graph.tensors[use.tensor].dtype
        return BYTES[self.precision if self.precision and dtype[0] in "fb" else dtype]

    def operator(self, number: int, cuts: Cuts) -> OperatorCost:
        """The cost of an operator that is cut so."""
        op = self.graph.operators[number]
        key = self._key(number, op, cuts)
        if key not in self._costs:
            self._costs[key] = self._cost(number, op, cuts)
        return self._costs[key]

    def _key(self, number: int, op: GraphOperator, cuts: Cuts) -> tuple[object, ...]:
        tensors = [self.graph.tensors[use.tensor] for use in (*op.operands, op.result)]
        on_host = tuple(tensor.parameter and tensor.name in self.host for tensor in tensors)
        shapes = tuple((tensor.shape, tensor.dtype, tensor.parameter) for tensor in tensors)
        first = tuple(use.tensor in self._first[number] for use in op.operands)
        used, made = tuple(use.axes for use in op.operands), tuple(use.tensor in self._made for use in op.operands)
        return (op.kind, op.axes, op.work, used, made, op.result.axes, shapes, first, on_host, cuts)

    def _cost(self, number: int, op: GraphOperator, cuts: Cuts) -> OperatorCost:
        cost = OperatorCost()
        moved = sum(self.local_bytes(use, cuts) for use in (*op.operands, op.result))
        self._work(op, cuts, moved, cost)
        self._sums(op, cuts, cost)
        if self.train:
            self._gradients(op, cuts, cost)
            cost.memory += self.local_bytes(op.result, cuts)
        self._parameters(number, op, cuts, cost)
        return cost

    def _work(self, op: GraphOperator, cuts: Cuts, moved: float, cost: OperatorCost) -> None:
        if not op.work:
            cost.compute = self.cluster.moving_seconds(moved) if op.kind != "reshape" else 0.0
            cost.backward = cost.compute if self.train else 0.0
            return
        dtype = self.precision or self.graph.tensors[op.result.tensor].dtype
        for work in op.work:
            m, n, k, batch = (
                uncut * prod(op.axes[a].size / self.parts(cuts, a) for a in axes)
                for uncut, axes in zip(work.uncut, (work.m, work.n, work.k, work.batch), strict=True)
            )
            each = moved / batch
            cost.compute += self.cluster.matrix_seconds(m, n, k, dtype, batch, each)
            if self.train:
                cost.backward += self.cluster.matrix_seconds(m, k, n, dtype, batch, each)
                cost.backward += self.cluster.matrix_seconds(k, n, m, dtype, batch, each)

    def _sums(self, op: GraphOperator, cuts: Cuts, cost: OperatorCost) -> None:
        """Parts that are summed."""
        summed = tuple(i for i, axis in enumerate(cuts) if axis >= 0 and op.axes[axis].kind == "reduced")
        if summed:
            self._call(cost, "all_reduce", summed, self.local_bytes(op.result, cuts), "sums")

    def _gradients(self, op: GraphOperator, cuts: Cuts, cost: OperatorCost) -> None:
        for use in op.operands:
            tensor = self.graph.tensors[use.tensor]
            if tensor.dtype[0] not in "fb" or not (tensor.parameter or use.tensor in self._made):
                continue
            over = tuple(
                i
                for i, axis in enumerate(cuts)
                if axis >= 0 and axis not in use.axes and op.axes[axis].kind != "reduced"
            )
            if over:
                why = "gradient" if tensor.parameter else "input gradient"
                self._call(cost, "all_reduce", over, self.local_bytes(use, cuts), why)

    def _call(self, cost: OperatorCost, kind: collectives.Kind, axes: tuple[int, ...], bytes_: float, why: str) -> None:
        fixed, each = self.line(kind, axes)
        taken = fixed + each * bytes_
        cost.calls.append(PlannedCall(kind, axes, bytes_, why))
        if why == "gradient":
            cost.gradients += taken
        else:
            cost.communication += taken

    def _parameters(self, number: int, op: GraphOperator, cuts: Cuts, cost: OperatorCost) -> None:
        for use in op.operands:
            tensor = self.graph.tensors[use.tensor]
            if not tensor.parameter or use.tensor not in self._first[number]:
                continue
            if tensor.name in self.host:  # the rows that are read are copied, and their gradients back
                cost.communication += self.cluster.copy_seconds((1 + self.train) * self.local_bytes(op.result, cuts))
                continue
            cost.memory += sum(self.parameter_bytes(use, cuts).values())
            if self.train:
                share = prod(self.sizes[i] for i in self._replicas(use, cuts)) if self.optimizer_level else 1
                cost.update += self.cluster.moving_seconds(_UPDATE * self.local_bytes(use, cuts) / share, 0)
            if self.train and self.optimizer_level == 3:
                replicas = self._replicas(use, cuts)
                if replicas:
                    self._call(cost, "all_gather", replicas, 2 * self.local_bytes(use, cuts), "weights")

    def _replicas(self, use: Use, cuts: Cuts) -> tuple[int, ...]:
        """The axes of the mesh along which ranks have the same part."""
        return tuple(i for i, axis in enumerate(cuts) if axis < 0 or axis not in use.axes)

    def parameter_bytes(self, use: Use, cuts: Cuts) -> dict[str, float]:
        """Bytes of a rank for a parameter, by cause; the optimizer level says what replicas share."""
        local, ranks = self.local_bytes(use, cuts), prod(self.sizes[i] for i in self._replicas(use, cuts))
        if not self.train:
            return {"weights": local}
        shares = [ranks if self.optimizer_level >= level else 1 for level in (3, 2, 1)]
        each = zip(("weights", "gradients", "optimizer state"), (1, 1, self.states), shares, strict=True)
        return {cause: local * copies / share for cause, copies, share in each}

    def steps(self, source: Cuts, target: Cuts) -> tuple[tuple[collectives.Kind, int, float], ...]:
        """The collectives from one layout to another: kind, axis of the mesh, and its part of the whole tensor.

        First what cuts, then exchanges, then what gathers, so that each moves little.
        """
        found: list[tuple[collectives.Kind, int, float]] = []
        pairs = list(zip(source, target, self.sizes, strict=True))
        share = 1.0 / prod(size for a, b, size in pairs if a >= 0 or b >= 0)
        gathers = [(i, size) for i, (a, b, size) in enumerate(pairs) if a >= 0 > b and size > 1]
        for i, (a, b, size) in enumerate(pairs):
            if a >= 0 and b >= 0 and a != b and size > 1:
                found.append(("all_to_all", i, share))
        for i, size in reversed(gathers):
            share *= size
            found.append(("all_gather", i, share))
        return tuple(found)

    def move_line(self, source: Cuts, target: Cuts) -> tuple[float, float]:
        """Seconds of bringing a tensor from one layout to another, of no bytes and of each byte of the whole tensor.

        In training its gradient goes back.
        """
        if source == target:
            return 0.0, 0.0
        key = (source, target)
        if key not in self._lines:
            fixed = each = 0.0
            for here, there in ((source, target), (target, source)) if self.train else ((source, target),):
                for kind, axis, share in self.steps(here, there):
                    start, slope = self.line(kind, (axis,))
                    fixed, each = fixed + start, each + share * slope
            self._lines[key] = fixed, each
        return self._lines[key]

    def line(self, kind: collectives.Kind, axes: tuple[int, ...]) -> tuple[float, float]:
        key = (kind, axes)
        if key not in self._links:
            self._links[key] = collectives.line(self.cluster, kind, self.group(axes))
        return self._links[key]

    def edge_seconds(self, producer: int, consumer: int, place: int, source: Cuts, target: Cuts) -> float:
        """Seconds to bring a result to an operand's layout, for operators that are cut so."""
        ops = self.graph.operators
        made, used = ops[producer].result, ops[consumer].operands[place]
        fixed, each = self.move_line(self.layout(made, source), self.layout(used, target))
        return fixed + each * self.whole_bytes(made)

    def whole_bytes(self, use: Use) -> int:
        """Bytes of a whole operand or result."""
        return self._element_bytes(use) * prod(self.graph.tensors[use.tensor].shape)

    def total(self, cuts: Sequence[Cuts]) -> float:
        """Seconds of the graph whose operators are cut so, nothing overlapped."""
        nodes = sum(self.operator(number, each).seconds for number, each in enumerate(cuts))
        edges = self.graph.edges()
        return nodes + sum(self.edge_seconds(u, v, place, cuts[u], cuts[v]) for u, v, place in edges)

    def memory(self, cuts: Sequence[Cuts]) -> float:
        """Bytes of a rank: parameters with their states, and in training all results."""
        return sum(self.operator(number, each).memory for number, each in enumerate(cuts))
