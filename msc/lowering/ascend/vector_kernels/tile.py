"""One task of a vector kernel: its pieces of the inputs to UB, the statements as instructions, its results back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from msc.lowering.ascend.builder import Buffer, Expr, expression
from msc.lowering.ascend.kernels import NotForUnit
from msc.lowering.ascend.vector_kernels.bodies import Bodies
from msc.lowering.ascend.vector_kernels.homes import Homes, TaskBuffers
from msc.lowering.ascend.vector_kernels.instructions import REPEAT_BYTES, ArrayInUB, Partial
from msc.lowering.ascend.vector_kernels.room import BANK_ROW
from msc.lowering.ascend.vector_kernels.task import Task, placed
from msc.poly.compute import Combine, identity
from msc.poly.model import KernelStatement
from msc.poly.scalar import Apply, Constant, Read
from msc.schedule.vector_unit.joined import ScaleAndShift, Scaled
from msc.schedule.vector_unit.simplified import is_product
from msc.schedule.vector_unit.tiling import GM_DTYPES, UB_DTYPES
from msc.targets.davinci_isa import DTYPES

_LANE_REDUCTIONS: Mapping[Combine, Combine] = {"add": "add", "max": "max", "min": "min", "and": "min", "or": "max"}
_REDUCTIONS = {**_LANE_REDUCTIONS, "mul": "mul"}


class TaskWriter(Task):
    """Writes the tasks of a kernel."""

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

    def buffers(self) -> TaskBuffers:
        """A set of buffers for one task."""
        moving = (array for array in self._arrays("input") if not self.is_kept(array))
        return TaskBuffers(
            {array: self._staging(array) for array in moving},
            {array: self._staging(array) for array in self._arrays("output") if not self.in_place},
        )

    def write(self, task: Expr, buffers: TaskBuffers) -> None:
        """One task."""
        outer, start = self._place(task)
        kept = dict(self.values)
        homes = self.arrived(buffers, outer, start)
        self.statements(homes, range(len(self.model.statements)))
        self.leave(buffers.outputs, outer, start)
        homes.release(len(self.model.statements))
        self.values = kept

    def chunk(self, buffers: TaskBuffers, outer: Mapping[int, Expr], start: Expr, numbers: Sequence[int]) -> None:
        """Some statements over a part of the split axis, whose arrays nothing needs afterwards."""
        kept = dict(self.values)
        homes = self.arrived(buffers, outer, start)
        self.statements(homes, numbers)
        homes.release(len(self.model.statements))
        self.values = kept

    def arrived(self, buffers: TaskBuffers, outer: Mapping[int, Expr], start: Expr) -> Homes:
        """Bring inputs; the places of what is computed of them."""
        for array, buffer in buffers.inputs.items():
            self._load(array, buffer, outer, start)
        self.code.forget_mask()
        homes = Homes(self, buffers)
        for array, buffer in buffers.inputs.items():
            self.values[array] = self._converted(array, buffer, keep=False)
            if self.values[array].buffer is not buffer:
                homes.own(array)
        return homes

    def leave(self, outputs: Mapping[int, Buffer], outer: Mapping[int, Expr], start: Expr) -> None:
        """Write the outputs to global memory."""
        for array in self._arrays("output"):
            value = self.values[array]
            buffer = outputs.get(array, value.buffer)
            if value.dtype != buffer.dtype:
                self._convert(array, value, buffer)
            self._copy(array, buffer, outer, start, to_ub=False)

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
            first, end = self.share
            whole = extent % tile == 0 and end is None
            left = expression(start) * -1 + (extent if end is None else end)
            self.code.sizes[split] = tile if whole else self.b.minimum(left, tile)
            start = expression(first) + start
        return self.indices(rest), start

    def indices(self, task: Expr) -> dict[int, Expr]:
        """The place of a task along the outer axes."""
        rest, indices = expression(task), dict[int, Expr]()
        for axis in reversed(self.tiling.outer):
            extent = self.axes.extents[axis]
            indices[axis] = rest % extent if axis != self.tiling.outer[0] else rest
            rest = rest // extent
        return indices

    def _staging(self, array: int) -> Buffer:
        """A buffer for the elements of an array as they lie in global memory."""
        layout, dtype = self.layouts[array], GM_DTYPES[self.model.arrays[array].dtype]
        half = self.half.get(array, False)
        return self.room.take(dtype, layout.elements, f"a{array}", fill=self.is_padded(layout), half=half)

    def _converted(self, array: int, buffer: Buffer, keep: bool) -> ArrayInUB:
        """An input in the type that the vector unit computes on."""
        layout, dtype = self.layouts[array], UB_DTYPES[self.model.arrays[array].dtype]
        value = placed(buffer, layout)
        if buffer.dtype == dtype:
            return value
        made = self.take(self.axes.arrays[array], dtype)
        self.code.run("vconv", layout.axes, (made, value))
        if keep:
            self.code.forget_mask()
        return made

    def _convert(self, array: int, value: ArrayInUB, buffer: Buffer) -> None:
        self.code.run("vconv", value.axes, (placed(buffer, self.layouts[array]), value))

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
        self._copy(array, buffer, outer, start, to_ub=True)

    def _copy(self, array: int, buffer: Buffer, outer: Mapping[int, Expr], start: Expr, *, to_ub: bool) -> None:
        """Move an array between global memory and its buffer in UB, row by row where the rows there have gaps."""
        length, pitch, tight = self._burst(array)
        argument, name = self.arguments[array], "copy_gm_to_ubuf_align" if to_ub else "copy_ubuf_to_gm_align"

        def move(ub: Expr, gm: Expr, rows: Expr) -> None:
            ends = ((buffer, ub), (argument, gm)) if to_ub else ((argument, gm), (buffer, ub))
            if tight:
                self.b.emit(name, *ends, bursts=1, length=_product(rows, length))
                return
            gap = pitch - (_int(length) + 31) // 32 if isinstance(length, int) else 0
            src_gap, dst_gap = (0, gap) if to_ub else (gap, 0)
            self.b.emit(name, *ends, bursts=rows, length=length, src_gap=src_gap, dst_gap=dst_gap)

        self._moves(array, outer, start, move)

    def statements(self, homes: Homes, numbers: Sequence[int]) -> None:
        """Some statements, in order."""
        done = set[int]()
        for number in numbers:
            if number in done or self._is_overwritten(number):
                continue
            if number + 1 in numbers and self._joins(homes, number):
                done.add(number + 1)
                continue
            self._statement_at(homes, number)

    def _joins(self, homes: Homes, number: int) -> bool:
        """A product and the sum that takes it as one instruction, where the sum comes to the place of an operand."""
        joined, statements = self.joined.get(number), self.model.statements
        product, total = (statement.target for statement in statements[number : number + 2])
        if joined is None or {product, total} & set(self.values):
            return False
        if isinstance(joined, ScaleAndShift):
            self.values[product] = homes.home(number)
        if isinstance(joined, Scaled) or self.values[product].buffer is self.values[joined.whole.operand].buffer:
            self.values[total] = homes.home(number + 1)
        if total not in self.values or not self._takes(joined, self.values[total]):
            self._statement_at(homes, number)
            self._statement_at(homes, number + 1)
            return True
        own = self.axes.statements[number + isinstance(joined, Scaled)]
        bodies = Bodies(self, tuple(a for a in own if a not in self.tiling.outer))
        bodies.joined(self.values[total], joined)
        bodies.release()
        homes.release(number + 1)
        return True

    def _takes(self, joined: ScaleAndShift | Scaled, total: ArrayInUB) -> bool:
        """Whether a sum is where the operand is that its instruction overwrites; a literal comes to any other place."""
        if isinstance(joined.whole, Read):
            return total.buffer is self.values[joined.whole.operand].buffer
        assert isinstance(joined, Scaled)
        return total.buffer is not self.values[joined.scaled.operand].buffer

    def _statement_at(self, homes: Homes, number: int) -> None:
        statement = self.model.statements[number]
        if statement.target not in self.values:
            self.values[statement.target] = homes.home(number)
        self._statement(number, statement)
        homes.release(number)

    def _is_overwritten(self, number: int) -> bool:
        """Whether a statement only says where a reduction along lanes starts, which the reduction needs no more."""
        if self.chunked:
            return False
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
        self, statement: KernelStatement, number: int, own: tuple[int, ...], target: ArrayInUB, bodies: Bodies
    ) -> None:
        combine, reduced = statement.combine, self.axes.reduced[number]
        assert combine is not None
        if combine not in _REDUCTIONS or target.dtype not in ("f32", "f16"):
            raise NotForUnit(f"a reduction by {combine} of {target.dtype}")
        sources = self._factors(statement, number, own, bodies) or (bodies.whole(statement.body),)
        value = sources[0]
        if not own or own[-1] not in reduced:
            self.code.run(f"v{_REDUCTIONS[combine]}", own, (target, value, target))
            return
        if combine not in _LANE_REDUCTIONS:
            raise NotForUnit(f"a reduction by {combine} along lanes")
        taken: list[Buffer] = []
        fresh = self._is_overwritten(number - 1) if number else False
        while own and own[-1] in reduced:
            along = _LANE_REDUCTIONS[combine]
            partial = self._partial(along, own, value)
            last = fresh and own[-2:-1] not in [(a,) for a in reduced] and value.dtype == target.dtype
            each = target if last else self.take(own[:-1], value.dtype, "sums")
            self.code.reduce_lanes(along, own, sources, each, partial)
            own, value = own[:-1], each
            sources = (value,)
            if each is not target:
                taken.append(each.buffer)
        if value is not target:
            self.code.run(f"v{_REDUCTIONS[combine]}", own, (target, value, target))
        self._give(taken)

    def _factors(
        self, statement: KernelStatement, number: int, own: tuple[int, ...], bodies: Bodies
    ) -> tuple[ArrayInUB, ArrayInUB] | None:
        """The two arrays whose products a sum along long rows adds (`vmla`); None for another reduction."""
        body = statement.body
        if statement.combine != "add" or not is_product(body) or not own or own[-1] not in self.axes.reduced[number]:
            return None
        assert isinstance(body, Apply)
        left, right = (bodies.whole(arg) for arg in body.args)
        long = self.code.capacities[own[-1]] * left.bytes > REPEAT_BYTES
        return (left, right) if long and left.strides == right.strides else None

    def _partial(self, combine: Combine, own: Sequence[int], value: ArrayInUB) -> Partial | None:
        """Where the rows of a value are folded; None for rows of one repeat."""
        if self.code.capacities[own[-1]] * value.bytes <= REPEAT_BYTES:
            return None
        neutral = float(identity(combine, value.dtype))
        rows = prod(self.code.capacities[a] for a in own[:-1])
        half = not self.room.half_of(value.buffer)
        buffer = self.room.constant(value.dtype, rows * BANK_ROW // value.bytes, neutral, "partial", half)
        return Partial(buffer, BANK_ROW, neutral)

    def _give(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            self.room.give(buffer)


def _int(number: Expr) -> int:
    assert isinstance(number, int)
    return number


def _product(rows: Expr, length: Expr) -> Expr:
    if isinstance(rows, int):
        return rows * length if isinstance(length, int) else length * rows
    return rows * _int(length)
