"""One tile of a box: to UB, in another order where that changes, and back to global memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.schedule.copies.boxes import Chosen
from msc.schedule.copies.tiles import BoxTile
from msc.targets.davinci_isa import DTYPES, WORDS, Space

_OFFSETS_AT_ONCE = 8
"""Offsets in a block of 32 bytes."""


@dataclass(frozen=True)
class _Place:
    """Where a tile is: its first element in both arrays, its first index, and how much it has."""

    read_at: AffineExpr
    write_at: AffineExpr
    index_at: AffineExpr
    rows: Expr
    lanes: Expr


class Mover:
    """Writes the tiles of a box. Double ones have two buffers: one tile comes while the other leaves."""

    def __init__(self, b: KernelBuilder, tile: BoxTile, arguments: Mapping[int, Buffer]) -> None:
        self.b, self.tile = b, tile
        box = tile.box
        self._source = None if box.source is None else arguments[box.source]
        self._target = arguments[box.target]
        self._indices = None if box.chosen is None else arguments[box.chosen.array]
        dtype = self._target.dtype
        self._in = b.alloc(Space.ub, dtype, tile.buffers * tile.in_elements, "read")
        self._filled = self._in
        if DTYPES[dtype] == 1:
            address = b.taken(Space.ub) - self._in.bytes
            self._filled = b.alloc_at(Space.ub, "i16", self._in.elements // 2, address, "pairs")
        self._out = b.alloc(Space.ub, dtype, tile.buffers * tile.out_elements, "written") if tile.gathers else self._in
        self._offsets = b.alloc(Space.ub, "i32", tile.out_elements, "offsets") if tile.gathers else None
        self._wide = [self._converted("wide_in", tile.in_elements), self._converted("wide_out", tile.out_elements)]

    def _converted(self, name: str, elements: int) -> Buffer | None:
        if not self.tile.gathers or self.tile.computed == self.tile.box.dtype or self.tile.bytes > 1:
            return None
        return self.b.alloc(Space.ub, self.tile.computed, elements, name)

    def prepare(self) -> None:
        """What all tiles need: the constant, or the offsets in the order of writing."""
        if self._source is None:
            self._fill(self.tile.box.value)
        if self._offsets is not None:
            self._fill(0.0)
            self._write_offsets(self._offsets)
            self.b.emit("set_mask_norm")

    def _fill(self, value: float) -> None:
        """Every element of what is read; bytes two at a time, as the vector unit has none of one byte."""
        if DTYPES[self._in.dtype] == 1:
            byte = int(value) % 256
            value = float((byte * 257 ^ 0x8000) - 0x8000)
        self.b.emit("set_mask_count", count=self._filled.elements)
        self.b.emit("vector_dup", (self._filled, 0), scalar=value, repeat=1)

    def _write_offsets(self, offsets: Buffer) -> None:
        """Byte offsets of a tile's elements: of one block by masks, then twice as many at a time."""
        along, across = (step * DTYPES[self.tile.computed] for step in self.tile.steps)
        b, pitch = self.b, self.tile.out_pitch
        b.emit("set_mask_count", count=_OFFSETS_AT_ONCE)
        b.emit("vector_dup", (offsets, 0), scalar=0.0, repeat=1)
        b.emit("set_mask_norm")
        for bit, lanes in enumerate((0b10101010, 0b11001100, 0b11110000)):
            b.emit("set_vector_mask", high=0, low=lanes)
            b.emit("vadds", (offsets, 0), (offsets, 0), scalar=float(across << bit), repeat=1)
        self._double(offsets, _OFFSETS_AT_ONCE, pitch, 1, across)
        self._double(offsets, pitch, self.tile.rows * pitch, pitch, along)

    def _double(self, offsets: Buffer, known: int, wanted: int, unit: int, step: int) -> None:
        """From `known` offsets to `wanted`, where `unit` more elements mean `step` more bytes."""
        while known < wanted:
            more = min(known, wanted - known)
            self.b.emit("set_mask_count", count=more)
            scalar = float(known // unit * step)
            self.b.emit("vadds", (offsets, known), (offsets, 0), scalar=scalar, repeat=1)
            known += more

    def move(self, task: Expr, half: Expr) -> None:
        """One tile."""
        tile, box, place = self.tile, self.tile.box, self._place(task)
        out = expression(half) * tile.out_elements if tile.gathers else expression(half) * tile.in_elements
        if self._source is None:
            out = expression(0)
        elif box.chosen is not None:
            self._read_rows(place, expression(half) * tile.in_elements, box.chosen)
        else:
            self._read(place, expression(half) * tile.in_elements)
        if self._offsets is not None:
            self._gather(self._offsets, expression(half) * tile.in_elements, out)
        self._write(place, out)

    def _place(self, task: Expr) -> _Place:
        """The tile of a number: lanes run fastest, then rows, then the outer axes."""
        tile, box = self.tile, self.tile.box
        at, to, left = expression(box.read_at), expression(box.write_at), expression(task)
        index_at = expression(box.chosen.at if box.chosen is not None else 0)
        counts: list[Expr] = []
        for axis, size, parts in zip((tile.lane, tile.row), (tile.lanes, tile.rows), reversed(tile.parts), strict=True):
            index, left = (left % parts, left // parts) if parts > 1 else (expression(0), left)
            at, to = _along(index, size * axis.read, at), index * (size * axis.write) + to
            index_at = _along(index, size * axis.index, index_at)
            whole = axis.extent % size == 0
            counts.append(size if whole else self.b.minimum(index * -size + axis.extent, size))
        for axis in reversed(tile.outer):
            index, left = left % axis.extent, left // axis.extent
            at, to = _along(index, axis.read, at), index * axis.write + to
            index_at = _along(index, axis.index, index_at)
        return _Place(at, to, index_at, counts[1], counts[0])

    def _read(self, place: _Place, to: Expr) -> None:
        tile, size = self.tile, self.tile.bytes
        assert self._source is not None
        bursts, length, apart = place.rows, _scaled(place.lanes, size), tile.row.read * size
        if tile.form == "turned":
            bursts, length, apart = place.lanes, _scaled(place.rows, size), tile.lane.read * size
        elif tile.form == "strided":
            length = _plus(_scaled(place.lanes, tile.lane.read * size), (1 - tile.lane.read) * size)
        if tile.is_read_in_one:
            bursts, length = 1, _scaled(place.lanes, tile.rows * size)
        blocks = tile.in_pitch * size // 32
        many = bursts != 1
        self.b.emit(
            "copy_gm_to_ubuf_align", (self._in, to), (self._source, place.read_at), bursts=bursts, length=length,
            src_gap=_plus(_scaled(length, -1), apart) if many else 0, dst_gap=_gap(blocks, length) if many else 0,
        )  # fmt: skip

    def _read_rows(self, place: _Place, to: Expr, chosen: Chosen) -> None:
        """The rows that indices choose, one by one."""
        tile, b, row = self.tile, self.b, self.tile.row
        assert self._source is not None
        assert self._indices is not None
        words = WORDS[chosen.dtype]
        with b.loop(0, place.rows, 1, "row") as k:
            at = _along(k, row.index * words, place.index_at * words)
            index = b.load_index(self._indices, at, chosen.below, words)
            self.b.emit(
                "copy_gm_to_ubuf_align", (self._in, expression(to) + k * tile.in_pitch),
                (self._source, _along(k, row.read, index * chosen.stride + place.read_at)),
                bursts=1, length=_scaled(place.lanes, tile.bytes),
            )  # fmt: skip

    def _gather(self, offsets: Buffer, of: Expr, to: Expr) -> None:
        tile, b = self.tile, self.b
        source, target, at, out = self._in, self._out, of, to
        wide_in, wide_out = self._wide
        if wide_in is not None and wide_out is not None:
            b.emit("set_mask_count", count=tile.in_elements)
            b.emit("vconv", (wide_in, 0), (source, of), repeat=1, src_repeat_stride=4)
            source, target, at, out = wide_in, wide_out, 0, 0
        length = tile.in_elements * DTYPES[source.dtype]
        count = tile.rows * tile.out_pitch
        b.emit("vgather", (target, out), (source, at), (offsets, 0), count=count, src_length=length)
        if wide_out is not None:
            b.emit("set_mask_count", count=count)
            b.emit("vconv", (self._out, to), (wide_out, 0), repeat=1, dst_repeat_stride=4)

    def _write(self, place: _Place, of: Expr) -> None:
        tile, size = self.tile, self.tile.bytes
        length = _scaled(place.lanes, size)
        many = tile.rows > 1
        self.b.emit(
            "copy_ubuf_to_gm_align", (self._target, place.write_at), (self._out, of), bursts=place.rows, length=length,
            src_gap=_gap(tile.out_pitch * size // 32, length) if many else 0,
            dst_gap=_plus(_scaled(length, -1), tile.row.write * size) if many else 0,
        )  # fmt: skip


def _along(index: AffineExpr, stride: int, start: AffineExpr) -> AffineExpr:
    """A place so many strides behind another."""
    return index * stride + start if stride else start


def _scaled(value: Expr, factor: int) -> Expr:
    return value * factor


def _plus(value: Expr, more: int) -> Expr:
    return value + more


def _gap(blocks: int, length: Expr) -> Expr:
    """Blocks between bursts that lie `blocks` apart."""
    if isinstance(length, int):
        return blocks - -(-length // 32)
    return (length + 31) // 32 * -1 + blocks
