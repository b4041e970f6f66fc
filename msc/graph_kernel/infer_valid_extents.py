"""Pass `infer-valid-extents`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.kernel_model import capacity_model
from msc.analysis.properties import KERNELS
from msc.analysis.valid_extents import ValidExtents
from msc.dialects.gk import CallKernelOp, KernelOp
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp
from msc.dialects.open_sizes import INSIDE, VALID, WHOLE, module_sizes, set_valid_inputs, valid_attribute, valid_tensor
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.locations import source_location
from msc.ir.typed import static_shape
from msc.poly.valid_extents import ValidShape, is_whole
from msc.support.diagnostics import DecidedByCall, Diagnostic


@dataclass(frozen=True)
class InferValidExtents(ModulePass):
    """Note on every kernel what of its inputs is valid where a call decides sizes.

    Takes: a module of kernels whose shapes are those of the largest sizes (`ms.sizes`). Gives: `gk.sizes` and
    `gk.valid` on each kernel that takes a tensor of an open size or has a constant that is one, and `ms.valid` on the
    results of the entry functions. Does nothing where all sizes are constant. Raises MSC0208 where what is valid is no
    box.
    """

    name = "infer-valid-extents"
    contract = Contract(
        requires=(KERNELS,),
        runs_after={
            "winograd": "it makes kernels",
            "fuse-pads": "it changes what a kernel writes",
            "pack-operands": "it changes what a kernel reads",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not module_sizes(op):
            return
        for entry in entries(op):
            _note(ValidExtents(op, entry), entry)


def _note(valid: ValidExtents, function: FuncOp) -> None:
    for kernel in function.walk():
        if isinstance(kernel, KernelOp):
            set_valid_inputs(kernel, valid.inputs(kernel), valid.sizes)
            _mark_whole(valid, kernel, function)
        elif isinstance(kernel, CallKernelOp):
            set_valid_inputs(kernel, [valid.of(value) for value in kernel.inputs], valid.sizes)
        elif isinstance(kernel, ExtractSliceOp) and INSIDE in kernel.attributes:
            _mark_argument(valid, kernel.x, function)
    results = function.body.block.last_op
    assert isinstance(results, ReturnOp)
    given = list(function.res_attrs or [DictionaryAttr({})] * len(results.operands))
    shapes = [_meant(valid, value, a) for value, a in zip(results.operands, given, strict=True)]
    if any(len(dim) > 1 for dims in shapes for dim in dims):
        message = "an output merges dimensions of open sizes"
        raise DecidedByCall(Diagnostic("MSC0208", message, source_location(results)))
    anywhere: dict[str, Attribute] = {WHOLE: UnitAttr()} if _writes_entries(function) else {}
    function.res_attrs = ArrayAttr(
        [
            attributes
            if all(map(is_whole, dims))
            else DictionaryAttr({**attributes.data, VALID: valid_attribute(dims, valid.sizes), **anywhere})
            for attributes, dims in zip(given, shapes, strict=True)
        ]
    )


def _writes_entries(function: FuncOp) -> bool:
    """Whether entries are written at places along an open axis that are data: wherever those may lead, memory is."""
    return any(isinstance(op, InsertSliceOp) and INSIDE in op.attributes for op in function.walk())


def _mark_whole(valid: ValidExtents, kernel: KernelOp, function: FuncOp) -> None:
    """An argument of open size that is read at indices that are data needs its memory, wherever they may lead."""
    positions = {array for statement in capacity_model(kernel).statements for array in statement.whole_reads()}
    for value in (value for number, value in enumerate(kernel.inputs) if number in positions):
        _mark_argument(valid, value, function)


def _mark_argument(valid: ValidExtents, value: SSAValue, function: FuncOp) -> None:
    while isinstance(value.owner, ViewOp):
        value = value.owner.operands[0]
    if isinstance(value, BlockArgument) and value in function.args and not all(map(is_whole, valid.of(value))):
        given = list(function.arg_attrs or [DictionaryAttr({})] * len(function.args))
        given[value.index] = DictionaryAttr({**given[value.index].data, WHOLE: UnitAttr()})
        function.arg_attrs = ArrayAttr(given)


def _meant(valid: ValidExtents, value: SSAValue, attributes: DictionaryAttr) -> ValidShape:
    """What is valid of a result, as it is computed and as `ms.valid` says of what is computed whole."""
    said = valid_tensor(attributes.data, static_shape(value), valid.sizes)
    return tuple(b if is_whole(a) else a for a, b in zip(valid.of(value), said, strict=True))
