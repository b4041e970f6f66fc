"""The least time of a call of each of several schedules of one kernel, in turns of short bursts on one core."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute

from msc.analysis.kernel_signature import KernelSignature
from msc.dialects.arrays import Array, element_dtype
from msc.dialects.gk import KernelOp
from msc.driver.compile import compile_read, generate_c
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.driver.reports.kernel_records import c_names
from msc.driver.tuner.variants import variants_module
from msc.ir.typed import memref_type
from msc.poly.schedule_tree.nodes import Tree
from msc.runtime.build import BuildOptions, build
from msc.runtime.machine import rate_at_clock
from msc.runtime.toolchain import find_toolchain
from msc.support.temporary import temporary_folder
from msc.targets.catalogue import machine_named

ROUNDS, BURSTS, SECONDS = 6, 4, 100e-6
"""Turns of the schedules, bursts in each, and the least length of a burst."""
MUCH_SLOWER = 4
"""Times the best, from which one turn is enough."""
PAGE, APART = 4096, 5 * 64
"""Bytes of a page, and how far from its beginning each array is than the one before it."""
ARGUMENTS = 24
"""Of a kernel's function at most (`bursts.c`)."""


@dataclass(frozen=True)
class Times:
    """Microseconds of a call of each schedule, and the clock of the core at wide multiply-adds, in GHz."""

    ghz: float
    us: tuple[float, ...]


@contextmanager
def _alone_on(cpu: int) -> Generator[None]:
    """Keep the process on one processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True)
class Variants:
    """A kernel's library, with a function for each schedule: its name, and type and shape of each argument."""

    library: Path
    names: tuple[str, ...]
    arguments: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]


def times(kernel: KernelOp, schedules: Sequence[Tree], cpu: int) -> Times:
    """Of a kernel with each schedule on one processor. Raises MscError where one of them cannot be built."""
    with temporary_folder("variants") as folder:
        return times_of(variants(kernel, schedules, folder), cpu)


def times_of(built: Variants, cpu: int) -> Times:
    """Of each schedule of a kernel that is built, on one processor."""
    with temporary_folder("bursts") as folder:
        library, timer = ctypes.CDLL(str(built.library)), _timer(folder)
        memory, _arrays = _memory(built)
        with _alone_on(cpu), rate_at_clock() as rate:
            return _least(library, timer, built.names, memory, rate)


def variants(kernel: KernelOp, schedules: Sequence[Tree], folder: Path) -> Variants:
    """The kernel with all schedules, built in a folder, or found there."""
    library, about = folder / "variants.so", folder / "variants.json"
    if not about.exists():
        names, signatures = _built(kernel, schedules, library)
        arguments = [[_argument(memref_type(type_)) for type_ in signature.types] for signature in signatures]
        about.write_text(json.dumps({"names": names, "arguments": arguments}), encoding="utf-8")
    found = json.loads(about.read_text(encoding="utf-8"))
    arguments = ([(dtype, tuple(shape)) for dtype, shape in each] for each in found["arguments"])
    return Variants(library, tuple(found["names"]), tuple(map(tuple, arguments)))


def _argument(type_: MemRefType[Attribute]) -> tuple[str, tuple[int, ...]]:
    return element_dtype(type_.element_type).str, type_.get_shape()


def _least(
    library: ctypes.CDLL,
    timer: Callable[[object, object, float, int], float],
    names: Sequence[str],
    memory: Sequence[object],
    rate: Callable[[], float],
) -> Times:
    least, clock = np.full(len(names), np.inf), 0.0
    for turn in range(ROUNDS):
        for k, name in enumerate(names):
            if turn and least[k] > MUCH_SLOWER * least.min():
                continue
            clock = max(clock, rate())
            slow = least[k] > 5e-3 and turn > 0
            found = timer(ctypes.cast(library[name], ctypes.c_void_p), memory[k], SECONDS, 0 if slow else BURSTS)
            least[k] = min(least[k], found)
    machine = machine_named("native")
    return Times(clock / (machine.ports.arithmetic * machine.lanes(4)) * 1e-9, tuple(float(t) * 1e6 for t in least))


def _built(kernel: KernelOp, schedules: Sequence[Tree], library: Path) -> tuple[list[str], list[KernelSignature]]:
    options = CompileOptions(export_kernels=True, name="variants")
    table = options.backend.table
    model = LoadedModel("variants", variants_module(kernel, schedules), table["gk"], library.parent, {}, new_context())
    compilation = compile_read(model, options)
    program = generate_c(compilation)
    build(program, {}, "so", library, BuildOptions())
    functions = {op.sym_name.data: op for op in compilation.module.ops if isinstance(op, func.FuncOp)}
    named = c_names(compilation.module, program.kernels)
    calls = [name for name in _calls(compilation.module) if name in named]
    return [named[name] for name in calls], [KernelSignature.of(functions[name]) for name in calls]


def _timer(folder: Path) -> Callable[[object, object, float, int], float]:
    source, library = Path(__file__).with_name("bursts.c"), folder / "bursts.so"
    find_toolchain().run(["-O2", "-std=c11", "-shared", "-fPIC", str(source), "-o", library.name], folder)
    timer = ctypes.CDLL(str(library)).least_seconds
    timer.argtypes, timer.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_int), ctypes.c_double
    return timer


def _calls(module: ModuleOp) -> list[str]:
    return [op.callee.string_value() for op in module.walk() if isinstance(op, func.CallOp)]


def _memory(built: Variants) -> tuple[list[ctypes.Array[ctypes.c_void_p]], list[Array]]:
    """The arguments of each function, and the arrays behind them: where several have the same, it is one array."""
    arrays: dict[tuple[int, str, tuple[int, ...]], Array] = {}
    found: list[ctypes.Array[ctypes.c_void_p]] = []
    for arguments in built.arguments:
        if len(arguments) > ARGUMENTS:
            raise ValueError(f"a kernel of {len(arguments)} arguments")
        for place, (dtype, shape) in enumerate(arguments):
            if (place, dtype, shape) not in arrays:
                arrays[place, dtype, shape] = _array(np.dtype(dtype), shape, place)
        given = (arrays[place, *argument].ctypes.data for place, argument in enumerate(arguments))
        found.append((ctypes.c_void_p * ARGUMENTS)(*given))
    return found, list(arrays.values())


def _array(dtype: np.dtype[np.generic], shape: tuple[int, ...], place: int) -> Array:
    """Numbers in [0, 1), zeros where they may be indices.

    Arrays begin at other lines of a page each, wherever memory comes from: those that run through pages in step would
    meet in the sets of L1, and their loads wait for stores of other arrays.
    """
    count = prod(shape)
    memory = np.empty(count * dtype.itemsize + 2 * PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE + place * APART % PAGE
    array = memory[start : start + count * dtype.itemsize].view(dtype).reshape(shape)
    array[...] = 0 if dtype.kind in "iub" else np.random.default_rng(place).random(shape, np.float32)
    return array
