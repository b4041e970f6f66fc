"""One simulated run: a machine, a kernel's library, its arguments and cores."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from msc.sim.headers import PATHS, curve_values, memory_values, parameter_values, rate_values
from msc.sim.result import CoreResult, Event, SimulationResult
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import CONTROL, INSTRUCTIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FUNCTION, TIME, RACES, GREATEST = 1, 2, 4, 16
"""What a run does; the sum of several. GREATEST: without data, indices that are loaded are the greatest ones."""

INSTRUCTION_LIMIT = 1 << 27
"""The instructions and iterations that a run takes at most: more than ten times those of the longest published row."""

_NAMES: list[str] = [*INSTRUCTIONS, *CONTROL]
_PIPES = 7


class SimulatorLibrary(Protocol):
    """An open shared library."""

    def function(self, name: str, result: type | None = ctypes.c_int) -> Callable[..., int]:
        """An exported function."""
        ...


@dataclass(frozen=True)
class GlobalBuffer:
    """An argument of a kernel: `bytes` of global memory; `data` where values count, `filled` when it holds some.

    What the kernel does not write (`written`) has no races.
    """

    bytes: int
    data: NDArray[np.generic] | None = None
    filled: bool = True
    written: bool = True


L2_STARTS = ("cold", "warm")
"""How L2 starts: empty, or as the same kernel left it."""


@dataclass(frozen=True)
class L2State:
    """What L2 is when a kernel starts: `warm` or empty, and the `bytes` that it keeps (None: all that there are)."""

    warm: bool = True
    bytes: int | None = None

    @classmethod
    def of(cls, start: str, megabytes: int | None = None) -> L2State:
        """By one of L2_STARTS, and MB of 2^20 bytes."""
        return cls(start == "warm", None if megabytes is None else megabytes << 20)

    def of_machine(self, target: DavinciTarget) -> DavinciTarget:
        """The machine with an L2 that keeps so much."""
        if self.bytes is None:
            return target
        return replace(target, shared=replace(target.shared, l2=min(self.bytes, target.shared.l2)))


WHOLE_WARM_L2 = L2State()


@dataclass(frozen=True)
class Launch:
    """How a kernel runs: on `blocks` blocks of cores of a `kind` (cube, vector, or mix: one cube and two vector).

    It takes `limit` instructions and iterations at most.
    """

    blocks: int
    kind: str
    mode: int = TIME
    l2: L2State = WHOLE_WARM_L2
    limit: int = INSTRUCTION_LIMIT
    trace_events: int = 0
    trace_core: int = -1


@dataclass(frozen=True)
class Fault:
    """Why a run stopped: `kind` as dv_sim.h numbers errors, C lines, the first core, and how many there are."""

    kind: int
    message: str
    line: int
    other_line: int
    core: int
    cores: int


class SimulationFault(Exception):
    """A kernel did what a core cannot do: all races, all queues of a deadlock, or the one thing that ended the run."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[0].message)
        self.faults = faults


class SimulatorMemoryError(Exception):
    """There is no memory for the simulated cores, L2, or the accesses that a proof remembers."""


class _CEvent(ctypes.Structure):
    _fields_ = [
        ("core", ctypes.c_int32),
        ("pipe", ctypes.c_int32),
        ("op", ctypes.c_int32),
        ("line", ctypes.c_uint32),
        ("start", ctypes.c_double),
        ("end", ctypes.c_double),
        ("flag", ctypes.c_int32 * 3),
        ("bytes", ctypes.c_int64),
    ]


def core_kinds(target: DavinciTarget, blocks: int, kind: str) -> list[tuple[int, int, int, int]]:
    """(block, sub block, is cube, is vector) of each core that so many blocks of a kind of core have."""
    if target.cores.coupled:
        return [(block, 0, 1, 1) for block in range(blocks)]
    match kind:
        case "cube":
            return [(block, 0, 1, 0) for block in range(blocks)]
        case "vector":
            return [(block, 0, 0, 1) for block in range(blocks)]
        case _:
            parts = ((0, 1, 0), (0, 0, 1), (1, 0, 1))
            return [(block, *part) for block in range(blocks) for part in parts]


def simulate(
    simulator: SimulatorLibrary,
    kernel: SimulatorLibrary,
    target: DavinciTarget,
    launch: Launch,
    arguments: Sequence[GlobalBuffer],
) -> SimulationResult:
    """Run a kernel. With FUNCTION in the mode its results are in the arguments' data.

    Raises SimulationFault and SimulatorMemoryError.
    """
    kinds = core_kinds(target, launch.blocks, launch.kind)
    target = launch.l2.of_machine(target)
    run = _Run(simulator, target, launch, kinds)
    try:
        for argument in arguments:
            run.give(argument)
        faults = run.run(kernel)
        if faults:
            raise SimulationFault(faults)
        return run.result()
    finally:
        run.free()


