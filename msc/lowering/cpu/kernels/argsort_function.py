"""The functions of `gk.argsort`: loops over the rows, each of which is put in order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerAttr, MemRefType, StringAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap

from msc.analysis.bytes import byte_size
from msc.analysis.kernel_model import origin
from msc.analysis.target import target_of
from msc.dialects import gk, loop
from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.loop.argsort import scratch_elements
from msc.dialects.loop.attributes import LOOP_ORIGIN, LOOP_OUTPUTS, LOOP_TEMPORARIES
from msc.dialects.open_sizes import size_attributes, valid_inputs
from msc.ir.typed import static_shape, tensor_type
from msc.lowering.cpu.buffer_types import buffer_type, contiguous
from msc.poly.valid_extents import upper_bound, whole
from msc.support.naming import valid_hint


def argsort_function(op: gk.ArgsortKernelOp) -> func.FuncOp:
    """Arguments: keys, places, the scratch memory if no stack holds it, and the sizes that the call decides."""
    sizes, _ = valid_inputs(op)
    scratch = _scratch(op)
    on_stack = byte_size(scratch) <= target_of(op).machine.stack
    buffers = [*(buffer_type(tensor_type(value)) for value in (op.keys, op.result)), *([] if on_stack else [scratch])]
    types: list[Attribute] = [*buffers, *(IndexType() for _ in sizes)]
    block = Block(arg_types=types)
    for argument, hint in zip(block.args, ("keys", "places", "scratch"), strict=False):
        argument.name_hint = valid_hint(hint)
    _sort_rows(op, block, block.args[len(buffers) :], scratch if on_stack else None)
    block.add_op(func.ReturnOp())
    named = [*[DictionaryAttr({})] * len(buffers), *map(size_attributes, sizes)]
    function = func.FuncOp("argsort", (types, []), Region(block), arg_attrs=ArrayAttr(named) if sizes else None)
    function.attributes[LOOP_OUTPUTS] = IntegerAttr(1, i64)
    function.attributes[LOOP_TEMPORARIES] = IntegerAttr(len(buffers) - 2, i64)
    function.attributes[LOOP_ORIGIN] = ArrayAttr([StringAttr(origin(op))])
    return function


def _scratch(op: gk.ArgsortKernelOp) -> MemRefType[Attribute]:
    element = tensor_type(op.keys).element_type
    size, count = static_shape(op.keys)[-1], static_shape(op.result)[-1]
    return contiguous(element, (scratch_elements(size, count, BYTES[dtype_name(element) or ""]),))


def _sort_rows(
    op: gk.ArgsortKernelOp, block: Block, sizes: Sequence[SSAValue], local: MemRefType[Attribute] | None
) -> None:
    """Loops to the end of `block`; `local` is scratch memory on the stack."""
    keys, places, *given = block.args
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
        given = [alloca.memref]
    size = loop.ApplyOp(length, sizes)
    block.add_ops([size, loop.ArgsortRowOp(keys, places, given[0], rows, size.result)])


def _extents(op: gk.ArgsortKernelOp, sizes: int) -> list[AffineMap]:
    """How many keys are valid along each axis, over the sizes."""
    _, valid = valid_inputs(op)
    shape = static_shape(op.keys)
    bounds = [upper_bound(dim) for dim in (valid[0] if valid else whole(shape))]
    return [
        AffineMap(sizes, 0, (AffineConstantExpr(extent) if bound is None else bound,))
        for extent, bound in zip(shape, bounds, strict=True)
    ]
