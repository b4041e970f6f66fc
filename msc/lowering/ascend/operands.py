"""The operands of a product on their way: packets from global memory to L1, base tiles from there to L0A and L0B."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression, up
from msc.lowering.ascend.rows_to_l1 import Matrix, rows_to_l1
from msc.targets.davinci_isa import Pipe, Space


@dataclass(frozen=True)
class OutputTile:
    """A tile of C: where it starts, and how many rows and columns of it there are; `at_*`: where its batch begins."""

    m: Expr
    n: Expr
    rows: Expr
    columns: Expr
    at_a: Expr = 0
    at_b: Expr = 0
    at_c: Expr = 0
    batch: tuple[Expr, ...] = ()
    """The place in each dimension of the batch."""
    turn: Expr = 0
    """What alternates from tile to tile of a core goes by this."""


@dataclass(frozen=True)
class Epilogue:
    """What follows the sums: `scaling` is a factor of integers, and an offset of the bytes that they become.

    `finished` is told of each tile, which goes to C or to `landing`.
    """

    relu: bool = False
    bias: Callable[[OutputTile], tuple[Buffer, Expr]] | None = None
    scaling: tuple[float, int] | None = None
    finished: Callable[[OutputTile], None] | None = None
    landing: Buffer | None = None


NOTHING = Epilogue()


@dataclass(frozen=True)
class Way:
    """How an operand comes: a base tile is `extent` by `step` of k, `packet` of them come in one of `buffers`.

    `flag` is the first of its event ids; `depth` is all of k.
    """

    is_a: bool
    extent: int
    step: int
    depth: int
    packet: int
    buffers: int
    flag: int
    rotation: AffineExpr | None = None
    """What k begins at in memory; sums are the same from anywhere on."""

    def stored(self, k: AffineExpr) -> AffineExpr:
        """Where in memory the step k of the sums is."""
        return k if self.rotation is None else (k + self.rotation) % self.depth

    def place(self, k: AffineExpr) -> AffineExpr:
        """Which buffer of L1 the packet at k has."""
        return k // (self.packet * self.step) % self.buffers


class Operand(ABC):
    """One operand, with its buffers in L1 and L0; those of L0 have `halves`."""

    def __init__(self, builder: KernelBuilder, way: Way, dtype: str, halves: int, pad: int) -> None:
        self.builder, self.way, self.pad = builder, way, pad
        name = "a" if way.is_a else "b"
        self.l1 = builder.alloc(Space.cbuf, dtype, way.buffers * pad, f"{name}1")
        space = Space.ca if way.is_a else Space.cb
        self.l0 = builder.alloc(space, dtype, halves * way.step * way.extent, f"{name}0")

    @property
    def pipe(self) -> Pipe:
        """The queue that writes packets to L1."""
        return Pipe.MTE2

    @property
    def packet(self) -> int:
        """Base tiles of a packet."""
        return self.way.packet

    @property
    def buffers(self) -> int:
        """Packets that L1 holds."""
        return self.way.buffers

    def begin(self, tile: OutputTile) -> None:
        """What is computed once for a tile: of a matrix nothing."""
        del tile

    def open(self) -> None:
        """Before the first tile: set the flags that `move` waits for, if any."""
        return

    def close(self) -> None:
        """Behind the last tile: take them back."""
        return

    @abstractmethod
    def move(self, tile: OutputTile, k: AffineExpr) -> None:
        """Bring the packet at k to its place in L1; the last queue of its way is `pipe`."""

    @abstractmethod
    def to_l0(self, tile: OutputTile, k: AffineExpr, start: AffineExpr, depth: Expr, half: AffineExpr) -> None:
        """MTE1: `depth` of k from k on, of the packet that starts at `start`, to a half of L0."""

    def extent(self, tile: OutputTile) -> Expr:
        """Rows of A or columns of B in a tile."""
        return tile.rows if self.way.is_a else tile.columns

    def part(self, k: AffineExpr) -> Expr:
        """How much of k is in the packet at k."""
        whole = self.way.packet * self.way.step
        if self.way.depth % whole == 0:
            return whole
        return self.builder.minimum(k * -1 + self.way.depth, whole, name="depth")


@dataclass(frozen=True)
class Rows:
    """A matrix in global memory: rows of k, `row` elements apart; `transposed`: rows along m or n, one for each k."""

    source: Buffer
    row: int
    transposed: bool
    c0: int


class RowsOperand(Operand):
    """An operand whose rows become fractals on their way to L1."""

    def __init__(self, builder: KernelBuilder, way: Way, dtype: str, halves: int, pad: int) -> None:
        super().__init__(builder, way, dtype, halves, pad)
        self.to_l1 = rows_to_l1(builder, dtype, is_a=way.is_a)

    @property
    def pipe(self) -> Pipe:
        return self.to_l1.pipe

    def open(self) -> None:
        self.to_l1.begin()

    def close(self) -> None:
        self.to_l1.end()

    def rows_to_place(self, k: AffineExpr, matrix: Matrix, high: Expr) -> None:
        """Write a matrix to the place of the packet at k, in columns that are `high` rows high."""
        place = self.way.place(k)
        self.to_l1.move(self.l1, place * self.pad, matrix, high, place)


class _Matrix(Operand):
    """An operand that is a matrix: how it comes from L1 to L0."""

    rows: Rows

    @property
    def transposed(self) -> bool:
        """Whether its fractals are turned on their way to L0."""
        return self.rows.transposed

    def to_l0(self, tile: OutputTile, k: AffineExpr, start: AffineExpr, depth: Expr, half: AffineExpr) -> None:
        b, c0, way, extent = self.builder, self.rows.c0, self.way, self.extent(tile)
        place, target = way.place(start) * self.pad, half * (way.step * way.extent)
        if self.transposed:
            self._turned(place + (k - start) * c0, extent, depth, target)
            return
        source = place + (k - start) * way.extent
        if not way.is_a and extent == way.extent and way.step // c0 * way.extent // 16 <= 255:
            fractals = up(depth, c0) // c0 * (way.extent // 16)
            b.emit("load_cbuf_to_cb", (self.l0, target), (self.l1, source), repeat=fractals)
            return
        b.emit(
            f"img2colv2_cbuf_to_{'ca' if way.is_a else 'cb'}", (self.l0, target), (self.l1, source),
            h=way.extent // 16, w=16, c=up(depth, c0), k_extension=up(depth, c0), m_extension=up(extent, 16),
        )  # fmt: skip

    def _turned(self, source: AffineExpr, extent: Expr, depth: Expr, target: AffineExpr) -> None:
        """An operand stored along its other axis: squares of it are turned on their way.

        A square has 16 x 16 elements, of bytes 32 x 32, in one fractal or two.
        """
        b, c0, is_a = self.builder, self.rows.c0, self.way.is_a
        side, fractal = max(16, c0), 16 * c0
        high, along, across = self.way.packet * self.way.step // 16, side // c0, side // 16
        squares, steps = up(extent, side) // side, up(depth, side) // side
        rows, deep = up(extent, 16) // 16, up(depth, side) // c0
        from_gap: Expr = {8: high, 16: 0, 32: 1}[c0]
        to_gap: Expr = {8: 1 if is_a else rows, 16: 0, 32: deep if is_a else 1}[c0]
        name = "load_cbuf_to_ca" if is_a else "load_cbuf_to_cb"
        if not is_a and not isinstance(rows, int) and c0 < 32 and self.way.extent < self.way.step:
            with b.loop(0, squares, 1, "square") as f:
                b.emit(
                    name, (self.l0, target + f * (across * fractal)), (self.l1, source + f * (high * along * fractal)),
                    repeat=steps, src_stride=across, dst_stride=rows * along, transpose=1,
                    src_gap=from_gap, dst_gap=to_gap,
                )  # fmt: skip
            return
        if not is_a and not isinstance(rows, int):  # of bytes, a square's second half lies where the next step begins
            for number in range(self.way.step // side):  # an index cannot be the product of two others
                with b.loop(number, b.minimum(steps, number + 1, name="square_end"), 1, "square"):
                    b.emit(
                        name, (self.l0, rows * (number * along * fractal) + target),
                        (self.l1, source + number * across * fractal), repeat=squares, src_stride=high * along,
                        dst_stride=across, transpose=1, src_gap=from_gap, dst_gap=to_gap,
                    )  # fmt: skip
            return
        with b.loop(0, steps, 1, "square") as f:
            place = target + f * (along * fractal) if is_a else target + f * (along * fractal) * rows
            b.emit(
                name, (self.l0, place), (self.l1, source + f * (across * fractal)), repeat=squares,
                src_stride=high * along, dst_stride=deep * across if is_a else across, transpose=1,
                src_gap=from_gap, dst_gap=to_gap,
            )  # fmt: skip


class MatrixOperand(_Matrix, RowsOperand):
    """An operand that is a matrix in rows."""

    def __init__(self, builder: KernelBuilder, way: Way, rows: Rows, dtype: str, halves: int) -> None:
        super().__init__(builder, way, dtype, halves, way.packet * way.step * way.extent)
        self.rows = rows

    def move(self, tile: OutputTile, k: AffineExpr) -> None:
        way, rows = self.way, self.rows
        start, at = (tile.m, tile.at_a) if way.is_a else (tile.n, tile.at_b)
        depth, extent, stored, packet = self.part(k), self.extent(tile), way.stored(k), way.packet * way.step
        if rows.transposed:
            first = stored * rows.row + start + at
            self.rows_to_place(k, Matrix(rows.source, first, depth, extent, rows.row, way.extent), packet)
            return
        first = expression(start) * rows.row + stored + at
        self.rows_to_place(k, Matrix(rows.source, first, extent, depth, rows.row, packet), way.extent)


class FractalOperand(_Matrix):
    """An operand that lies in global memory as L1 has it (NZ): columns of 32 bytes, each `row` rows high."""

    def __init__(self, builder: KernelBuilder, way: Way, rows: Rows, dtype: str, halves: int) -> None:
        super().__init__(builder, way, dtype, halves, way.packet * way.step * way.extent)
        self.rows = rows

    def move(self, tile: OutputTile, k: AffineExpr) -> None:
        way, c0, high = self.way, self.rows.c0, self.rows.row
        first, at = (tile.m, tile.at_a) if way.is_a else (tile.n, tile.at_b)
        line, column, lines, columns = way.stored(k), expression(first), self.part(k), self.extent(tile)
        room = way.packet * way.step
        if not self.transposed:
            line, column, lines, columns, room = column, line, columns, lines, way.extent
        self.builder.emit(
            "copy_gm_to_cbuf", (self.l1, way.place(k) * self.pad),
            (self.rows.source, column // c0 * (high * c0) + line * c0 + at),
            bursts=up(columns, c0) // c0, length=lines, src_gap=expression(lines) * -1 + high,
            dst_gap=expression(lines) * -1 + room,
        )  # fmt: skip
