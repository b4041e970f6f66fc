"""`msc verify`: one model, one input, every stage; the first step whose result is not the interpreter's is named."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, FusedLoc, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from msc.analysis.flops import flops
from msc.dialects.arrays import Array
from msc.dialects.loop.attributes import LOOP_ORIGIN
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.dialects.ms.target import set_target
from msc.driver.artifacts.model_on_call import made_for
from msc.driver.compile import Compilation, Step, compile_model, generate_c
from msc.driver.models.entry import entry_function
from msc.driver.models.interpretation import input_tensors
from msc.driver.models.model_inputs import Value, choose_inputs
from msc.driver.models.model_outputs import Tolerance, largest_error
from msc.driver.models.reading_models import LoadedModel, read_model
from msc.driver.models.target import target_for
from msc.driver.options import CompileOptions
from msc.driver.reports.kernel_records import (
    KernelRecord,
    c_names,
    kernel_caller,
    kernel_function,
    record_kernels,
    run_kernel,
    takes,
)
from msc.graph.shapes.size_comparison import sample_sizes
from msc.interp import WeightSource, evaluate, evaluate_loops
from msc.ir.entry import entries
from msc.ir.locations import format_module, location_of, source_location
from msc.runtime.artifact import CompiledModel, load
from msc.runtime.build import BuildOptions, build
from msc.runtime.program import TensorSpec
from msc.support.diagnostics import Diagnostic, Location, MscError
from msc.support.progress import progress
from msc.support.progress import step as progress_step
from msc.support.temporary import temporary_folder


@dataclass(frozen=True)
class Check:
    """One comparison: after which step of which stage, of what, its verdict and the largest absolute difference."""

    stage: str
    step: str
    subject: str
    verdict: str
    error: float = 0.0
    detail: str = ""

    @property
    def diverges(self) -> bool:
        """Whether the results differ by more than the tolerance."""
        return self.verdict == DIVERGES


ALL_NAN = "every element of every result is NaN"
"""Beside a verdict that says little then."""

AGREES, DIVERGES, SKIPPED, UNCHANGED = "agrees", "diverges", "skipped", "unchanged"

LOOP_LIMIT = 50_000_000
"""Arithmetic operations of a model above which its loops are not interpreted, which takes about 1 s per million."""


@dataclass(frozen=True)
class Settings:
    """What to verify on: named inputs, a seed for the others, how close is close, and how much to interpret."""

    given: Mapping[str, Value] = field(default_factory=dict[str, Value])
    seed: int = 0
    tolerance: Tolerance = field(default_factory=Tolerance)
    loop_limit: int = LOOP_LIMIT


class _Found(Exception):
    """Stops the walk at the first divergence."""


@progress()
def verify_model(
    model: str, options: CompileOptions, settings: Settings, reference: str | None = None
) -> tuple[Check, ...]:
    """The checks in order; the last one diverges if any does. `reference` is the model whose meaning counts.

    Raises MSC0601 to MSC0604 for inputs that do not fit, and what compiling raises.
    """
    (options, original), given = made_for(options, settings.given, lambda o: (o, read_model(reference or model, o)))
    settings = replace(settings, given=given)
    if not original.stage.holds_tensors:
        message = "verification needs a model before the loop stage, whose operations have a meaning"
        raise MscError(Diagnostic("MSC0006", message, help="--reference MODEL gives the graph that it comes from"))
    checks: list[Check] = []
    names = [function.sym_name.data for function in entries(original.module)]
    for name in names:
        subject = "model" if len(names) == 1 else f"@{name}"
        verification = _Verification(original, replace(options, export_kernels=True), settings, name, subject)
        with suppress(_Found):
            verification.run(model, reference)
        checks += verification.checks
        if checks and checks[-1].diverges:
            break
    return tuple(checks)


def _input_text(tensors: Sequence[TensorSpec]) -> str:
    sizes = ("x".join([*("?" if n < 0 else str(n) for n in t.shape), t.dtype]) for t in tensors)
    return ", ".join(f"{t.name}: {size}" for t, size in zip(tensors, sizes, strict=True)) or "nothing"


class _Verification:
    """One walk with its reference values, for one entry function."""

    def __init__(
        self, original: LoadedModel, options: CompileOptions, settings: Settings, entry: str, subject: str
    ) -> None:
        self._entry, self._subject = entry, subject
        self.checks = list[Check]()
        self._original, self._options, self._settings = original, options, settings
        self._inputs = choose_inputs(input_tensors(original.module, entry), settings.given, settings.seed)
        self._reference = Trace()
        self._weights: WeightSource = original.weights()
        self._expected = evaluate(
            original.module, self._inputs, self._weights, observer=self._reference.record, entry=entry
        )
        set_target(original.module, target_for(original, options))
        self._text = format_module(original.module)
        self._work = 0
        self._records: tuple[KernelRecord, ...] = ()
        self._tolerances = tuple(settings.tolerance.scaled(array) for array in self._expected)

    def run(self, model: str, reference: str | None) -> None:
        """Walk along all stages to C."""
        if reference is not None:
            start = read_model(model, self._options)
            if start.stage.holds_tensors:
                self._check_inputs(start.module, model, reference)
            self._text = ""
            step = Step(start.stage.name, "read", 0.0)
            if not start.stage.holds_tensors:
                self._check_loops_of_kernels(step, start.module, reference)
            self._check_module(step, start.module)
        compilation = compile_model(model, self._options, after_step=self._after)
        self._check_c(compilation)

    def _check_inputs(self, module: ModuleOp, model: str, reference: str) -> None:
        """Raises MSC0008 for a reference that takes other inputs."""
        taken, wanted = (_input_text(input_tensors(m, self._entry)) for m in (module, self._original.module))
        if taken != wanted:
            message = f"'{model}' takes {taken}, but the reference '{reference}' takes {wanted}"
            help_ = "--reference is the model that an edited stage came from"
            raise MscError(Diagnostic("MSC0008", message, help=help_))

    def _check_loops_of_kernels(self, step: Step, module: ModuleOp, reference: str) -> None:
        """The functions of a file of loops, each alone, beside the kernels of the same names that the model has."""

        def record(done: Step, made: ModuleOp) -> None:
            if done.name == "convert-gk-to-loop":
                self._records = record_kernels(made, self._inputs, self._weights, self._entry)

        compile_model(reference, self._options, after_step=record)
        self._records = tuple(r for r in self._records if takes(kernel_function(module, r.function), r))
        self._check_kernels(step, module)

    def _after(self, step: Step, module: ModuleOp) -> None:
        if not step.name.startswith("verify-"):
            self._check_module(step, module)

    def _check_module(self, step: Step, module: ModuleOp) -> None:
        progress_step(f"interpreting the model after {step.name}")
        text = format_module(module)
        if text == self._text:
            self._add(step, self._subject, UNCHANGED)
            return
        self._text = text
        if any(isinstance(a.type, MemRefType) for a in entry_function(module, self._entry).args):
            self._check_loops(step, module)
            return
        self._work = max(self._work, flops(entry_function(module, self._entry)))  # of expanded operations, from then on
        trace = Trace()
        outputs = evaluate(module, self._inputs, self._weights, observer=trace.record, entry=self._entry)
        self._compare(step, outputs, trace)
        self._check_kernels(step, module)

    def _compare(self, step: Step, outputs: Sequence[Array], trace: Trace | None = None) -> None:
        pairs = list(zip(outputs, self._expected, self._tolerances, strict=True))
        error = max((largest_error(got, expected) for got, expected, _ in pairs), default=0.0)
        if all(tolerance.agree(got, expected) for got, expected, tolerance in pairs):
            nothing = bool(self._expected) and all(_is_nan(array) for array in self._expected)
            self._add(step, self._subject, AGREES, error, ALL_NAN if nothing else "")
            return
        self._add(step, self._subject, DIVERGES, error, "" if trace is None else self._lost(trace))

    def _lost(self, trace: Trace) -> str:
        op = first_lost(self._reference, trace, self._settings.tolerance)
        place = None if op is None else source_location(op)
        return "" if op is None else f"first at {op.name}{f' at {place}' if place is not None else ''}"

    def _check_loops(self, step: Step, module: ModuleOp) -> None:
        if self._work > self._settings.loop_limit:
            reason = f"{self._work} operations are more than the limit of {self._settings.loop_limit}"
            self._add(step, self._subject, SKIPPED, detail=reason)
            return
        self._compare(step, evaluate_loops(module, self._inputs, self._weights, entry=self._entry))

    def _check_kernels(self, step: Step, module: ModuleOp) -> None:
        """Each kernel's loops alone, once there are some; those that were inlined are no longer there."""
        if not self._records and step.name != "read":
            self._records = record_kernels(module, self._inputs, self._weights, self._entry)
        if self._records and self._work > self._settings.loop_limit:
            reason = f"{self._work} operations are more than the limit of {self._settings.loop_limit}"
            self._add(step, "kernels", SKIPPED, detail=reason)
            return
        for record in self._records:
            progress_step(f"interpreting {record.function} after {step.name}")
            if kernel_function(module, record.function) is not None:
                self._compare_kernel(step, module, record, run_kernel(module, record))

    def _compare_kernel(self, step: Step, module: ModuleOp, record: KernelRecord, outputs: Sequence[Array]) -> None:
        pairs = list(zip(outputs, record.outputs, strict=True))
        error = max(largest_error(got, expected) for got, expected in pairs)
        tolerance = self._settings.tolerance
        agrees = all(tolerance.scaled(expected, record.inputs).agree(got, expected) for got, expected in pairs)
        origin = "" if agrees else _origin(module, record.function)
        self._add(step, f"kernel {record.function}", AGREES if agrees else DIVERGES, error, origin)

    def _check_c(self, compilation: Compilation) -> None:
        program = generate_c(compilation)
        step = Step("c", "emit-c", 0.0)
        with temporary_folder("verify") as folder:
            path = build(program, compilation.parameters(), "so", folder / "model.so", BuildOptions())
            model = load(path)[self._entry]
            library = ctypes.CDLL(str(path))
            names = c_names(compilation.module, program.kernels)
            for record in (record for record in self._records if record.function in names):
                outputs = run_kernel(compilation.module, record, kernel_caller(library, names[record.function]))
                self._compare_kernel(step, compilation.module, record, outputs)
            outputs = model.new_outputs()
            inputs = model.check([np.array(array, order="C") for array in self._inputs])
            model.call_into(inputs, outputs)
            self._compare(step, model.ordered(inputs, outputs))
            if self._options.open_dims:
                self._check_sizes(step, model)

    def _check_sizes(self, step: Step, model: CompiledModel) -> None:
        """The compiled model at other sizes of its ranges, on made-up inputs, against the model bound to these."""
        names, ranges = zip(*sorted(self._options.open_dims.items()), strict=True)
        for sizes in dict.fromkeys([tuple(low for low, _ in ranges), *sample_sizes(ranges)]):
            options = replace(self._options, dims={**self._options.dims, **dict(zip(names, sizes, strict=True))})
            bound = read_model(self._original.path, options)
            inputs = choose_inputs(input_tensors(bound.module, self._entry), {}, self._settings.seed)
            expected = evaluate(bound.module, inputs, bound.weights(), entry=self._entry)
            found = model.results(*inputs)
            error = max((largest_error(got, wanted) for got, wanted in zip(found, expected, strict=True)), default=0.0)
            pairs = ((self._settings.tolerance.scaled(w), g, w) for g, w in zip(found, expected, strict=True))
            agrees = all(tolerance.agree(got, wanted) for tolerance, got, wanted in pairs)
            at = ", ".join(f"{name} = {size}" for name, size in zip(names, sizes, strict=True))
            self._add(step, f"{self._subject} at {at}", AGREES if agrees else DIVERGES, error)

    def _add(self, step: Step, subject: str, verdict: str, error: float = 0.0, detail: str = "") -> None:
        self.checks.append(Check(step.stage, step.name, subject, verdict, error, detail))
        if verdict == DIVERGES:
            raise _Found


