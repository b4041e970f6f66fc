"""`gk.argsort`: a kernel that no compute definition describes, since data decide what it does next.

%1 = gk.argsort %0 : tensor<4x100xi32> -> tensor<4x10xi64>
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType, TensorType, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from msc.ir.typed import static_shape, tensor_type

Rows: TypeAlias = TensorType[Attribute] | MemRefType[Attribute]


@irdl_op_definition
class ArgsortKernelOp(IRDLOperation):
    """The places of the first keys of each row in ascending order; equal keys keep their order.

    A row is what the last axis holds; the result has as many places of it as its type says.
    """

    name = "gk.argsort"
    keys = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$keys attr-dict `:` type($keys) `->` type($result)"

    def __init__(self, keys: SSAValue, count: int):
        shape = (*static_shape(keys)[:-1], count)
        super().__init__(operands=[keys], result_types=[TensorType(i64, shape)])

    def verify_(self) -> None:
        check_rows(self.name, tensor_type(self.keys), tensor_type(self.result))


def check_rows(name: str, keys: Rows, places: Rows) -> None:
    """Raises VerifyException unless each row of keys has a row of at most as many places."""
    if keys.element_type not in (i32, i64) or places.element_type != i64:
        raise VerifyException(f"{name}: keys are i32 or i64, places are i64")
    given, found = keys.get_shape(), places.get_shape()
    if not given or given[:-1] != found[:-1] or not 1 <= found[-1] <= given[-1]:
        raise VerifyException(f"{name}: rows of {list(given)} keys have no rows of {list(found)} places")
