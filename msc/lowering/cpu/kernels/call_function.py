"""The functions of library calls (`gk.call`): loops over the rows, with a call for each."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap

from msc.analysis.bytes import byte_size
from msc.analysis.kernel_model import origin
from msc.analysis.target import target_of
from msc.dialects import gk, loop
from msc.dialects.loop.attributes import LOOP_IN_PLACE, LOOP_ORIGIN, LOOP_OUTPUTS, LOOP_TEMPORARIES
from msc.dialects.open_sizes import size_attributes, valid_inputs
from msc.ir.typed import static_shape, tensor_type
from msc.lowering.cpu.buffer_types import buffer_type, contiguous
from msc.poly.valid_extents import upper_bound, whole
from msc.support.naming import valid_hint


def call_function(op: gk.CallKernelOp) -> func.FuncOp:
    """Arguments: inputs, outputs, the scratch memory if no stack holds it, and the sizes that the call decides."""
    sizes, _ = valid_inputs(op)
    call, scratch = op.call, _scratch(op)
    on_stack = scratch is None or byte_size(scratch) <= target_of(op).machine.stack
    buffers = [buffer_type(tensor_type(value)) for value in (*op.inputs, *op.outputs)]
    if scratch is not None and not on_stack:
        buffers.append(scratch)
    types: list[Attribute] = [*buffers, *(IndexType() for _ in sizes)]
    block = Block(arg_types=types)
    for argument, hint in zip(block.args, (*call.inputs, *call.outputs, "scratch"), strict=False):
        argument.name_hint = valid_hint(hint)
    _call_rows(op, block, len(buffers), scratch if on_stack else None)
    block.add_op(func.ReturnOp())
    named = [*[DictionaryAttr({})] * len(buffers), *map(size_attributes, sizes)]
    function = func.FuncOp(call.name, (types, []), Region(block), arg_attrs=ArrayAttr(named) if sizes else None)
    function.attributes[LOOP_OUTPUTS] = IntegerAttr(len(op.outputs), i64)
    function.attributes[LOOP_TEMPORARIES] = IntegerAttr(len(buffers) - len(op.inputs) - len(op.outputs), i64)
    function.attributes[LOOP_ORIGIN] = ArrayAttr([StringAttr(origin(op).replace(op.name, f"gk.{call.name}", 1))])
    if call.in_place:
        pairs = [DenseArrayBase.from_list(i64, pair) for pair in sorted(call.in_place)]
        function.attributes[LOOP_IN_PLACE] = ArrayAttr(pairs)
    return function


def _scratch(op: gk.CallKernelOp) -> MemRefType[Attribute] | None:
    count = op.call.scratch(*op.rows)
    return contiguous(tensor_type(op.inputs[0]).element_type, (count,)) if count else None


def _call_rows(op: gk.CallKernelOp, block: Block, buffers: int, local: MemRefType[Attribute] | None) -> None:
    """Loops to the end of `block`; `local` is scratch memory on the stack."""
    given: list[SSAValue] = list(block.args[:buffers])
    sizes = block.args[buffers:]
    *ends, length = _extents(op, len(sizes))
    rows: list[SSAValue] = []
    for axis, end in enumerate(ends):
        nest = loop.ForOp(AffineMap(len(sizes), 0, (AffineConstantExpr(0),)), end, sizes, label=f"i{axis}")
        nest.variable.name_hint = f"i{axis}"
        block.add_op(nest)
        block, rows = nest.body.block, [*rows, nest.variable]
    if local is not None:
        alloca = memref.AllocaOp.get(local.element_type, shape=list(local.get_shape()))
        alloca.memref.name_hint = "scratch"
        block.add_op(alloca)
        given.append(alloca.memref)
    size = loop.ApplyOp(length, sizes)
    block.add_ops([size, loop.CallRowsOp(op.function.data, given, rows, size.result)])


def _extents(op: gk.CallKernelOp, sizes: int) -> Sequence[AffineMap]:
    """How many elements of the inputs are valid along each axis, over the sizes."""
    _, valid = valid_inputs(op)
    shape = static_shape(op.inputs[0])
    bounds = [upper_bound(dim) for dim in (valid[0] if valid else whole(shape))]
    return [
        AffineMap(sizes, 0, (AffineConstantExpr(extent) if bound is None else bound,))
        for extent, bound in zip(shape, bounds, strict=True)
    ]
