"""One task of a kernel of windows: pixels to UB, an instruction for each tap, and what follows the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.vector_kernels.instructions import ArrayInUB
from msc.lowering.ascend.vector_kernels.tile import TaskWriter
from msc.poly.compute import identity
from msc.schedule.cube.convolutions import Along
from msc.schedule.vector_unit.axes import Axes
from msc.schedule.vector_unit.tiling import GM_DTYPES, Tiling
from msc.schedule.vector_unit.window_tiles import COMPUTED, LANES, axes_of_sums, instruction, patch_of
from msc.schedule.vector_unit.windows import WindowReduction, reach
from msc.targets.davinci_isa import DTYPES, MOST_STRIDE


class WindowTile(TaskWriter):
    """Writes the tasks: the sums come as others' inputs do, computed of pixels that two buffers hold in turn."""

    def __init__(
        self,
        builder: KernelBuilder,
        windows: WindowReduction,
        axes: Axes,
        tiling: Tiling,
        arguments: Mapping[int, Buffer],
        *,
        in_place: bool,
    ) -> None:
        super().__init__(builder, windows.tail, axes, tiling, arguments, in_place=in_place)
        self.windows, self.patch = windows, patch_of(windows, axes, tiling)
        self._pixels: dict[Buffer, Buffer] = {}
        self._wide: Buffer | None = None
        self._weights: Buffer | None = None

    @property
    def _channels(self) -> int:
        return self.windows.image.shape[3]

    def load_kept(self) -> None:
        """The weights, each tap's channels together, and the inputs that all tasks share."""
        if self.windows.filters is not None:
            self._weights = self._load_weights(self.arguments[self.windows.filters])
        super().load_kept()

    def _load_weights(self, source: Buffer) -> Buffer:
        """Weights lie channel by channel in global memory: chunks of them come, and `vgather` puts taps together."""
        b, taps = self.b, self.windows.taps
        weights = self.room.take(COMPUTED, taps * self.patch.pitch, "weights", half=False)
        raw = self.room.take(source.dtype, LANES * taps, "filters", fill=True)
        wide = raw if source.dtype == COMPUTED else self.room.take(COMPUTED, LANES * taps, "wide_filters")
        offsets, moved = self.room.take("i32", LANES, "offsets"), self.room.take("i32", LANES, "tap_offsets")
        self._ramp(offsets, taps * DTYPES[COMPUTED])

        def chunk(first: Expr, channels: int) -> None:
            at, length = expression(first) * taps, channels * taps * DTYPES[source.dtype]
            b.emit("copy_gm_to_ubuf_align", (raw, 0), (source, at), bursts=1, length=length)
            self._convert_row(wide, raw, LANES * taps)
            b.emit("set_mask_count", count=LANES)
            b.emit("vadds", (moved, 0), (offsets, 0), scalar=0.0, repeat=1)
            with b.loop(0, taps, 1, "tap") as tap:
                place = tap * self.patch.pitch + first
                b.emit("vgather", (weights, place), (wide, 0), (moved, 0), count=channels, src_length=wide.bytes)
                b.emit("vadds", (moved, 0), (moved, 0), scalar=float(DTYPES[COMPUTED]), repeat=1)

        self._over_chunks(chunk)
        for buffer in {raw, wide, offsets, moved}:
            self.room.give(buffer)
        return weights

    def _over_chunks(self, body: Callable[[Expr, int], None]) -> None:
        """`body(first, channels)` for each repeat of channels."""
        whole = self._channels // LANES * LANES
        if whole:
            with self.b.loop(0, whole, LANES, "channels") as first:
                body(first, LANES)
        if whole < self._channels:
            body(whole, self._channels - whole)
        self.code.forget_mask()

    def _ramp(self, offsets: Buffer, step: int) -> None:
        """0, step, 2 step and so on: each bit of a lane's number adds its part."""
        self.b.emit("set_mask_count", count=LANES)
        self.b.emit("vector_dup", (offsets, 0), scalar=0.0, repeat=1)
        self.b.emit("set_mask_norm")
        for bit in range(LANES.bit_length() - 1):
            lanes = sum(1 << lane for lane in range(LANES) if lane >> bit & 1)
            self.b.emit("set_vector_mask", high=0, low=lanes - (1 << LANES) if lanes >> (LANES - 1) else lanes)
            self.b.emit("vadds", (offsets, 0), (offsets, 0), scalar=float(step << bit), repeat=1)
        self.code.forget_mask()

    def _convert_row(self, to: Buffer, of: Buffer, elements: int) -> None:
        """Elements in a row as f32, if they are none."""
        if to is not of:
            values = [ArrayInUB(buffer, (), ()) for buffer in (to, of)]
            self.code.forget_mask()
            self.code.in_a_row("vconv", values, {}, elements, None)

    def _load(self, array: int, buffer: Buffer, outer: Mapping[int, Expr], start: Expr) -> None:
        if array != self.windows.sums:
            super()._load(array, buffer, outer, start)
            return
        pixels = self._pixels_beside(buffer)
        self._bring(pixels, outer, start)
        wide = self._wide if self._wide is not None else pixels
        self._convert_row(wide, pixels, self.patch.elements)
        self._sum(buffer, wide)
        if self.windows.is_padded:
            self._dup(pixels, self.patch.elements, 0.0)
        self.code.forget_mask()

    def _pixels_beside(self, sums: Buffer) -> Buffer:
        """The pixels of which a buffer's sums are made. They hold zeros where a task brings none."""
        if sums not in self._pixels:
            dtype, elements = GM_DTYPES[self.windows.image.dtype], self.patch.elements
            self._pixels[sums] = self.room.take(dtype, elements, "pixels", fill=True, half=True)
            if dtype != COMPUTED and self._wide is None:
                self._wide = self.room.take(COMPUTED, elements, "wide_pixels", half=True)
        return self._pixels[sums]

    def _dup(self, buffer: Buffer, elements: int, value: float) -> None:
        self.b.emit("set_mask_count", count=elements)
        self.b.emit("vector_dup", (buffer, 0), scalar=value, repeat=1)

    def _bring(self, pixels: Buffer, outer: Mapping[int, Expr], start: Expr) -> None:
        """The pixels under a task's windows, as far as they are in the image."""
        b, image, patch = self.b, self.windows.image, self.patch
        axes = axes_of_sums(self.windows, self.axes)
        number = self._first(axes[0], outer, start)
        (row, first_row, end_row), (column, first, end) = (
            self._inside(way, axis, outer, start) for way, axis in zip(self.windows.ways, axes[1:3], strict=True)
        )
        source = self.arguments[self.windows.image_number]
        size, count = DTYPES[source.dtype], expression(end) - first
        with b.loop(first_row, end_row, 1, "row") as y:
            line = expression(number) * image.shape[1] + row + y
            at = (line * image.shape[2] + column + first) * self._channels
            place = (y * patch.columns + first) * patch.pitch
            tight = patch.pitch == self._channels
            bursts, length = (1, count * (self._channels * size)) if tight else (count, self._channels * size)
            b.emit("copy_gm_to_ubuf_align", (pixels, place), (source, at), bursts=bursts, length=length)

    def _first(self, axis: int | None, outer: Mapping[int, Expr], start: Expr) -> Expr:
        """Where a task begins along an axis."""
        if axis is not None and axis in outer:
            return outer[axis]
        return start if axis is not None and axis == self.tiling.split else 0

    def _inside(self, way: Along, axis: int | None, outer: Mapping[int, Expr], start: Expr) -> tuple[Expr, Expr, Expr]:
        """The first pixel under a task's windows, and from where to where the image has such pixels."""
        begin = expression(self._first(axis, outer, start)) * way.stride + -way.pad
        needed = expression(self._count(axis)) * way.stride + (reach(way) - way.stride)
        before = expression(self.b.minimum(begin, 0, name="before")) * -1
        return begin, before, self.b.minimum(needed, begin * -1 + way.size, name="end")

    def _count(self, axis: int | None) -> Expr:
        """How many elements of an axis a task has."""
        return 1 if axis is None or axis in self.tiling.outer else self.code.sizes[axis]

    def _sum(self, sums: Buffer, pixels: Buffer) -> None:
        """Each tap adds to all sums of a row at once, a repeat for each column, 64 channels at a time."""
        layout = self.layouts[self.windows.sums]
        self._dup(sums, layout.elements, float(identity(self.windows.combine, COMPUTED)))
        self.b.emit("set_mask_norm")
        self.code.forget_mask()
        _, rows, columns, _ = axes_of_sums(self.windows, self.axes)
        to = [0 if axis is None else layout.stride(axis) for axis in (rows, columns)]
        many = self._count(rows), self._count(columns)
        height, width = self.windows.ways
        of = self.patch.columns * self.patch.pitch, self.patch.pitch
        steps = [to[1], of[1] * width.stride]
        at_once = all(step * DTYPES[COMPUTED] // 32 <= MOST_STRIDE for step in steps)
        name, weights = instruction(self.windows), self._weights

        def emit(first: Expr, y: Expr, x: Expr, u: AffineExpr, v: AffineExpr, repeat: Expr) -> None:
            row = expression(y) * height.stride + u * height.dilation
            column = expression(x) * width.stride + v * width.dilation
            blocks = [step * DTYPES[COMPUTED] // 32 if at_once else 0 for step in steps]
            target = sums, expression(y) * to[0] + expression(x) * to[1] + first
            pixel, beside, stride = (pixels, row * of[0] + column * of[1] + first), target, blocks[0]
            if weights is not None:
                beside, stride = (weights, (u * width.taps + v) * self.patch.pitch + first), 0
            self.b.emit(
                name, target, pixel, beside,
                repeat=repeat, dst_repeat_stride=blocks[0], src0_repeat_stride=blocks[1], src1_repeat_stride=stride,
            )  # fmt: skip

        def chunk(first: Expr, channels: int) -> None:
            self.code.mask_lanes(channels)
            loop = self.b.loop
            with loop(0, height.taps, 1, "u") as u, loop(0, width.taps, 1, "v") as v, loop(0, many[0], 1, "y") as y:
                if at_once:
                    emit(first, y, 0, u, v, many[1])
                else:
                    with loop(0, many[1], 1, "x") as x:
                        emit(first, y, x, u, v, 1)

        self._over_chunks(chunk)