class _Run:
    """A `struct sim` and what it points to."""

    def __init__(
        self,
        library: SimulatorLibrary,
        target: DavinciTarget,
        launch: Launch,
        kinds: Sequence[tuple[int, int, int, int]],
    ) -> None:
        self._library, self._target, self._launch, self._kinds = library, target, launch, kinds
        self._kept: list[Any] = []
        capacity, align = memory_values(target)
        make = library.function("dv_new", ctypes.c_void_p)
        flat = [number for kind in kinds for number in kind]
        self._sim = ctypes.c_void_p(
            make(
                self._doubles(parameter_values(target).values()),
                self._doubles(rate_values(target)),
                self._doubles(curve_values(target.cold)),
                self._integers(capacity),
                self._integers(align),
                len(kinds),
                launch.blocks,
                self._integers(flat),
                launch.mode,
            )
        )
        if not self._sim:
            raise SimulatorMemoryError("for the simulated cores")

    def _doubles(self, values: Any) -> Any:
        numbers = list(values)
        self._kept.append((ctypes.c_double * len(numbers))(*numbers))
        return self._kept[-1]

    def _integers(self, values: Any) -> Any:
        numbers = list(values)
        self._kept.append((ctypes.c_int64 * len(numbers))(*numbers))
        return self._kept[-1]

    def give(self, argument: GlobalBuffer) -> None:
        """One more argument."""
        data = valid = None
        if self._launch.mode & FUNCTION and argument.data is not None:
            data = ctypes.c_void_p(argument.data.ctypes.data)
            if not argument.filled:
                self._kept.append((ctypes.c_uint8 * argument.bytes)())
                valid = self._kept[-1]
        give = self._library.function("dv_argument", ctypes.c_bool)
        if not give(self._sim, data, valid, ctypes.c_int64(argument.bytes), int(argument.written)):
            raise SimulatorMemoryError(f"for the proof of an argument of {argument.bytes} bytes")

    def run(self, kernel: SimulatorLibrary) -> list[Fault]:
        """What went wrong; nothing in a run that ended."""
        entry = ctypes.cast(kernel.function("kernel", None), ctypes.c_void_p)  # pyright: ignore[reportArgumentType]
        attach = ctypes.cast(kernel.function("dv_attach", None), ctypes.c_void_p)  # pyright: ignore[reportArgumentType]
        limit, events = ctypes.c_int64(self._launch.limit), ctypes.c_int64(self._launch.trace_events)
        kind = self._library.function("dv_run")(
            self._sim, entry, attach, int(self._launch.l2.warm), limit, events, self._launch.trace_core
        )
        if kind < 0:
            raise SimulatorMemoryError("for the simulated L2 and the trace")
        return list(self._faults()) if kind else []

    def _faults(self) -> Iterator[Fault]:
        numbers = (ctypes.c_int32 * 5)()
        fault = self._library.function("dv_fault_at", ctypes.c_char_p)
        for index in count():
            text: object = fault(self._sim, index, numbers)
            if not isinstance(text, bytes):
                return
            kind, *place = numbers
            yield Fault(kind, text.decode(), *place)

    def result(self) -> SimulationResult:
        memory = (ctypes.c_double * 4)()
        self._library.function("dv_memory_result", None)(self._sim, memory)
        cores = [self._core(index) for index in range(len(self._kinds))]
        return SimulationResult(self._target, cores, *memory, events=self._events())

    def _core(self, index: int) -> CoreResult:
        out = (ctypes.c_double * (3 + 2 * (_PIPES - 1) + 18))()
        self._library.function("dv_core_result", None)(self._sim, index, out)
        numbers = list(out)
        pipes = numbers[3 : 3 + 2 * (_PIPES - 1)]
        block, sub_block, cube, vector = self._kinds[index]
        kind = "unified" if cube and vector else "cube" if cube else "vector"
        start = block * self._target.cores.launch_us * self._target.clock.mhz if self._launch.mode & TIME else 0.0
        paths: dict[str, float] = dict(zip(PATHS, numbers[-16:], strict=False))
        busy = (numbers[1], *pipes[0::2])
        counts = tuple(int(n) for n in (numbers[2], *pipes[1::2]))
        macs, ideal = numbers[-18:-16]
        return CoreResult(block, sub_block, kind, start, numbers[0], busy, counts, macs, ideal, paths)

    def _events(self) -> tuple[Event, ...]:
        pointer = ctypes.POINTER(_CEvent)()
        events = self._library.function("dv_events", ctypes.c_int64)(self._sim, ctypes.byref(pointer))
        return tuple(
            Event(e.core, e.pipe, _NAMES[int(e.op)], e.line, e.start, e.end, (e.flag[0], e.flag[1], e.flag[2]), e.bytes)
            for e in pointer[:events]
        )

    def free(self) -> None:
        self._library.function("dv_free", None)(self._sim)
