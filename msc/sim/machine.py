"""One simulated run: a machine, a kernel's library, its arguments and cores."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

_NAMES: list[str] = [*INSTRUCTIONS, *CONTROL]
_PIPES = 7


class SimulatorLibrary(Protocol):
    """An open shared library."""

    def function(self, name: str, result: type | None = ctypes.c_int) -> Callable[..., int]:
        """An exported function."""
        ...


@dataclass(frozen=True)
class GlobalBuffer:
    """An argument of a kernel: `bytes` of global memory; `data` where values count, `filled` when it holds some."""

    bytes: int
    data: NDArray[np.generic] | None = None
    filled: bool = True


@dataclass(frozen=True)
class Launch:
    """How a kernel runs: on `blocks` blocks of cores of a `kind` (cube, vector, or mix: one cube and two vector)."""

    blocks: int
    kind: str
    mode: int = TIME
    warm: bool = True
    trace_events: int = 0
    trace_core: int = -1


@dataclass(frozen=True)
class Fault:
    """Why a run stopped: `kind` as dv_sim.h numbers errors, the C lines it is about, the core and the instruction."""

    kind: int
    message: str
    line: int
    other_line: int
    core: int
    instruction: str


class SimulationFault(Exception):
    """A kernel did what a core cannot do."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


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
    """Run a kernel. With FUNCTION in the mode its results are in the arguments' data. Raises SimulationFault."""
    kinds = core_kinds(target, launch.blocks, launch.kind)
    run = _Run(simulator, target, launch, kinds)
    try:
        for argument in arguments:
            run.give(argument)
        fault = run.run(kernel)
        if fault is not None:
            raise SimulationFault(fault)
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
            raise MemoryError("the simulator's cores")

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
        self._library.function("dv_argument", None)(self._sim, data, valid, ctypes.c_int64(argument.bytes))

    def run(self, kernel: SimulatorLibrary) -> Fault | None:
        entry = ctypes.cast(kernel.function("kernel", None), ctypes.c_void_p)  # pyright: ignore[reportArgumentType]
        attach = ctypes.cast(kernel.function("dv_attach", None), ctypes.c_void_p)  # pyright: ignore[reportArgumentType]
        events = ctypes.c_int64(self._launch.trace_events)
        kind = self._library.function("dv_run")(
            self._sim, entry, attach, int(self._launch.warm), events, self._launch.trace_core
        )
        if kind < 0:
            raise MemoryError("the simulator's L2 and trace")
        return self._fault(kind) if kind else None

    def _fault(self, kind: int) -> Fault:
        numbers = (ctypes.c_int32 * 4)()
        text: object = self._library.function("dv_message", ctypes.c_char_p)(self._sim, numbers)
        place: list[int] = list(numbers)
        message = text.decode() if isinstance(text, bytes) else ""
        name = _NAMES[place[3]] if 0 <= place[3] < len(_NAMES) else ""
        return Fault(kind, message, place[0], place[1], place[2], name)

    def result(self) -> SimulationResult:
        memory = (ctypes.c_double * 4)()
        self._library.function("dv_memory_result", None)(self._sim, memory)
        cores = [self._core(index) for index in range(len(self._kinds))]
        return SimulationResult(self._target, cores, *memory, events=self._events())

    def _core(self, index: int) -> CoreResult:
        out = (ctypes.c_double * (3 + 2 * (_PIPES - 1) + 17))()
        self._library.function("dv_core_result", None)(self._sim, index, out)
        numbers = list(out)
        pipes = numbers[3 : 3 + 2 * (_PIPES - 1)]
        block, _, cube, vector = self._kinds[index]
        kind = "unified" if cube and vector else "cube" if cube else "vector"
        start = block * self._target.cores.launch_us * self._target.clock.mhz if self._launch.mode & TIME else 0.0
        paths: dict[str, float] = dict(zip(PATHS, numbers[-16:], strict=False))
        busy = (numbers[1], *pipes[0::2])
        counts = tuple(int(n) for n in (numbers[2], *pipes[1::2]))
        return CoreResult(block, kind, start, numbers[0], busy, counts, numbers[-17], paths)

    def _events(self) -> tuple[Event, ...]:
        pointer = ctypes.POINTER(_CEvent)()
        count = self._library.function("dv_events", ctypes.c_int64)(self._sim, ctypes.byref(pointer))
        return tuple(
            Event(e.core, e.pipe, _NAMES[int(e.op)], e.line, e.start, e.end, (e.flag[0], e.flag[1], e.flag[2]), e.bytes)
            for e in pointer[:count]
        )

    def free(self) -> None:
        self._library.function("dv_free", None)(self._sim)
