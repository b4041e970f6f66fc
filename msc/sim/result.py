"""What a simulation found: cycles, busy time of each pipe, bytes of each path, what binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msc.targets.davinci import DavinciTarget

PIPES = ("scalar", "vec", "mac", "mte1", "mte2", "mte3", "fixpipe")
"""The pipes as profilers name their times, in the order of `msc.targets.davinci_isa.Pipe`."""

PIPES_OF: Mapping[str, tuple[str, ...]] = {
    "unified": PIPES,
    "cube": ("scalar", "mac", "mte1", "mte2", "fixpipe"),
    "vector": ("scalar", "vec", "mte2", "mte3"),
}
"""The pipes that each kind of core has."""

PREFIXES: Mapping[str, str] = {"unified": "", "cube": "aic_", "vector": "aiv_"}
"""What profilers write before the figures of each kind of core: cube cores are AICs, vector cores AIVs."""


@dataclass(frozen=True)
class CoreResult:
    """One core: `end` and `start` in cycles from the launch, `busy` cycles and `instructions` of each pipe of PIPES.

    `ideal` are the cycles that its multiply-accumulates take at the peak of their element types.
    """

    block: int
    sub_block: int
    kind: str
    start: float
    end: float
    busy: tuple[float, ...]
    instructions: tuple[int, ...]
    macs: float
    ideal: float
    path_bytes: Mapping[str, float]

    @property
    def name(self) -> str:
        """What traces and pictures call it: `block 3 cube0`."""
        return f"block {self.block} {self.kind}{self.sub_block}"


@dataclass(frozen=True)
class Event:
    """One instruction of the trace, in cycles; `flag` is (from, to, id) of flags."""

    core: int
    pipe: int
    name: str
    line: int
    start: float
    end: float
    flag: tuple[int, int, int]
    bytes: int


@dataclass(frozen=True)
class SimulationResult:
    """A whole run."""

    target: DavinciTarget
    cores: Sequence[CoreResult]
    hbm_bytes: float
    l2_bytes: float
    l2_hits: float
    l2_misses: float
    events: Sequence[Event] = field(default_factory=tuple[Event, ...])

    @property
    def cycles(self) -> float:
        """From the launch to the end of the last core."""
        return max(core.end for core in self.cores)

    @property
    def task_us(self) -> float:
        """The same in microseconds."""
        return self.target.microseconds(self.cycles)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of cores that ran, cube ones first."""
        found = {core.kind for core in self.cores}
        return tuple(kind for kind in PIPES_OF if kind in found)

    def of_kind(self, kind: str) -> list[CoreResult]:
        """The cores of a kind."""
        return [core for core in self.cores if core.kind == kind]

    def busy(self, pipe: str, kind: str | None = None) -> float:
        """Mean busy cycles of a pipe over the cores of a kind; by default of the first kind that has the pipe."""
        kinds = [k for k in self.kinds if pipe in PIPES_OF[k] and kind in (None, k)]
        if not kinds:
            return 0.0
        having, position = self.of_kind(kinds[0]), PIPES.index(pipe)
        return sum(core.busy[position] for core in having) / len(having)

    def busy_us(self, pipe: str, kind: str | None = None) -> float:
        """The same in microseconds, as a profiler's `*_time` columns have it."""
        return self.target.microseconds(self.busy(pipe, kind))

    def core_us(self, kind: str) -> float:
        """Mean microseconds between a core's start and end, of the cores of a kind."""
        cores = self.of_kind(kind)
        return self.target.microseconds(sum(core.end - core.start for core in cores) / len(cores)) if cores else 0.0

    @property
    def aicore_us(self) -> float:
        """The same of the first kind: of cube cores where there are any."""
        return self.core_us(self.kinds[0])

    @property
    def binding_pipe(self) -> str:
        """The pipe that is busy longest, by the mean over cores of a kind; `aic_mte2` where two kinds ran.

        The scalar unit counts only what it computes.
        """
        pairs = [(kind, pipe) for kind in self.kinds for pipe in PIPES_OF[kind]]
        kind, pipe = max(pairs, key=lambda pair: self.busy(pair[1], pair[0]))
        return (PREFIXES[kind] if len(self.kinds) > 1 else "") + pipe

    @property
    def macs(self) -> float:
        """Multiply-accumulates of all cores."""
        return sum(core.macs for core in self.cores)

    @property
    def cube_utilisation(self) -> float:
        """Multiply-accumulates by what the cube cores that ran could have done of their types until the last ended."""
        cubes = [core for core in self.cores if core.kind != "vector"]
        return self.ideal / (len(cubes) * self.cycles) if self.ideal else 0.0

    @property
    def ideal(self) -> float:
        """Cycles of one core that all multiply-accumulates take at the peak of their element types."""
        return sum(core.ideal for core in self.cores)

    def pipe_figures(self) -> dict[str, float]:
        """Time and ratio of each pipe of each kind of core, by a profiler's names: `aic_mac_time_us`."""
        made: dict[str, float] = {}
        for kind in self.kinds:
            whole, prefix = self.core_us(kind), PREFIXES[kind]
            made[f"{prefix or 'aicore_'}time_us"] = whole
            for pipe in PIPES_OF[kind]:
                made[f"{prefix}{pipe}_time_us"] = self.busy_us(pipe, kind)
                made[f"{prefix}{pipe}_ratio"] = self.busy_us(pipe, kind) / whole if whole else 0.0
        return made

    def path_bytes(self) -> dict[str, float]:
        """Bytes moved on each path, over all cores."""
        total: dict[str, float] = {}
        for core in self.cores:
            for path, count in core.path_bytes.items():
                total[path] = total.get(path, 0.0) + count
        return {path: count for path, count in total.items() if count}

    def to_json(self) -> dict[str, object]:
        """Plain numbers: what `msc sim --json` prints."""
        return {
            "target": self.target.name,
            "cycles": self.cycles,
            "task_us": self.task_us,
            "aicore_us": self.aicore_us,
            "cores": len(self.cores),
            **{f"{pipe}_us": self.busy_us(pipe) for pipe in PIPES},
            "mac_ratio": self.busy_us("mac") / self.aicore_us if self.macs else 0.0,
            **self.pipe_figures(),
            "cube_utilisation": self.cube_utilisation,
            "binding_pipe": self.binding_pipe,
            "bytes": self.path_bytes(),
            "hbm_bytes": self.hbm_bytes,
            "l2_hit_rate": self.l2_hits / max(1.0, self.l2_hits + self.l2_misses),
            "roofline": self.roofline(),
        }

    def roofline(self) -> dict[str, float]:
        """Position on the roofline: multiply-accumulates a byte of HBM and of L2, achieved and attainable a cycle.

        What HBM moves bounds a kernel where it moves anything; a kernel that L2 serves is bound by L2's reads alone.
        """
        if not self.macs:
            return {}
        shared = self.target.shared
        bounds = [self.macs / self.ideal * self.target.cores.cube]
        bounds += [self.macs / self.l2_bytes * shared.l2_read] if self.l2_bytes else []
        bounds += [self.macs / self.hbm_bytes * shared.hbm] if self.hbm_bytes else []
        return {
            "macs_per_hbm_byte": self.macs / self.hbm_bytes if self.hbm_bytes else 0.0,
            "macs_per_l2_byte": self.macs / self.l2_bytes if self.l2_bytes else 0.0,
            "achieved_macs_per_cycle": self.macs / self.cycles,
            "attainable_macs_per_cycle": min(bounds),
        }
