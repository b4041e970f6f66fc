"""One kernel with many schedules: all in one library, timed in turns on the same inputs.

The library is that of a model which runs the kernel once with each schedule, built with clocks between the calls: each
call of it times every schedule once, so that a slow moment of the machine hits all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from msc.dialects.gk import KernelOp, ScheduleAttr
from msc.dialects.gk.attributes import GK_SCHEDULE
from msc.dialects.open_sizes import set_valid_inputs
from msc.driver.compile import compile_read, generate_c
from msc.driver.models.model_outputs import Tolerance
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.driver.reports.kernel_records import KernelRecord, aligned
from msc.ir.entry import ENTRY
from msc.poly.schedule_tree.nodes import Tree
from msc.runtime.artifact import CompiledModel, load
from msc.runtime.build import BuildOptions, build
from msc.support.arrays import Array
from msc.support.diagnostics import MscError
from msc.support.temporary import temporary_folder

_WARM_UP = 2
_LEAST_ROUNDS, _MOST_ROUNDS = 7, 2000
_TOLERANCE = Tolerance(1e-4, 1e-3)
"""Schedules sum in other orders; this finds results that are wrong, not those that are rounded otherwise."""


@dataclass(frozen=True)
class Subject:
    """A kernel with inputs from a run of its model and the outputs that are right; `options` are the model's."""

    kernel: KernelOp
    record: KernelRecord
    options: CompileOptions


@dataclass(frozen=True)
class VariantTime:
    """Microseconds of one call, their ratio to the first schedule's, and whether the results are right.

    Times are lower quartiles over the rounds: what else runs on the machine only makes calls slower.
    """

    microseconds: float
    ratio: float
    agrees: bool


def time_schedules(subject: Subject, schedules: Sequence[Tree], seconds: float) -> list[VariantTime]:
    """The times of a kernel with each schedule. Raises MscError where one of the schedules cannot be built.

    The first schedule runs twice in each round and counts once: the first run finds its data and code cold, which no
    other schedule has to bear.
    """
    with temporary_folder("tune") as folder:
        model = load(_library(subject, (schedules[0], *schedules), folder))
        return _times(model, subject.record, len(schedules) + 1, seconds)[1:]


def _library(subject: Subject, schedules: Sequence[Tree], folder: Path) -> Path:
    options = replace(subject.options, profile=True, tuned=None, name="variants", start=None)
    module = variants_module(subject.kernel, schedules)
    compilation = compile_read(
        LoadedModel("variants", module, options.backend.table["gk"], folder, {}, new_context()), options
    )
    program = generate_c(compilation)
    return build(program, {}, "so", folder / "variants.so", BuildOptions())


def variants_module(kernel: KernelOp, schedules: Sequence[Tree]) -> ModuleOp:
    """A module whose @main runs the kernel once with each schedule and returns all results."""
    types = [value.type for value in kernel.inputs]
    block = Block(arg_types=types)
    copies = [_with_schedule(kernel, block, schedule) for schedule in schedules]
    results = [result for copy in copies for result in copy.results]
    block.add_ops([*copies, func.ReturnOp(*results)])
    return ModuleOp([func.FuncOp(ENTRY, (types, [r.type for r in results]), Region(block))])


def _with_schedule(kernel: KernelOp, block: Block, tree: Tree) -> KernelOp:
    """The kernel on the block's arguments, at the largest of the sizes that calls decide."""
    copy = kernel.clone(value_mapper=dict(zip(kernel.inputs, block.args, strict=True)))
    set_valid_inputs(copy, [], ())
    copy.attributes[GK_SCHEDULE] = ScheduleAttr(tree)
    return copy


def _times(model: CompiledModel, record: KernelRecord, count: int, seconds: float) -> list[VariantTime]:
    """Of all calls, beside the second, which is the first that is warm.

    Results are compared once, each in memory of its own; then all schedules write to the same, as outputs that take
    turns would push each other out of the caches.
    """
    inputs = [aligned(np.ascontiguousarray(array)) for array in record.inputs]
    outputs = [aligned(array) for array in model.new_outputs()]
    model.profile_into(inputs, outputs, np.zeros(len(model.calls), np.float64))
    agree = _agreement(record, outputs, count)
    rounds = _rounds(model, inputs, outputs[: len(record.outputs)] * count, seconds)
    quartiles = np.percentile(rounds, 25, axis=0)
    return [
        VariantTime(float(m), float(r), a)
        for m, r, a in zip(quartiles * 1e6, quartiles / quartiles[1], agree, strict=True)
    ]


def _rounds(
    model: CompiledModel, inputs: Sequence[Array], outputs: Sequence[Array], seconds: float
) -> NDArray[np.float64]:
    """Seconds of every schedule (columns) in every round (rows); calls that copy are no schedule's."""
    calls = model.calls
    kernels = [k for k, name in enumerate(calls) if name != "copy"]
    samples: list[NDArray[np.float64]] = []
    end = time.perf_counter() + seconds
    while len(samples) < _LEAST_ROUNDS + _WARM_UP or (len(samples) < _MOST_ROUNDS and time.perf_counter() < end):
        sample = np.zeros(len(calls), np.float64)
        model.profile_into(inputs, outputs, sample, shared=True)
        samples.append(sample[kernels])
    return np.maximum(np.array(samples[_WARM_UP:]), 1e-9)


def _agreement(record: KernelRecord, outputs: Sequence[Array], count: int) -> list[bool]:
    """Whether each schedule gave the outputs that are right."""
    each = len(record.outputs)
    groups = [outputs[k * each : (k + 1) * each] for k in range(count)]
    return [
        all(_TOLERANCE.scaled(e).agree(got.view(e.dtype), e) for got, e in zip(group, record.outputs, strict=True))
        for group in groups
    ]


def time_each(subject: Subject, schedules: Sequence[Tree], seconds: float) -> list[VariantTime | None]:
    """As `time_schedules`; if they cannot be built together, each beside the first alone: None for one that cannot."""
    try:
        return [*time_schedules(subject, schedules, seconds)]
    except MscError:
        if len(schedules) <= 2:
            return [None] * len(schedules)
    alone = [time_each(subject, (schedules[0], schedule), seconds)[1] for schedule in schedules[1:]]
    return [next((VariantTime(t.microseconds / t.ratio, 1.0, True) for t in alone if t), None), *alone]
