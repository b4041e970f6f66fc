"""The program of a matrix product on cube cores, for a given schedule.

Each core takes the tiles of its part of C. For a tile, MTE2 brings packets of A and B to L1 in fractals, MTE1 takes
base tiles of them to L0A and L0B, M adds their products up in L0C, and the Fixpipe writes the tile. Packets, L0 halves
and L0C are handed over by flags, forwards when they are full and backwards when they are free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

from msc.dialects.davinci import KernelOp
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression, up
from msc.lowering.ascend.matmul_tiling import MatmulSchedule, MatmulShape, scalar_cycles
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, Pipe, Space


@dataclass(frozen=True)
class Tile:
    """A tile of C: where it starts, and how many rows and columns of it there are."""

    m: Expr
    n: Expr
    rows: Expr
    columns: Expr


@dataclass(frozen=True)
class _Operand:
    """How an operand comes: `flag` is the first of its event ids, `packet` base tiles come in one of `buffers`."""

    source: Buffer
    l1: Buffer
    l0: Buffer
    packet: int
    buffers: int
    flag: int
    extent: int
    """Rows of A or columns of B in a base tile."""
    row: int
    """Elements between two stored rows."""
    transposed: bool
    """Whether it is stored with k along its rows' count: k rows of m or n elements."""
    pad: int
    """Elements of an L1 packet."""


def matmul_kernel(shape: MatmulShape, schedule: MatmulSchedule, target: DavinciTarget, relu: bool = False) -> KernelOp:
    """The kernel of C = A B on `schedule.cores` cube cores. Raises MSC1021 for what does not fit."""
    sizes = [(shape.dtype, shape.m * shape.k), (shape.dtype, shape.k * shape.n), (shape.out_dtype, shape.m * shape.n)]
    kind = "cube"
    builder = KernelBuilder("matmul", target, kind, schedule.cores, sizes)
    builder.name_arguments("a", "b", "c")
    MatmulWriter(builder, shape, schedule, relu=relu).write()
    return builder.finish()


