"""The dialects and passes there are, by name, each imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from msc.analysis.properties import PROPERTIES
from msc.backends.backend import Backend
from msc.backends.registry import found_backends, load_object
from msc.ir.contracts import Property, contract_of
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

DIALECTS: dict[str, str] = {
    "ms": "msc.dialects.ms:MS",
    "gk": "msc.dialects.gk:GK",
    "davinci": "msc.dialects.davinci:DAVINCI",
    "loop": "msc.dialects.loop:LOOP",
    "affine": "xdsl.dialects.affine:Affine",
    "arith": "xdsl.dialects.arith:Arith",
    "cf": "xdsl.dialects.cf:Cf",
    "func": "xdsl.dialects.func:Func",
    "math": "xdsl.dialects.math:Math",
    "memref": "xdsl.dialects.memref:MemRef",
    "scf": "xdsl.dialects.scf:Scf",
    "tensor": "xdsl.dialects.tensor:Tensor",
    "vector": "xdsl.dialects.vector:Vector",
}
"""Dialect name -> "module:attribute"; `builtin` is always loaded."""

PASSES: dict[str, str] = {
    "apply-tuning": "msc.schedule.tuning.apply_tuning:ApplyTuning",
    "absorb-pads": "msc.graph_kernel.layout.absorb_pads:AbsorbPads",
    "argsort-by-keys": "msc.graph_kernel.argsort_by_keys:ArgsortByKeys",
    "assign-layouts": "msc.graph_kernel.layout.assign_layouts:AssignLayouts",
    "fit-memory": "msc.graph_kernel.fit_memory:FitMemory",
    "order-kernels": "msc.graph_kernel.order_kernels:OrderKernels",
    "rematerialize": "msc.graph_kernel.rematerialize:Rematerialize",
    "read-transposed": "msc.graph_kernel.layout.read_transposed:ReadTransposed",
    "block-attention": "msc.graph_kernel.attention.block_attention:BlockAttention",
    "block-attention-gradients": "msc.graph_kernel.attention.block_attention_gradients:BlockAttentionGradients",
    "convolutions-as-products": "msc.graph_kernel.convolutions_as_products:ConvolutionsAsProducts",
    "split-taps": "msc.graph_kernel.split_taps:SplitTaps",
    "bufferize": "msc.lowering.cpu.bufferize.bufferize:Bufferize",
    "canonicalize": "xdsl.transforms.canonicalize:CanonicalizePass",
    "canonicalize-ms": "msc.graph.simplify.canonicalize_ms:CanonicalizeMs",
    "cluster-kernels": "msc.graph_kernel.fusion.cluster_kernels:ClusterKernels",
    "convert-gk-to-loop": "msc.lowering.cpu.kernels.convert_gk_to_loop:ConvertGkToLoop",
    "bind-davinci-kernels": "msc.lowering.ascend.bind_davinci_kernels:BindDavinciKernels",
    "convert-gk-to-davinci": "msc.lowering.ascend.convert_gk_to_davinci:ConvertGkToDavinci",
    "convert-loop-to-scf": "msc.lowering.cpu.upstream.convert_loop_to_scf:ConvertLoopToScf",
    "cse": "xdsl.transforms.common_subexpression_elimination:CommonSubexpressionElimination",
    "dce": "xdsl.transforms.dead_code_elimination:DeadCodeElimination",
    "erase-barriers": "msc.graph_kernel.fusion.erase_barriers:EraseBarriers",
    "expand-composites": "msc.graph.expand.expand_composites:ExpandComposites",
    "fold-batch-norm": "msc.graph.simplify.fold_batch_norm:FoldBatchNorm",
    "fuse-pads": "msc.graph_kernel.fusion.fuse_pads:FusePads",
    "grad": "msc.graph.autodiff.grad:Grad",
    "compute-at-consumers": "msc.graph_kernel.compute_at_consumers:ComputeAtConsumers",
    "hoist-invariants": "msc.graph.weights.hoist_invariants:HoistInvariants",
    "hoist-parameters": "msc.graph.weights.hoist_parameters:HoistParameters",
    "hoist-slices": "msc.graph_kernel.hoist_slices:HoistSlices",
    "infer-valid-extents": "msc.graph_kernel.infer_valid_extents:InferValidExtents",
    "insert-sync": "msc.lowering.ascend.insert_sync:InsertSync",
    "infer-shapes": "msc.graph.shapes.infer_shapes:InferShapes",
    "inline-calls": "msc.graph.inline_calls:InlineCalls",
    "lift-sizes": "msc.graph.shapes.lift_sizes:LiftSizes",
    "outline-constants": "msc.graph.weights.outline_constants:OutlineConstants",
    "outline-loops": "msc.lowering.cpu.outline.outline_loops:OutlineLoops",
    "outline-recurrences": "msc.lowering.cpu.outline.outline_recurrences:OutlineRecurrences",
    "narrow-positions": "msc.graph.narrow_positions:NarrowPositions",
    "narrow-products": "msc.lowering.ascend.narrow_products:NarrowProducts",
    "pack-filters": "msc.graph_kernel.layout.pack_filters:PackFilters",
    "pack-operands": "msc.graph_kernel.layout.pack_operands:PackOperands",
    "plan-memory": "msc.lowering.cpu.memory.plan_memory:PlanMemory",
    "scan-rows": "msc.graph_kernel.scan_rows:ScanRows",
    "schedule-kernels": "msc.schedule.schedule_kernels:ScheduleKernels",
    "share-concats": "msc.graph_kernel.share_concats:ShareConcats",
    "store-states": "msc.graph_kernel.layout.store_states:StoreStates",
    "sink-views": "msc.graph.simplify.sink_views:SinkViews",
    "verify-davinci-kernels": "msc.codegen.davinci.verify_davinci_kernels:VerifyDavinciKernels",
    "verify-bounds": "msc.lowering.cpu.verification.verify_bounds:VerifyBounds",
    "verify-parallel": "msc.lowering.cpu.verification.verify_parallel:VerifyParallel",
    "verify-loop-stage": "msc.lowering.cpu.verification.verify_loop_stage:VerifyLoopStage",
    "verify-schedules": "msc.schedule.verify_schedules:VerifySchedules",
    "verify-tensors": "msc.graph.verify_tensors:VerifyTensors",
    "vectorize": "msc.lowering.cpu.vectorize.vectorize:Vectorize",
    "pair-products": "msc.lowering.cpu.pair_products:PairProducts",
    "verify-memory-plan": "msc.lowering.cpu.memory.verify_memory_plan:VerifyMemoryPlan",
    "winograd": "msc.graph_kernel.winograd.winograd:Winograd",
}
"""Pass name on the command line -> "module:class"; the class's `name` is the same."""

