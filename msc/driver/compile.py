"""The walk along the stage table: from a model's stage to the stage where the caller wants it, and to C."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Operation, SSAValue

from msc.analysis.bytes import bytes_of
from msc.analysis.target import target_of
from msc.backends.backend import Backend, CodeOptions, Program
from msc.backends.stage import Stage
from msc.dialects.ms.warnings import warnings_of
from msc.driver.models.dimensions import sizes_in_mind
from msc.driver.models.reading_models import LoadedModel, read_model
from msc.driver.models.target import note_target
from msc.driver.options import CompileOptions, Reporting
from msc.driver.passes.instances import changes_of, pass_instances
from msc.driver.passes.ir_dump import IrDump
from msc.driver.passes.legality import run_verifiers, stage_diagnostics, verify_stage
from msc.driver.passes.pass_manager import PassManager, with_source_lines
from msc.driver.passes.reproducer import Reproducing, with_reproducer
from msc.driver.size_samples import sample_changes
from msc.ir.locations import format_module, source_location
from msc.ir.typed import is_tensor
from msc.ir.verification import module_diagnostics, verify_module
from msc.runtime.budgets import MemoryLimits, asserts, check_limits, measured, with_measured
from msc.runtime.program import CProgram, Signature
from msc.support.collection import paused_collection
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.failures import is_internal
from msc.support.forked import Lines, begun
from msc.support.marks import is_marked, marked
from msc.support.notices import warn
from msc.support.outputs import OutputGuard, OutputSet
from msc.support.progress import progress, step
from msc.support.streams import has_place
from msc.support.wording import counted, size_text
from msc.weights.evaluated_parameters import EvaluatedParameters

AfterStep = Callable[["Step", ModuleOp], None]
"""Called after every pass, with what it was and the module it left."""


@dataclass(frozen=True)
class Step:
    """One thing done and the seconds it took: a pass, `read`, `verify`, or a later part such as `cc`."""

    stage: str
    name: str
    seconds: float


@dataclass
class Compilation:
    """A model on its way: its module at `stage`, and what was done so far."""

    model: LoadedModel
    options: CompileOptions
    stage: Stage
    steps: list[Step] = field(default_factory=list[Step])
    _unchecked: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    _verdict: Callable[[], Lines | None] | None = None

    @contextmanager
    def checking(self) -> Generator[None]:
        """While the block runs, another process verifies what was left for later, if that pays and there can be one."""
        aside = self._unchecked and is_worth_a_process(self.module)
        with begun(self._checked) if aside else nullcontext() as self._verdict:
            yield

    def _checked(self) -> Lines:
        self.check()
        return []

    def check(self) -> None:
        """Verify the last stage, if that was left for later. Raises what is wrong with it.

        What another process found in order is not looked at again: the step is how long that was waited for.
        """
        start = time.perf_counter()
        if self._verdict is not None and self._unchecked and self._verdict() is not None:
            self._unchecked.clear()
            self.steps.append(Step(self.stage.name, "verify", time.perf_counter() - start))
        while self._unchecked:
            self._unchecked.pop()()

    def check_later(self, verification: Callable[[], None]) -> None:
        """Leave it to `check`."""
        self._unchecked.append(verification)

    @property
    def module(self) -> ModuleOp:
        return self.model.module

    def parameters(self) -> EvaluatedParameters:
        """Values of all parameters, derived ones included. Raises MSC0301 to MSC0306."""
        return EvaluatedParameters(self.module, self.model.weights())

    def input_files(self) -> tuple[Path, ...]:
        """What the compilation reads: the model, its weights as far as they are there, the tuning file."""
        read = [Path(self.model.path)] if self.model.has_file else []
        with suppress(MscError):
            read += [self.model.folder / name for name in self.model.weight_files()]
        return (*read, *(() if self.options.tuned is None else (self.options.tuned,)))

    def timed(self, stage: str, name: str) -> _Stopwatch:
        """A context that records how long its block takes."""
        return _Stopwatch(self.steps, stage, name)


class _Stopwatch:
    """Does not count steps that are recorded while it runs."""

    def __init__(self, steps: list[Step], stage: str, name: str) -> None:
        self._steps, self._stage, self._name = steps, stage, name
        self._start, self._before = 0.0, 0

    def __enter__(self) -> None:
        step(f"{self._stage}: {self._name}")
        self._before = len(self._steps)
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        inside = sum(step.seconds for step in self._steps[self._before :])
        self._steps.append(Step(self._stage, self._name, time.perf_counter() - self._start - inside))


@progress()
@paused_collection()
def compile_model(
    model: str | LoadedModel,
    options: CompileOptions,
    stop_after: str | None = None,
    reporting: Reporting | None = None,
    after_step: AfterStep | None = None,
    *,
    checks_weights: bool = False,
    checks_later: bool = False,
) -> Compilation:
    """Read a model, or copy one in memory, and take it to the IR stage `stop_after`, or the last one.

    It is verified at every stage on the way. With `checks_weights`, that its weights are there and of the declared
    types is known before any pass runs. With `checks_later`, other processes verify stages while the next one is made,
    and the stage where it ends is verified by `Compilation.check`, which the caller must call.
    Raises MSC0006 when the model is past that stage already; else what reading and the passes raise.
    """
    read_anew = partial(read_model, model, options) if isinstance(model, str) else model.copy
    if isinstance(model, str):
        step(f"reading {model}")
    start = time.perf_counter()
    read = read_anew()
    if not isinstance(model, str):
        verify_module(read.module, read.sources)
        verify_stage(read.module, read.stage, read.context, read.sources, options.backend.table.ir)
    if checks_weights:
        read.weights()
    seconds = time.perf_counter() - start
    made = partial(compile_read, options=options, stop_after=stop_after, reporting=reporting, after_step=after_step)
    try:
        return made(read, read_seconds=seconds, checks_later=checks_later)
    except Unverified:
        return made(read_anew(), read_seconds=seconds)


@paused_collection()
def compile_read(
    model: LoadedModel,
    options: CompileOptions,
    stop_after: str | None = None,
    reporting: Reporting | None = None,
    after_step: AfterStep | None = None,
    *,
    read_seconds: float = 0.0,
    checks_later: bool = False,
) -> Compilation:
    """As `compile_model`, of a model that has been read, or made in memory.

    With `checks_later`, raises Unverified for what is wrong with a stage before the last; the model is changed then.
    """
    compilation = Compilation(model, options, model.stage)
    compilation.steps.append(Step(compilation.stage.name, "read", read_seconds))
    walk = _Walk(compilation, reporting or Reporting(), after_step, model.path)
    if options.check_indices and compilation.stage.name == "graph":
        _mark_indices(model)
    if options.precision != "f32" and compilation.stage.name == "graph":
        from msc.graph.lower_precision import lower_precision

        lower_precision(model.module, options.precision)
    if options.mesh and compilation.stage.name == "graph":
        from msc.parallel.marks import set_mesh

        set_mesh(model.module, options.mesh)
    try:
        with sizes_in_mind(options.open_dims), BackgroundChecks(model.module) as checks:
            stages = _stages_between(compilation, stop_after)
            for stage in stages:
                later = compilation.check_later if stage is stages[-1] else checks.begin
                walk.enter(stage, later if checks_later else None)
    except MscError:
        with suppress(MscError):
            walk.write_dump()
        raise
    walk.write_dump()
    warn(*(slow_kernel(text) for text in warnings_of(model.module)))
    return compilation


def _mark_indices(model: LoadedModel) -> None:
    """Have the C look at indices; a warning for those that it does not see."""
    from msc.graph.mark_indices import mark_indices

    unseen = mark_indices(model.module)
    if unseen:
        message = f"{counted(unseen, 'index')} of '{model.path}' that the model computes: the C does not look at them"
        warn(Diagnostic("MSC0893", message))


def slow_kernel(text: str) -> Diagnostic:
    """The warning that a module or an artifact keeps as a text."""
    return Diagnostic("MSC0520", text, help="please report it with the model: msc chose a schedule that is not legal")


def _stages_between(compilation: Compilation, stop_after: str | None) -> Sequence[Stage]:
    first, table = compilation.stage, compilation.options.backend.table
    last = table.last if stop_after is None else table[stop_after]
    start, stop = table.ir.index(first), table.ir.index(last)
    if start > stop:
        message = f"'{compilation.model.path}' is at stage '{first.name}', which comes after '{last.name}'"
        raise MscError(Diagnostic("MSC0006", f"{message}; a stage never reaches back"))
    return table.ir[start + 1 : stop + 1]


class _Walk:
    """Takes one compilation from stage to stage."""

    def __init__(
        self, compilation: Compilation, reporting: Reporting, after_step: AfterStep | None, model: str
    ) -> None:
        self._compilation = compilation
        self._reporting = reporting
        self._after_step = after_step
        self._name = stem_of(model, compilation.options.backend)
        self._guard = OutputGuard(compilation.input_files() if reporting.dump is not None else (), reporting.force)
        wanted = reporting.print_after
        self._dump = IrDump(wanted, compilation.module) if wanted else None
        self._stages = dict[Path, str]()
        self._reproducing: Reproducing | None = None
        self._keep_text()

    def enter(self, stage: Stage, later: Callable[[Callable[[], None]], None] | None = None) -> None:
        """Run the passes that make `stage`, verify, or leave that to `later`, dump."""
        compilation, options = self._compilation, self._compilation.options
        compilation.stage = stage
        model = compilation.model
        note_target(model, options)
        passes = pass_instances(stage.passes, {**changes_of(options), **sample_changes(stage, model, options)})
        manager = PassManager(model.context, model.sources, self._reporting.verify_each, self._after_pass)
        self._reproducing = manager.run(model.module, passes, self._reproducing)
        if later is None:
            self._check()
        else:
            later(self._check)
        self._keep_text()

    def _check(self) -> None:
        """Verify what the passes left, then run the verifiers of the stage."""
        model, stage = self._compilation.model, self._compilation.stage
        with self._compilation.timed(stage.name, "verify"):
            self._verify()
        run_verifiers(model.module, stage, model.context, model.sources, self._after_pass)

    def _verify(self) -> None:
        """A rule broken between stages is a bug of msc; the tensor limit is the user's."""
        model, stage = self._compilation.model, self._compilation.stage
        broken = (
            *module_diagnostics(model.module, model.sources),
            *with_source_lines(stage_diagnostics(model.module, stage), model.sources),
        )
        if broken:
            message = f"the passes of stage '{stage.name}' left a program that is not valid"
            raise MscError(Diagnostic("MSC0901", message, help="--verify-each names the pass"), *broken)
        if stage.holds_tensors:
            check_tensors(model.module, self._compilation.options.memory)

    def _after_pass(self, name: str, module: ModuleOp, seconds: float) -> None:
        step = Step(self._compilation.stage.name, name, seconds)
        self._compilation.steps.append(step)
        if self._dump is not None:
            self._dump(name, module)
        if self._after_step is not None:
            self._after_step(step, module)

    def _keep_text(self) -> None:
        """Keep the text of this stage for the dump, if there may be one at its place."""
        folder, stage = self._reporting.dump, self._compilation.stage
        if folder is not None:
            path = folder / f"{self._name}{stage.extension}"
            self._guard.check(path, is_marked)
            self._stages[path] = marked(stage_text(self._compilation))

    def write_dump(self) -> None:
        """Write the stages that were reached, together. Raises MSC0004, MSC0010 and MSC0011."""
        if self._stages:
            with OutputSet(self._guard) as files:
                for path, text in self._stages.items():
                    files.write(path, text, is_marked)