def _is_nan(array: Array) -> bool:
    """Whether there are elements, and none is a number."""
    return array.size > 0 and array.dtype.kind not in "biu" and bool(np.isnan(array.astype(np.float64)).all())


def _origin(module: ModuleOp, name: str) -> str:
    """What a kernel's function was made of."""
    function = kernel_function(module, name)
    origin = None if function is None else function.attributes.get(LOOP_ORIGIN)
    return f"made of {', '.join(item.data for item in origin)}" if isa(origin, ArrayAttr[StringAttr]) else ""


# Values of a graph by where they come from, and the first operation whose value a later form of the graph lost.
_MAXIMUM_BYTES = 1 << 30
"""A trace keeps the values of the first operations up to this much memory; divergence beyond is named by pass alone."""


@dataclass
class Trace:
    """The operations of one evaluation in order, with their results; give `record` to the interpreter as observer."""

    steps: list[tuple[Operation, tuple[Array, ...]]] = field(default_factory=list[tuple[Operation, tuple[Array, ...]]])
    _bytes: int = 0

    def record(self, op: Operation, results: tuple[Array, ...]) -> None:
        """Keep the results of an operation that computes."""
        if isinstance(op, MsOp) and not isinstance(op, GetParameterOp | ConstantOp):
            self._bytes += sum(array.nbytes for array in results)
            if self._bytes <= _MAXIMUM_BYTES:
                self.steps.append((op, results))

    def by_place(self) -> Mapping[Location, Sequence[Array]]:
        """All values that come from a place in the source."""
        found = defaultdict[Location, list[Array]](list)
        for op, results in self.steps:
            for place in _places(op.location):
                found[place] += results
        return found


