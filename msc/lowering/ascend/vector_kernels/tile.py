"""One task of a vector kernel: its pieces of the inputs to UB, the statements as instructions, its results back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.vector_kernels.axes import Axes
from msc.lowering.ascend.vector_kernels.bodies import Bodies, NotForVectors
from msc.lowering.ascend.vector_kernels.formulas import formula
from msc.lowering.ascend.vector_kernels.instructions import Instructions, Value
from msc.lowering.ascend.vector_kernels.room import Room
from msc.lowering.ascend.vector_kernels.tiling import GM_DTYPES, UB_DTYPES, Layout, Tiling, layout_of, unit_of
from msc.poly.compute import identity
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Apply, Constant, Read, reads
from msc.targets.davinci_isa import DTYPES

_LANE_REDUCTIONS = {"add": "add", "max": "max", "min": "min", "and": "min", "or": "max"}
_REDUCTIONS = {**_LANE_REDUCTIONS, "mul": "mul"}
_MOST_BURSTS = 4095
_MOST_LENGTH = 2097151


@dataclass
class Buffers:
    """The buffers through which a task's inputs come and its outputs go; two tasks at a time have one set each."""

    inputs: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    outputs: dict[int, Buffer] = field(default_factory=dict[int, Buffer])


class Tile:
    """Writes the tasks of a kernel."""

    def __init__(
        self,
        builder: KernelBuilder,
        model: KernelModel,
        axes: Axes,
        tiling: Tiling,
        arguments: Mapping[int, Buffer],
    ) -> None:
        self.b, self.model, self.axes, self.tiling, self.arguments = builder, model, axes, tiling, arguments
        self.unit = unit_of(model)
        self.room = Room(builder)
        self.code = Instructions(builder)
        self.code.capacities = {a: tiling.capacity(axes, a) for a in range(len(axes.extents))}
        self.code.sizes = dict(self.code.capacities)
        self.layouts = [layout_of(axes, tiling, of, self.unit) for of in axes.arrays]
        self.values: dict[int, Value] = {}
        self.half = _halves(model)
        self._last = {
            array: number
            for number, s in enumerate(model.statements)
            for array in (s.target, *(read.operand for read in reads(s.body)))
        }

    def is_kept(self, array: int) -> bool:
        """Whether an input is the same for all tasks."""
        own = self.axes.arrays[array]
        return not (set(own) & set(self.tiling.outer)) and self.tiling.split not in own

    def load_kept(self) -> None:
        """Bring the inputs that all tasks share."""
        for array in self._arrays("input"):
            if self.is_kept(array):
                staging = self._staging(array)
                self._load(array, staging, {}, 0)
                self.values[array] = self._converted(array, staging, keep=True)

    def buffers(self) -> Buffers:
        """A set of buffers for one task."""
        moving = (array for array in self._arrays("input") if not self.is_kept(array))
        return Buffers(
            {array: self._staging(array) for array in moving},
            {array: self._staging(array) for array in self._arrays("output")},
        )

    def write(self, task: Expr, buffers: Buffers) -> None:
        """One task."""
        outer, start = self._place(task)
        kept = dict(self.values)
        for array, buffer in buffers.inputs.items():
            self._load(array, buffer, outer, start)
        self.code.forget_mask()
        taken: list[Buffer] = []
        for array, buffer in buffers.inputs.items():
            value = self._converted(array, buffer, keep=False)
            self.values[array] = value
            if value.buffer is not buffer:
                taken.append(value.buffer)
        self._statements(buffers)
        for array, buffer in buffers.outputs.items():
            value = self.values[array]
            if value.dtype != buffer.dtype:
                self._convert(array, value, buffer)
                self.room.give(value.buffer)
            self._store(array, buffer, outer, start)
        for buffer in taken:
            self.room.give(buffer)
        self.values = kept

    def _arrays(self, kind: str) -> list[int]:
        return [k for k, array in enumerate(self.model.arrays) if array.kind == kind]

    def _place(self, task: Expr) -> tuple[dict[int, Expr], Expr]:
        """The indices of a task along the outer axes, and where its tile starts; the sizes follow."""
        split, tile = self.tiling.split, self.tiling.tile
        rest = expression(task)
        start: Expr = 0
        if split is not None:
            extent = self.axes.extents[split]
            parts = -(-extent // tile)
            start = rest % parts * tile if self.tiling.outer else rest * tile
            rest = rest // parts if self.tiling.outer else rest
            whole = extent % tile == 0
            self.code.sizes[split] = tile if whole else self.b.minimum(expression(start) * -1 + extent, tile)
        indices: dict[int, Expr] = {}
        for axis in reversed(self.tiling.outer):
            extent = self.axes.extents[axis]
            indices[axis] = rest % extent if axis != self.tiling.outer[0] else rest
            rest = rest // extent
        return indices, start

    def _staging(self, array: int) -> Buffer:
        """A buffer for the elements of an array as they lie in global memory."""
        layout, dtype = self.layouts[array], GM_DTYPES[self.model.arrays[array].dtype]
        half = self.half.get(array, False)
        return self.room.take(dtype, layout.elements, f"a{array}", fill=self._is_padded(layout), half=half)

    def take(self, of: Sequence[int], dtype: str, name: str = "t", half: bool | None = None) -> Value:
        """A value over some axes, of nothing yet."""
        layout = layout_of(self.axes, self.tiling, of, self.unit)
        return _value(self.room.take(dtype, layout.elements, name, fill=self._is_padded(layout), half=half), layout)

    def _is_padded(self, layout: Layout) -> bool:
        """Whether something may read elements that nothing writes."""
        return not layout.axes or self.code.capacities[layout.axes[-1]] % self.unit != 0 or layout.elements <= 2048

    def _converted(self, array: int, buffer: Buffer, keep: bool) -> Value:
        """An input in the type that the vector unit computes on."""
        layout, dtype = self.layouts[array], UB_DTYPES[self.model.arrays[array].dtype]
        value = _value(buffer, layout)
        if buffer.dtype == dtype:
            return value
        made = self.take(self.axes.arrays[array], dtype)
        self.code.run("vconv", layout.axes, (made, value))
        if keep:
            self.code.forget_mask()
        return made

    def _convert(self, array: int, value: Value, buffer: Buffer) -> None:
        self.code.run("vconv", value.axes, (_value(buffer, self.layouts[array]), value))

    def _moves(
        self, array: int, outer: Mapping[int, Expr], start: Expr, move: Callable[[Expr, Expr, Expr], None]
    ) -> None:
        """`move(offset in UB, offset in global memory, rows)` for each contiguous part of an array that a task has."""
        shape = self.axes.arrays[array]
        strides = [prod(self.axes.extents[a] for a in shape[k + 1 :]) for k in range(len(shape))]
        split = self.tiling.split
        at: Expr = 0
        for axis, stride in zip(shape, strides, strict=True):
            if axis in outer:
                at = expression(outer[axis]) * stride + at
            elif axis == split:
                at = expression(start) * stride + at
        inside = self.layouts[array].axes
        first = inside.index(split) if split in inside else 0
        rows: Expr = 1
        for axis in inside[first:-1]:
            rows = _product(self.code.sizes[axis], rows)
        self._over(inside[:first], dict(zip(shape, strides, strict=True)), array, 0, at, lambda u, g: move(u, g, rows))

    def _over(
        self,
        loops: Sequence[int],
        strides: Mapping[int, int],
        array: int,
        ub: Expr,
        gm: Expr,
        move: Callable[[Expr, Expr], None],
    ) -> None:
        if not loops:
            move(ub, gm)
            return
        with self.b.loop(0, self.code.sizes[loops[0]], 1, "part") as i:
            inner = i * self.layouts[array].stride(loops[0]) + ub
            self._over(loops[1:], strides, array, inner, i * strides[loops[0]] + gm, move)

    def _burst(self, array: int) -> tuple[Expr, int, bool]:
        """Bytes of a row, the pitch of rows in UB in blocks, whether rows lie there without gaps."""
        layout, size = self.layouts[array], DTYPES[GM_DTYPES[self.model.arrays[array].dtype]]
        lanes: Expr = self.code.sizes[layout.axes[-1]] if layout.axes else 1
        capacity = self.code.capacities[layout.axes[-1]] if layout.axes else 1
        pitch = -(-capacity // self.unit) * self.unit * size // 32
        return lanes * size, pitch, capacity * size == pitch * 32 and isinstance(lanes, int)

    def _load(self, array: int, buffer: Buffer, outer: Mapping[int, Expr], start: Expr) -> None:
        length, pitch, tight = self._burst(array)
        source = self.arguments[array]

        def move(ub: Expr, gm: Expr, rows: Expr) -> None:
            if tight:
                self.b.emit(
                    "copy_gm_to_ubuf_align", (buffer, ub), (source, gm), bursts=1, length=_product(rows, length)
                )
                return
            gap = pitch - (_int(length) + 31) // 32 if isinstance(length, int) else 0
            self.b.emit("copy_gm_to_ubuf_align", (buffer, ub), (source, gm), bursts=rows, length=length, dst_gap=gap)

        self._moves(array, outer, start, move)

    def _store(self, array: int, buffer: Buffer, outer: Mapping[int, Expr], start: Expr) -> None:
        length, pitch, tight = self._burst(array)
        target = self.arguments[array]

        def move(ub: Expr, gm: Expr, rows: Expr) -> None:
            if tight:
                self.b.emit(
                    "copy_ubuf_to_gm_align", (target, gm), (buffer, ub), bursts=1, length=_product(rows, length)
                )
                return
            gap = pitch - (_int(length) + 31) // 32 if isinstance(length, int) else 0
            self.b.emit("copy_ubuf_to_gm_align", (target, gm), (buffer, ub), bursts=rows, length=length, src_gap=gap)

        self._moves(array, outer, start, move)

    def _statements(self, buffers: Buffers) -> None:
        taken: dict[int, Buffer] = {}
        for number, statement in enumerate(self.model.statements):
            target = statement.target
            if self._is_overwritten(number):
                continue
            if target not in self.values:
                array = self.model.arrays[target]
                dtype = UB_DTYPES[array.dtype]
                if target in buffers.outputs and buffers.outputs[target].dtype == dtype:
                    self.values[target] = _value(buffers.outputs[target], self.layouts[target])
                elif (dying := self._in_place(number, statement, taken)) is not None:
                    self.values[target] = self.values[dying]
                    taken[target] = taken.pop(dying)
                else:
                    self.values[target] = self.take(
                        self.axes.arrays[target], dtype, f"a{target}", self.half.get(target, False)
                    )
                    if array.kind == "internal":
                        taken[target] = self.values[target].buffer
            self._statement(number, statement)
            for array in [a for a in taken if self._last[a] <= number]:
                self.room.give(taken.pop(array))
                del self.values[array]

    def _in_place(self, number: int, statement: KernelStatement, taken: Mapping[int, Buffer]) -> int | None:
        """An array that nothing reads after an element-wise statement, whose place the result may have."""
        target, body = statement.target, statement.body
        if statement.combine is not None or not isinstance(body, Apply) or len(body.args) != 1:
            return None
        [read] = body.args
        own = self.axes.arrays[target]
        if not isinstance(read, Read) or self.axes.arrays[read.operand] != own or formula(body) is not None:
            return None
        same = UB_DTYPES[read.dtype] == UB_DTYPES[self.model.arrays[target].dtype]
        internal = self.model.arrays[target].kind == "internal"
        whole = read.operand in taken and self._last[read.operand] == number and own == self.axes.statements[number]
        return read.operand if same and internal and whole else None

    def _is_overwritten(self, number: int) -> bool:
        """Whether a statement only says where a reduction along lanes starts, which the reduction needs no more."""
        statement, following = self.model.statements[number], self.model.statements[number + 1 : number + 2]
        if statement.combine is not None or not isinstance(statement.body, Constant) or not following:
            return False
        after = following[0]
        neutral = after.combine is not None and after.target == statement.target and self._writes_all(number + 1)
        if not neutral or statement.body.dtype != self.model.arrays[statement.target].dtype:
            return False
        assert after.combine is not None
        return bool(statement.body.value == identity(after.combine, statement.body.dtype))

    def _writes_all(self, number: int) -> bool:
        """Whether a reduction is along the innermost axes alone, and gives each element of its array once."""
        own = [a for a in self.axes.statements[number] if a not in self.tiling.outer]
        reduced = self.axes.reduced[number]
        kept = [a for a in own if a not in reduced]
        target = self.layouts[self.model.statements[number].target]
        return own[: len(kept)] == kept and len(kept) < len(own) and target.axes == tuple(kept)

    def _statement(self, number: int, statement: KernelStatement) -> None:
        own = tuple(a for a in self.axes.statements[number] if a not in self.tiling.outer)
        target = self.values[statement.target]
        bodies = Bodies(self, own)
        if statement.combine is None:
            bodies.into(statement.body, target)
        else:
            self._reduction(statement, number, own, target, bodies)
        bodies.release()

    def _reduction(
        self, statement: KernelStatement, number: int, own: tuple[int, ...], target: Value, bodies: Bodies
    ) -> None:
        combine, reduced = statement.combine, self.axes.reduced[number]
        assert combine is not None
        if combine not in _REDUCTIONS or target.dtype not in ("f32", "f16"):
            raise NotForVectors(f"a reduction by {combine} of {target.dtype}")
        value = bodies.whole(statement.body)
        if not own or own[-1] not in reduced:
            self.code.run(f"v{_REDUCTIONS[combine]}", own, (target, value, target))
            return
        if combine not in _LANE_REDUCTIONS:
            raise NotForVectors(f"a reduction by {combine} along lanes")
        taken: list[Buffer] = []
        fresh = self._is_overwritten(number - 1) if number else False
        while own and own[-1] in reduced:
            row_bytes = 256 * prod(self.code.capacities[a] for a in own[:-1])
            partial = self.room.take(value.dtype, row_bytes // value.bytes, "partial", fill=True, half=False)
            last = fresh and own[-2:-1] not in [(a,) for a in reduced] and value.dtype == target.dtype
            each = target if last else self.take(own[:-1], value.dtype, "sums")
            self.code.reduce_lanes(_LANE_REDUCTIONS[combine], own, value, each, partial)
            self.room.give(partial)
            own, value = own[:-1], each
            if each is not target:
                taken.append(each.buffer)
        if value is not target:
            self.code.run(f"v{_REDUCTIONS[combine]}", own, (target, value, target))
        self._give(taken)

    def _give(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            self.room.give(buffer)


def _halves(model: KernelModel) -> dict[int, bool]:
    """The half of a row of banks for each array, so that the two sources of an instruction are in different ones."""
    halves: dict[int, bool] = {}
    for statement in model.statements:
        body = statement.body
        if isinstance(body, Apply) and len(body.args) == 2:
            first, second = (a.operand if isinstance(a, Read) else None for a in body.args)
            if first is not None and second is not None and first != second:
                if first in halves:
                    halves.setdefault(second, not halves[first])
                halves.setdefault(first, not halves.get(second, True))
                halves.setdefault(second, not halves[first])
    return halves


def _value(buffer: Buffer, layout: Layout) -> Value:
    return Value(buffer, layout.axes, layout.strides)


def _int(number: Expr) -> int:
    assert isinstance(number, int)
    return number


def _product(rows: Expr, length: Expr) -> Expr:
    if isinstance(rows, int):
        return rows * length if isinstance(length, int) else length * rows
    return rows * _int(length)
