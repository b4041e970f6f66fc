"""`loop.call`: one call of a function of the C library that generated programs contain.

loop.call "argsort" %keys, %places, %scratch[%i] of %n : memref<4x100xi32>, memref<4x10xi64>, memref<20xi32>
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from msc.dialects.calls.library_call import LibraryCall, Rows, call_named
from msc.ir.typed import memref_type, static_shape


@irdl_op_definition
class CallRowsOp(IRDLOperation):
    """A library call (`msc.dialects.calls`) on a row of buffers: inputs, outputs, and scratch memory if it needs some.

    The `indices` say which row, `size` how many elements of a row of the inputs are valid.
    """

    name = "loop.call"
    function = prop_def(StringAttr)
    buffers = var_operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    size = operand_def(IndexType())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = "$function $buffers `[` $indices `]` `of` $size attr-dict `:` type($buffers)"

    def __init__(self, function: str, buffers: Sequence[SSAValue], indices: Sequence[SSAValue], size: SSAValue):
        properties = {"function": StringAttr(function)}
        super().__init__(operands=[list(buffers), list(indices), size], properties=properties)

    @property
    def call(self) -> LibraryCall:
        """The function. Raises VerifyException where there is none of the name."""
        return call_named(self.name, self.function.data)

    @property
    def read(self) -> tuple[SSAValue, ...]:
        """The buffers that are read."""
        return tuple(self.buffers[: len(self.call.inputs)])

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The buffers of results."""
        first = len(self.call.inputs)
        return tuple(self.buffers[first : first + len(self.call.outputs)])

    @property
    def written(self) -> tuple[SSAValue, ...]:
        """The buffers that are written: results and scratch memory."""
        return tuple(self.buffers[len(self.call.inputs) :])

    @property
    def rows(self) -> tuple[list[Rows], list[Rows]]:
        """The types of the inputs and outputs."""
        return [memref_type(value) for value in self.read], [memref_type(value) for value in self.outputs]

    def written_of(self, output: SSAValue) -> int | None:
        """How many elements of an output's row are written; None for as many as are valid in the inputs' rows."""
        length = static_shape(output)[-1]
        return None if length == static_shape(self.read[0])[-1] else length

    def verify_(self) -> None:
        call, (inputs, outputs) = self.call, self.rows
        call.check_all(self.name, inputs, outputs)
        if len(self.indices) != len(inputs[0].get_shape()) - 1:
            raise VerifyException(f"{self.name}: an index for each axis of the {call.inputs[0]} but the last")
        least = call.scratch(inputs, outputs)
        own = [memref_type(value) for value in self.written[len(outputs) :]]
        fits = len(own) == (least > 0) and all(
            type_.element_type == inputs[0].element_type and type_.element_count() >= least for type_ in own
        )
        if not fits:
            raise VerifyException(
                f"{self.name}: the scratch memory has {least} elements of the type of the {call.inputs[0]}"
            )