def _places(location: Attribute) -> Iterator[Location]:
    inner = location.locations if isinstance(location, FusedLoc) else None
    for leaf in inner if isa(inner, ArrayAttr[Attribute]) else (location,):
        place = location_of(leaf)
        if place is not None:
            yield place


def first_lost(reference: Trace, later: Trace, tolerance: Tolerance) -> Operation | None:
    """The first operation of the reference whose value no operation from its place has, nor any value made of it."""
    values = later.by_place()
    kept = {op for op, results in reference.steps if _kept(op, results, values, tolerance)}
    return next((op for op, _ in reference.steps if op not in kept and not _leads_to(op, kept)), None)


def _kept(
    op: Operation, results: Sequence[Array], values: Mapping[Location, Sequence[Array]], tolerance: Tolerance
) -> bool:
    candidates = [value for place in _places(op.location) for value in values.get(place, ())]
    return any(_same(candidate, result, tolerance) for result in results for candidate in candidates)


def _same(candidate: Array, result: Array, tolerance: Tolerance) -> bool:
    """Equal elements in the same order; views between may have changed the shape."""
    if candidate.size != result.size or candidate.dtype != result.dtype:
        return False
    return tolerance.agree(candidate.reshape(-1), result.reshape(-1))


def _leads_to(op: Operation, kept: set[Operation]) -> bool:
    pending, seen = [op], {op}
    while pending:
        for result in pending.pop().results:
            for use in result.uses:
                if use.operation in kept:
                    return True
                if use.operation not in seen:
                    seen.add(use.operation)
                    pending.append(use.operation)
    return False
