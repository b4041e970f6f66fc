"""What a back end is: a target that `--target` names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from msc.backends.stage import COMMON, Stage, StageTable

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from msc.analysis.target import Target
    from msc.codegen.c import COptions
    from msc.dialects.arrays import Array
    from msc.dialects.gk import KernelOp
    from msc.poly.schedule_tree.nodes import Tree
    from msc.runtime.artifact import CompiledModel
    from msc.runtime.program import CProgram, Signature


@dataclass(frozen=True)
class Switch:
    """An optimisation that can be turned off: a pass, by its name, which is left out.

    A part of a pass has a name of its own: without it, the pass `part_of` runs with `options`.
    """

    name: str
    meaning: str
    part_of: str = ""
    options: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def pass_name(self) -> str:
        """The pass that it changes."""
        return self.part_of or self.name


COMMON_SWITCHES = (
    Switch("fold-batch-norm", "batch norms folded into convolutions"),
    Switch("cse", "common subexpression elimination"),
    Switch("fusion", "several operations in one kernel", "cluster-kernels", {"fuse": False}),
    Switch("hoist-invariants", "loop-invariant code motion"),
    Switch("sink-views", "views moved below the operations that they separate"),
)
"""Those of the stages that all back ends share."""


@dataclass(frozen=True)
class CodeOptions:
    """What a user chooses about the code; the machine and the threads are attributes of the module.

    `name` replaces the module's name, `export_kernels` makes kernels callable from outside (msc verify), `profile` adds
    clocks around them (msc bench), `flush_subnormals` computes with zeros in the place of subnormal numbers.
    """

    name: str | None = None
    export_kernels: bool = False
    profile: bool = False
    flush_subnormals: bool = False

    def for_c(self, target: Target | None = None) -> COptions:
        """What the writer of C takes: these choices, and where `target` says so its machine and threads."""
        from msc.codegen.c import COptions

        chosen = COptions(
            name=self.name,
            export_kernels=self.export_kernels,
            profile=self.profile,
            flush_subnormals=self.flush_subnormals,
        )
        return chosen if target is None else replace(chosen, target=target.machine, threads=target.threads)


class Program(Protocol):
    """Generated code: its text in the last stage that is text, and what a caller must know."""

    @property
    def source(self) -> str: ...
    @property
    def signature(self) -> Signature: ...


class Executable(Protocol):
    """A program that can be called in this process."""

    @property
    def signature(self) -> Signature: ...

    def results(self, **inputs: Array) -> Sequence[Array]:
        """The results for named inputs."""
        ...


class SimulatedKernel(Protocol):
    """A kernel whose schedules a simulator times: `msc tune` chooses among them."""

    def alternatives(self) -> Iterator[Tree]:
        """Schedules other than the one that it has, the most promising first."""
        ...

    def microseconds(self, tree: Tree | None) -> float | None:
        """How long it takes with a schedule, None for msc's own; None where it cannot run so."""
        ...


@dataclass(frozen=True)
class Simulation:
    """What `msc sim` was asked for. Files are None where none is wanted; `json` is `-` for the standard output.

    `functional` says whether kernels compute, None for what is usual; `check` proves them free of races and deadlock
    first; `l2` is how L2 starts and `l2_mb` how much it keeps, `limit` bounds the instructions of a kernel; `emit`
    prints kernels instead, as IR or as `c`; `window` has the cycles that are drawn.
    """

    target: str | None = None
    functional: bool | None = None
    check: bool = True
    l2: str = "warm"
    l2_mb: int | None = None
    limit: int | None = None
    emit: str | None = None
    json: str | None = None
    trace: str | None = None
    csv: str | None = None
    svg: str | None = None
    window: tuple[float, float] | None = None
    force: bool = False


class Simulator(Protocol):
    """Runs kernels on simulated cores. Each method returns what to print, and writes files. All raise MscError."""

    def kernels(self, path: str, asked: Simulation) -> str:
        """The kernels of a stage file."""
        ...

    def model(self, path: str, module: ModuleOp, asked: Simulation) -> str:
        """Each kernel of a model at the back end's last stage of IR, timed."""
        ...

    def cases(self, path: Path, asked: Simulation, tell: Callable[[str], object]) -> None:
        """A list of cases; `tell` gets the text before mistakes in single cases are raised."""
        ...


