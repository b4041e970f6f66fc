"""The walk from model to artifact as data: the compiler's table of contents. The file extension is the stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template


@dataclass(frozen=True)
class Stage:
    """One stage: `extension` names its files, `contents` says what it is for people, `made_by` what makes it.

    `legal` is the closed list of operations that may stand in it (`ms.*` is a whole dialect); `passes` make it of the
    stage before; `verifiers` are passes that change nothing, run wherever a module of the stage comes in or is made.
    A pass may name options of the compilation as `$march`, `$threads` and `$tuned`.
    """

    name: str
    extension: str
    contents: str
    made_by: str
    legal: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    verifiers: tuple[str, ...] = ()

    @property
    def is_text_of_ir(self) -> bool:
        """Whether a file of this stage is IR, which `msc` reads and goes on from."""
        return bool(self.legal)

    def pipeline(self, settings: Mapping[str, object]) -> tuple[str, ...]:
        """The passes with the settings of a compilation filled in."""
        return tuple(Template(text).substitute(settings) for text in self.passes)


_INLINED = (
    *("builtin.module", "func.func", "func.return"),
    *("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition", "arith.*"),
    *("tensor.extract", "tensor.from_elements", "tensor.empty"),
    "ms.*",
)
_GRAPH = (*_INLINED, "func.call")
_TENSORS = ("verify-tensors",)

STAGES: tuple[Stage, ...] = (
    Stage("graph", ".mir", "ms ops on tensors, func, scf", "frontend, importers, by hand", _GRAPH, (), _TENSORS),
    Stage(
        "opt",
        ".opt.mir",
        "the same, after graph passes",
        "graph",
        _INLINED,
        (
            "inline-calls",
            "infer-shapes",
            "canonicalize-ms",
            "cse",
            "dce",
            "fold-batch-norm",
            "canonicalize-ms",
            "hoist-parameters",
            "dce",
        ),
        _TENSORS,
    ),
    Stage(
        "gk",
        ".gk.mir",
        "gk.kernel regions of basic ms ops, and the dataflow between them",
        "graph_kernel",
        (*_INLINED, "gk.kernel", "gk.yield"),
        (
            "block-attention{target=$march}",
            "block-products{target=$march threads=$threads}",
            "expand-composites",
            "canonicalize-ms",
            "cse",
            "dce",
            "lift-sizes",
            "hoist-invariants",
            "sink-views",
            "hoist-parameters",
            "outline-constants",
            "cluster-kernels",
            "winograd{target=$march threads=$threads}",
            "fuse-pads",
            "assign-layouts",
            "pack-operands{target=$march threads=$threads}",
            "hoist-invariants",
            "hoist-parameters",
            "hand-over-blocks{target=$march threads=$threads}",
            "infer-valid-extents",
        ),
        (*_TENSORS, "verify-schedules"),
    ),
    Stage(
        "loop",
        ".loop.mir",
        "scheduled loop nests on memrefs, vector, arith, math",
        "schedule, lowering",
        (
            *("builtin.module", "ms.parameter", "func.func", "func.call", "func.return"),
            *("loop.*", "arith.*", "math.*", "vector.*", "memref.*"),
            *("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition"),
        ),
        (
            'apply-tuning{file="$tuned" target=$march threads=$threads}',
            "schedule-kernels{target=$march threads=$threads}",
            "convert-gk-to-loop{target=$march}",
            "vectorize{target=$march}",
            "prefetch-streams{target=$march}",
            "block-sums",
            "bufferize",
            "outline-loops{threads=$threads target=$march}",
            "fuse-blocks{threads=$threads target=$march}",
            "outline-recurrences{target=$march}",
            "plan-memory",
        ),
        ("verify-loop-stage", "verify-memory-plan", "verify-bounds"),
    ),
    Stage("c", ".c .h", "C11, with libc, libm and optionally threads", "codegen/c"),
    Stage("artifact", ".so .o", "what the system's C compiler builds", "runtime"),
)
"""In the order in which a model goes through them."""

IR_STAGES: tuple[Stage, ...] = tuple(stage for stage in STAGES if stage.is_text_of_ir)
"""The stages that are modules; compilation may start and stop at each."""


@dataclass(frozen=True)
class Order:
    """Of two passes in one compilation, `before` runs before every run of `after`."""

    before: str
    after: str
    reason: str


ORDER: tuple[Order, ...] = (
    Order("inline-calls", "infer-shapes", "shapes of a function are those that it is called with"),
    Order("infer-shapes", "expand-composites", "expanders compute sizes, which must be known"),
    Order("fold-batch-norm", "expand-composites", "an expanded batch norm is no longer recognised"),
    Order("block-attention", "expand-composites", "an expanded softmax is no longer recognised"),
    Order("block-attention", "hoist-invariants", "keys and values of a head are packed once for all blocks of it"),
    Order("block-attention", "block-products", "products of attention are parts of it"),
    Order("block-products", "cluster-kernels", "the loop's body becomes a kernel of its own"),
    Order("expand-composites", "lift-sizes", "sizes are compared in basic operations, whose meaning is known"),
    Order("lift-sizes", "cluster-kernels", "kernels copy constants, with what they are over the sizes"),
    Order("cluster-kernels", "infer-valid-extents", "it is noted on kernels"),
    Order("infer-valid-extents", "schedule-kernels", "loops end at the bounds that live parts give"),
    Order("expand-composites", "sink-views", "views come from expanders, and only basic operations are moved"),
    Order("expand-composites", "outline-constants", "expanders make constants"),
    Order("expand-composites", "cluster-kernels", "a kernel holds basic operations only"),
    Order("hoist-invariants", "cluster-kernels", "a kernel would compute in every iteration what is the same in all"),
    Order("sink-views", "cluster-kernels", "a view between two operations keeps them in two kernels"),
    Order("cluster-kernels", "winograd", "what follows a convolution in its kernel is done on the tiles"),
    Order("winograd", "fuse-pads", "tiles may need a larger padding"),
    Order("winograd", "assign-layouts", "the transformations are kernels, which read and write images"),
    Order("winograd", "pack-operands", "transformed weights are packed for the products"),
    Order("cluster-kernels", "fuse-pads", "a padding is fused into the kernel before it"),
    Order("fuse-pads", "assign-layouts", "a kernel is given a layout with its padding"),
    Order("cluster-kernels", "assign-layouts", "layouts change at the borders of kernels"),
    Order("cluster-kernels", "pack-operands", "operands are packed at the borders of kernels"),
    Order("hoist-parameters", "cluster-kernels", "work on weights inside a kernel would be done in every call"),
    Order("outline-constants", "cluster-kernels", "kernels copy splat constants; all others must be parameters"),
    Order("cluster-kernels", "schedule-kernels", "a schedule belongs to a kernel"),
    Order("cluster-kernels", "apply-tuning", "a plan is for a kernel"),
    Order("apply-tuning", "schedule-kernels", "a plan that is there is proved and kept"),
    Order("schedule-kernels", "convert-gk-to-loop", "the loops of a kernel are those of its schedule"),
    Order("convert-gk-to-loop", "vectorize", "vectors are made of loops of kind vector"),
    Order("vectorize", "prefetch-streams", "what streams into a register tile are the vectors that its rows share"),
    Order("vectorize", "block-sums", "of a sum along a vector loop each lane is one"),
    Order("prefetch-streams", "block-sums", "streams are measured along whole loops"),
    Order("convert-gk-to-loop", "bufferize", "the entry function calls the kernels' functions"),
    Order("vectorize", "outline-loops", "what is inlined is ready"),
    Order("prefetch-streams", "outline-loops", "streams are measured inside a kernel"),
    Order("block-sums", "outline-loops", "what is inlined is ready"),
    Order("bufferize", "outline-loops", "which loops are independent is seen on buffers"),
    Order("outline-loops", "plan-memory", "what becomes a local array needs no place"),
    Order("winograd", "schedule-kernels", "loops over the blocks that it makes are outermost"),
    Order("winograd", "hand-over-blocks", "kernels that hand over blocks of rows are left alone"),
    Order("assign-layouts", "hand-over-blocks", "a block is a part of what lies in memory"),
    Order("pack-operands", "hand-over-blocks", "what a block reads is what lies in memory"),
    Order("hand-over-blocks", "schedule-kernels", "loops over the blocks that it makes are outermost"),
    Order("vectorize", "fuse-blocks", "what is inlined is ready"),
    Order("prefetch-streams", "fuse-blocks", "streams are measured inside a kernel"),
    Order("block-sums", "fuse-blocks", "what is inlined is ready"),
    Order("bufferize", "fuse-blocks", "what one call hands to the next is seen on buffers"),
    Order("fuse-blocks", "plan-memory", "of what is handed over only a block needs a place"),
    Order("vectorize", "outline-recurrences", "what is inlined is ready"),
    Order("prefetch-streams", "outline-recurrences", "streams are measured inside a kernel"),
    Order("block-sums", "outline-recurrences", "what is inlined is ready"),
    Order("outline-loops", "outline-recurrences", "of independent iterations threads share all"),
    Order("fuse-blocks", "outline-recurrences", "calls that hand over blocks are one in a loop, too"),
    Order("outline-recurrences", "plan-memory", "it says which buffers a call is given"),
    Order("bufferize", "plan-memory", "a plan gives buffers their places"),
    Order("vectorize", "plan-memory", "vectorising may give a kernel temporaries, which the plan must place"),
)
"""Why the passes stand in this order; a test checks the table against it."""


def order_violations(passes: Sequence[str], order: Sequence[Order] = ORDER) -> tuple[str, ...]:
    """What is wrong with the order of passes, given as specs: the first run of each counts, later ones clean up."""
    names = [spec.partition("{")[0] for spec in passes]
    return tuple(
        f"{rule.before} must run before {rule.after}: {rule.reason}"
        for rule in order
        if rule.after in names and (rule.before not in names or names.index(rule.before) > names.index(rule.after))
    )


STAGE: Mapping[str, Stage] = {stage.name: stage for stage in STAGES}
"""Stages by name."""


_MLIR = ".mlir"


def stage_of_file(name: str) -> Stage | None:
    """The IR stage whose extension a file name has: the longest that fits; None for any other file.

    `.mlir` is another way to write `.mir`.
    """
    name = f"{name[: -len(_MLIR)]}.mir" if name.endswith(_MLIR) else name
    fitting = [stage for stage in IR_STAGES if name.endswith(stage.extension)]
    return max(fitting, key=lambda stage: len(stage.extension), default=None)
