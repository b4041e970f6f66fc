"""Pass `block-attention-gradients`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.properties import BASIC_OPS, CONSTANTS_ARE_PARAMETERS, SHAPES_KNOWN, UNCLUSTERED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.dialects.element_types import BYTES
from msc.dialects.ms.activations import SoftmaxOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import insert_in_front
from msc.graph_kernel.attention.attention_blocks import accumulator
from msc.graph_kernel.attention.attention_operands import parts
from msc.graph_kernel.attention.block_attention import fills_blocks
from msc.graph_kernel.attention.score_blocks import ScoreBlocks
from msc.graph_kernel.attention.score_work import ScoreWork, score_work
from msc.ir.contracts import Contract
from msc.targets.machine import Machine

LIVE = 4
"""Arrays of scores that a gradient has at a time: weights, their gradient, that of scores, and one being made."""


@dataclass(frozen=True)
class BlockAttentionGradients(ModulePass):
    """Compute gradients of attention a block of queries at a time, where the scores would leave L2.

    Takes: a graph with an attention, and its gradient, or another computation with the same scores that follows the
    attention. Gives: the attention, whose weights nothing else reads (`block-attention` can take it), and for the
    gradient loops over batches, heads and blocks of queries that compute the weights of a block again. Gradients of
    keys and values are sums over blocks.
    Left alone: scores that fit the cache, fewer queries than a vector has lanes, weights that are themselves a result
    or whose gradient is summed over batches, and all where calls decide sizes.
    Keeps: the meaning; the order of sums differs. The target's L2 decides.
    Source: Dao et al., FlashAttention, 2022, algorithm 4, with all keys in one block.
    """

    name = "block-attention-gradients"
    contract = Contract(
        requires=(SHAPES_KNOWN, UNCLUSTERED), breaks=(BASIC_OPS, CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED)
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        machine = target_of(op).machine
        softmaxes = [o for o in op.walk() if isinstance(o, SoftmaxOp)]
        for block in dict.fromkeys(softmax.parent for softmax in softmaxes):
            assert block is not None
            _apply(block, [softmax for softmax in softmaxes if softmax.parent is block], machine)


def _apply(block: Block, softmaxes: list[SoftmaxOp], machine: Machine) -> None:
    places = {op: float(place) for place, op in enumerate(block.ops)}
    for softmax in softmaxes:
        work = score_work(softmax, places) if softmax in places else None
        if work is None or not _pays(work, machine):
            continue
        parts_of_work = list(work.parts(places))
        gradients = parts_of_work[1:] if len(parts_of_work[0].ends) == 1 else parts_of_work
        for part in gradients:
            _replace(part, places, machine)
        for op in reversed(work.ops):
            if gradients and not op.results[0].first_use:
                del places[op]
                Rewriter.erase_op(op)


def _pays(work: ScoreWork, machine: Machine) -> bool:
    return _row_bytes(work) * prod(work.shape[:-1]) > machine.l2 and fills_blocks(work.shape, machine)


def _row_bytes(work: ScoreWork) -> int:
    return work.shape[-1] * BYTES[accumulator(work.ops[0].result_dtype())]


def _replace(part: ScoreWork, places: dict[Operation, float], machine: Machine) -> None:
    first = min(part.ends, key=lambda end: places[end])
    emit = Emitter(first)
    found = ScoreBlocks(emit, part, parts(part.shape[-2], _queries(part, machine))).results()
    insert_in_front(emit, "attention_gradient")
    places.update(dict.fromkeys(emit.ops, places[first]))
    for end, value in zip(part.ends, found, strict=True):
        Rewriter.replace_op(end, [], [value])


def _queries(part: ScoreWork, machine: Machine) -> int:
    """The queries of a block: all, or as many as keep its scores in L2, whole vectors, of a size that divides."""
    queries = part.shape[-2]
    most = machine.l2 // (LIVE * _row_bytes(part))
    if queries <= most:
        return queries
    lanes = machine.lanes(BYTES["f32"])
    sizes = range(max(most // lanes, 1) * lanes, 0, -lanes)
    return next((size for size in sizes if queries % size == 0 and 2 * size > sizes[0]), sizes[0])
