"""`gk.call`: a kernel that no compute definition describes, since data decide what it does next.

%1 = gk.call "argsort" %0 : (tensor<4x100xi32>) -> tensor<4x10xi64>
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import EffectInstance, MemoryEffect

from msc.dialects.calls.library_call import LibraryCall, Rows, call_named
from msc.ir.typed import tensor_type


class CallEffects(MemoryEffect):
    """None for a pure function; any for another."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance] | None:
        return set() if isinstance(op, CallKernelOp) and op.call.pure else None


@irdl_op_definition
class CallKernelOp(IRDLOperation):
    """A library call (`msc.dialects.calls`) for each row of tensors."""

    name = "gk.call"
    function = prop_def(StringAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    traits = traits_def(CallEffects())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$function $inputs attr-dict `:` functional-type($inputs, $outputs)"

    def __init__(self, function: str, inputs: Sequence[SSAValue], outputs: Sequence[TensorType[Attribute]]):
        properties = {"function": StringAttr(function)}
        super().__init__(operands=[list(inputs)], result_types=[list(outputs)], properties=properties)

    @property
    def call(self) -> LibraryCall:
        """The function. Raises VerifyException where there is none of the name."""
        return call_named(self.name, self.function.data)

    @property
    def rows(self) -> tuple[list[Rows], list[Rows]]:
        """The types of the inputs and outputs."""
        return [tensor_type(value) for value in self.inputs], [tensor_type(value) for value in self.outputs]

    def verify_(self) -> None:
        self.call.check_all(self.name, *self.rows)
