"""Views in their one general form, and blocks of pixels as transpositions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


@expander(ms.FlattenOp, ms.SqueezeOp, ms.ExpandDimsOp)
def _view(op: ms.FlattenOp | ms.SqueezeOp | ms.ExpandDimsOp, emit: Emitter) -> SSAValue:
    return emit.reshape(op.x, emit.shape(op.result))


@expander(ms.DepthToSpaceOp)
def _depth_to_space(op: ms.DepthToSpaceOp, emit: Emitter) -> SSAValue:
    (n, c, h, w), b = emit.shape(op.x), op.int_("block_size")
    crd = op.word("mode") == "CRD"
    split = (n, c // b**2, b, b, h, w) if crd else (n, b, b, c // b**2, h, w)
    perm = [0, 1, 4, 2, 5, 3] if crd else [0, 3, 4, 1, 5, 2]
    return emit.reshape(emit(ms.TransposeOp, emit.reshape(op.x, split), perm=perm), emit.shape(op.result))


@expander(ms.SpaceToDepthOp)
def _space_to_depth(op: ms.SpaceToDepthOp, emit: Emitter) -> SSAValue:
    (n, c, h, w), b = emit.shape(op.x), op.int_("block_size")
    blocks = emit.reshape(op.x, (n, c, h // b, b, w // b, b))
    perm = [0, 1, 3, 5, 2, 4] if op.word("mode") == "CRD" else [0, 3, 5, 1, 2, 4]
    return emit.reshape(emit(ms.TransposeOp, blocks, perm=perm), emit.shape(op.result))
