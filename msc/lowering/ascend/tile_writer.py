"""Writes what follows the sums of a product for the vector unit: chunks of a tile's rows from where the sums landed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression, up
from msc.lowering.ascend.tile_program import BroadcastRow, InputTile, Register, TileProgram, TileStep
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci_isa import DTYPES, Pipe, Space

_LANES = 64
"""f32 values of a repeat."""
_MOST = 128
"""Rows of a chunk, at most: a repeat each, of which an instruction has 255."""


@dataclass(frozen=True)
class TileSource:
    """An array that tiles are read from: elements between rows, and the element at (0, 0) of the tile's batch."""

    argument: Buffer
    row: int
    first: Expr


class TileReading(Protocol):
    """Where arrays of the program lie for one tile of the output."""

    def tile(self, number: int) -> TileSource:
        """Input `number` of the program, or -1: where the sums landed."""
        ...

    def row(self, number: int) -> TileSource:
        """Row `number` of the program."""
        ...


@dataclass(frozen=True)
class Spot:
    """A tile of the output: where it starts and its size."""

    m: Expr
    n: Expr
    rows: Expr
    columns: Expr


class TileWriter:
    """Owns the buffers in UB for tiles of `width` columns; `height` rows of a tile, at most, are this core's."""

    def __init__(
        self,
        builder: KernelBuilder,
        program: TileProgram,
        types: tuple[str, str],
        width: int,
        height: int,
        landed: bool,
    ) -> None:
        self.b, self.program, self.width = builder, program, width
        self.sums_type, self.out_type = types
        self.landed = landed
        self.kinds = [dtype for _, dtype in program.tiles]
        self.brought = [*([] if landed else [self.sums_type]), *self.kinds]
        wide = sum(dtype != "f32" for dtype in (*self.kinds, self.sums_type))
        each = sum(2 * DTYPES[dtype] for dtype in (*self.brought, self.out_type)) + 4 * (program.registers + wide)
        rows_bytes = sum(width * (4 + DTYPES[dtype]) + 64 for _, dtype in program.rows)
        target = builder.target
        room = target.buffers.ub - target.buffers.ub_reserved - builder.taken(Space.ub) - rows_bytes - 2048
        self.chunk = min(_MOST, height, room // (each * width))
        if self.chunk < 1:
            raise MscError(Diagnostic("MSC1021", f"a row of {width} values does not fit UB with what follows it"))
        self.elements = self.chunk * width
        self._allocate()

    def _allocate(self) -> None:
        alloc, size = self.b.alloc, self.elements
        self.tiles = {k: alloc(Space.ub, d, 2 * size, f"in{k}") for k, d in enumerate(self.kinds)}
        if not self.landed:
            self.tiles[-1] = alloc(Space.ub, self.sums_type, 2 * size, "sums")
        self.out = alloc(Space.ub, self.out_type, 2 * size, "result")
        self.registers = [alloc(Space.ub, "f32", size, f"r{k}") for k in range(self.program.registers)]
        narrow = [k for k, d in (*enumerate(self.kinds), (-1, self.sums_type)) if d != "f32"]
        self.widened = {k: alloc(Space.ub, "f32", size, f"wide{k}" if k >= 0 else "wide") for k in narrow}
        self.rows = [alloc(Space.ub, "f32", self.width, f"row{k}") for k in range(len(self.program.rows))]
        self.raw_rows = [
            self.rows[k] if d == "f32" else alloc(Space.ub, d, self.width, f"raw{k}")
            for k, (_, d) in enumerate(self.program.rows)
        ]
        self.landing: Buffer | None = None

    def begin(self) -> None:
        """Everything holds zeros, so that the tails of rows hold something; buffers are free."""
        b = self.b
        held = [*self.tiles.values(), *self.raw_rows, *([] if self.landing is None else [self.landing])]
        for buffer in held:
            if buffer.dtype in ("f16", "f32"):
                self._count(buffer.elements)
                b.emit("vector_dup", (buffer, 0), scalar=0.0, repeat=1)
        self._free_buffers(b.set_flag)

    def end(self) -> None:
        """All is taken back."""
        self._free_buffers(self.b.wait_flag)

    def _free_buffers(self, flag: Callable[[Pipe, Pipe, Expr], None]) -> None:
        """Set the flags that say which buffers are free, or take them back."""
        for pipe in (Pipe.V, Pipe.MTE3):
            for k in range(2):
                flag(pipe, Pipe.MTE2 if pipe is Pipe.V else Pipe.V, k)
        if self.rows:
            flag(Pipe.V, Pipe.MTE2, 2)

    def write(self, spot: Spot, first: Expr, stop: Expr, reading: TileReading, out: TileSource) -> None:
        """Rows `first` to `stop` of a tile."""
        self._bring_rows(spot, reading)
        b = self.b
        with b.loop(first, stop, self.chunk, "row") as row:
            rows: Expr = self.chunk
            if not (isinstance(first, int) and isinstance(stop, int) and (stop - first) % self.chunk == 0):
                rows = b.minimum(expression(stop) - row, self.chunk, name="rows")
            self._chunk(spot, row, row + expression(first) * -1, rows, reading, out)
        if self.rows:
            b.set_flag(Pipe.V, Pipe.MTE2, 2)

    def _bring_rows(self, spot: Spot, reading: TileReading) -> None:
        """What all rows of the tile see."""
        b = self.b
        if not self.rows:
            return
        b.wait_flag(Pipe.V, Pipe.MTE2, 2)
        for k, (_, dtype) in enumerate(self.program.rows):
            source = reading.row(k)
            length = expression(spot.columns) * DTYPES[dtype]
            b.emit(
                "copy_gm_to_ubuf_align", (self.raw_rows[k], 0), (source.argument, expression(spot.n) + source.first),
                bursts=1, length=length,
            )  # fmt: skip
        b.set_flag(Pipe.MTE2, Pipe.V, 2)
        b.wait_flag(Pipe.MTE2, Pipe.V, 2)
        for wide, raw in zip(self.rows, self.raw_rows, strict=True):
            if wide is not raw:
                self._count(self.width)
                self._convert(wide, 0, raw, 0)
        b.barrier(Pipe.V)

    def _chunk(
        self, spot: Spot, row: AffineExpr, landed: AffineExpr, rows: Expr, reading: TileReading, out: TileSource
    ) -> None:
        """Rows from `row` of the tile on, of which the sums landed from row `landed` of UB on."""
        b, turn = self.b, row // self.chunk % 2
        place = turn * self.elements
        b.wait_flag(Pipe.V, Pipe.MTE2, turn)
        for k, buffer in self.tiles.items():
            self._bring(buffer, place, reading.tile(k), spot, row, rows)
        b.set_flag(Pipe.MTE2, Pipe.V, turn)
        b.wait_flag(Pipe.MTE2, Pipe.V, turn)
        b.wait_flag(Pipe.MTE3, Pipe.V, turn)
        self._compute(landed, rows, place)
        b.set_flag(Pipe.V, Pipe.MTE2, turn)
        b.set_flag(Pipe.V, Pipe.MTE3, turn)
        b.wait_flag(Pipe.V, Pipe.MTE3, turn)
        self._store(place, out, spot, row, rows)
        b.set_flag(Pipe.MTE3, Pipe.V, turn)

    def _line(self, columns: Expr, dtype: str) -> tuple[AffineExpr, Expr]:
        """Bytes of a row that count, and blocks of 32 bytes behind them up to the next row in UB."""
        size = DTYPES[dtype]
        line = expression(columns) * size
        blocks = up(columns, 32 // size)
        gap = (self.width - blocks) * size // 32 if isinstance(blocks, int) else (blocks * -1 + self.width) * size // 32
        return line, gap

    def _bring(
        self, to: Buffer, place: AffineExpr, source: TileSource, spot: Spot, row: AffineExpr, rows: Expr
    ) -> None:
        line, gap = self._line(spot.columns, to.dtype)
        at = (expression(spot.m) + row) * source.row + spot.n + source.first
        self.b.emit(
            "copy_gm_to_ubuf_align", (to, place), (source.argument, at), bursts=rows, length=line,
            src_gap=line * -1 + source.row * DTYPES[to.dtype], dst_gap=gap,
        )  # fmt: skip

    def _store(self, place: AffineExpr, out: TileSource, spot: Spot, row: AffineExpr, rows: Expr) -> None:
        line, gap = self._line(spot.columns, self.out_type)
        at = (expression(spot.m) + row) * out.row + spot.n + out.first
        self.b.emit(
            "copy_ubuf_to_gm_align", (out.argument, at), (self.out, place), bursts=rows, length=line,
            dst_gap=line * -1 + out.row * DTYPES[self.out_type], src_gap=gap,
        )  # fmt: skip

    def _count(self, count: Expr) -> None:
        self.b.emit("set_mask_count", count=count)

    def _compute(self, landed: AffineExpr, rows: Expr, place: AffineExpr) -> None:
        b, count = self.b, expression(rows) * self.width
        self._count(count)
        sources = {k: (buffer, expression(place)) for k, buffer in self.tiles.items()}
        if self.landing is not None:
            sources[-1] = (self.landing, landed * self.width)
        for k, wide in self.widened.items():
            self._convert(wide, 0, *sources[k])
            sources[k] = (wide, expression(0))
        for step in self.program.steps:
            b.barrier(Pipe.V)
            self._step(step, sources, rows, count)
        b.barrier(Pipe.V)
        self._finish(sources, place)
        b.emit("set_mask_norm")

    def _finish(self, sources: dict[int, tuple[Buffer, AffineExpr]], place: AffineExpr) -> None:
        """The result in its type, where it is stored from."""
        buffer, at = self._operand(self.program.result, sources)
        if self.out_type == "f32":
            self.b.emit("vadds", (self.out, place), (buffer, at), scalar=0.0, repeat=1)
        else:
            self.b.emit("vconv", (self.out, place), (buffer, at), repeat=1, dst_repeat_stride=2 * DTYPES[self.out_type])

    def _operand(
        self, source: Register | InputTile | BroadcastRow, sources: dict[int, tuple[Buffer, AffineExpr]]
    ) -> tuple[Buffer, AffineExpr]:
        match source:
            case Register():
                return self.registers[source.number], expression(0)
            case InputTile():
                return sources[source.number]
            case BroadcastRow():
                return self.rows[source.number], expression(0)

    def _step(
        self, step: TileStep, sources: dict[int, tuple[Buffer, AffineExpr]], rows: Expr, count: AffineExpr
    ) -> None:
        operands = [(self.registers[step.to.number], expression(0)), *(self._operand(s, sources) for s in step.sources)]
        if not any(isinstance(s, BroadcastRow) for s in step.sources):
            self.b.emit(step.instruction, *operands, scalar=step.scalar, repeat=1)
            return
        self.b.emit("set_mask_norm")
        for start in range(0, self.width, _LANES):
            lanes = min(_LANES, self.width - start)
            self.b.emit("set_vector_mask", high=0, low=-1 if lanes == _LANES else (1 << lanes) - 1)
            apart = self.width // 8
            self.b.emit(
                step.instruction, *((buffer, at + start) for buffer, at in operands), repeat=rows,
                dst_repeat_stride=apart, src0_repeat_stride=apart, src1_repeat_stride=0,
            )  # fmt: skip
        self.b.emit("set_vector_mask", high=-1, low=-1)
        self._count(count)

    def _convert(self, to: Buffer, at: Expr, source: Buffer, place: Expr) -> None:
        """A narrow type to f32: 64 elements a repeat of either."""
        blocks = 2 * DTYPES[source.dtype]
        self.b.emit("vconv", (to, at), (source, place), repeat=1, src_repeat_stride=blocks)