def stage_text(compilation: Compilation) -> str:
    """The module as a stage file: with locations, so that going on from it gives the same C.

    Kernels' functions carry their origins as attributes, so the loop stage reads better without.
    """
    return format_module(compilation.module, debuginfo=compilation.stage.holds_tensors)


def stem_of(model: str, backend: Backend) -> str:
    """The name of a model's file without the extension of its stage."""
    if not has_place(model):
        return "model"
    name, stage = Path(model).name.replace(".mlir", ".mir"), backend.table.of_file(model)
    return name.removesuffix(stage.extension) if stage is not None else Path(model).stem


def _name_of(compilation: Compilation) -> str:
    """The module's name, else that of its file."""
    name = compilation.module.sym_name
    return stem_of(compilation.model.path, compilation.options.backend) if name is None else name.data


def generate_c(compilation: Compilation) -> CProgram:
    """The C program of a compilation; raises MSC0506 for a back end whose code is none. Else as `generate`."""
    program = generate(compilation)
    if not isinstance(program, CProgram):
        message = f"the target '{compilation.options.target}' makes no C program, which this needs"
        raise MscError(Diagnostic("MSC0506", message))
    return program


@paused_collection()
def generate(compilation: Compilation) -> Program:
    """The code of a compilation at its last stage. Raises MSC0507 when the model needs too much memory."""
    options = compilation.options
    form = options.backend.forms[0].name
    note_target(compilation.model, options)
    with compilation.timed(form, f"emit-{form}"), _ReproducingCode(compilation):
        program = options.backend.generate(
            compilation.module,
            CodeOptions(
                options.name or _name_of(compilation),
                export_kernels=options.export_kernels,
                profile=options.profile,
                flush_subnormals=options.flush_subnormals,
            ),
        )
    check_total(program.signature, options.memory)
    return program if not isinstance(program, CProgram) else _within_limits(program, compilation)


