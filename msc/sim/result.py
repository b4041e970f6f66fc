"""What a simulation found: cycles, busy time of each pipe, bytes of each path, what binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msc.targets.davinci import DavinciTarget

PIPES = ("scalar", "vec", "mac", "mte1", "mte2", "mte3", "fixpipe")
"""The pipes as profilers name their times, in the order of `msc.targets.davinci_isa.Pipe`."""


@dataclass(frozen=True)
class CoreResult:
    """One core: `end` and `start` in cycles from the launch, `busy` cycles and `instructions` of each pipe of PIPES."""

    block: int
    kind: str
    start: float
    end: float
    busy: tuple[float, ...]
    instructions: tuple[int, ...]
    macs: float
    path_bytes: Mapping[str, float]


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

    def busy(self, pipe: str) -> float:
        """Mean busy cycles of a pipe over the cores that have it."""
        position = PIPES.index(pipe)
        having = [core for core in self.cores if core.kind in ("unified", _KIND_OF_PIPE.get(pipe, core.kind))]
        return sum(core.busy[position] for core in having) / len(having) if having else 0.0

    def busy_us(self, pipe: str) -> float:
        """Mean busy microseconds of a pipe, as a profiler's `*_time` columns have it."""
        return self.target.microseconds(self.busy(pipe))

    @property
    def aicore_us(self) -> float:
        """Mean microseconds between a core's start and end."""
        return self.target.microseconds(sum(core.end - core.start for core in self.cores) / len(self.cores))

    @property
    def binding_pipe(self) -> str:
        """The pipe that is busy longest, by the mean over cores. The scalar unit counts only what it computes."""
        return max(PIPES, key=self.busy)

    @property
    def macs(self) -> float:
        """Multiply-accumulates of all cores."""
        return sum(core.macs for core in self.cores)

    @property
    def cube_utilisation(self) -> float:
        """Multiply-accumulates by what the cube cores that ran could have done until the last one ended."""
        cubes = [core for core in self.cores if core.kind in ("cube", "unified")]
        peak = self.target.peak_macs * len(cubes) * self.cycles
        return self.macs / peak if peak else 0.0

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
            "mac_ratio": self.busy("mac") / (self.aicore_us * self.target.clock.mhz) if self.macs else 0.0,
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
        bounds = [self.target.peak_macs * self.target.cores.cube]
        bounds += [self.macs / self.l2_bytes * shared.l2_read] if self.l2_bytes else []
        bounds += [self.macs / self.hbm_bytes * shared.hbm] if self.hbm_bytes else []
        return {
            "macs_per_hbm_byte": self.macs / self.hbm_bytes if self.hbm_bytes else 0.0,
            "macs_per_l2_byte": self.macs / self.l2_bytes if self.l2_bytes else 0.0,
            "achieved_macs_per_cycle": self.macs / self.cycles,
            "attainable_macs_per_cycle": min(bounds),
        }


_KIND_OF_PIPE = {"vec": "vector", "mte3": "vector", "mac": "cube", "mte1": "cube", "fixpipe": "cube"}
