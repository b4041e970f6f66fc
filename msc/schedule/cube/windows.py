"""The schedule of a convolution on the cube: tiles of pixels and channels, packets of channels in L1, and cores."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from msc.schedule.cube.convolutions import CubeConvolution, rows_of_image
from msc.schedule.cube.sharing import Loads, OperandMoves, side_by_side
from msc.schedule.cube.trees import CubeSchedule
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, FRACTAL, LOAD3D_POSITIONS

_COLUMNS = (32, 64, 128, 192, 256)
_ROWS = (*_COLUMNS, 384, 512)
"""Columns and rows of base tiles that are tried."""


def load3d_bandwidth(convolution: CubeConvolution, target: DavinciTarget) -> float:
    """Bytes a cycle of Load3D to L0A: by the stride along a row and the rows of the filter."""
    stride, rows, mte1 = convolution.width.stride, convolution.height.taps, target.mte1
    found = mte1.load3d_l0a_least
    if stride == 1:
        found = mte1.l0a if rows == 1 else 512 // (rows + 2 + mte1.load3d_l0a_extra)
    elif stride in (2, 4, 8):
        found = 512 // (2 * stride + mte1.load3d_l0a_extra + (rows if rows > 1 else 0))
    return max(found, mte1.load3d_l0a_least)


def convolution_schedules(
    convolution: CubeConvolution, target: DavinciTarget, out_dtype: str, *, bias: bool
) -> list[CubeSchedule]:
    """Schedules that fit the machine, the fewest predicted cycles first. Raises MSC1021 where there is none."""
    found = sorted(_Search(convolution, target, out_dtype, bias).schedules(), key=lambda each: each[0])
    if not found:
        message = f"no tile of this convolution fits {target.name}"
        raise MscError(Diagnostic("MSC1021", message, help="fewer taps, or narrower images"))
    return [schedule for _, schedule in found]


class _Search:
    def __init__(self, convolution: CubeConvolution, target: DavinciTarget, out_dtype: str, bias: bool) -> None:
        self.c, self.target, self.bias = convolution, target, bias
        self.size, self.out_size = DTYPES[convolution.product.dtype], DTYPES[out_dtype]

    def schedules(self) -> Iterator[tuple[float, CubeSchedule]]:
        """Schedules and their predicted cycles."""
        pixels, outputs = self.c.pixels, self.c.outputs
        for n in sorted({_even(outputs, most) for most in _COLUMNS}):
            for m in sorted({_even(pixels, most) for most in _ROWS}):
                if 4 * m * n <= self.target.buffers.l0c:
                    yield from self._packets(m, n)

    def _packets(self, m: int, n: int) -> Iterator[tuple[float, CubeSchedule]]:
        groups = self.c.groups
        for b in sorted({1, 2, 4, 8, groups} & set(range(1, groups + 1))):
            k = self._base_k(m, n, b)
            if k is None:
                continue
            for a in sorted({b, 2 * b, 4 * b, -(-groups // b) * b}):
                if a < groups + b:
                    yield from self._buffered(m, n, k, a, b)

    def _base_k(self, m: int, n: int, groups: int) -> int | None:
        buffers, c0 = self.target.buffers, self.c.c0
        room = min(buffers.l0a // 2 // (m * self.size), buffers.l0b // 2 // (n * self.size))
        rows = groups * self.c.taps
        return max((d * c0 for d in range(1, rows + 1) if rows % d == 0 and d * c0 <= room), default=None)

    def _buffered(self, m: int, n: int, k: int, a: int, b: int) -> Iterator[tuple[float, CubeSchedule]]:
        rows = rows_of_image(self.c, m)
        if rows * self.c.width.size > LOAD3D_POSITIONS:
            return
        bytes_a, bytes_b = a * rows * self.c.width.size * 32, b * self.c.taps * n * 32
        room = self.target.buffers.l1 - self.target.buffers.l1_reserved - (12 * n if self.bias else 0)
        for buffers_a in (2, 1):
            for buffers_b in (2, 1):
                if buffers_a * bytes_a + buffers_b * bytes_b <= room:
                    yield self._tiling((m, n, k), (a, b), (buffers_a, buffers_b), bytes_a)

    def _tiling(
        self, base: tuple[int, int, int], groups: tuple[int, int], buffers: tuple[int, int], bytes_a: int
    ) -> tuple[float, CubeSchedule]:
        m, n, _ = base
        tiles_m, tiles_n = ceil(self.c.pixels / m), ceil(self.c.outputs / n)
        batches, rows, columns = self._split(tiles_m, tiles_n)
        each = ceil(self.c.count / batches) * ceil(tiles_m / rows) * ceil(tiles_n / columns)
        double_sums = 8 * m * n <= self.target.buffers.l0c
        whole = self.c.taps * self.c.c0
        schedule = CubeSchedule(
            base, (groups[0] * whole // base[2], groups[1] * whole // base[2]), buffers, (rows, columns),
            (ceil(tiles_m / rows) * m, ceil(tiles_n / columns) * n), batches * rows * columns, batches=batches,
            sums=2 if double_sums else 1, unit_flag=not double_sums, rotated=False,
        )  # fmt: skip
        return each * self._cycles(base, groups, buffers, bytes_a, double_sums), schedule

    def _split(self, tiles_m: int, tiles_n: int) -> tuple[int, int, int]:
        """Cores over images and groups, tiles of pixels and tiles of channels: the busiest has least to do."""
        cores, count = self.target.cores.cube, self.c.count
        found: list[tuple[tuple[int, int], tuple[int, int, int]]] = []
        for rows in range(1, min(cores, tiles_m) + 1):
            for columns in range(1, min(cores // rows, tiles_n) + 1):
                images = ceil(count / min(count, cores // (rows * columns)))
                batches = ceil(count / images)
                most = images * ceil(tiles_m / rows) * ceil(tiles_n / columns)
                found.append(((most, batches * rows * columns), (batches, rows, columns)))
        return min(found)[1]

    def _cycles(
        self,
        base: tuple[int, int, int],
        groups: tuple[int, int],
        buffers: tuple[int, int],
        bytes_a: int,
        double_sums: bool,
    ) -> float:
        """One tile: the slowest pipe, and what nothing hides."""
        (m, n, k), target, depth = base, self.target, self.c.depth
        mte1, gm = target.mte1, target.gm
        steps = depth / k
        step_k = {1: target.cube.s8_k, 2: target.cube.f16_k, 4: target.cube.f32_k}[self.size]
        product = steps * (m // 16 * (n // 16) * k / step_k + target.cube.gap)
        reads_a = steps * m * k * self.size / load3d_bandwidth(self.c, target)
        reads_b = steps * n * k * self.size / mte1.l0b
        loads = [Loads(reads, steps * mte1.gap) for reads in (reads_a, reads_b)]
        packets_a, packets_b = ceil(self.c.groups / groups[0]), ceil(self.c.groups / groups[1])
        moved = bytes_a / gm.packet * gm.nd2nz_packet_512
        if groups[0] < self.c.groups:  # each pixel is a packet of its own
            moved = max(moved, bytes_a / (32 * groups[0]) * gm.l1_packet)
        image = packets_a * (gm.l1_start + moved)
        filters = packets_b * gm.l1_start + depth * n * self.size / 512 * gm.l1_packet
        moves = [OperandMoves(image, packets_a * bytes_a), OperandMoves(filters, depth * n * self.size)]
        out = m * ceil(n * self.out_size / 512) * gm.write_packet
        waits = (0 if buffers[0] > 1 else image) + (0 if buffers[1] > 1 else filters)
        exposed = waits + (0 if double_sums else out / 4)
        busiest = max(product, *side_by_side(loads, moves, target, target.cores.cube), out)
        return busiest + exposed + target.cube.restart + 4 * target.queues.flag


def _even(total: int, most: int) -> int:
    """The tile of a multiple of 16 that cuts `total` into as many parts as `most` does, as even as can be."""
    parts = ceil(total / most)
    return ceil(ceil(total / parts) / FRACTAL) * FRACTAL
