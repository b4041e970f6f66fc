"""What follows the sums of a product, as instructions of the vector unit on tiles of f32 registers in UB.

A *register* is a tile of rows in UB. Arithmetic is f32 whatever the types of the arrays are, so a result is rounded
once, when it is stored. What is the same in all rows is read with a repeat stride of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msc.poly.compute import affine_map
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar, apply
from msc.schedule.cube.products import CubeProduct, Following, StridedArray
from msc.schedule.vector_unit.formulas import BINARY, UNARY, WITH_CONSTANT


@dataclass(frozen=True)
class Register:
    """A tile of f32 values."""

    number: int


@dataclass(frozen=True)
class InputTile:
    """A tile of an array in UB, in the array's type: number k of the program's inputs; -1 is that of the sums."""

    number: int


@dataclass(frozen=True)
class BroadcastRow:
    """A row of f32 values that all rows of a tile see: number k of the program's rows."""

    number: int


Value: TypeAlias = Register | InputTile | BroadcastRow | float


@dataclass(frozen=True)
class TileStep:
    """One instruction: `to` of `sources`; of two sources the second one may be a row."""

    instruction: str
    to: Register
    sources: tuple[Register | InputTile | BroadcastRow, ...]
    scalar: float | None = None


@dataclass(frozen=True)
class TileProgram:
    """Steps, the arrays whose tiles and rows they read, how many registers they take, and where the result is."""

    steps: tuple[TileStep, ...]
    tiles: tuple[tuple[StridedArray, str], ...]
    rows: tuple[tuple[StridedArray, str], ...]
    registers: int
    result: Register | InputTile


class Unsupported(Exception):
    """The vector unit has no instructions for it here."""


_FLOATS = ("f16", "bf16", "f32")


def tile_program(product: CubeProduct) -> TileProgram | None:
    """The program of what follows the sums of a product; None where it needs what is not here."""
    try:
        return _Compiler(product.sums, product.n, product.m).program(product.after)
    except Unsupported:
        return None


def formula_program(operation: str) -> TileProgram:
    """The program of an operation on the sums alone; of "" the sums themselves. Raises KeyError for another."""
    x = Read(0, affine_map(0, ()), "f32")
    y = {"": x, "relu": apply("max", x, Constant(0.0, "f32")), "gelu": _gelu(x)}[operation]
    return _Compiler(0, "", "").program([Following(1, y, {})])


def _gelu(x: Scalar) -> Scalar:
    """X / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))): GELU's tanh form, which is a sigmoid."""
    cube = apply("mul", apply("mul", apply("mul", x, x), x), Constant(0.044715, "f32"))
    power = apply("exp", apply("mul", apply("add", cube, x), Constant(-1.5957691216057308, "f32")))
    return apply("div", x, apply("add", power, Constant(1.0, "f32")))