@dataclass(frozen=True)
class OutputForm:
    """A kind of output beyond the stages of IR: what `--emit` calls it, and the extension that asks for it."""

    name: str
    suffixes: tuple[str, ...]
    is_text: bool = False


class Backend(ABC):
    """A target: its stages, its fusion and layouts, its code, and how that runs. All other packages use these members.

    A class loads nothing heavy when it is imported: its methods do, when a model is compiled.
    """

    name: ClassVar[str]
    """What `--target` calls it."""
    summary: ClassVar[str]
    """One line for people."""
    stages: ClassVar[tuple[Stage, ...]]
    """The stage `gk` with the fusion and layouts of the back end (`kernel_stage`), and all stages after it."""
    forms: ClassVar[tuple[OutputForm, ...]]
    """What it writes beyond IR. The first is what is written where nothing else is asked for."""
    passes: ClassVar[Mapping[str, str]] = {}
    """Passes that it brings, by name, each as "package.module:Class"."""
    dialects: ClassVar[Mapping[str, str]] = {}
    """Dialects that it brings, by name, each as "package.module:DIALECT"."""
    switches: ClassVar[tuple[Switch, ...]] = ()
    """Optimisations of its own that `--without` turns off."""
    simulated: ClassVar[bool] = False
    """Whether its kernels run on a simulator, whose clock counts the machine's seconds and not ours."""
    default_machine: ClassVar[str]
    """The machine where none is asked for."""

    @property
    def table(self) -> StageTable:
        """All stages, from the graph on."""
        return StageTable((*COMMON, *self.stages))

    @property
    def all_switches(self) -> Mapping[str, Switch]:
        """Every optimisation that can be turned off, by name."""
        return {switch.name: switch for switch in sorted((*COMMON_SWITCHES, *self.switches), key=lambda s: s.name)}

    @abstractmethod
    def machines(self) -> Sequence[str]:
        """The names that `--march` takes."""

    @abstractmethod
    def describe(self, machine: str) -> str | None:
        """Which machine a name means here, if the name does not say; None if it does.

        Raises MSC0501 for a machine that it does not know.
        """

    def check_threads(self, machine: str, threads: int) -> None:
        """Raises MSC0534 where a machine's kernels cannot be shared by so many threads; 0 is one on each processor."""
        del machine, threads

    @abstractmethod
    def generate(self, module: ModuleOp, options: CodeOptions) -> Program:
        """The code of a module at the last stage of IR."""

    @abstractmethod
    def load(self, program: Program, weights: Mapping[str, Array]) -> Executable:
        """A program ready to be called, with the values of its parameters."""

    def on_simulator(self, kernel: KernelOp) -> SimulatedKernel:
        """A kernel on the simulator, of a `simulated` back end."""
        raise NotImplementedError(f"{self.name} has no simulator")

    def simulator(self) -> Simulator:
        """What `msc sim` runs, of a `simulated` back end."""
        raise NotImplementedError(f"{self.name} has no simulator")


class CBackend(Backend):
    """A back end whose code is a C program that the system's compiler builds (`msc.runtime`)."""

    forms = (
        OutputForm("c", (".c",), is_text=True),
        OutputForm("obj", (".o",)),
        OutputForm("archive", (".a",)),
        OutputForm("so", (".so",)),
        OutputForm("exe", (".exe", "")),
        OutputForm("bundle", (".bundle",)),
    )

    @abstractmethod
    def generate(self, module: ModuleOp, options: CodeOptions) -> CProgram: ...

    def load(self, program: Program, weights: Mapping[str, Array], flags: tuple[str, ...] = ()) -> CompiledModel:
        """Built with `flags` after msc's own, and loaded."""
        from msc.runtime.artifact import load_unchanging
        from msc.runtime.build import BuildOptions, build
        from msc.runtime.program import CProgram
        from msc.support.temporary import temporary_folder

        assert isinstance(program, CProgram)
        with temporary_folder("model") as folder:
            return load_unchanging(build(program, weights, "so", folder / "model.so", BuildOptions(flags)))
