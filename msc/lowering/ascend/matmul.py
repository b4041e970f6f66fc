"""The program of a matrix product on cube cores, for a given schedule.

Each core takes the tiles of its part of C. For a tile, MTE2 brings packets of A and B to L1 in fractals, MTE1 takes
base tiles of them to L0A and L0B, M adds their products up in L0C, and the Fixpipe writes the tile. Flags order the
uses of packets, L0 halves and L0C: forwards when they are full, backwards when they are free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from xdsl.ir.affine import AffineExpr

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression, up
from msc.lowering.ascend.operands import (
    NOTHING,
    Epilogue,
    FractalOperand,
    MatrixOperand,
    Operand,
    OutputTile,
    Rows,
    Way,
)
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.trees import CubeSchedule
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, PACKETS, Pipe, Space

_Range = tuple[Expr, Expr]
"""The first place of a part, and the one after its last."""


def matmul_kernel(
    shape: MatmulShape, schedule: CubeSchedule, target: DavinciTarget, relu: bool = False
) -> DavinciKernelOp:
    """The kernel of C = A B on `schedule.cores` cube cores. Raises MSC1021 for what does not fit."""
    sizes = list(zip((shape.dtype, shape.dtype, shape.out_dtype), shape.elements, strict=True))
    builder = KernelBuilder("matmul", target, "cube", schedule.cores, sizes)
    builder.name_arguments("a", "b", "c")
    MatmulWriter(builder, shape, schedule, Epilogue(relu)).write()
    return builder.finish()


class MatmulWriter:
    """Writes the product into a kernel. `operands` are A, B and C with their first elements, if not the arguments."""

    def __init__(
        self,
        builder: KernelBuilder,
        shape: MatmulShape,
        schedule: CubeSchedule,
        epilogue: Epilogue = NOTHING,
        operands: tuple[tuple[Buffer, int], ...] = (),
    ) -> None:
        self.builder, self.shape, self.schedule, self.epilogue = builder, shape, schedule, epilogue
        self._operands, self.bias = operands, epilogue.bias
        self._first = tuple(first for _, first in operands) or (0, 0, 0)
        self.before_landing: Callable[[], None] = lambda: builder.wait_flag(Pipe.V, Pipe.FIX, 0)
        """Waits until the vector unit has read the tile that landed before."""
        base_m, base_n, _ = schedule.base
        sums = base_m * base_n
        alloc = builder.alloc
        self.halves, self.sum_halves = schedule.halves, schedule.sums
        self._block = builder.block_index()
        self.sources = self._arguments()
        self.c = self.sources[2]
        self.a, self.b = self.make_operand(True), self.make_operand(False)
        self.sums = alloc(Space.cc, shape.sum_dtype, self.sum_halves * sums, "c0")
        if (bias := epilogue.bias) is not None:
            self.bias1 = alloc(Space.cbuf, bias(OutputTile(0, 0, 0, 0))[0].dtype, self.a.buffers * base_n, "bias1")
            self.bias0 = alloc(Space.bt, shape.sum_dtype, self.tables * base_n, "bias0")

    @property
    def tables(self) -> int:
        """Places of the bias in its table."""
        return 2 if 2 * 4 * self.schedule.base[1] <= self.builder.target.buffers.bt else 1

    def _arguments(self) -> tuple[Buffer, Buffer, Buffer]:
        """A, B and C: what was given, or the kernel's arguments."""
        (a, _), (b, _), (c, _) = self._operands or tuple((each, 0) for each in self.builder.arguments)
        return a, b, c

    def make_operand(self, is_a: bool) -> Operand:
        """A or B: matrices in rows, or in fractals."""
        shape, way = self.shape, self.way(is_a, self.shape.k, self._rotation())
        transposed = shape.transpose_a if is_a else not shape.transpose_b
        rows = Rows(self.sources[0 if is_a else 1], shape.rows[0 if is_a else 1], transposed, shape.c0)
        kind = FractalOperand if shape.fractal else MatrixOperand
        return kind(self.builder, way, rows, shape.dtype, self.halves)

    def way(self, is_a: bool, depth: int, rotation: AffineExpr | None = None) -> Way:
        """How A or B comes, of `depth` iterations of k."""
        schedule, number = self.schedule, 0 if is_a else 1
        extent, step, first = schedule.base[number], schedule.base[2], number * PACKETS
        return Way(is_a, extent, step, depth, schedule.packets[number], schedule.buffers[number], first, rotation)

    def _rotation(self) -> AffineExpr | None:
        """Where in k this core begins: whole packets, where k has only such."""
        schedule = self.schedule
        packet = max(schedule.packets) * schedule.base[2]
        if not schedule.rotated or self.shape.k % packet:
            return None
        return self._block % (self.shape.k // packet) * packet

    def write(self) -> None:
        """The whole program of a core."""
        with self._flags():
            self.visit_tiles(self._compute)

    def visit_tiles(self, visit: Callable[[OutputTile], None]) -> None:
        """The loops over the tiles of a core's part, around what `visit` writes."""
        if self.schedule.in_turn:
            self._in_turn(visit)
            return
        builder, (rows, columns) = self.builder, self.schedule.grid
        block = self._block
        single_m, single_n = self.schedule.single
        part = block % (rows * columns) if self.schedule.batches > 1 else block
        first_m, first_n = part // columns * single_m, part % columns * single_n
        m = first_m, builder.minimum(first_m + single_m, self.shape.m, name="end_m")
        n = first_n, builder.minimum(first_n + single_n, self.shape.n, name="end_n")
        if not self.shape.batch:
            self._parts(m, n, visit, self._whole())
            return
        share = -(-self.shape.count // self.schedule.batches)
        first = block // (rows * columns) * share
        stop = builder.minimum(first + share, self.shape.count, name="stop_batch")
        with builder.loop(first, stop, 1, "batch") as index:
            self._parts(m, n, visit, self._in_batch(index))

    def _in_turn(self, visit: Callable[[OutputTile], None]) -> None:
        """Core after core takes the next tile, product after product of a batch."""
        (rows, columns), (base_m, base_n, _) = self.schedule.grid, self.schedule.base
        each = rows * columns
        with self.builder.loop(self._block, each * self.shape.count, self.schedule.cores, "tile") as number:
            batch = self._in_batch(number // each) if self.shape.batch else self._whole()
            in_product = number % each if self.shape.batch else number
            row, column = place_in_turn(in_product, (rows, columns), self.schedule.along, self.schedule.high)
            tile = self._tile(row * base_m, column * base_n, self.shape.m, self.shape.n, batch)
            visit(replace(tile, turn=number // self.schedule.cores))

    def _whole(self) -> OutputTile:
        a, b, c = self._first
        return OutputTile(0, 0, 0, 0, a, b, c)

    def _in_batch(self, index: AffineExpr) -> OutputTile:
        """Where the operands of a product of the batch begin."""
        at: list[AffineExpr] = [AffineExpr.constant(first) for first in self._first]
        places: list[Expr] = []
        inner = 1
        for each in reversed(self.shape.batch):
            place = index // inner % each.extent
            places.insert(0, place)
            at = [place * step + before for step, before in zip((each.a, each.b, each.c), at, strict=True)]
            inner *= each.extent
        a, b, c = at
        return OutputTile(0, 0, 0, 0, a, b, c, tuple(places), index)

    def _parts(self, m: _Range, n: _Range, visit: Callable[[OutputTile], None], batch: OutputTile) -> None:
        """A core's part, split further so that what all cores work on at a time stays in L2."""
        (first_m, end_m), (first_n, end_n) = m, n
        (split_m, split_n), (single_m, single_n) = self.schedule.l2_split, self.schedule.single
        base_m, base_n, _ = self.schedule.base
        part_m, part_n = up(-(-single_m // split_m), base_m), up(-(-single_n // split_n), base_n)
        assert isinstance(part_m, int)
        assert isinstance(part_n, int)
        b = self.builder
        with b.loop(first_m, end_m, part_m, "part_m") as pm, b.loop(first_n, end_n, part_n, "part_n") as pn:
            stop_m = b.minimum(pm + part_m, end_m, name="stop_m")
            stop_n = b.minimum(pn + part_n, end_n, name="stop_n")
            columns_first = self.schedule.along == "n"
            loops = ((pn, stop_n, base_n, "n"), (pm, stop_m, base_m, "m"))
            outer, inner = loops if columns_first else loops[::-1]
            with b.loop(*outer) as first, b.loop(*inner) as second:
                column, row = (first, second) if columns_first else (second, first)
                visit(self._tile(row, column, stop_m, stop_n, batch))

    def _tile(self, m: AffineExpr, n: AffineExpr, stop_m: Expr, stop_n: Expr, batch: OutputTile) -> OutputTile:
        b, (base_m, base_n, _) = self.builder, self.schedule.base
        rows: Expr = base_m if self._even(self.shape.m, 0) else b.minimum(expression(stop_m) - m, base_m, name="rows")
        columns: Expr = (
            base_n if self._even(self.shape.n, 1) else b.minimum(expression(stop_n) - n, base_n, name="columns")
        )
        return replace(batch, m=m, n=n, rows=rows, columns=columns, turn=m // base_m + batch.turn)

    def _compute(self, tile: OutputTile) -> None:
        self.a.begin(tile)
        self.b.begin(tile)
        self._sum(tile)
        self._out(tile)
        if self.epilogue.finished is not None:
            self.epilogue.finished(tile)

    def _even(self, size: int, axis: int) -> bool:
        """Whether all tiles along an axis are whole."""
        return size % self.schedule.base[axis] == 0 and self.schedule.single[axis] % self.schedule.base[axis] == 0

    def _sum(self, tile: OutputTile) -> None:
        """All of k: packets of the operand with the larger ones outside, those of the other within them."""
        base_k, k = self.schedule.base[2], self.shape.k
        if self._joint:
            self._sum_jointly(tile)
            return
        large, small = (self.a, self.b) if self.a.packet >= self.b.packet else (self.b, self.a)
        b = self.builder
        with b.loop(0, k, large.packet * base_k, "k_outer") as outer:
            self._load(large, tile, outer)
            stop = b.minimum(outer + large.packet * base_k, k, name="k_stop") if k % (large.packet * base_k) else None
            outer_stop: Expr = outer + large.packet * base_k if stop is None else stop
            with b.loop(outer, outer_stop, small.packet * base_k, "k_inner") as inner:
                self._load(small, tile, inner)
                whole = k % base_k == 0 and large.packet % small.packet == 0 and k % (small.packet * base_k) == 0
                inner_stop: Expr = inner + small.packet * base_k
                if not whole:
                    inner_stop = b.minimum(inner_stop, outer_stop, k, name="k_end")
                with b.loop(inner, inner_stop, base_k, "k") as step:
                    self._step(tile, step, outer, inner, large is self.a, inner_stop)
                self._free(small, inner)
            self._free(large, outer)

    @property
    def _joint(self) -> bool:
        """Whether packets of A and B come and go together, under one flag."""
        return (self.a.packet, self.a.buffers, self.a.pipe) == (self.b.packet, self.b.buffers, self.b.pipe)

    def _sum_jointly(self, tile: OutputTile) -> None:
        b, base_k, k = self.builder, self.schedule.base[2], self.shape.k
        packet = self.a.packet * base_k
        ahead = self.schedule.in_turn and self.a.buffers > 1 and self.a.pipe is Pipe.MTE2
        if ahead:
            self._load_both(tile, AffineExpr.constant(0))
        with b.loop(0, k, packet, "k_outer") as outer:
            place = self.a.way.place(outer)
            if not ahead:
                self._load_both(tile, outer)
            elif k > packet:
                with b.loop(
                    outer + packet, b.minimum(outer + 2 * packet, k, name="k_next"), packet, "k_ahead"
                ) as later:
                    self._load_both(tile, later)
            b.wait_flag(self.a.pipe, Pipe.MTE1, place)
            stop: Expr = outer + packet
            if k % packet:
                stop = b.minimum(stop, k, name="k_stop")
            with b.loop(outer, stop, base_k, "k") as step:
                self._step(tile, step, outer, outer, True, stop)
            b.set_flag(Pipe.MTE1, self.a.pipe, place)

    def _load_both(self, tile: OutputTile, k: AffineExpr) -> None:
        """The packets of both operands at k, when their place in L1 is free.

        MTE2 is asked for the next packet before the steps of this one: the queue of MTE1 holds a few steps, and what
        stands behind them in the program waits. MTE3, where that writes L1, also has results to write in between.
        """
        b, place = self.builder, self.a.way.place(k)
        b.wait_flag(Pipe.MTE1, self.a.pipe, place)
        self.a.move(tile, k)
        self.b.move(tile, k)
        self._move_bias(tile, k)
        b.set_flag(self.a.pipe, Pipe.MTE1, place)

    def _load(self, x: Operand, tile: OutputTile, k: AffineExpr) -> None:
        """The next packet of an operand, when its place in L1 is free."""
        b, place = self.builder, x.way.place(k) + x.way.flag
        b.wait_flag(Pipe.MTE1, x.pipe, place)
        x.move(tile, k)
        if x is self.a:
            self._move_bias(tile, k)
        b.set_flag(x.pipe, Pipe.MTE1, place)
        b.wait_flag(x.pipe, Pipe.MTE1, place)

    def _move_bias(self, tile: OutputTile, k: AffineExpr) -> None:
        """MTE2: the bias of a tile, with its first packet of A."""
        if self.bias is None:
            return
        source, first = self.bias(tile)
        with self.builder.loop(0, k * -1 + 1, 1, "first"):
            self.builder.emit(
                "copy_gm_to_cbuf_multi_nd2nz", (self.bias1, self.a.way.place(k) * self.schedule.base[1]),
                (source, expression(tile.n) + first), n=1, d=tile.columns, src_stride=0, dst_stride=1,
            )  # fmt: skip

    def _bias_to_table(self, tile: OutputTile, k: AffineExpr, start: AffineExpr, half: AffineExpr) -> None:
        """MTE1: the bias of a tile, before its first product."""
        if self.bias is None:
            return
        base_n = self.schedule.base[1]
        blocks = up(expression(tile.columns) * DTYPES[self.bias1.dtype], 32) // 32
        with self.builder.loop(0, k * -1 + 1, 1, "first"):
            self.builder.emit(
                "copy_cbuf_to_bt", (self.bias0, half % self.tables * base_n),
                (self.bias1, self.a.way.place(start) * base_n), length=blocks,
            )  # fmt: skip

    def _free(self, x: Operand, k: AffineExpr) -> None:
        """MTE1 has read a packet."""
        self.builder.set_flag(Pipe.MTE1, x.pipe, x.way.place(k) + x.way.flag)

    def _step(
        self, tile: OutputTile, k: AffineExpr, outer: AffineExpr, inner: AffineExpr, a_is_outer: bool, stop: Expr
    ) -> None:
        """One base step: both operands to L0, then their product."""
        b, base_k, shape = self.builder, self.schedule.base[2], self.shape
        depth: Expr = base_k if shape.k % base_k == 0 else b.minimum(expression(stop) - k, base_k, name="step")
        self._scalar_work()
        half = k // base_k % self.halves
        b.wait_flag(Pipe.M, Pipe.MTE1, half)
        self.a.to_l0(tile, k, outer if a_is_outer else inner, depth, half)
        self.b.to_l0(tile, k, inner if a_is_outer else outer, depth, half)
        self._bias_to_table(tile, k, outer if a_is_outer else inner, half)
        b.set_flag(Pipe.MTE1, Pipe.M, half)
        b.wait_flag(Pipe.MTE1, Pipe.M, half)
        self._product(tile, k, depth, half)
        b.set_flag(Pipe.M, Pipe.MTE1, half)

    def _scalar_work(self) -> None:
        """What the scalar unit computes in a step, beside handing over 8 instructions and those of the moves."""
        packets = 6 / self.a.packet if self._joint else 5 / self.a.packet + 5 / self.b.packet
        work = round(self.schedule.scalar_cycles - (8 + packets) * self.builder.target.queues.issue)
        if work > 0:
            self.builder.emit("scalar_work", cycles=work)

    def _product(self, tile: OutputTile, k: AffineExpr, depth: Expr, half: AffineExpr) -> None:
        b, (base_m, base_n, base_k) = self.builder, self.schedule.base
        unit: Expr = 0
        if self.schedule.unit_flag:
            unit = (k + base_k) // (-(-self.shape.k // base_k) * base_k) + 2
        else:
            with b.loop(0, k * -1 + 1, 1, "first"):
                b.wait_flag(Pipe.FIX, Pipe.M, self._sum_half(tile))

        def product(name: str, *table: tuple[Buffer, Expr], accumulate: Expr = 0) -> None:
            sums = (self.sums, self._sum_half(tile) * (base_m * base_n))
            a, b = (self.a.l0, half * (base_k * base_m)), (self.b.l0, half * (base_k * base_n))
            self.builder.emit(
                name, sums, a, b, *table, m=tile.rows, k=depth, n=tile.columns, accumulate=accumulate, unit_flag=unit,
                k_align=int(self.shape.transpose_a and self.shape.c0 == 8),
            )  # fmt: skip

        if self.bias is None:
            product("mad", accumulate=k)
            return
        with b.loop(0, k * -1 + 1, 1, "first"):
            product("mad_bias", (self.bias0, half % self.tables * base_n))
        if self.shape.k > base_k:
            with b.loop(0, b.minimum(k, 1), 1, "later"):
                product("mad", accumulate=1)

    def _sum_half(self, tile: OutputTile) -> AffineExpr:
        return expression(tile.turn) % self.sum_halves

    def _out(self, tile: OutputTile) -> None:
        """The Fixpipe writes a tile."""
        b, (base_m, base_n, _), unit = self.builder, self.schedule.base, self.schedule.unit_flag
        half = self._sum_half(tile)
        if not unit:
            b.set_flag(Pipe.M, Pipe.FIX, half)
            b.wait_flag(Pipe.M, Pipe.FIX, half)
        row, landing, scaling = self.shape.rows[2], self.epilogue.landing, self.epilogue.scaling
        to: tuple[Buffer, Expr] = (self.c, expression(tile.m) * row + tile.n + tile.at_c)
        if landing is not None:
            to = (landing, 0)
            self.before_landing()
        name = "copy_matrix_cc_to_gm" if landing is None else "copy_matrix_cc_to_ubuf"
        scale, more = None, dict[str, Expr]()
        if scaling is not None and landing is None:
            name, scale, more = f"{name}_quant", scaling[0], {"offset": scaling[1]}
        b.emit(
            name, to, (self.sums, half * (base_m * base_n)), scalar=scale, n=tile.columns, m=tile.rows,
            dst_stride=row if landing is None else base_n, src_stride=up(tile.rows, 16),
            relu=int(self.epilogue.relu), unit_flag=3 if unit else 0, **more,
        )  # fmt: skip
        if not unit:
            b.set_flag(Pipe.FIX, Pipe.M, half)

    @contextmanager
    def _flags(self) -> Generator[None]:
        """Backward flags: everything is free at the start, and taken back at the end."""
        operands = (self.a,) if self._joint else (self.a, self.b)
        backward = [(Pipe.MTE1, x.pipe, x.way.flag + k) for x in operands for k in range(x.buffers)]
        backward += [(Pipe.M, Pipe.MTE1, k) for k in range(self.halves)]
        if not self.schedule.unit_flag:
            backward += [(Pipe.FIX, Pipe.M, k) for k in range(self.sum_halves)]
        for source, target, event in backward:
            self.builder.set_flag(source, target, event)
        self.a.open()
        self.b.open()
        yield
        self.a.close()
        self.b.close()
        for source, target, event in backward:
            self.builder.wait_flag(source, target, event)


def place_in_turn(number: AffineExpr, tiles: tuple[int, int], along: str, high: int) -> tuple[AffineExpr, AffineExpr]:
    """The row and the column of the tile of a number: `tiles` counts both, and bands along m or n are `high` tiles."""
    across = tiles[1] if along == "m" else tiles[0]
    inside = number % (high * across)
    first = number // (high * across) * high + inside % high
    return (first, inside // high) if along == "m" else (inside // high, first)