def _within_limits(program: CProgram, compilation: Compilation) -> CProgram:
    """The program with what its compiler measures, for a machine that C is made for. Raises MSC0530 and MSC0531."""
    options, machine = compilation.options, target_of(compilation.module).machine
    limits = MemoryLimits(options.ram_limit, options.rom_limit, options.stack_limit).over(machine)
    found = measured(program) if machine.is_bare else None
    program = program if found is None else with_measured(program, found)
    check_limits(program, limits, found)
    return program if found is None else replace(program, source=program.source + asserts(program, limits))


@dataclass(frozen=True)
class _ReproducingCode:
    """A context that generates code: a bug of msc leaves with a note that names the module, as a stage file.

    What is wrong with a module that is not verified yet comes first.
    """

    compilation: Compilation

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and is_internal(error):
            self.compilation.check()
            backend = self.compilation.options.backend
            command = f"msc compile {{}} --target {backend.name} --emit {backend.forms[0].name}"
            extension = self.compilation.stage.extension
            raise with_reproducer(error, lambda: stage_text(self.compilation), extension, command) from error


# A model that needs more memory than allowed is refused by name, before anything is allocated for it.
_HELP = '--max-memory SIZE allows more, in Python max_memory="8G"'


def check_tensors(module: ModuleOp, limit: int) -> None:
    """Raises MSC0507 for the first tensor that alone is larger than the limit."""
    for op, value in _values(module):
        if is_tensor(value.type) and DYNAMIC_INDEX not in value.type.get_shape():
            size = bytes_of(value)
            if size > limit:
                message = f"a {value.type} takes {size_text(size)}; the limit is {size_text(limit)}"
                raise MscError(Diagnostic("MSC0507", message, source_location(op), help=_HELP))


