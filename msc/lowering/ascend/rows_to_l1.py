"""How rows of global memory come to L1 as fractals (NZ): columns of 32 bytes, one below the other.

910B and 950 have a move that does this. Older cores take the way through UB: MTE2 brings rows there as they lie, which
reads global memory in long packets, and MTE3 writes them to L1 column by column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci_isa import DTYPES, Pipe, Space

_STAGE = 65536
"""Bytes of UB for the rows of one operand: two places, so that MTE2 fills one while MTE3 empties the other."""


@dataclass(frozen=True)
class Matrix:
    """`rows` x `columns` elements at `at` of an array, `row` elements apart; no matrix has more columns than `most`."""

    source: Buffer
    at: Expr
    rows: Expr
    columns: Expr
    row: int
    most: int


class RowsToL1(Protocol):
    """A way of rows to L1; `pipe` is the queue that writes L1."""

    pipe: Pipe

    def move(self, to: Buffer, place: Expr, matrix: Matrix, high: Expr, turn: AffineExpr) -> None:
        """Write a matrix to `place` of L1, in columns that are `high` rows high; `turn` counts the moves."""
        ...

    def begin(self) -> None:
        """Before the first move."""
        ...

    def end(self) -> None:
        """Behind the last move."""
        ...


class DirectRows:
    """One ND-to-NZ move of MTE2."""

    pipe = Pipe.MTE2

    def __init__(self, builder: KernelBuilder) -> None:
        self.builder = builder

    def move(self, to: Buffer, place: Expr, matrix: Matrix, high: Expr, turn: AffineExpr) -> None:
        """Write a matrix to L1."""
        del turn
        self.builder.emit(
            "copy_gm_to_cbuf_multi_nd2nz", (to, place), (matrix.source, matrix.at),
            n=matrix.rows, d=matrix.columns, src_stride=matrix.row, dst_stride=high,
        )  # fmt: skip

    def begin(self) -> None:
        """Nothing: the move needs no buffer."""

    def end(self) -> None:
        """Nothing."""


class RowsThroughUb:
    """MTE2 to UB, MTE3 from there to L1. `flag` is the first of two event ids between the two queues."""

    pipe = Pipe.MTE3

    def __init__(self, builder: KernelBuilder, dtype: str, flag: int) -> None:
        self.builder, self.flag = builder, flag
        self.elements = _STAGE // 2 // DTYPES[dtype]
        self.strip = builder.target.gm.packet // DTYPES[dtype]
        self.stage = builder.alloc(Space.ub, dtype, 2 * self.elements, "rows_a" if flag == 0 else "rows_b")

    def move(self, to: Buffer, place: Expr, matrix: Matrix, high: Expr, turn: AffineExpr) -> None:
        """Write a matrix to L1, as many rows at a time as the stage holds."""
        b, c0 = self.builder, 32 // DTYPES[to.dtype]
        wide = -(-min(matrix.most, matrix.row) // c0) * c0
        if wide > self.strip and isinstance(high, int):
            self._in_strips(to, place, matrix, high, turn)
            return
        if wide > self.elements:
            raise MscError(Diagnostic("MSC1021", f"a row of {wide} values does not fit UB on its way to L1"))
        most = min(self.elements // wide, 4095)
        with b.loop(0, matrix.rows, most, "line") as line:
            rows = b.minimum(expression(matrix.rows) - line, most, name="lines")
            self._chunk(to, expression(place) + line * c0, matrix, line, rows, high, (turn + line // most) % 2)

    def _in_strips(self, to: Buffer, place: Expr, matrix: Matrix, high: int, turn: AffineExpr) -> None:
        """A matrix of long rows, in strips of one packet of global memory: a column of the stage is then high."""
        b, wide = self.builder, self.strip
        with b.loop(0, matrix.columns, wide, "strip") as strip:
            columns = b.minimum(expression(matrix.columns) - strip, wide, name="strip_columns")
            part = Matrix(matrix.source, expression(matrix.at) + strip, matrix.rows, columns, matrix.row, wide)
            self.move(to, strip * high + place, part, high, turn + strip // wide)

    def _chunk(
        self, to: Buffer, place: Expr, matrix: Matrix, line: AffineExpr, rows: Expr, high: Expr, turn: AffineExpr
    ) -> None:
        b, size, event = self.builder, DTYPES[to.dtype], turn + self.flag
        c0, here = 32 // size, turn * self.elements
        length = expression(matrix.columns) * size
        columns = (expression(matrix.columns) + (c0 - 1)) // c0
        b.wait_flag(Pipe.MTE3, Pipe.MTE2, event)
        b.emit(
            "copy_gm_to_ubuf_align", (self.stage, here), (matrix.source, line * matrix.row + matrix.at), bursts=rows,
            length=length, src_gap=length * -1 + matrix.row * size,
        )  # fmt: skip
        b.set_flag(Pipe.MTE2, Pipe.MTE3, event)
        b.wait_flag(Pipe.MTE2, Pipe.MTE3, event)
        for column in self._columns(columns, -(-matrix.most // c0), high):
            at = expression(column) * (c0 * high) if isinstance(high, int) else high * (expression(column) * c0)
            b.emit(
                "copy_ubuf_to_cbuf", (to, at + place), (self.stage, expression(column) * c0 + here), bursts=rows,
                length=1, src_gap=columns - 1,
            )  # fmt: skip
        b.set_flag(Pipe.MTE3, Pipe.MTE2, event)

    def _columns(self, columns: AffineExpr, most: int, high: Expr) -> Iterator[Expr]:
        """The columns of a chunk: in a loop, or one by one where an index cannot be the product of two others."""
        b = self.builder
        if isinstance(high, int):
            with b.loop(0, columns, 1, "column") as column:
                yield column
            return
        for number in range(most):
            with b.loop(number, b.minimum(columns, number + 1, name="column_end"), 1, "column"):
                yield number

    def begin(self) -> None:
        """Both places of the stage are free."""
        for place in range(2):
            self.builder.set_flag(Pipe.MTE3, Pipe.MTE2, self.flag + place)

    def end(self) -> None:
        """Take both back."""
        for place in range(2):
            self.builder.wait_flag(Pipe.MTE3, Pipe.MTE2, self.flag + place)


def rows_to_l1(builder: KernelBuilder, dtype: str, *, is_a: bool) -> RowsToL1:
    """The way that the machine has, for A or for B."""
    return DirectRows(builder) if builder.target.features.nd2nz else RowsThroughUb(builder, dtype, 0 if is_a else 2)
