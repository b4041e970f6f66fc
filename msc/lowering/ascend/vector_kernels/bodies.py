"""The bodies of statements, evaluated for all points of a tile at once."""

from __future__ import annotations

from collections.abc import Sequence

from msc.lowering.ascend.builder import Buffer, Expr
from msc.lowering.ascend.kernels import NotForUnit
from msc.lowering.ascend.vector_kernels.instructions import ArrayInUB
from msc.lowering.ascend.vector_kernels.task import Task
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar
from msc.schedule.vector_unit.formulas import BINARY, COMPARISONS, UNARY, WITH_CONSTANT, formula
from msc.schedule.vector_unit.joined import ScaleAndShift, Scaled
from msc.schedule.vector_unit.tiling import UB_DTYPES

_FLOATS = ("f16", "f32")
_COMMUTES = ("add", "mul", "max", "min")


class Bodies:
    """Evaluates one statement over its axes; what it takes of UB goes back with `release`."""

    def __init__(self, task: Task, axes: tuple[int, ...]) -> None:
        self.task, self.axes = task, axes
        self._taken: list[Buffer] = []
        self._half = False
        self._spread: dict[Buffer, ArrayInUB] = {}
        self._known: dict[Scalar, ArrayInUB] = {}

    def release(self) -> None:
        """Nothing that was taken is needed any more."""
        for buffer in self._taken:
            self.task.room.give(buffer)
        self._taken = []

    def _note_half(self, s: Scalar) -> None:
        """The half of a row of banks of the array beside which rows are spread."""
        if isinstance(s, Apply):
            lanes = [a.operand for a in s.args if isinstance(a, Read) and self._runs_along_lanes(a)]
            beside = self.task.values.get(lanes[0]) if lanes else None
            self._half = beside is not None and self.task.room.half_of(beside.buffer)

    def _runs_along_lanes(self, read: Read) -> bool:
        return bool(self.axes) and self.axes[-1] in self.task.axes.arrays[read.operand]

    def into(self, s: Scalar, target: ArrayInUB) -> None:
        """Write the value of a body to `target`, which has all axes of the statement."""
        if isinstance(s, Constant):
            self._fill(target, s)
            return
        self._note_half(s)
        value = self._value(s, target)
        if value.buffer is not target.buffer:
            self._copy(value, target)

    def joined(self, target: ArrayInUB, joined: ScaleAndShift | Scaled) -> None:
        """`target = target * factor + shift`, or `target += scaled * factor`."""
        self._half = self.task.room.half_of(target.buffer)
        if isinstance(joined, Scaled):
            if isinstance(joined.whole, Constant):
                self._fill(target, joined.whole)
            self._run("vaxpy", (target, self._value(joined.scaled, None)), joined.factor)
            return
        self._run("vmadd", (target, self._value(joined.factor, None), self._value(joined.shift, None)))

    def whole(self, s: Scalar) -> ArrayInUB:
        """The value of a body with an element for each point of the statement."""
        value = self._fill(self._new(_dtype(s)), s) if isinstance(s, Constant) else self._value(s, None)
        if value.spread or value.axes != self.axes:
            made = self._new(value.dtype)
            self._copy(value, made)
            return made
        return value

    def _new(self, dtype: str, into: ArrayInUB | None = None) -> ArrayInUB:
        """Where a result goes: `into` where that has the type, else a new place."""
        if into is not None and into.dtype == dtype:
            return into
        made = self.task.take(self.axes, dtype)
        self._taken.append(made.buffer)
        return made

    def _fill(self, target: ArrayInUB, s: Constant) -> ArrayInUB:
        self._run("vector_dup", (target,), float(s.value))
        return target

    def _copy(self, value: ArrayInUB, target: ArrayInUB) -> None:
        if value.dtype != target.dtype:
            raise NotForUnit(f"{value.dtype} as {target.dtype}")
        if value.dtype == "i32":
            raise NotForUnit("copies of integers")
        self._run("vmuls", (target, value), 1.0)

    def _run(self, name: str, operands: Sequence[ArrayInUB], scalar: float | None = None) -> None:
        self.task.code.run(name, self.axes, operands, scalar)

    def _value(self, s: Scalar, into: ArrayInUB | None) -> ArrayInUB:
        """The value of a body, computed once where a formula uses it several times."""
        if into is not None:
            return self._computed(s, into)
        if s not in self._known:
            self._known[s] = self._computed(s, None)
        return self._known[s]

    def _computed(self, s: Scalar, into: ArrayInUB | None) -> ArrayInUB:
        match s:
            case Read():
                return self._read(s)
            case Cast():
                return self._cast(s, into)
            case Apply():
                return self._apply(s, into)
            case Constant():
                return self._fill(self._new(_dtype(s)), s)
            case _:
                raise NotForUnit("the value of an index")

    def _read(self, s: Read) -> ArrayInUB:
        value = self.task.values.get(s.operand)
        if value is None:
            raise NotForUnit("an array that is read before it is written")
        if not self.axes or self.axes[-1] in value.axes:
            return value
        if value.buffer not in self._spread:
            block = 32 // value.bytes
            elements = value.strides[0] * self.task.code.capacities[value.axes[0]] if value.axes else 1
            whole = -(-elements // 8) * 8
            buffer = self.task.room.take(value.dtype, whole * block, "spread", half=not self._half)
            self._taken.append(buffer)
            self._spread[value.buffer] = self.task.code.spread(value, self._filled(value), buffer)
        return self._spread[value.buffer]

    def _filled(self, value: ArrayInUB) -> Expr:
        """The elements of a value from its first to its last row."""
        if not value.axes:
            return 1
        return self.task.code.sizes[value.axes[0]] * value.strides[0]

    def _cast(self, s: Cast, into: ArrayInUB | None) -> ArrayInUB:
        if s.bits:
            raise NotForUnit("bits read as another type")
        of, to = s.arg.dtype, s.dtype
        if to == "i1" and of in ("f16", "f32", "bf16", "i8", "ui8"):
            return self._apply(Apply("ne", (s.arg, Constant(0.0, of))), into)
        exact = of in ("i1", "i8", "ui8") and to in ("f16", "f32", "bf16", "i32")
        rounding = (of in ("f16", "f32", "bf16", "i32") and to in ("f16", "f32", "bf16") and of != "i32") or (
            of == "i32" and to == "f32"
        )  # fmt: skip
        held = to in ("i8", "ui8", "i32") and self.task.integers.fits(s.arg, to)
        if not (exact or rounding or of == to or held):
            raise NotForUnit(f"{of} to {to}")
        value = self._value(s.arg, None)
        if to == "bf16" and of in ("f16", "f32"):
            return self._rounded(value, into)
        if held and value.dtype == "i32" and to != "i32":
            value = self._convert(value, "f32", None)
        return self._convert(value, UB_DTYPES[to], into)

    def _rounded(self, value: ArrayInUB, into: ArrayInUB | None) -> ArrayInUB:
        """To bf16 and back."""
        made = self._new("bf16")
        self._run("vconv", (made, value))
        result = self._new("f32", into)
        self._run("vconv", (result, made))
        return result

    def _convert(self, value: ArrayInUB, dtype: str, into: ArrayInUB | None) -> ArrayInUB:
        if value.dtype == dtype:
            return value
        if value.spread:
            whole = self._new(value.dtype)
            self._copy(value, whole)
            value = whole
        made = self._new(dtype, into)
        self._run("vconv", (made, value))
        return made

    def _apply(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB:
        kind = s.args[-1].dtype
        if (better := formula(s)) is not None:
            return self._value(better, into)
        if s.op in ("and", "or", "not", "xor") and kind == "i1":
            return self._logical(s, into)
        if s.op in COMPARISONS:
            return self._flags(self._compared(s), into)
        if s.op == "isnan":
            return self._flags(self._compared(Apply("ne", (s.args[0], s.args[0]))), into)
        if s.op == "select":
            return self._select(s, into)
        if kind == "i32":
            return self._integers(s, into)
        if kind not in ("f16", "f32", "bf16"):
            raise NotForUnit(f"{s.op} of {kind}")
        return self._floats(s, into)

    def _integers(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB:
        if s.op not in ("add", "sub", "mul"):
            raise NotForUnit(f"{s.op} of integers")
        if any(isinstance(a, Constant) and not self.task.integers.is_small(a) for a in s.args):
            raise NotForUnit("integers beyond 24 bits as literals")
        operands = [self._value(a, None) for a in s.args]
        made = self._new("i32", into)
        self._run(BINARY[s.op], (made, *operands))
        return made

    def _floats(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB:
        dtype = UB_DTYPES[s.dtype]
        if s.op == "neg":
            return self._scaled("vmuls", s.args[0], -1.0, into)
        if s.op == "round":
            return self._nearest(s, into)
        if s.op in UNARY:
            value = self._value(s.args[0], None)
            made = self._new(dtype, into)
            self._run(UNARY[s.op], (made, value))
            return made
        if s.op not in BINARY:
            raise NotForUnit(s.op)
        return self._with_constant(s, into) or self._two(s, into)

    def _nearest(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB:
        """The nearest integer, half to even, as conversions round; beyond 32 bits they saturate."""
        if s.dtype != "f32" or not self.task.integers.becomes_bytes(s):
            raise NotForUnit("round, but to make bytes")
        value = self._value(s.args[0], None)
        if self.task.integers.range(s.args[0]) is not None:
            return value
        return self._convert(self._convert(value, "i32", None), "f32", into)

    def _with_constant(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB | None:
        """One instruction for an array and a literal, where the result is the same to the last bit."""
        left, right = s.args
        if isinstance(left, Constant) and isinstance(right, Constant):
            return None
        if s.op == "div" and isinstance(left, Constant) and float(left.value) == 1.0:
            value = self._value(right, None)
            made = self._new(value.dtype, into)
            self._run("vrec", (made, value))
            return made
        if isinstance(left, Constant) and s.op in _COMMUTES:
            left, right = right, left
        if isinstance(right, Constant):
            value = float(right.value)
            if s.op in WITH_CONSTANT:
                return self._scaled(WITH_CONSTANT[s.op], left, value, into)
            if s.op == "sub":
                return self._scaled("vadds", left, -value, into)
            if s.op == "div" and _is_power_of_two(value):
                return self._scaled("vmuls", left, 1.0 / value, into)
        return None

    def _scaled(self, name: str, s: Scalar, scalar: float, into: ArrayInUB | None) -> ArrayInUB:
        value = self._value(s, None)
        made = self._new(value.dtype, into)
        self._run(name, (made, value), scalar)
        return made

    def _two(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB:
        left, right = (self._value(a, None) for a in s.args)
        made = self._new(UB_DTYPES[s.dtype], into)
        self._run(BINARY[s.op], (made, left, right))
        return made

    def _full(self, s: Scalar) -> ArrayInUB:
        """With an element for each point, in rows as a new place has them."""
        return self.whole(s)

    def _bits(self, how: int, left: ArrayInUB, right: ArrayInUB) -> Buffer:
        """The bits of a comparison, one for each point, in the order in which the tile lies in UB."""
        elements = self._elements(left)
        buffer = self.task.room.take("ui8", -(-elements // 8) + 256, "bits", fill=True)
        self._taken.append(buffer)
        bits = ArrayInUB(buffer, left.axes, left.strides)
        self._in_a_row("vcmp", (bits, left, right), compare=how)
        return buffer

    def _elements(self, value: ArrayInUB) -> int:
        return value.strides[0] * self.task.code.capacities[value.axes[0]] if value.axes else 1

    def _in_a_row(self, name: str, operands: Sequence[ArrayInUB], **more: int) -> None:
        self.task.code.in_a_row(name, operands, {}, self._filled(operands[-1]), None, **more)

    def _compared(self, s: Apply) -> tuple[Buffer, ArrayInUB]:
        kind = s.args[0].dtype
        if kind not in ("f16", "f32", "bf16", "i8", "ui8", "i1"):
            raise NotForUnit(f"{s.op} of {kind}")
        left, right = (self._full(a) for a in s.args)
        return self._bits(COMPARISONS[s.op], left, right), left

    def _flags(self, compared: tuple[Buffer, ArrayInUB], into: ArrayInUB | None) -> ArrayInUB:
        """Bits as 0 and 1 in f16."""
        bits, like = compared
        one, zero = self._new("f16"), self._new("f16")
        self._fill(one, Constant(1.0, "f16"))
        self._fill(zero, Constant(0.0, "f16"))
        return self._selected(bits, one, zero, self._new("f16", into), like)

    def _selected(self, bits: Buffer, left: ArrayInUB, right: ArrayInUB, made: ArrayInUB, like: ArrayInUB) -> ArrayInUB:
        mask = ArrayInUB(bits, like.axes, like.strides)
        self._in_a_row("vsel", (made, left, right, mask))
        return made

    def _select(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB:
        condition, *branches = s.args
        if s.dtype not in ("f16", "f32", "bf16", "i1"):
            raise NotForUnit(f"select of {s.dtype}")
        if isinstance(condition, Apply) and condition.op in COMPARISONS:
            bits, like = self._compared(condition)
        else:
            flags = self._full(condition)
            zero = self._new("f16")
            self._fill(zero, Constant(0.0, "f16"))
            bits, like = self._bits(COMPARISONS["ne"], flags, zero), flags
        left, right = (self._full(b) for b in branches)
        return self._selected(bits, left, right, self._new(UB_DTYPES[s.dtype], into), like)

    def _logical(self, s: Apply, into: ArrayInUB | None) -> ArrayInUB:
        operands = [self._value(a, None) for a in s.args]
        if s.op == "xor":
            operands = [self._full(a) for a in s.args]
            return self._flags((self._bits(COMPARISONS["ne"], *operands), operands[0]), into)
        made = self._new("f16", into)
        if s.op == "not":
            less = self._new("f16")
            self._run("vmuls", (less, operands[0]), -1.0)
            self._run("vadds", (made, less), 1.0)
            return made
        self._run("vmin" if s.op == "and" else "vmax", (made, *operands))
        return made


def _dtype(s: Scalar) -> str:
    return UB_DTYPES[s.dtype]


def _is_power_of_two(value: float) -> bool:
    return value != 0 and abs(value) in {2.0**k for k in range(-14, 15)}
