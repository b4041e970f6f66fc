"""`ms.compute`: an operation whose properties say what it computes. Gradients are written with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def, var_operand_def

from msc.dialects.ms.base import BasicTensorOp
from msc.dialects.ms.elementwise import named_dtype
from msc.dialects.ms.properties import dtype_property, required_ints
from msc.dialects.ms.shapes import Shape, shape_text, tensor_type
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.affine import bounds
from msc.poly.compute import Statement
from msc.poly.scalar import reads
from msc.poly.statement_syntax import BadStatement, parse_statement, print_statement

SEPARATOR = "; "
"""Between statements in the property."""


@irdl_op_definition
class ComputeOp(BasicTensorOp):
    """The tensor of `shape` and `dtype` that `statements` write, one after the other, from any operands.

    `statements = "for i < 4, k < 3: r0[i] = reduce_add(x0.f32[i, k])"` is a sum of rows; more statements follow behind
    a semicolon (`msc.poly.statement_syntax`). Together they write every element. Gradients of operations are
    written so: the adjoint of a compute definition is one again.
    """

    name = "ms.compute"
    EXAMPLE: ClassVar[str] = (
        '4x3xf32 {shape = [4], dtype = f32, statements = "for i < 4, k < 3: r0[i] = reduce_add(x0.f32[i, k])"}'
    )
    inputs = var_operand_def(TensorType)
    new_shape = required_ints("shape")
    target = dtype_property()
    statements = prop_def(StringAttr)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape, dtype = self.ints("shape"), named_dtype(self.name, self.plain("dtype"))
        if any(n < 0 for n in shape):
            raise InvalidAttribute(f"ms.compute: shape [{', '.join(map(str, shape))}] has negative entries")
        try:
            statements = _parsed(self.word("statements"))
        except BadStatement as error:
            raise InvalidAttribute(f"ms.compute: {error}") from None
        for statement in statements:
            self._check(statement, shape, dtype)
        return (tensor_type(dtype, shape),)

    def compute(self) -> Sequence[Statement]:
        return _parsed(self.word("statements"))

    def _check(self, statement: Statement, shape: Shape, dtype: str) -> None:
        text = print_statement(statement)
        if statement.result != 0 or statement.body.dtype != dtype:
            raise InvalidAttribute(f"ms.compute: `{text}` must write r0, of element type {dtype}")
        self._check_places(statement, statement.write.results, shape, "the result", text)
        for read in reads(statement.body):
            if read.operand >= len(self.operands) or read.dtype != self.dtype(read.operand):
                raise InvalidAttribute(f"ms.compute: `{text}` reads x{read.operand} as {read.dtype}, which it is not")
            self._check_places(statement, read.index.results, self.shape(read.operand), f"operand {read.operand}", text)

    def _check_places(self, statement: Statement, places: Sequence[object], shape: Shape, what: str, text: str) -> None:
        """Raise ShapeConflict if an iteration is outside of a tensor."""
        ranges = dict(enumerate(map(range, statement.extents)))
        if len(places) != len(shape):
            raise ShapeConflict(f"ms.compute: `{text}`: {what} is {shape_text(shape)}, not of rank {len(places)}")
        if 0 in statement.extents:
            return
        for expr, size in zip(places, shape, strict=True):
            low, high = bounds(expr, ranges)  # pyright: ignore[reportArgumentType]
            if low < 0 or (high >= size and size >= 0):
                raise ShapeConflict(f"ms.compute: `{text}` leaves {what}, which is {shape_text(shape)}")


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Statement, ...]:
    return tuple(map(parse_statement, text.split(";")))


def statements_text(statements: Sequence[Statement]) -> str:
    """The property of an operation with these statements."""
    return SEPARATOR.join(map(print_statement, statements))
