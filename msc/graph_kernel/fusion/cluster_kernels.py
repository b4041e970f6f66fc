"""Pass `cluster-kernels`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from msc.analysis.kernels import blocks_outside_kernels
from msc.analysis.patterns import Pattern
from msc.analysis.properties import (
    BASIC_OPS,
    CONSTANTS_ARE_PARAMETERS,
    KERNEL_FUNCTIONS,
    KERNELS,
    SCHEDULED,
    SHAPES_KNOWN,
    UNCLUSTERED,
)
from msc.graph_kernel.fusion.areas import MOST_OPERATIONS, Area, AreaGraph
from msc.graph_kernel.fusion.fusion_rules import Limits, decide
from msc.graph_kernel.fusion.kernel_building import build_kernels
from msc.graph_kernel.fusion.quantised_epilogues import dequantize_where_read
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class ClusterKernels(ModulePass):
    """Gather basic operations into `gk.kernel`s, each of which will be one generated function.

    Takes: functions of basic `ms` operations of known sizes, views, constants and parameters (after
    `expand-composites`, `outline-constants`). Gives: the same functions in which every basic operation stands in a
    kernel; views and `ms.get_parameter` stay outside, splat constants are copied inside. Operations are
    put into a topological order of the kernels. Keeps: locations (a kernel's is fused), results bit by bit.
    Attributes of a kernel: `gk.pattern`, the dominant area pattern, and `gk.reasons`, every decision taken or refused.

    The model is MindSpore's graph kernel split: area patterns from the compute definitions, rules by pattern, and
    merging only if no third kernel stands between. Options: `max-operations` and `max-reductions` of
    one kernel; `integer-epilogues=false` lets nothing follow products of bytes with sums of i32 but a
    bias and one scale to f16 or bytes; `prologues=false` lets reductions over other than the last axes
    read memory alone; `gathers=false` fuses nothing with a gather; `wide-types=false` keeps elements of
    64 bits out of kernels of others; `shared-sums=false` lets nothing follow products whose result others
    read too; `fuse=false` makes each operation a kernel of its own.
    Bytes that several read are made reals by each reader: they are written as bytes, not as reals.
    Example: `ms.relu(ms.add(ms.conv2d ...))` becomes `gk.kernel "conv2d_add_relu"`.
    """

    name = "cluster-kernels"
    contract = Contract(
        requires=(SHAPES_KNOWN, BASIC_OPS, CONSTANTS_ARE_PARAMETERS),
        ensures=(KERNELS,),
        breaks=(UNCLUSTERED, SCHEDULED, KERNEL_FUNCTIONS),
        runs_after={
            "lift-sizes": "kernels copy constants with their expressions over the sizes",
            "hoist-invariants": "a kernel would recompute loop-invariant values in every iteration",
            "sink-views": "a view between two operations keeps them in two kernels",
            "hoist-parameters": "a kernel would compute on weights in every call",
        },
    )
    max_operations: int = field(default=MOST_OPERATIONS, metadata={"least": 1})
    max_reductions: int = 20
    fuse: bool = True
    integer_epilogues: bool = True
    prologues: bool = True
    gathers: bool = True
    wide_types: bool = True
    shared_sums: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in reversed(blocks_outside_kernels(function)):
                    self._cluster(block)

    def _cluster(self, block: Block) -> None:
        if self.fuse and self.integer_epilogues:
            dequantize_where_read(block)
        graph, limits = (
            AreaGraph(block),
            Limits(
                self.max_operations,
                self.max_reductions,
                integer_epilogues=self.integer_epilogues,
                prologues=self.prologues,
                gathers=self.gathers,
                wide_types=self.wide_types,
                shared_sums=self.shared_sums,
            ),
        )
        if self.fuse:
            _take_prologues(graph, limits)
        for broadcasts in (False, True) if self.fuse else ():
            while _grow(graph, replace(limits, broadcasts=broadcasts)):
                pass
        _record_refusals(graph, limits)
        build_kernels(graph)


def _take_prologues(graph: AreaGraph, limits: Limits) -> None:
    """Merge reductions with what only they read, before that joins other elementwise work and is written for them."""
    for op in [area.anchor for area in graph.areas() if area.kind == Pattern.REDUCE]:
        while any(
            _merge(graph, producer, graph.area_of(op), limits)
            for producer in graph.producers(graph.area_of(op))
            if producer.fusible and not _is_epilogue(graph, producer)
        ):
            pass


def _is_epilogue(graph: AreaGraph, area: Area) -> bool:
    """Whether elementwise work is for a product or the like alone, whose result need not be written before it."""
    before = [p for p in graph.producers(area) if p.fusible and graph.users(p) == [area]]
    return any(not p.is_elementwise or _is_epilogue(graph, p) for p in before)


def _grow(graph: AreaGraph, limits: Limits) -> bool:
    """Merge each area with what it uses, as far as the rules let it; whether anything changed."""
    changed = False
    for op in [area.anchor for area in graph.areas()]:
        while _merge_one(graph, graph.area_of(op), limits):
            changed = True
    return changed


def _merge_one(graph: AreaGraph, consumer: Area, limits: Limits) -> bool:
    if not consumer.fusible:
        return False
    producers = [p for p in graph.producers(consumer) if p.fusible]
    ranked = sorted(producers, key=lambda p: (p.kind, p.first), reverse=True)
    return any(_merge(graph, producer, consumer, limits) for producer in ranked)


def _merge(graph: AreaGraph, producer: Area, consumer: Area, limits: Limits) -> bool:
    """Merge two areas if the rules let them; whether they did."""
    decision = decide(graph, producer, consumer, limits)
    if decision.merged is None:
        return False
    anchor = producer.anchor if producer.kind >= consumer.kind else consumer.anchor
    merged = graph.merge(producer, consumer, decision.merged, anchor)
    merged.reasons.append(f"fused {consumer.anchor.name} into {producer.anchor.name}: {decision.reason}")
    return True


def _record_refusals(graph: AreaGraph, limits: Limits) -> None:
    for producer in graph.areas():
        for consumer in graph.users(producer):
            if producer.fusible and consumer.fusible:
                reason = decide(graph, producer, consumer, limits).reason
                producer.reasons.append(f"refused {consumer.anchor.name}: {reason}")
