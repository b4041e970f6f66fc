"""The `loop` dialect: scheduled loop nests over buffers, beside upstream memref, arith, math and vector."""

from xdsl.ir import Dialect

from msc.dialects.loop.accesses import AccessOp, LoadOp, PrefetchOp, StoreOp
from msc.dialects.loop.calls import CallRowsOp
from msc.dialects.loop.loops import BufferSliceOp, ForOp, LoopKind, LoopKindAttr
from msc.dialects.loop.values import AddProductsOp, ApplyOp, LanesOp

LOOP = Dialect(
    "loop",
    [ForOp, LoadOp, StoreOp, PrefetchOp, ApplyOp, LanesOp, AddProductsOp, CallRowsOp, BufferSliceOp],
    [LoopKindAttr],
)

__all__ = [
    "LOOP",
    "AccessOp",
    "AddProductsOp",
    "ApplyOp",
    "BufferSliceOp",
    "CallRowsOp",
    "ForOp",
    "LanesOp",
    "LoadOp",
    "LoopKind",
    "LoopKindAttr",
    "PrefetchOp",
    "StoreOp",
]
