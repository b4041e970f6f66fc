"""What a task of a vector kernel costs: its instructions, by the machine's table, and its moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, prod, sqrt

from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar, reads
from msc.schedule.vector_unit.axes import Axes
from msc.schedule.vector_unit.formulas import BINARY, UNARY, formula
from msc.schedule.vector_unit.joined import ScaleAndShift, Scaled, joined_statements
from msc.schedule.vector_unit.simplified import is_product
from msc.schedule.vector_unit.tiling import GM_DTYPES, UB_DTYPES, Tiling, all_tilings
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, INSTRUCTIONS

_F32_LANES = 64
_COMPARED = ("vcmp", "vsel")
"""Instructions of an operator that has none of its own, as `select` and `less`."""


@dataclass(frozen=True)
class StatementWork:
    """A statement over `axes`: `repeat` cycles for each `lanes` elements, `row` for each row; `chain` instructions.

    Each instruction of the chain waits for the one before.
    """

    axes: tuple[int, ...]
    lanes: int
    repeat: float
    row: float
    chain: int


@dataclass(frozen=True)
class StaggeredStart:
    """Cores start `later` cycles one after the other, and have tasks of so many cycles.

    They share whole tasks, or each `grain` parts of one.
    """

    later: float
    cycles: float
    grain: int = 1

    def end(self, tasks: int, cores: int) -> float:
        """When the last task ends, if shares differ as starts do, but for half of what cores share."""
        last = (cores - 1) * self.later + self.cycles
        if cores in (1, tasks):
            return last + (tasks - cores) * self.cycles
        return max(last, tasks * self.cycles / cores + (cores - 1) * self.later / 2 + self.cycles / (2 * self.grain))

    def best_cores(self, tasks: int, most: int) -> int:
        """The number of cores that end first: one, one for each task, or an even number."""
        wanted = ceil(sqrt(2 * tasks * self.cycles / self.later)) if self.later else most
        options = {1, min(tasks, most), *(2 * (min(wanted, most, tasks) // 2 + k) for k in (-1, 0, 1))}
        possible = [c for c in options if 0 < c <= min(tasks, most) and (c % 2 == 0 or c in (1, tasks))]
        return min(possible, key=lambda cores: (self.end(tasks, cores), cores))


class Cost:
    """The predicted cycles of a kernel's tilings on a machine."""

    def __init__(self, model: KernelModel, axes: Axes, target: DavinciTarget) -> None:
        self.model, self.axes, self.target = model, axes, target

    def cycles(self, tiling: Tiling) -> float:
        """From the launch to the end of the last core."""
        _, fill = self._task(tiling)
        tasks, launch = tiling.tasks(self.axes), self.launch(tiling)
        if tiling.equal:
            return (tiling.cores - 1) * launch.later + -(-tasks // tiling.cores) * launch.cycles + fill
        return launch.end(tasks, tiling.cores) + fill

    def launch(self, tiling: Tiling) -> StaggeredStart:
        """How cores start, and what a task takes."""
        return StaggeredStart(
            self.target.cores.launch_us * self.target.clock.mhz, self._task(tiling)[0], self.grain(tiling)
        )

    def grain(self, tiling: Tiling) -> int:
        """In how many parts cores share a task: rows, where all tasks lie along one axis, which is not the lanes'."""
        along = not tiling.outer and not tiling.equal and tiling.split not in (None, self.axes.last)
        return tiling.tile if along else 1

    def on_cores(self, tiling: Tiling) -> Tiling:
        """A tiling on as many cores as end first."""
        cores = self.launch(tiling).best_cores(tiling.tasks(self.axes), self.target.cores.vector)
        return replace(tiling, cores=cores)

    def fits(self, tiling: Tiling) -> bool:
        """Whether what comes and goes has room by itself, two buffers each."""
        moved = self._bytes(tiling, "input")
        if not self.stores_in_place(tiling):
            moved += self._bytes(tiling, "output")
        return (1 + tiling.double) * moved <= self.target.buffers.ub - self.target.buffers.ub_reserved

    def stores_in_place(self, tiling: Tiling) -> bool:
        """Whether a task may leave from where it came: while a core computes one task, another one leaves and comes.

        That halves the buffers of a task where computing takes longer than both moves, or where nothing overlaps.
        """
        outputs = [k for k, array in enumerate(self.model.arrays) if array.kind == "output"]
        if len(outputs) != 1:
            return False
        reading, computing, writing, together = self._parts(tiling)
        return (computing > max(reading + writing, together) or not tiling.double) and any(
            array.kind == "input" and array.dtype == self.model.arrays[outputs[0]].dtype == UB_DTYPES[array.dtype]
            and self.axes.arrays[k] == self.axes.arrays[outputs[0]]
            for k, array in enumerate(self.model.arrays)
        )  # fmt: skip

    def _task(self, tiling: Tiling) -> tuple[float, float]:
        """The cycles of a task among others, and what the first one waits for and the last one leaves."""
        reading, computing, writing, together = self._parts(tiling)
        fill = reading + computing + writing + self.target.gm.write_latency
        return max(reading, computing, writing, together) if tiling.double else max(fill, together), fill

    def _parts(self, tiling: Tiling) -> tuple[float, float, float, float]:
        gm, shared = self.target.gm, self.target.shared
        read, written = (self._bytes(tiling, kind) for kind in ("input", "output"))
        reading = gm.ub_start + read / gm.packet * gm.ub_packet
        writing = gm.write_start + written / gm.packet * gm.write_packet
        together = (read + written) * tiling.cores / shared.l2_mixed
        return reading, self._computing(tiling), writing, together

    def _bytes(self, tiling: Tiling, kind: str) -> int:
        """The bytes that a task moves of the arrays of a kind."""
        return sum(
            prod(tiling.capacity(self.axes, axis) for axis in self.axes.arrays[k]) * DTYPES[GM_DTYPES[array.dtype]]
            for k, array in enumerate(self.model.arrays)
            if array.kind == kind
        )

    def _computing(self, tiling: Tiling) -> float:
        """The vector unit's cycles: repeats at their rates, and the start of each instruction of a chain."""
        start = self.target.vector.start + self.target.queues.barrier
        total = 0.0
        for work in self._works:
            sizes = [tiling.capacity(self.axes, axis) for axis in work.axes]
            rows, lanes = prod(sizes[:-1]), sizes[-1] if sizes else 1
            repeats = rows * -(-lanes // work.lanes) if lanes > work.lanes else -(-rows * lanes // work.lanes)
            total += repeats * work.repeat + rows * work.row + work.chain * start
        return total

    @cached_property
    def _works(self) -> list[StatementWork]:
        return [self._work(number, statement) for number, statement in enumerate(self.model.statements)]

    @cached_property
    def _joined(self) -> Mapping[int, ScaleAndShift | Scaled]:
        return joined_statements(self.model, self.axes)

    def _work(self, number: int, statement: KernelStatement) -> StatementWork:
        axes = self.axes.statements[number]
        lanes = self.target.vector.repeat_bytes // DTYPES[UB_DTYPES[self.model.arrays[statement.target].dtype]]
        if isinstance(self._joined.get(number), Scaled):
            return StatementWork(axes, lanes, 0, 0, 0)
        part = isinstance(self._joined.get(number - 1), ScaleAndShift)
        names = [] if part else list(self._instructions(statement.body))
        chain = len(names)
        chain += sum(1 for read in reads(statement.body) if axes and axes[-1] not in self.axes.arrays[read.operand])
        row = 0.0
        if self._sums_products(number):
            names[-1:] = ["vmla"]
        elif statement.combine is not None:
            names.append("vadd")
            chain += 1
            if axes and axes[-1] in self.axes.reduced[number]:
                row, chain = self._repeat("vcadd", lanes), chain + 1
        return StatementWork(axes, lanes, sum(self._repeat(name, lanes) for name in names), row, max(1, chain))

    def _sums_products(self, number: int) -> bool:
        """Whether a statement is `vmla` along its rows."""
        statement, axes = self.model.statements[number], self.axes.statements[number]
        along = bool(axes) and axes[-1] in self.axes.reduced[number]
        return statement.combine == "add" and is_product(statement.body) and along

    def _repeat(self, name: str, lanes: int) -> float:
        """Cycles of a repeat of 256 bytes."""
        return lanes / self.target.vector.rates[INSTRUCTIONS[name].rate][lanes == _F32_LANES]

    def _instructions(self, body: Scalar) -> Iterator[str]:
        match body:
            case Apply():
                better = formula(body)
                if better is not None:
                    yield from self._instructions(better)
                    return
                for arg in body.args:
                    yield from self._instructions(arg)
                alone = UNARY.get(body.op) or BINARY.get(body.op)
                yield from (alone,) if alone else _COMPARED
            case Cast():
                yield from self._instructions(body.arg)
                yield "vconv"
            case Read() | Constant():
                return
            case _:
                return


def tilings(
    model: KernelModel, outputs: Sequence[int], axes: Axes, target: DavinciTarget, *, double: bool = True
) -> list[Tiling]:
    """The tilings of a kernel whose moves have room, with two buffers or one, the fastest by prediction first."""
    cost = Cost(model, axes, target)
    every = (replace(tiling, double=double) for tiling in all_tilings(outputs, axes, target))
    found = dict.fromkeys(cost.on_cores(tiling) for tiling in every)
    predicted = {tiling: cost.cycles(tiling) for tiling in found if cost.fits(tiling)}
    return sorted(predicted, key=lambda tiling: (predicted[tiling], tiling.tile))