def _values(module: ModuleOp) -> Iterator[tuple[Operation, SSAValue]]:
    for op in module.walk():
        yield from ((op, result) for result in op.results)
        yield from ((op, a) for region in op.regions for block in region.blocks for a in block.args)


def check_total(signature: Signature, limit: int) -> None:
    """Raises MSC0507 when weights, workspace, inputs and outputs together exceed the limit."""
    tensors = sum(tensor.bytes for tensor in (*signature.inputs, *signature.outputs))
    parts = {"weights": signature.weights_bytes, "workspace": signature.workspace_bytes, "inputs and outputs": tensors}
    total = sum(parts.values())
    if total > limit:
        detail = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items())
        message = f"the model needs {size_text(total)}; the limit is {size_text(limit)}"
        raise MscError(Diagnostic("MSC0507", message, notes=(detail,), help=_HELP))


# Stages verified by other processes, while this one makes the next stage.
WORTH_A_PROCESS = 200
"""Operations of a module: forking a compiler takes as long as verifying so many."""


def is_worth_a_process(module: ModuleOp) -> bool:
    """Whether another process verifies a module sooner than this one."""
    return any(True for _ in islice(module.walk(), WORTH_A_PROCESS, None))


class Unverified(Exception):
    """Another process did not find a stage in order. Who verifies each stage before the next is made learns why."""


class BackgroundChecks:
    """A context that ends when all checks of a module have.

    Raises Unverified where one failed, also in place of later errors.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._processes = ExitStack()
        self._verdicts = list[Callable[[], Lines | None]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._processes:
            if error is not None and not isinstance(error, Exception):
                return
            if any(verdict() is None for verdict in self._verdicts):
                raise Unverified from error

    def begin(self, check: Callable[[], None]) -> None:
        """Call `check`, which raises what is wrong, in another process if that pays and there can be one."""

        def checked() -> Lines:
            check()
            return []

        verdict = self._processes.enter_context(begun(checked)) if is_worth_a_process(self._module) else None
        if verdict is None:
            check()
        else:
            self._verdicts.append(verdict)
