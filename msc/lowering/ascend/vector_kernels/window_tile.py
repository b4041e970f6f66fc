"""One task of a kernel of windows: pixels to UB, an instruction for each tap, and what follows the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.vector_kernels.axes import Axes
from msc.lowering.ascend.vector_kernels.cost import Cost
from msc.lowering.ascend.vector_kernels.instructions import MOST_REPEATS, ArrayInUB
from msc.lowering.ascend.vector_kernels.tile import MOST_BURSTS, TaskWriter
from msc.lowering.ascend.vector_kernels.tiling import GM_DTYPES, UB_DTYPES, Tiling
from msc.lowering.ascend.vector_kernels.windows import WindowReduction, reach
from msc.poly.compute import identity
from msc.schedule.cube.convolutions import Along
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES

LANES = 64
"""Elements of f32 in a repeat."""
_MOST_STRIDE = 255
_COMPUTED = "f32"


@dataclass(frozen=True)
class Patch:
    """The pixels that a task needs: `rows` x `columns`, each of `pitch` elements in UB."""

    rows: int
    columns: int
    pitch: int

    @property
    def elements(self) -> int:
        """Elements in UB."""
        return self.rows * self.columns * self.pitch


def axes_of_sums(windows: WindowReduction, axes: Axes) -> tuple[int | None, ...]:
    """The axes of images, rows, columns and channels; None for one of a single element."""
    own = iter(axes.arrays[windows.sums])
    return tuple(next(own) if size > 1 else None for size in windows.tail.arrays[windows.sums].shape)


def axes_of_kernel(windows: WindowReduction, axes: Axes) -> Axes:
    """The axes of the whole kernel: those of what follows the sums, with the same numbers, and those of the taps.

    Statements of sums run over them in the order of the instructions. Arrays are left out.
    """
    kernel, found = windows.kernel, list(axes_of_sums(windows, axes))
    taps = [way.taps for way in windows.ways if way.taps > 1]
    numbers = iter(range(len(axes.extents), len(axes.extents) + len(taps)))
    found += [next(numbers) if way.taps > 1 else None for way in windows.ways]
    others = [k for k in range(len(kernel.statements)) if k not in windows.dims]
    copied = len(windows.tail.statements) - len(others)
    dims = [{others[k - copied]: d for k, d in own.items() if k >= copied} for own in axes.dims]
    dims += [dict[int, int]() for _ in taps]
    order = list[tuple[int, ...]](() for _ in kernel.statements)
    for number, own in zip(others, axes.statements[copied:], strict=True):
        order[number] = own
    for number, places in windows.dims.items():
        pairs = [(axis, d) for axis, d in zip(found, places, strict=True) if axis is not None and d is not None]
        for axis, d in pairs:
            dims[axis][number] = d
        inside = [axis for axis, _ in pairs]
        order[number] = tuple(sorted(inside, key=lambda axis: (axis < len(axes.extents), axis)))
    return Axes((*axes.extents, *taps), (), tuple(order), (), tuple(dims))


def patch_of(windows: WindowReduction, axes: Axes, tiling: Tiling) -> Patch:
    """What a task brings of an image."""
    sums = axes_of_sums(windows, axes)
    rows, columns = (
        (_capacity(axes, tiling, axis) - 1) * way.stride + reach(way)
        for axis, way in zip(sums[1:3], windows.ways, strict=True)
    )
    unit = 32 // DTYPES[GM_DTYPES[windows.image.dtype]]
    return Patch(rows, columns, -(-windows.image.shape[3] // unit) * unit)


def _capacity(axes: Axes, tiling: Tiling, axis: int | None) -> int:
    return 1 if axis is None else tiling.capacity(axes, axis)


def instruction(windows: WindowReduction) -> str:
    """What a tap does to the sums."""
    return "vmla" if windows.filters is not None else {"add": "vadd", "max": "vmax"}[windows.combine]


class WindowCost(Cost):
    """Tasks that bring pixels and compute sums of them, where others bring the sums."""

    def __init__(self, windows: WindowReduction, axes: Axes, target: DavinciTarget) -> None:
        super().__init__(windows.tail, axes, target)
        self.windows = windows

    def grain(self, tiling: Tiling) -> int:
        """Cores share whole tasks: windows of a part would start elsewhere."""
        del tiling
        return 1

    def is_possible(self, tiling: Tiling) -> bool:
        """Whether a task is of one image, has all channels, and few enough columns for a move and an instruction."""
        image, _, columns, channels = axes_of_sums(self.windows, self.axes)
        whole = channels is None or tiling.capacity(self.axes, channels) == self.axes.extents[channels]
        one = _capacity(self.axes, tiling, image) == 1
        few = patch_of(self.windows, self.axes, tiling).columns <= MOST_BURSTS
        return whole and one and few and _capacity(self.axes, tiling, columns) <= MOST_REPEATS

    def fits(self, tiling: Tiling) -> bool:
        """Whether all that a task needs has room, but for what computing the tail takes."""
        if not self.is_possible(tiling):
            return False
        patch, image = patch_of(self.windows, self.axes, tiling), self.windows.image
        converted = patch.elements * DTYPES[_COMPUTED] * (UB_DTYPES[image.dtype] != image.dtype or image.dtype == "f16")
        filters = self.windows.taps * patch.pitch * DTYPES[_COMPUTED] * (self.windows.filters is not None)
        moved = self._bytes(tiling, "input") + self._sums(tiling)
        if not self.stores_in_place(tiling):
            moved += self._bytes(tiling, "output")
        return (
            1 + tiling.double
        ) * moved + converted + filters <= self.target.buffers.ub - self.target.buffers.ub_reserved

    def _sums(self, tiling: Tiling) -> int:
        own = self.axes.arrays[self.windows.sums]
        return prod(tiling.capacity(self.axes, axis) for axis in own) * DTYPES[_COMPUTED]

    def _bytes(self, tiling: Tiling, kind: str) -> int:
        moved = super()._bytes(tiling, kind)
        if kind != "input":
            return moved
        patch = patch_of(self.windows, self.axes, tiling)
        return moved - self._sums(tiling) + patch.elements * DTYPES[GM_DTYPES[self.windows.image.dtype]]

    def _computing(self, tiling: Tiling) -> float:
        _, rows, columns, _ = axes_of_sums(self.windows, self.axes)
        patch, start = patch_of(self.windows, self.axes, tiling), self.target.vector.start + self.target.queues.barrier
        chunks = -(-self.windows.image.shape[3] // LANES)
        each = _capacity(self.axes, tiling, columns) * self._repeat(instruction(self.windows), LANES) + start
        instructions = self.windows.taps * chunks * _capacity(self.axes, tiling, rows)
        passes = int(self.windows.is_padded) + int(self.windows.image.dtype != _COMPUTED)
        return super()._computing(tiling) + instructions * each + passes * (patch.elements / LANES + start)


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
        weights = self.room.take(_COMPUTED, taps * self.patch.pitch, "weights", half=False)
        raw = self.room.take(source.dtype, LANES * taps, "filters", fill=True)
        wide = raw if source.dtype == _COMPUTED else self.room.take(_COMPUTED, LANES * taps, "wide_filters")
        offsets, moved = self.room.take("i32", LANES, "offsets"), self.room.take("i32", LANES, "tap_offsets")
        self._ramp(offsets, taps * DTYPES[_COMPUTED])

        def chunk(first: Expr, channels: int) -> None:
            at, length = expression(first) * taps, channels * taps * DTYPES[source.dtype]
            b.emit("copy_gm_to_ubuf_align", (raw, 0), (source, at), bursts=1, length=length)
            self._convert_row(wide, raw, LANES * taps)
            b.emit("set_mask_count", count=LANES)
            b.emit("vadds", (moved, 0), (offsets, 0), scalar=0.0, repeat=1)
            with b.loop(0, taps, 1, "tap") as tap:
                place = tap * self.patch.pitch + first
                b.emit("vgather", (weights, place), (wide, 0), (moved, 0), count=channels, src_length=wide.bytes)
                b.emit("vadds", (moved, 0), (moved, 0), scalar=float(DTYPES[_COMPUTED]), repeat=1)

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
            if dtype != _COMPUTED and self._wide is None:
                self._wide = self.room.take(_COMPUTED, elements, "wide_pixels", half=True)
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
        self._dup(sums, layout.elements, float(identity(self.windows.combine, _COMPUTED)))
        self.b.emit("set_mask_norm")
        self.code.forget_mask()
        _, rows, columns, _ = axes_of_sums(self.windows, self.axes)
        to = [0 if axis is None else layout.stride(axis) for axis in (rows, columns)]
        many = self._count(rows), self._count(columns)
        height, width = self.windows.ways
        of = self.patch.columns * self.patch.pitch, self.patch.pitch
        steps = [to[1], of[1] * width.stride]
        at_once = all(step * DTYPES[_COMPUTED] // 32 <= _MOST_STRIDE for step in steps)
        name, weights = instruction(self.windows), self._weights

        def emit(first: Expr, y: Expr, x: Expr, u: AffineExpr, v: AffineExpr, repeat: Expr) -> None:
            row = expression(y) * height.stride + u * height.dilation
            column = expression(x) * width.stride + v * width.dilation
            blocks = [step * DTYPES[_COMPUTED] // 32 if at_once else 0 for step in steps]
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
