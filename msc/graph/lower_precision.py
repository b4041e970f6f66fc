"""Products of floats of 16 bits with sums in f32: what `--precision bf16` and `f16` make of a graph.

Both operands of each product are rounded, weights when it is compiled: they are stored so. A product of numbers that
are each off by `u` of themselves (2^-9 for bf16, 2^-12 for f16 where nothing overflows) is off by `2 u + u^2` of
itself at most, and a sum of products by that much of the sum of their magnitudes, and what f32 rounds.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue

from msc.dialects import ms
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import put_in_place


def lower_precision(module: ModuleOp, dtype: str) -> int:
    """Make products of f32 ones of `dtype` with sums in f32; how many. Products of dequantised values stay."""
    found = [
        op for op in module.walk() if isinstance(op, MatrixProductOp | ms.DenseOp | ConvolutionOp) and _is_real(op)
    ]
    for op in found:
        emit = Emitter(op)
        put_in_place(emit, _lowered(op, dtype, emit), op.name.removeprefix("ms."))
    return len(found)


def _is_real(op: MsOp) -> bool:
    operands = op.operands[:2]
    dequantised = any(isinstance(x, OpResult) and isinstance(x.op, ms.DequantizeOp) for x in operands)
    return not dequantised and op.result_dtype() == "f32" and all(op.dtype(k) == "f32" for k in range(2))


def _lowered(op: MatrixProductOp | ms.DenseOp | ConvolutionOp, dtype: str, emit: Emitter) -> SSAValue:
    operands, wide = [emit.cast(each, dtype) for each in op.operands[:2]], element_type("f32")
    bias = op.operands[2] if len(op.operands) > 2 else None
    if isinstance(op, ms.DenseOp):
        y = emit(ms.MatmulOp, *operands, transpose_b=True, dtype=wide)
    else:
        given: dict[str, Any] = {name: op.plain(name) for name in op.properties}
        y = emit(type(op), *operands, **{**given, "dtype": wide})
    if bias is None:
        return y
    spread = emit.along_channels(bias, op.SPATIAL + 2) if isinstance(op, ConvolutionOp) else bias
    return emit(ms.AddOp, y, spread)
