"""Operations of the `loop` dialect that compute values: affine indices, and upstream operations lane by lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IndexType, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine
from msc.dialects.loop.lane_types import lane_types_fit, product_types_fit

_PREDICATES = {"arith.cmpf": 16, "arith.cmpi": 10}
"""How many predicates there are."""


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """The value of an affine expression as an index: `%r = loop.apply %i * 2 + %j`."""

    name = "loop.apply"
    values = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, map_: AffineMap, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)], properties={"map": AffineMapAttr(map_)}, result_types=[IndexType()])

    def verify_(self) -> None:
        check_affine(self.name, self.map.data, len(self.values))
        if len(self.map.data.results) != 1:
            raise VerifyException("loop.apply: one expression of the operands")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        reader = AffineReader(parser)
        expr = reader.expression()
        return cls(reader.map([expr]), reader.values)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_affine(printer, self.map.data.results[0], self.values)


@irdl_op_definition
class LanesOp(IRDLOperation):
    """An upstream operation, lane by lane, that xDSL's dialects lack or do not take on vectors.

    `loop.lanes "arith.cmpf" %a, %b {predicate = 4 : i64} : (vector<8xf32>, vector<8xf32>) -> vector<8xi1>`; on scalars
    too.
    """

    name = "loop.lanes"
    arguments = var_operand_def()
    operation = prop_def(StringAttr)
    predicate = opt_prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$operation $arguments attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        operation: str,
        arguments: Sequence[SSAValue],
        result_type: Attribute,
        predicate: IntegerAttr | None = None,
    ):
        super().__init__(
            operands=[list(arguments)],
            properties={"operation": StringAttr(operation), "predicate": predicate},
            result_types=[result_type],
        )

    def verify_(self) -> None:
        operation = self.operation.data
        if not lane_types_fit(operation, self.arguments.types, self.result.type):
            given = ", ".join(map(str, self.arguments.types))
            raise VerifyException(f"loop.lanes: {operation} takes no ({given}) to give {self.result.type}")
        if operation in _PREDICATES and not (
            self.predicate is not None and 0 <= self.predicate.value.data < _PREDICATES[operation]
        ):
            raise VerifyException(f"loop.lanes: {operation} has a predicate from 0 to {_PREDICATES[operation] - 1}")


@irdl_op_definition
class AddProductsOp(IRDLOperation):
    """`sum + a0 * b0 + a1 * b1 ...`, lane by lane, the last product first: an instruction of the machine (`[unit]`).

    `loop.add_products "vpdpbf16ps" [bf16, bf16] %sum, %a0, %a1, %b0, %b1 : (vector<8xf32>, bf16, bf16, vector<8xbf16>,
    vector<8xbf16>) -> vector<8xf32>`: the unit, the element types of its a and b, and of each the terms; a scalar
    counts for all lanes. The instruction may take subnormal numbers for zeros.
    """

    name = "loop.add_products"
    sum = operand_def()
    factors = var_operand_def()
    unit = prop_def(StringAttr)
    types = prop_def(ArrayAttr[StringAttr])
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$unit $types $sum `,` $factors attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        unit: str,
        types: Sequence[str],
        sum_: SSAValue,
        a: Sequence[SSAValue],
        b: Sequence[SSAValue],
        result: Attribute,
    ):
        super().__init__(
            operands=[sum_, [*a, *b]],
            properties={"unit": StringAttr(unit), "types": ArrayAttr([StringAttr(each) for each in types])},
            result_types=[result],
        )

    @property
    def terms(self) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        """The terms of a, and those of b."""
        half = len(self.factors) // 2
        return self.factors[:half], self.factors[half:]

    @property
    def element_types(self) -> tuple[str, str]:
        """The element types of a and b, which say how integers are extended."""
        a, b = (each.data for each in self.types)
        return a, b

    def verify_(self) -> None:
        if len(self.types) != 2 or not product_types_fit(self.operand_types, self.result.type, self.element_types):
            given = ", ".join(map(str, self.operand_types))
            raise VerifyException(f"{self.name}: takes no ({given}) to give {self.result.type}")
