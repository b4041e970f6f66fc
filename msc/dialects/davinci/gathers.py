"""Addresses that are data: the scalar unit loads an index, and moves start at the row that it chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self, cast

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from msc.dialects.davinci.buffers import BufferType
from msc.dialects.davinci.queue_ops import QueueOp, parse_buffer
from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine
from msc.targets.davinci_isa import Space

INDEX_TYPES = ("i8", "i16", "i32")
"""The element types of buffers that hold indices."""


@irdl_op_definition
class LoadIndexOp(IRDLOperation):
    """An index that the scalar unit loads: `%row = davinci.load_index %i[%t * 2] below 3000 words 2`.

    Negative ones count from the end; one outside 0 to 2999 becomes the nearest inside. With two words of i32 it is an
    i64, the low word first.
    """

    name = "davinci.load_index"
    buffer = operand_def(BufferType)
    values = var_operand_def(IndexType)
    offset = prop_def(AffineMapAttr)
    below = prop_def(IntegerAttr)
    words = prop_def(IntegerAttr)
    result = result_def(IndexType)

    def __init__(
        self, buffer: SSAValue, offset: AffineMap, below: int, values: Sequence[SSAValue] = (), words: int = 1
    ):
        super().__init__(
            operands=[buffer, list(values)],
            properties={
                "offset": AffineMapAttr(offset),
                "below": IntegerAttr(below, i64),
                "words": IntegerAttr(words, i64),
            },
            result_types=[IndexType()],
        )

    def verify_(self) -> None:
        type_, words = cast(BufferType, self.buffer.type), self.words.value.data
        if type_.memory is not Space.gm or type_.dtype not in INDEX_TYPES:
            raise VerifyException(f"{self.name}: indices are {', '.join(INDEX_TYPES)} in gm, not {type_}")
        if words not in (1, 2) or (words == 2 and type_.dtype != "i32"):
            raise VerifyException(f"{self.name}: an index has one word, or two of i32, not {words} of {type_.dtype}")
        if self.below.value.data < 1:
            raise VerifyException(f"{self.name}: no index is below {self.below.value.data}")
        check_affine(self.name, self.offset.data, len(self.values))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        reader = AffineReader(parser)
        buffer = parse_buffer(parser)
        [offset] = reader.index_list()
        parser.parse_keyword("below")
        below = parser.parse_integer(allow_boolean=False)
        words = parser.parse_integer(allow_boolean=False) if parser.parse_optional_keyword("words") else 1
        return cls(buffer, reader.map([offset]), below, reader.values, words)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.buffer)
        printer.print_string("[")
        print_affine(printer, self.offset.data.results[0], self.values)
        printer.print_string(f"] below {self.below.value.data}")
        if self.words.value.data > 1:
            printer.print_string(f" words {self.words.value.data}")


def verify_gathers(ops: Iterable[Operation]) -> None:
    """Raise VerifyException where loaded indices could change more of a kernel than what it reads of its arguments.

    What is loaded only moves where an instruction reads an argument, and nothing writes that argument or the indices:
    order and places of all other accesses do not depend on data, and what is proved of one run holds for all.
    """
    loads, moves = list[LoadIndexOp](), list[QueueOp]()
    for op in ops:
        if isinstance(op, LoadIndexOp):
            loads.append(op)
        elif isinstance(op, QueueOp):
            moves.append(op)
    written = {move.buffers[0] for move in moves if move.buffers}
    for load in loads:
        if not isinstance(load.buffer, BlockArgument) or load.buffer in written:
            raise VerifyException(f"{load.name}: indices lie in an argument that the kernel does not write")
        for use in load.result.uses:
            _verify_use(use.operation, load.result, written)


def _verify_use(op: Operation, index: SSAValue, written: set[SSAValue]) -> None:
    if not isinstance(op, QueueOp):
        raise VerifyException(f"{op.name}: what davinci.load_index gives only moves where an instruction reads gm")
    places = {AffineDimExpr(k) for k, value in enumerate(op.values) if value is index}
    for parameter, expr in zip(op.numbers, op.parameters.data.results, strict=True):
        if places & set(expr.dfs()):
            raise VerifyException(f"{op.name}: {parameter.name} cannot be what davinci.load_index gives")
    for k, expr in enumerate(op.offsets.data.results):
        free = isinstance(op.buffers[k], BlockArgument) and op.buffers[k] not in written
        if not places & set(expr.dfs()):
            continue
        if not free:
            raise VerifyException(
                f"{op.name}: operand {k} moves with davinci.load_index; it is no argument that the kernel only reads"
            )
        if not all(_grows(expr, place) for place in places):
            raise VerifyException(
                f"{op.name}: operand {k} takes multiples of what davinci.load_index gives, and no others"
            )


def _grows(expr: AffineExpr, place: AffineExpr) -> bool:
    """Whether an index counts by a factor that is not negative: its extremes are then those of the address."""
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, left, right):
            return _grows(left, place) and _grows(right, place)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, left, AffineConstantExpr(factor)):
            return (factor >= 0 and _grows(left, place)) or place not in left.dfs()
        case _:
            return expr == place or place not in expr.dfs()
