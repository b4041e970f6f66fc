"""The walk from model to artifact as data. The common stages stand here; each back end adds `gk` and what follows.

Imports nothing heavy: the command line asks for names of stages before any compiler is loaded. So passes and properties
are named here, and become objects when a compilation runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PassRun:
    """One run of a pass in a pipeline, with the options in which it differs from the pass's defaults."""

    name: str
    options: Mapping[str, object] = field(default_factory=dict[str, object])


def runs(*items: str | PassRun) -> tuple[PassRun, ...]:
    """Runs of passes, most of them by name alone."""
    return tuple(item if isinstance(item, PassRun) else PassRun(item) for item in items)


@dataclass(frozen=True)
class Stage:
    """One stage: `extension` names its files, `contents` says what it is for people, `made_by` what makes it.

    `legal` is the closed list of operations that may stand in it (`ms.*` is a whole dialect), and empty where the stage
    is no IR; `properties` are what holds of every module of the stage: names of `msc.analysis.properties`, or
    "package.module:NAME". `passes` make the stage of the one before; `verifiers` are passes that change nothing, run
    wherever a module of the stage comes in or is made.
    """

    name: str
    extension: str
    contents: str
    made_by: str
    legal: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    passes: tuple[PassRun, ...] = ()
    verifiers: tuple[PassRun, ...] = ()

    @property
    def is_text_of_ir(self) -> bool:
        """Whether a file of this stage is IR, which `msc` reads and goes on from."""
        return bool(self.legal)

    @property
    def holds_tensors(self) -> bool:
        """Whether its values are tensors, which `ms` operations compute on; later ones hold memory."""
        return "ms.*" in self.legal

    def has(self, name: str) -> bool:
        """Whether a pass takes part in making the stage."""
        return any(run.name == name for run in self.passes)


_INLINED = (
    *("builtin.module", "func.func", "func.return"),
    *("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition", "arith.*"),
    *("tensor.extract", "tensor.from_elements", "tensor.empty"),
    "ms.*",
)
_TENSORS = runs("verify-tensors")

GRAPH = Stage(
    "graph",
    ".mir",
    "ms ops on tensors, func, scf",
    "frontend, importers, by hand",
    legal=(*_INLINED, "func.call"),
    verifiers=_TENSORS,
)
OPT = Stage(
    "opt",
    ".opt.mir",
    "the same, after graph passes",
    "graph",
    legal=_INLINED,
    properties=("Inlined", "ShapesKnown"),
    passes=runs(
        *("inline-calls", "infer-shapes", "quantised-products", "canonicalize-ms", "cse", "dce"),
        *("fold-batch-norm", "canonicalize-ms", "propagate-layouts", "partition"),
        *("hoist-parameters", "dce"),
    ),
    verifiers=_TENSORS,
)
COMMON = (GRAPH, OPT)
"""What a model goes through whatever it is compiled for."""


def kernel_stage(
    *,
    before_expansion: tuple[PassRun, ...] = (),
    cluster: PassRun | str = "cluster-kernels",
    layouts: tuple[PassRun, ...] = (),
    functions: tuple[str, ...] = (),
) -> Stage:
    """The stage `gk` with the fusion and layouts of a back end.

    `before_expansion` are passes on composite operations, which an expansion would hide; `cluster` decides what becomes
    a kernel; `layouts` change kernels and how tensors lie between them, and what they leave to do on weights before
    a call is hoisted after them. `functions` are operations beside kernels that the back end makes functions of.
    """
    return Stage(
        "gk",
        ".gk.mir",
        "gk.kernel regions of basic ms ops, and the dataflow between them",
        "graph_kernel",
        legal=(*_INLINED, "gk.kernel", "gk.materialize", "gk.yield", *functions),
        properties=("Inlined", "ShapesKnown", "BasicOps", "ConstantsAreParameters", "Kernels"),
        passes=runs(
            *before_expansion,
            *("expand-composites", "canonicalize-ms", "cse", "dce", "lift-sizes", "hoist-invariants", "sink-views"),
            *("share-concats", "hoist-parameters", "outline-constants", cluster, "erase-barriers"),
            *layouts,
            "infer-valid-extents",
        ),
        verifiers=runs(*_TENSORS, "verify-schedules"),
    )


@dataclass(frozen=True)
class StageTable:
    """The stages of one back end, in the order in which a model goes through them."""

    stages: tuple[Stage, ...]

    @property
    def ir(self) -> tuple[Stage, ...]:
        """The stages that are modules; compilation may start and stop at each."""
        return tuple(stage for stage in self.stages if stage.is_text_of_ir)

    @property
    def last(self) -> Stage:
        """The last module: code is generated from it."""
        return self.ir[-1]

    def named(self, name: str) -> Stage | None:
        """The stage of a name; None where there is none."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def __getitem__(self, name: str) -> Stage:
        found = self.named(name)
        if found is None:
            raise KeyError(name)
        return found

    def of_file(self, name: str) -> Stage | None:
        """The IR stage whose extension a file name has: the longest that fits; None for any other file.

        `.mlir` is another way to write `.mir`. Capitals are the same letters.
        """
        name = name.lower()
        name = f"{name.removesuffix('.mlir')}.mir" if name.endswith(".mlir") else name
        fitting = [stage for stage in self.ir if name.endswith(stage.extension)]
        return max(fitting, key=lambda stage: len(stage.extension), default=None)

    def after(self, first: Stage | None) -> tuple[Stage, ...]:
        """The IR stages that are still to be made of a module at `first`; none of an artifact, which is None."""
        return () if first is None else self.ir[self.ir.index(first) + 1 :]