GROUP = "msc.passes"
"""The group of entry points in which a package names its passes."""

UPSTREAM_PURPOSES: dict[str, str] = {
    "canonicalize": "Apply the canonicalization patterns of all operations, and erase unused operations.",
    "cse": "Compute equal operations without side effects once.",
    "dce": "Erase operations without side effects whose results are unused.",
}
"""What the passes of xDSL do, in one line each: their classes do not say it."""


def new_context(backend: Backend | None = None) -> Context:
    """A context that knows every dialect, those of a back end included, and has loaded only `builtin`."""
    context = Context()
    context.load_dialect(Builtin)
    for name, target in {**DIALECTS, **(backend.dialects if backend is not None else {})}.items():
        context.register_dialect(name, dialect_factory(target))
    return context


def load_pass(name: str) -> type[ModulePass]:
    """The class of a pass. Raises MSC0506 for a name in the table of a back end that no pass has."""
    target = PASSES.get(name) or all_passes().get(name)
    if target is None:
        advice = did_you_mean(name, all_passes()) or "a back end names its own passes in `passes`"
        raise MscError(Diagnostic("MSC0506", f"a stage names the pass '{name}', which does not exist", help=advice))
    loaded = _loaded("pass", name, target)
    if not isinstance(loaded, type) or not issubclass(loaded, ModulePass) or loaded.name != name:
        raise MscError(Diagnostic("MSC0506", f"'{target}' is not a pass with the name '{name}'"))
    return loaded


def _loaded(kind: str, name: str, target: str) -> object:
    """What "package.module:NAME" means. Raises MSC0506 where it means nothing."""
    try:
        return load_object(target)
    except (ImportError, AttributeError) as error:
        raise MscError(Diagnostic("MSC0506", f"the {kind} '{name}' ({target}) cannot be loaded: {error}")) from error


def all_passes() -> dict[str, str]:
    """The passes of msc, those that back ends bring, and those of other packages, by name."""
    of_backends = {name: target for backend in found_backends() for name, target in backend.passes.items()}
    return {**_installed(), **of_backends, **PASSES}


@cache
def _installed() -> dict[str, str]:
    """The passes that other packages name in the group of entry points `msc.passes`; they replace none of msc.

    [project.entry-points."msc.passes"]
    count-products = "my_package:CountProducts"
    """
    return {point.name: point.value for point in entry_points(group=GROUP)}


def makers(wanted: Property) -> list[str]:
    """The passes that ensure a property."""
    return [name for name in all_passes() if wanted in contract_of(load_pass(name)).ensures]


def find_property(name: str) -> Property:
    """The property that a stage names: one of `msc.analysis.properties`, or "package.module:NAME". Raises MSC0506."""
    known = {found.name: found for found in PROPERTIES}
    if name not in known and ":" not in name:
        advice = did_you_mean(name, known) or f"they are {', '.join(known)}, or package.module:NAME"
        raise MscError(Diagnostic("MSC0506", f"a stage names the property '{name}', which does not exist", help=advice))
    found = known[name] if name in known else _loaded("property", name, name)
    if not isinstance(found, Property):
        raise MscError(Diagnostic("MSC0506", f"'{name}' is not a property"))
    return found


def dialect_factory(target: str) -> Callable[[], Dialect]:
    """What imports the dialect at "module:attribute" when it is called."""

    def load() -> Dialect:
        dialect = _loaded("dialect", target.partition(":")[2], target)
        if not isinstance(dialect, Dialect):
            raise MscError(Diagnostic("MSC0506", f"'{target}' is not a dialect"))
        return dialect

    return load
