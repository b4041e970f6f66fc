"""Which kernels each call of the entry function runs: one, or all that were in a loop that became a function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from msc.analysis.bytes import traffic
from msc.analysis.flops import flops
from msc.analysis.kernel_signature import calls_of
from msc.analysis.kernels import kernels_in
from msc.analysis.repetition import times_run
from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import MsOp
from msc.driver.compile import Step, compile_model
from msc.driver.models.entry import entry_function
from msc.driver.models.reading_models import stage_of_model
from msc.driver.options import CompileOptions
from msc.driver.reports.kernel_rates import KernelWork
from msc.ir.locations import source_location


def kernels_by_call(model: str, options: CompileOptions) -> Sequence[Sequence[KernelWork]]:
    """The work of the kernels of each call, in order."""
    found: list[KernelWork] = []

    def collect(step: Step, module: ModuleOp) -> None:
        if step.name == "convert-gk-to-loop":
            found.extend(KernelWork(flops(k), traffic(k), times_run(k), _origins(k)) for k in kernels_in(module))

    module = compile_model(model, options, after_step=collect).module
    counts = {op.sym_name.data: calls_of(op) for op in module.ops if isinstance(op, func.FuncOp)}
    kernels = iter(found)
    calls = (op.callee.string_value() for op in entry_function(module).walk() if isinstance(op, func.CallOp))
    return [list(islice(kernels, counts[name])) for name in calls]


def kernel_work(model: str, options: CompileOptions) -> tuple[KernelWork, ...]:
    """The work of every call of a kernel's function in order; none for a model past the stage of kernels.

    A function that was made of a loop does the work of all runs of the kernels in it.
    """
    if model.endswith(".so") or not stage_of_model(model, options.backend.table, options.start).holds_tensors:
        return ()
    return tuple(map(_together, kernels_by_call(model, options)))


def _together(works: Sequence[KernelWork]) -> KernelWork:
    """One kernel's work, or all runs of several as one."""
    if len(works) == 1:
        return works[0]
    runs = None if any(work.runs is None for work in works) else 1
    total, nbytes = sum(w.flops * (w.runs or 0) for w in works), sum(w.bytes * (w.runs or 0) for w in works)
    return KernelWork(total, nbytes, runs, tuple(dict.fromkeys(each for work in works for each in work.origins)))


_NODE = re.compile(r".*\((\w+(?: '.*')?)\)")


def _origins(kernel: KernelOp) -> tuple[str, ...]:
    """What the model calls the operations of a kernel; file and line where they have no names."""
    places = (source_location(op) for op in kernel.body.block.ops if isinstance(op, MsOp))
    found = dict.fromkeys(place for place in places if place is not None)
    named = {place: _NODE.fullmatch(place.file) for place in found}
    return tuple(dict.fromkeys(f"{Path(p.file).name}:{p.line}" if (n := named[p]) is None else n[1] for p in found))