@dataclass
class _Compiler:
    sums: int
    n: str
    m: str
    steps: list[TileStep] = field(default_factory=list[TileStep])
    tiles: list[tuple[StridedArray, str]] = field(default_factory=list[tuple[StridedArray, str]])
    rows: list[tuple[StridedArray, str]] = field(default_factory=list[tuple[StridedArray, str]])
    free: list[int] = field(default_factory=list[int])
    registers: int = 0
    pinned: set[int] = field(default_factory=set[int])
    known: dict[int, Value] = field(default_factory=dict[int, Value])

    def program(self, after: Sequence[Following]) -> TileProgram:
        self.known[self.sums] = InputTile(-1)
        for following in after:
            value = self._value(following.body, following)
            if isinstance(value, Register):
                self.pinned.add(value.number)
            self.known[following.target] = value
        result = self.known[after[-1].target]
        if not isinstance(result, Register | InputTile):
            raise Unsupported
        return TileProgram(tuple(self.steps), tuple(self.tiles), tuple(self.rows), self.registers, result)

    def _value(self, body: Scalar, of: Following) -> Value:
        match body:
            case Constant():
                return float(body.value)
            case Cast():
                if body.dtype not in _FLOATS:
                    raise Unsupported
                return self._value(body.arg, of)
            case Read():
                return self._read(body, of)
            case Apply():
                return self._apply(body.op, [self._value(arg, of) for arg in body.args])
            case _:
                raise Unsupported

    def _read(self, read: Read, of: Following) -> Value:
        if read.operand in self.known:
            return self.known[read.operand]
        access = of.inputs.get(read)
        if access is None or read.dtype not in _FLOATS:
            raise Unsupported
        if access.strides.get(self.n) == 1 and self.m not in access.strides:
            return BroadcastRow(self._numbered(self.rows, (access, read.dtype)))
        if access.strides.get(self.n) != 1:
            raise Unsupported
        return InputTile(self._numbered(self.tiles, (access, read.dtype)))

    def _numbered(self, known: list[tuple[StridedArray, str]], wanted: tuple[StridedArray, str]) -> int:
        if wanted not in known:
            known.append(wanted)
        return known.index(wanted)

    def _apply(self, op: str, args: list[Value]) -> Value:
        match op, args:
            case "neg", [x]:
                return self._with_scalar("vmuls", x, -1.0)
            case "sigmoid", [x]:
                return self._sigmoid(x)
            case "tanh", [x]:
                twice = self._sigmoid(self._with_scalar("vmuls", x, 2.0))
                return self._with_scalar("vadds", self._with_scalar("vmuls", twice, 2.0), -1.0)
            case "erf", [x]:
                return self._erf(x)
            case _, [x] if op in UNARY:
                return self._step(UNARY[op], (self._tile(x),))
            case _, [float(), float()]:
                raise Unsupported
            case (("add" | "mul" | "max" | "min"), [x, float(c)]):
                return self._with_scalar(WITH_CONSTANT[op], x, c)
            case (("add" | "mul" | "max" | "min"), [float(c), x]):
                return self._with_scalar(WITH_CONSTANT[op], x, c)
            case "sub", [x, float(c)]:
                return self._with_scalar("vadds", x, -c)
            case _, [x, y] if op in BINARY:
                return self._binary(op, x, y)
            case _:
                raise Unsupported

    def _binary(self, op: str, x: Value, y: Value) -> Value:
        if isinstance(x, BroadcastRow) and op in WITH_CONSTANT:
            x, y = y, x
        first = self._tile(x)
        second = y if isinstance(y, BroadcastRow) else self._tile(y)
        return self._step(BINARY[op], (first, second))

    def _sigmoid(self, x: Value) -> Value:
        power = self._step("vexp", (self._tile(self._with_scalar("vmuls", x, -1.0)),))
        return self._binary("div", 1.0, self._plus_one(power))

    def _plus_one(self, x: Value) -> Register:
        return self._with_scalar("vadds", x, 1.0)

    def _erf(self, x: Value) -> Value:
        """Abramowitz and Stegun 7.1.26: within 1.5e-7."""
        held = self._tile(x)
        fixed = isinstance(held, Register) and held.number not in self.pinned
        if fixed and isinstance(held, Register):
            self.pinned.add(held.number)
        size = self._step("vabs", (held,))
        self.pinned.add(size.number)
        t = self._tile(
            self._binary("div", 1.0, self._with_scalar("vadds", self._with_scalar("vmuls", size, 0.3275911), 1.0))
        )
        assert isinstance(t, Register)
        self.pinned.add(t.number)
        sum_: Value = self._with_scalar("vmuls", t, 1.061405429)
        for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            sum_ = self._binary("mul", self._with_scalar("vadds", sum_, c), t)
        power = self._step("vexp", (self._tile(self._with_scalar("vmuls", self._binary("mul", size, size), -1.0)),))
        self._release(t, size)
        found = self._plus_one(self._with_scalar("vmuls", self._binary("mul", sum_, power), -1.0))
        steep = self._with_scalar("vmuls", held, 1e30)
        if fixed and isinstance(held, Register):
            self._release(held)
        sign = self._with_scalar("vmins", self._with_scalar("vmaxs", steep, -1.0), 1.0)
        return self._binary("mul", found, sign)

    def _release(self, *registers: Register) -> None:
        for register in registers:
            self.pinned.discard(register.number)
            self.free.append(register.number)

    def _with_scalar(self, instruction: str, x: Value, scalar: float) -> Register:
        return self._step(instruction, (self._tile(x),), scalar)

    def _tile(self, value: Value) -> Register | InputTile:
        """A value as a tile: constants and rows are spread."""
        if isinstance(value, int | float):
            return self._step("vector_dup", (), value)
        if isinstance(value, BroadcastRow):
            zero = self._step("vector_dup", (), 0.0)
            return self._step("vadd", (zero, value))
        return value

    def _step(
        self, instruction: str, sources: tuple[Register | InputTile | BroadcastRow, ...], scalar: float | None = None
    ) -> Register:
        for source in sources:
            if isinstance(source, Register) and source.number not in self.pinned and source.number not in self.free:
                self.free.append(source.number)
        if self.free:
            to = Register(min(self.free))
            self.free.remove(to.number)
        else:
            to = Register(self.registers)
            self.registers += 1
        self.steps.append(TileStep(instruction, to, sources, scalar))
        return to
