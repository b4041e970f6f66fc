"""Vector instructions over whole tiles: how an operation on arrays in UB becomes masks, repeats, strides and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.targets.davinci_isa import DTYPES, INSTRUCTIONS, MOST_REPEATS, MOST_STRIDE

REPEAT_BYTES = 256
_Body = Callable[[Mapping[int, Expr]], None]


@dataclass(frozen=True)
class ArrayInUB:
    """An array in UB: `strides` in elements by axis. One that is `spread` has a block of 32 bytes for each element."""

    buffer: Buffer
    axes: tuple[int, ...]
    strides: tuple[int, ...]
    spread: bool = False

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.buffer.dtype

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.buffer.dtype]

    def stride(self, axis: int) -> int:
        """Elements between neighbours along an axis; 0 along one that it lacks."""
        return self.strides[self.axes.index(axis)] if axis in self.axes else 0

    def at(self, indices: Mapping[int, Expr], offset: Expr = 0) -> Expr:
        """The offset of an element."""
        total = expression(offset)
        for axis, index in indices.items():
            if step := self.stride(axis):
                total = expression(index) * step + total
        return total


@dataclass(frozen=True)
class Partial:
    """Where rows are folded: 256 bytes for each, which hold the combiner's neutral element between two uses.

    Rows are `pitch` bytes apart, all in the half of a row of banks where their sources are not.
    """

    buffer: Buffer
    pitch: int
    neutral: float


class Instructions:
    """Writes instructions over boxes; `sizes` are how much there is of each axis at the moment."""

    def __init__(self, builder: KernelBuilder) -> None:
        self.b = builder
        self.sizes: dict[int, Expr] = {}
        self.capacities: dict[int, int] = {}
        self._mask: tuple[str, Expr] | None = None

    def forget_mask(self) -> None:
        """At the start and the end of a loop nobody knows the mask."""
        self._mask = None

    def _count(self, elements: Expr) -> None:
        if self._mask != ("count", elements):
            self.b.emit("set_mask_count", count=elements)
            self._mask = ("count", elements)

    def mask_lanes(self, lanes: int) -> None:
        """The first lanes of a repeat count from here on."""
        if self._mask == ("lanes", lanes):
            return
        if self._mask is None or self._mask[0] == "count":
            self.b.emit("set_mask_norm")
        self.b.emit("set_vector_mask", high=_bits(lanes - 64), low=_bits(lanes))
        self._mask = ("lanes", lanes)

    def run(self, name: str, axes: Sequence[int], operands: Sequence[ArrayInUB], scalar: float | None = None) -> None:
        """`operands[0] = name(operands[1:])` for all points of `axes`, of which the last one runs along lanes."""
        if self._is_flat(axes, operands):
            self.in_a_row(name, operands, {}, self._flat_count(axes, operands[0]), scalar)
            return
        lane = axes[-1] if axes else None
        lanes = 1 if lane is None else self.sizes[lane]
        per_repeat = REPEAT_BYTES // max(v.bytes for v in operands)
        rows = axes[:-1]
        if rows and isinstance(lanes, int) and lanes <= per_repeat and _may_repeat(operands, rows[-1]):
            self._rows_at_once(name, rows, lanes, operands, scalar)
            return
        self._count(lanes)
        self._nest(rows, {}, lambda indices: self._emit(name, operands, indices, None, 1, scalar))

    def _rows_at_once(
        self, name: str, rows: Sequence[int], lanes: int, operands: Sequence[ArrayInUB], scalar: float | None
    ) -> None:
        """A repeat for each row."""
        self.mask_lanes(lanes)
        repeated, size = rows[-1], self.sizes[rows[-1]]

        def body(indices: Mapping[int, Expr]) -> None:
            if self.capacities[repeated] <= MOST_REPEATS:
                self._emit(name, operands, indices, repeated, size, scalar)
                return
            with self.b.loop(0, size, MOST_REPEATS, "rows") as first:
                repeat = self.b.minimum(expression(size) - first, MOST_REPEATS, name="repeat")
                self._emit(name, operands, {**indices, repeated: first}, repeated, repeat, scalar)

        self._nest(rows[:-1], {}, body)

    def _nest(self, rows: Sequence[int], indices: Mapping[int, Expr], body: _Body) -> None:
        if not rows:
            body(indices)
            return
        with self.b.loop(0, self.sizes[rows[0]], 1, "row") as row:
            self._nest(rows[1:], {**indices, rows[0]: row}, body)

    def _is_flat(self, axes: Sequence[int], operands: Sequence[ArrayInUB]) -> bool:
        first = operands[0]
        same = all(v.axes == tuple(axes) and v.strides == first.strides and not v.spread for v in operands)
        tight = all(
            outer == inner * self.capacities[axis]
            for (outer, inner), axis in zip(pairwise(first.strides), axes[1:-1], strict=False)
        )
        return same and tight

    def _flat_count(self, axes: Sequence[int], value: ArrayInUB) -> Expr:
        if not axes:
            return 1
        size = self.sizes[axes[0]]
        return size if len(axes) == 1 else size * value.strides[0]

    def in_a_row(
        self,
        name: str,
        operands: Sequence[ArrayInUB],
        indices: Mapping[int, Expr],
        elements: Expr,
        scalar: float | None,
        **more: int,
    ) -> None:
        """One instruction over elements in a row from `indices` on."""
        self._count(elements)
        self._emit(name, operands, indices, None, 1, scalar, **more)

    def _emit(
        self,
        name: str,
        operands: Sequence[ArrayInUB],
        indices: Mapping[int, Expr],
        repeated: int | None,
        repeat: Expr,
        scalar: float | None,
        **more: int,
    ) -> None:
        row = INSTRUCTIONS[name]
        per_repeat = REPEAT_BYTES // max(v.bytes for v in operands)
        parameters: dict[str, Expr] = {"repeat": repeat, **more}
        names = ["dst", "src"] if len(operands) == 2 else ["dst", "src0", "src1"][: len(operands)]
        for word, value in zip(names, operands, strict=False):
            stride = per_repeat * value.bytes // 32 if repeated is None else value.stride(repeated) * value.bytes // 32
            if value.spread:
                parameters[f"{word}_block_stride"] = 0
                stride = 0 if repeated is None else stride
            parameters[f"{word}_repeat_stride"] = stride
        known = {p.name for p in row.parameters}
        self.b.emit(
            name,
            *((v.buffer, v.at(indices)) for v in operands),
            scalar=scalar,
            **{key: value for key, value in parameters.items() if key in known},
        )

    def spread(self, value: ArrayInUB, elements: Expr, into: Buffer) -> ArrayInUB:
        """The same with each element in a block of its own, for operations on rows."""
        block = 32 // value.bytes
        whole = ArrayInUB(into, value.axes, tuple(s * block for s in value.strides), spread=True)
        if isinstance(elements, int) and elements <= 8 * MOST_REPEATS:
            self.b.emit("vbrcb", (into, 0), (value.buffer, 0), repeat=-(-elements // 8))
            return whole
        repeats = (expression(elements) + 7) // 8
        with self.b.loop(0, repeats, MOST_REPEATS, "blocks") as first:
            repeat = self.b.minimum(repeats - first, MOST_REPEATS, name="repeat")
            self.b.emit("vbrcb", (into, first * (8 * block)), (value.buffer, first * 8), repeat=repeat)
        return whole

    def reduce_lanes(
        self,
        combine: str,
        axes: Sequence[int],
        sources: Sequence[ArrayInUB],
        target: ArrayInUB,
        partial: Partial | None,
    ) -> None:
        """One element of `target` for each row of a source, or of two sources' products; `partial` is for long rows.

        A long row is folded onto its 256 bytes, which hold the neutral element before and after: filling them again
        waits for nothing, where a copy of each row's start would end before the fold begins.
        """
        lanes = self.sizes[axes[-1]]
        assert isinstance(lanes, int)
        source = sources[0]
        per_repeat = REPEAT_BYTES // source.bytes
        if partial is None:
            self._within_repeats(f"vc{combine}", axes[:-1], lanes, source, target)
            return
        folded = self._fold(combine, axes, sources, partial)
        self._within_repeats(f"vc{combine}", axes[:-1], per_repeat, folded, target)
        rows = partial.buffer.bytes // partial.pitch
        for first in range(0, rows, MOST_REPEATS):
            place = (partial.buffer, first * partial.pitch // source.bytes)
            self.b.emit(
                "vector_dup", place, scalar=partial.neutral, repeat=min(MOST_REPEATS, rows - first),
                dst_repeat_stride=partial.pitch // 32,
            )  # fmt: skip

    def _within_repeats(self, name: str, rows: Sequence[int], lanes: int, source: ArrayInUB, target: ArrayInUB) -> None:
        """One element for each row, which is at most one repeat long."""
        self.mask_lanes(lanes)
        if not rows:
            self.b.emit(name, (target.buffer, 0), (source.buffer, 0), repeat=1)
            return
        inner, size = rows[-1], self.sizes[rows[-1]]
        pitch = source.stride(inner) * source.bytes // 32

        def body(indices: Mapping[int, Expr]) -> None:
            with self.b.loop(0, size, MOST_REPEATS, "rows") as first:
                repeat = self.b.minimum(expression(size) - first, MOST_REPEATS, name="repeat")
                at = {**indices, inner: first}
                self.b.emit(
                    name, (target.buffer, target.at(at)), (source.buffer, source.at(at)), repeat=repeat,
                    src_repeat_stride=pitch,
                )  # fmt: skip

        def once(indices: Mapping[int, Expr]) -> None:
            self.b.emit(
                name, (target.buffer, target.at(indices)), (source.buffer, source.at(indices)), repeat=size,
                src_repeat_stride=pitch,
            )  # fmt: skip

        self._nest(rows[:-1], {}, once if self.capacities[inner] <= MOST_REPEATS else body)

    def _fold(self, combine: str, axes: Sequence[int], sources: Sequence[ArrayInUB], partial: Partial) -> ArrayInUB:
        """Each row folded onto 256 bytes: repeats accumulate in one place."""
        rows, lanes = axes[:-1], self.sizes[axes[-1]]
        assert isinstance(lanes, int)
        per_repeat = REPEAT_BYTES // sources[0].bytes
        strides: list[int] = []
        step = partial.pitch // sources[0].bytes
        for axis in reversed(rows):
            strides.insert(0, step)
            step *= self.capacities[axis]
        folded = ArrayInUB(partial.buffer, tuple(rows), tuple(strides))
        whole, tail = lanes // per_repeat, lanes % per_repeat

        def onto(start: int, repeat: int) -> _Body:
            return lambda at: self._onto(combine, folded, sources, at, start, repeat)

        self.mask_lanes(per_repeat)
        for start in range(0, whole, MOST_REPEATS):
            self._nest(rows, {}, onto(start * per_repeat, min(MOST_REPEATS, whole - start)))
        if tail:
            self.mask_lanes(tail)
            self._nest(rows, {}, onto(whole * per_repeat, 1))
        return folded

    def _onto(
        self,
        combine: str,
        folded: ArrayInUB,
        sources: Sequence[ArrayInUB],
        at: Mapping[int, Expr],
        start: int,
        repeat: int,
    ) -> None:
        place = (folded.buffer, folded.at(at))
        read = [(source.buffer, source.at(at, start)) for source in sources]
        strides = {"dst_repeat_stride": 0, "src0_repeat_stride": 8}
        if len(read) == 2:
            self.b.emit("vmla", place, *read, repeat=repeat, src1_repeat_stride=8, **strides)
            return
        self.b.emit(f"v{combine}", place, *read, place, repeat=repeat, src1_repeat_stride=0, **strides)


def _may_repeat(operands: Sequence[ArrayInUB], axis: int) -> bool:
    """Whether the strides of all operands along an axis are whole blocks, few enough."""
    steps = [v.stride(axis) * v.bytes for v in operands]
    return all(step % 32 == 0 and step // 32 <= MOST_STRIDE for step in steps)


def _bits(lanes: int) -> int:
    """So many low bits of 64, as a signed number."""
    bits = (1 << min(max(lanes, 0), 64)) - 1
    return bits - (1 << 64) if bits >> 63 else bits
