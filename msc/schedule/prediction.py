"""How many cycles a kernel will take with a plan, by an analytical model.

It orders the search of `msc tune`, and `msc explain` shows it beside measured times.

Each statement takes the largest of its arithmetic, its loads and stores, and the latency of its chains of updates, per
register tile, times the tiles; the kernel takes at least what its operands need to come from where they fit. Nothing is
measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.plan import Group, Member, Plan
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar
from msc.schedule.access import access_cost, lanes_of, pieces, strides, vectorisable
from msc.targets.cpu import CpuTarget

_ARITHMETIC_PORTS, _LOAD_PORTS, _STORE_PORTS = 2, 2, 1
_UPDATE_LATENCY = 4
_LOOP_OVERHEAD = 1.5
"""Cycles of counting and branching for each iteration of the innermost loop."""
REDUCTION_OF_LANES = 12
"""Cycles to reduce the lanes of one vector to one element."""
_CALL = 20
_CYCLES_BY_OPERATOR = {
    **dict.fromkeys(("div", "rem", "mod", "sqrt", "rsqrt"), 8.0),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log1p", "sigmoid", "tanh", "erf", "softplus"), 20.0),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"), 40.0),
    **dict.fromkeys(("pow", "atan2"), 60.0),
}
"""Vector instructions of operators that are not one."""
_BYTES_PER_CYCLE = (64.0, 24.0, 10.0, 3.0)
"""What one core sustains from its first, second and third cache and from memory."""


@dataclass(frozen=True)
class Prediction:
    """Cycles of one call: of its instructions, of its memory traffic, and of both together."""

    instruction_cycles: float
    memory_cycles: float

    @property
    def cycles(self) -> float:
        """The two overlap, so the larger counts whole, the smaller a little."""
        return max(self.instruction_cycles, self.memory_cycles) + 0.1 * min(self.instruction_cycles, self.memory_cycles)


def predict(model: KernelModel, plan: Plan, target: CpuTarget, threads: int) -> Prediction:
    """The cycles of one call of a kernel; `threads` of 0 are all cores."""
    lanes = lanes_of(model, target)
    share = _share(plan, threads or target.cores)
    inside = sum(_group_cycles(model, group, plan.points, lanes, target) for group in plan.groups)
    before = sum(_group_cycles(model, group, (), lanes, target) for group in plan.first)
    moved = traffic(model)
    return Prediction(_CALL + before + inside * share, moved / _bandwidth(moved, target) * share)


def _share(plan: Plan, threads: int) -> float:
    """The part of the iterations that the busiest thread runs."""
    shared = next((m for m in plan.band if m.parallel), None)
    if shared is None:
        return 1.0
    trips = ceil(shared.extent / shared.tile)
    return ceil(trips / threads) / trips


def traffic(model: KernelModel) -> int:
    """Bytes of inputs and outputs."""
    return sum(prod(a.shape) * BYTES[a.dtype] for a in model.arrays if a.kind != "internal")


def _bandwidth(traffic: int, target: CpuTarget) -> float:
    sizes = (target.l1, target.l2, target.l3)
    level = next((i for i, size in enumerate(sizes) if traffic <= size), len(sizes))
    return _BYTES_PER_CYCLE[level]


def _group_cycles(model: KernelModel, group: Group, points: tuple[Member, ...], lanes: int, target: CpuTarget) -> float:
    return sum(_Tile.of(model, s, points, group.inner, lanes, target).cycles() for s in group.statements)


@dataclass(frozen=True)
class _Tile:
    """What one iteration around the point loops of a statement computes: rows by `width`, as vectors along `vector`."""

    model: KernelModel
    statement: KernelStatement
    unrolled: tuple[tuple[int, int], ...]
    vector: int | None
    width: int
    innermost: int | None
    lanes: int
    target: CpuTarget
    rest: int
    """Of the width what runs as vectors along the rows, or along an inner loop."""
    inside: bool
    """Whether it is an inner loop of this statement that they run along."""

    @staticmethod
    def of(
        model: KernelModel,
        number: int,
        points: tuple[Member, ...],
        inner: tuple[Member, ...],
        lanes: int,
        target: CpuTarget,
    ) -> _Tile:
        statement = model.statements[number]
        vector_below, innermost = next((m for m in inner if m.vector), None), inner[-1] if inner else None
        above = next((m for m in points if m.vector and number in m.dims), None)
        rows = tuple((m.dims[number], m.tile) for m in points if number in m.dims and not m.vector)
        carrier = above or vector_below
        vector = carrier.dims.get(number) if carrier is not None and vectorisable(statement) else None
        width = 1 if carrier is None or vector is None else above.tile if above is not None else carrier.extent
        last = innermost.dims.get(number) if innermost is not None else None
        rest = above.rest if above is not None and vector is not None else 0
        inside = above is not None and any(m.name == above.along for m in inner)
        return _Tile(model, statement, rows, vector, max(1, width), last, lanes, target, rest, inside)

    def cycles(self) -> float:
        """Of all tiles of the statement."""
        rows = prod(tile for _, tile in self.unrolled)
        steps = self.statement.points / (rows * self.width)
        return steps * (self._step(rows) + _LOOP_OVERHEAD) + self._lane_reductions()

    def _vectors(self, rows: int) -> float:
        """Vectors of a row, with its share of those that run along the rows or an inner loop."""
        if self.vector is None:
            return self.width
        share = 1 / self.lanes if self.inside else pieces(rows, self.lanes) / rows
        return pieces(self.width - self.rest, self.lanes) + self.rest * share

    def _step(self, rows: int) -> float:
        vectors = self._vectors(rows)
        arithmetic = rows * vectors * self._arithmetic() / _ARITHMETIC_PORTS
        loads, stores, far = self._memory(rows, vectors)
        latency = 0.0
        if self._accumulates():
            latency = _UPDATE_LATENCY * (vectors if self._reduced_along_vector() else 1)
            spilled = max(0, rows * vectors + 2 - self.target.vector_registers)
            loads, stores = loads + spilled, stores + spilled
        memory = max(loads / _LOAD_PORTS, stores / _STORE_PORTS)
        return max(arithmetic, memory, latency, far) + 0.1 * (memory + far)

    def _accumulates(self) -> bool:
        """Whether the innermost loop sums into the same registers again and again."""
        return bool(self.statement.reduced) and (self.innermost in self.statement.reduced or self.vector is None)

    def _reduced_along_vector(self) -> bool:
        return self.vector in self.statement.reduced

    def _lane_reductions(self) -> float:
        if not self._reduced_along_vector() or self.vector is None:
            return 0.0
        return self.statement.points / self.statement.extents[self.vector] * REDUCTION_OF_LANES

    def _arithmetic(self) -> float:
        """Vector instructions of one vector; a product that is added is one."""
        count = _operators(self.statement.body)
        combined = self.statement.combine is not None
        fused = combined and isinstance(self.statement.body, Apply) and self.statement.body.op == "mul"
        return count + combined - (fused and self.target.fma)

    def _memory(self, rows: int, vectors: float) -> tuple[float, float, float]:
        """Loads and stores of a tile, and cycles for what streams from the second cache."""
        per_access = list(self._accesses(rows, vectors))
        write, reads = per_access[0], per_access[1:]
        in_registers = self._accumulates() or self.model.arrays[self.statement.target].kind == "internal"
        streamed = sum(count for count, along in reads if along and self._streams())
        far = streamed * self.target.vector_bytes / _BYTES_PER_CYCLE[1]
        return sum(count for count, _ in reads), 0.0 if in_registers else write[0], far

    def _accesses(self, rows: int, vectors: float) -> Iterator[tuple[float, bool]]:
        """For each access, how many instructions a tile needs for it, and whether it moves along the vector only."""
        along = strides(self.model, self.statement, self.vector) if self.vector is not None else None
        for k, (array, _) in enumerate(self.statement.accesses()):
            moving = prod(tile for dim, tile in self.unrolled if strides(self.model, self.statement, dim)[k])
            stride = along[k] if along is not None else 1
            per_row = vectors * max(1.0, access_cost(stride, self.lanes)) if stride else 1.0
            internal = self.model.arrays[array].kind == "internal"
            yield (0.0 if internal and k else moving * per_row), bool(stride) and moving == 1 and rows > 1

    def _streams(self) -> bool:
        """Whether what one tile's reduction reads along the vector outgrows the first cache."""
        steps = prod(self.statement.extents[d] for d in self.statement.reduced)
        return steps * self.width * self.target.vector_bytes // self.lanes > self.target.l1 // 2


def _operators(scalar: Scalar) -> float:
    match scalar:
        case Apply():
            return _CYCLES_BY_OPERATOR.get(scalar.op, 1.0) + sum(map(_operators, scalar.args))
        case Cast():
            return 1.0 + _operators(scalar.arg)
        case Constant() | Read():
            return 0.0
        case _:
            return 1.0
