"""The `loop` dialect: scheduled loop nests over buffers, beside upstream memref, arith, math and vector."""

from xdsl.ir import Dialect

from msc.dialects.loop.ops import AccessOp, ApplyOp, ForOp, LanesOp, LoadOp, LoopKind, LoopKindAttr, StoreOp

LOOP = Dialect("loop", [ForOp, LoadOp, StoreOp, ApplyOp, LanesOp], [LoopKindAttr])

__all__ = ["LOOP", "AccessOp", "ApplyOp", "ForOp", "LanesOp", "LoadOp", "LoopKind", "LoopKindAttr", "StoreOp"]