class MatmulWriter:
    """Writes the product into a kernel; `finished` is told of each tile, which goes to C or to `landing`."""

    def __init__(
        self,
        builder: KernelBuilder,
        shape: MatmulShape,
        schedule: MatmulSchedule,
        relu: bool = False,
        finished: Callable[[Tile], None] | None = None,
        landing: Buffer | None = None,
    ) -> None:
        self.builder, self.shape, self.schedule, self.relu, self.finished = builder, shape, schedule, relu, finished
        self.landing = landing
        base_m, base_n, _ = schedule.base
        sums = base_m * base_n
        alloc = builder.alloc
        half_l0 = 2 if schedule.double_buffer and _halves_fit(builder.target, shape, schedule) else 1
        self.halves = half_l0
        self.sum_halves = 2 if not schedule.unit_flag and 8 * sums <= builder.target.buffers.l0c else 1
        depth_a, depth_b = schedule.depth_a1, schedule.depth_b1
        a, b, self.c = builder.arguments
        self.a = self._operand(a, Space.ca, "a", base_m, depth_a, 0, shape.transpose_a, shape.m)
        self.b = self._operand(b, Space.cb, "b", base_n, depth_b, 3, not shape.transpose_b, shape.n)
        self.sums = alloc(Space.cc, shape.sum_dtype, self.sum_halves * sums, "c0")

    def _operand(
        self, source: Buffer, l0: Space, name: str, extent: int, depth: int, flag: int, transposed: bool, size: int
    ) -> _Operand:
        shape, k = self.shape, self.schedule.base[2]
        packet, buffers = self.schedule.packet(depth), self.schedule.buffers(depth)
        pad = packet * k * extent
        l1 = self.builder.alloc(Space.cbuf, shape.dtype, buffers * pad, f"{name}1")
        half = self.builder.alloc(l0, shape.dtype, self.halves * k * extent, f"{name}0")
        row = size if transposed else shape.k
        return _Operand(source, l1, half, packet, buffers, flag, extent, row, transposed, pad)

    def write(self) -> None:
        """The whole program of a core."""
        with self._flags():
            self.visit_tiles(self._compute)

    def visit_tiles(self, visit: Callable[[Tile], None]) -> None:
        """The loops over the tiles of a core's part, around what `visit` writes."""
        builder, columns = self.builder, self.schedule.grid[1]
        block = builder.block_index()
        single_m, single_n = self.schedule.single
        first_m, first_n = block // columns * single_m, block % columns * single_n
        end_m = builder.minimum(first_m + single_m, self.shape.m, name="end_m")
        end_n = builder.minimum(first_n + single_n, self.shape.n, name="end_n")
        self._parts(first_m, end_m, first_n, end_n, visit)

    def _parts(self, first_m: Expr, end_m: Expr, first_n: Expr, end_n: Expr, visit: Callable[[Tile], None]) -> None:
        """A core's part, split further so that what all cores work on at a time stays in L2."""
        (split_m, split_n), (single_m, single_n) = self.schedule.l2_split, self.schedule.single
        base_m, base_n, _ = self.schedule.base
        part_m, part_n = up(-(-single_m // split_m), base_m), up(-(-single_n // split_n), base_n)
        assert isinstance(part_m, int)
        assert isinstance(part_n, int)
        b = self.builder
        with b.loop(first_m, end_m, part_m, "part_m") as pm, b.loop(first_n, end_n, part_n, "part_n") as pn:
            stop_m = b.minimum(pm + part_m, end_m, name="stop_m")
            stop_n = b.minimum(pn + part_n, end_n, name="stop_n")
            with b.loop(pn, stop_n, base_n, "n") as n, b.loop(pm, stop_m, base_m, "m") as m:
                visit(self._tile(m, n, stop_m, stop_n))

    def _tile(self, m: AffineExpr, n: AffineExpr, stop_m: Expr, stop_n: Expr) -> Tile:
        b, (base_m, base_n, _) = self.builder, self.schedule.base
        rows: Expr = base_m if self._even(self.shape.m, 0) else b.minimum(expression(stop_m) - m, base_m, name="rows")
        columns: Expr = (
            base_n if self._even(self.shape.n, 1) else b.minimum(expression(stop_n) - n, base_n, name="columns")
        )
        return Tile(m, n, rows, columns)

    def _compute(self, tile: Tile) -> None:
        self._sum(tile)
        self._out(tile)
        if self.finished is not None:
            self.finished(tile)

    def _even(self, size: int, axis: int) -> bool:
        """Whether all tiles along an axis are whole."""
        return size % self.schedule.base[axis] == 0 and self.schedule.single[axis] % self.schedule.base[axis] == 0

    def _sum(self, tile: Tile) -> None:
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
        return (self.a.packet, self.a.buffers) == (self.b.packet, self.b.buffers)

    def _sum_jointly(self, tile: Tile) -> None:
        b, base_k, k = self.builder, self.schedule.base[2], self.shape.k
        packet = self.a.packet * base_k
        with b.loop(0, k, packet, "k_outer") as outer:
            place = self._place(self.a, outer)
            b.wait_flag(Pipe.MTE1, Pipe.MTE2, place)
            self._move(self.a, tile, outer)
            self._move(self.b, tile, outer)
            b.set_flag(Pipe.MTE2, Pipe.MTE1, place)
            b.wait_flag(Pipe.MTE2, Pipe.MTE1, place)
            stop: Expr = outer + packet
            if k % packet:
                stop = b.minimum(stop, k, name="k_stop")
            with b.loop(outer, stop, base_k, "k") as step:
                self._step(tile, step, outer, outer, True, stop)
            b.set_flag(Pipe.MTE1, Pipe.MTE2, place)

    def _place(self, x: _Operand, k: AffineExpr) -> AffineExpr:
        """Which buffer of L1 the packet at k has."""
        return k // (x.packet * self.schedule.base[2]) % x.buffers

    def _load(self, x: _Operand, tile: Tile, k: AffineExpr) -> None:
        """MTE2: the next packet of an operand, when its place in L1 is free."""
        b, place = self.builder, self._place(x, k) + x.flag
        b.wait_flag(Pipe.MTE1, Pipe.MTE2, place)
        self._move(x, tile, k)
        b.set_flag(Pipe.MTE2, Pipe.MTE1, place)
        b.wait_flag(Pipe.MTE2, Pipe.MTE1, place)

    def _move(self, x: _Operand, tile: Tile, k: AffineExpr) -> None:
        b, base_k, size, packet = self.builder, self.schedule.base[2], self.shape.k, x.packet
        extent = tile.rows if x is self.a else tile.columns
        start = tile.m if x is self.a else tile.n
        depth: Expr = packet * base_k
        if size % (packet * base_k):
            depth = b.minimum(k * -1 + size, packet * base_k, name="depth")
        rows, columns = (depth, extent) if x.transposed else (extent, depth)
        source = k * x.row + start if x.transposed else expression(start) * x.row + k
        b.emit(
            "copy_gm_to_cbuf_multi_nd2nz", (x.l1, self._place(x, k) * x.pad), (x.source, source),
            n=rows, d=columns, src_stride=x.row, dst_stride=packet * base_k if x.transposed else x.extent,
        )  # fmt: skip

    def _free(self, x: _Operand, k: AffineExpr) -> None:
        """MTE1 has read a packet."""
        self.builder.set_flag(Pipe.MTE1, Pipe.MTE2, self._place(x, k) + x.flag)

    def _step(
        self, tile: Tile, k: AffineExpr, outer: AffineExpr, inner: AffineExpr, a_is_outer: bool, stop: Expr
    ) -> None:
        """One base step: both operands to L0, then their product."""
        b, base_k, shape = self.builder, self.schedule.base[2], self.shape
        depth: Expr = base_k if shape.k % base_k == 0 else b.minimum(expression(stop) - k, base_k, name="step")
        self._scalar_work()
        half = k // base_k % self.halves
        b.wait_flag(Pipe.M, Pipe.MTE1, half)
        self._to_l0(self.a, k, outer if a_is_outer else inner, tile.rows, depth, half)
        self._to_l0(self.b, k, inner if a_is_outer else outer, tile.columns, depth, half)
        b.set_flag(Pipe.MTE1, Pipe.M, half)
        b.wait_flag(Pipe.MTE1, Pipe.M, half)
        self._product(tile, k, depth, half)
        b.set_flag(Pipe.M, Pipe.MTE1, half)

    def _scalar_work(self) -> None:
        """What the scalar unit computes in a step, beside handing over 8 instructions and those of the moves."""
        target = self.builder.target
        packets = 6 / self.a.packet if self._joint else 5 / self.a.packet + 5 / self.b.packet
        work = round(scalar_cycles(self.schedule, target) - (8 + packets) * target.queues.issue)
        if work > 0:
            self.builder.emit("scalar_work", cycles=work)

    def _to_l0(
        self, x: _Operand, k: AffineExpr, start: AffineExpr, extent: Expr, depth: Expr, half: AffineExpr
    ) -> None:
        """MTE1: a base tile of an operand, from its packet that starts at `start`."""
        b, c0, base_k = self.builder, self.shape.c0, self.schedule.base[2]
        place = self._place(x, start) * x.pad
        target, name = half * (base_k * x.extent), "ca" if x is self.a else "cb"
        if x.transposed:
            self._turned_to_l0(x, place + (k - start) * c0, extent, depth, target)
            return
        source = place + (k - start) * x.extent
        if x is self.b and extent == x.extent and base_k // c0 * x.extent // 16 <= 255:
            b.emit("load_cbuf_to_cb", (x.l0, target), (x.l1, source), repeat=up(depth, c0) // c0 * (x.extent // 16))
            return
        b.emit(
            f"img2colv2_cbuf_to_{name}", (x.l0, target), (x.l1, source), h=x.extent // 16, w=16, c=up(depth, c0),
            k_extension=up(depth, c0), m_extension=up(extent, 16),
        )  # fmt: skip

    def _turned_to_l0(self, x: _Operand, source: AffineExpr, extent: Expr, depth: Expr, target: AffineExpr) -> None:
        """An operand stored along its other axis: its fractals are turned on their way."""
        b, base_k, c0 = self.builder, self.schedule.base[2], self.shape.c0
        high = x.packet * base_k // 16
        fractals, steps = up(extent, 16) // 16, up(depth, 16) // 16
        name = "load_cbuf_to_ca" if x is self.a else "load_cbuf_to_cb"
        if x is self.b and not isinstance(fractals, int):
            with b.loop(0, fractals, 1, "fractal") as f:
                b.emit(
                    name, (x.l0, target + f * 256), (x.l1, source + f * (high * 256)), repeat=steps,
                    dst_stride=fractals, transpose=1,
                )  # fmt: skip
            return
        with b.loop(0, steps, 1, "fractal") as f:
            place = target + f * 256 if x is self.a else target + f * (x.extent * c0)
            stride = steps if x is self.a else 1
            b.emit(
                name, (x.l0, place), (x.l1, source + f * 256), repeat=fractals, src_stride=high, dst_stride=stride,
                transpose=1,
            )  # fmt: skip

    def _product(self, tile: Tile, k: AffineExpr, depth: Expr, half: AffineExpr) -> None:
        b, (base_m, base_n, base_k) = self.builder, self.schedule.base
        unit: Expr = 0
        if self.schedule.unit_flag:
            unit = (k + base_k) // (-(-self.shape.k // base_k) * base_k) + 2
        else:
            with b.loop(0, k * -1 + 1, 1, "first"):
                b.wait_flag(Pipe.FIX, Pipe.M, self._sum_half(tile))
        b.emit(
            "mad", (self.sums, self._sum_half(tile) * (base_m * base_n)), (self.a.l0, half * (base_k * base_m)),
            (self.b.l0, half * (base_k * base_n)), m=tile.rows, k=depth, n=tile.columns, accumulate=k, unit_flag=unit,
        )  # fmt: skip

    def _sum_half(self, tile: Tile) -> AffineExpr:
        return expression(tile.m) // self.schedule.base[0] % self.sum_halves

    def _out(self, tile: Tile) -> None:
        """The Fixpipe writes a tile."""
        b, (base_m, base_n, _), unit = self.builder, self.schedule.base, self.schedule.unit_flag
        half = self._sum_half(tile)
        if not unit:
            b.set_flag(Pipe.M, Pipe.FIX, half)
            b.wait_flag(Pipe.M, Pipe.FIX, half)
        to: tuple[Buffer, Expr] = (self.c, expression(tile.m) * self.shape.n + tile.n)
        if self.landing is not None:
            to = (self.landing, 0)
        b.emit(
            "copy_matrix_cc_to_gm" if self.landing is None else "copy_matrix_cc_to_ubuf", to,
            (self.sums, half * (base_m * base_n)), n=tile.columns, m=tile.rows,
            dst_stride=self.shape.n if self.landing is None else base_n, src_stride=up(tile.rows, 16),
            relu=int(self.relu), unit_flag=3 if unit else 0,
        )  # fmt: skip
        if not unit:
            b.set_flag(Pipe.FIX, Pipe.M, half)

    @contextmanager
    def _flags(self) -> Generator[None]:
        """Backward flags: everything is free at the start, and taken back at the end."""
        operands = (self.a,) if self._joint else (self.a, self.b)
        backward = [(Pipe.MTE1, Pipe.MTE2, x.flag + k) for x in operands for k in range(x.buffers)]
        backward += [(Pipe.M, Pipe.MTE1, k) for k in range(self.halves)]
        if not self.schedule.unit_flag:
            backward += [(Pipe.FIX, Pipe.M, k) for k in range(self.sum_halves)]
        for source, target, event in backward:
            self.builder.set_flag(source, target, event)
        yield
        for source, target, event in backward:
            self.builder.wait_flag(source, target, event)


def _halves_fit(target: DavinciTarget, shape: MatmulShape, schedule: MatmulSchedule) -> bool:
    """Whether L0A and L0B hold two base tiles each."""
    m, n, k = schedule.base
    bytes_k = 2 * k * DTYPES[shape.dtype]
    return bytes_k * m <= target.buffers.l0a and bytes_k * n <= target.buffers.l0b
