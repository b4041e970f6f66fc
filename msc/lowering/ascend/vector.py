"""Element-wise programs of vector cores: pieces of the operands to UB, vector instructions, the result back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir.affine import AffineExpr

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression, up
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, INSTRUCTIONS, Pipe, Space

_BANK_ROW = 512
"""Bytes after which UB's bank groups repeat."""


_Offset: TypeAlias = tuple[Buffer, Expr]


@dataclass(frozen=True)
class FormulaStep:
    """One instruction of a formula: `to` and `sources` name x, y (inputs), z (the result) or t (a temporary)."""

    instruction: str
    to: str
    sources: str
    scalar: float | None = None


def _gelu() -> tuple[FormulaStep, ...]:
    """X / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))): GELU's tanh form, which is a sigmoid."""
    return (
        FormulaStep("vmul", "t", "xx"),
        FormulaStep("vmul", "t", "tx"),
        FormulaStep("vmuls", "t", "t", 0.044715),
        FormulaStep("vadd", "t", "tx"),
        FormulaStep("vmuls", "t", "t", -1.5957691216057308),
        FormulaStep("vexp", "t", "t"),
        FormulaStep("vadds", "t", "t", 1.0),
        FormulaStep("vdiv", "z", "xt"),
    )


def _tanh() -> tuple[FormulaStep, ...]:
    """(1 - e) / (1 + e) of e = exp(-2 x), where e is at most exp(10), which is finite in f16."""
    return (
        FormulaStep("vmuls", "t", "x", -2.0),
        FormulaStep("vmins", "t", "t", 10.0),
        FormulaStep("vexp", "t", "t"),
        FormulaStep("vmuls", "z", "t", -1.0),
        FormulaStep("vadds", "z", "z", 1.0),
        FormulaStep("vadds", "t", "t", 1.0),
        FormulaStep("vdiv", "z", "zt"),
    )


FORMULAS: Mapping[str, tuple[FormulaStep, ...]] = {
    **{name: (FormulaStep(f"v{name}", "z", "xy"),) for name in ("add", "sub", "mul", "div", "max", "min")},
    **{name: (FormulaStep(f"v{name}", "z", "x"),) for name in ("exp", "ln", "abs", "rec", "rsqrt", "sqrt", "relu")},
    "gelu": _gelu(),
    "sigmoid": (
        FormulaStep("vmuls", "t", "x", -1.0),
        FormulaStep("vexp", "t", "t"),
        FormulaStep("vadds", "t", "t", 1.0),
        FormulaStep("vrec", "z", "t"),
    ),
    "silu": (
        FormulaStep("vmuls", "t", "x", -1.0),
        FormulaStep("vexp", "t", "t"),
        FormulaStep("vadds", "t", "t", 1.0),
        FormulaStep("vdiv", "z", "xt"),
    ),
    "tanh": _tanh(),
    "neg": (FormulaStep("vmuls", "z", "x", -1.0),),
    "square": (FormulaStep("vmul", "z", "xx"),),
}
"""Operation -> its instructions."""


def inputs_of(operation: str) -> int:
    """How many inputs an operation has."""
    return 2 if any("y" in step.sources for step in FORMULAS[operation]) else 1


@dataclass(frozen=True)
class VectorSchedule:
    """How an element-wise operation runs: `elements` a piece, on `cores` vector cores."""

    cores: int
    elements: int
    double_buffer: bool = True
    l2_bypass: bool = False
    bank_free: bool = True
    unit: str = "vector"


def vector_schedule(
    operation: str, total: int, dtype: str, target: DavinciTarget, wishes: Mapping[str, object]
) -> VectorSchedule:
    """The schedule of an operation: what is wished, and by rule the rest.

    Rule: all cores; pieces of at most 32 KB that fit UB with two buffers each and are not larger than a core's share.
    """
    cores = min(_integer(wishes, "cores", target.cores.vector), max(1, total))
    double = bool(wishes.get("double_buffer", True))
    kinds = inputs_of(operation) + 1
    temporaries = int(any(step.to == "t" for step in FORMULAS[operation]))
    room = target.buffers.ub - target.buffers.ub_reserved - 4 * _BANK_ROW
    size = DTYPES[dtype]
    fits = room // (((1 + double) * kinds + temporaries) * size) // 256 * 256
    share = up(-(-total // cores), 256)
    assert isinstance(share, int)
    elements = _integer(wishes, "elements", max(32 // size, min(fits, 32768 // size, share)))
    return VectorSchedule(
        cores,
        elements,
        double,
        bool(wishes.get("l2_bypass", False)),
        bool(wishes.get("bank_free", "elements" not in wishes)),
        str(wishes.get("unit", "vector")),
    )


def _integer(wishes: Mapping[str, object], key: str, otherwise: int) -> int:
    value = wishes.get(key, otherwise)
    return value if isinstance(value, int) else otherwise


def vector_kernel(
    operation: str, total: int, dtype: str, schedule: VectorSchedule, target: DavinciTarget
) -> DavinciKernelOp:
    """The kernel of an operation over `total` elements. Raises MSC1021 for what does not fit."""
    size = DTYPES[dtype]
    if schedule.elements * size % 32:
        message = f"elements = {schedule.elements} are {schedule.elements * size} bytes, no multiple of 32"
        raise MscError(Diagnostic("MSC1021", message))
    count = inputs_of(operation)
    builder = KernelBuilder(operation, target, "vector", schedule.cores, [(dtype, total)] * (count + 1))
    builder.name_arguments(*"xy"[:count], "z")
    _Writer(builder, operation, total, dtype, schedule).write()
    return builder.finish()


class _Writer:
    def __init__(
        self, builder: KernelBuilder, operation: str, total: int, dtype: str, schedule: VectorSchedule
    ) -> None:
        self.b, self.operation, self.total, self.dtype, self.schedule = builder, operation, total, dtype, schedule
        self.count = 2 if schedule.double_buffer else 1
        self.names = [*"xy"[: inputs_of(operation)], "z"]
        self.held = {name: self._alloc(name, k) for k, name in enumerate(self.names)}
        if any(step.to == "t" for step in FORMULAS[operation]):
            self.held["t"] = builder.alloc(Space.ub, dtype, schedule.elements, "t")

    def _alloc(self, name: str, position: int) -> Buffer:
        """A buffer of an operand; `bank_free` puts the second input half a row of banks behind the first one."""
        elements = self.count * self.schedule.elements
        if not self.schedule.bank_free:
            return self.b.alloc(Space.ub, self.dtype, elements, name)
        wanted = _BANK_ROW // 2 if position == 1 and len(self.names) == 3 else 0
        padding = (wanted - self.b.taken(Space.ub)) % _BANK_ROW
        return self.b.alloc(Space.ub, self.dtype, elements, name, padding)

    def write(self) -> None:
        b, elements = self.b, self.schedule.elements
        share = up(-(-self.total // self.schedule.cores), 32 // DTYPES[self.dtype])
        backward = [(source, target, k) for source, target in self._backward() for k in range(self.count)]
        for source, target, event in backward:
            b.set_flag(source, target, event)
        first = expression(b.minimum(b.block_index() * share, self.total, name="first"))
        mine = b.minimum(first * -1 + self.total, share, name="mine")
        whole = mine // elements
        with b.loop(0, whole, 1, "i") as i:
            self._piece(i * elements + first, i % self.count, elements)
        with b.loop(whole * elements, mine, elements, "tail") as start:
            self._piece(start + first, start // elements % self.count, expression(mine) - start)
        for source, target, event in backward:
            b.wait_flag(source, target, event)

    @property
    def _unit(self) -> Pipe:
        return Pipe.S if self.schedule.unit == "scalar" else Pipe.V

    def _backward(self) -> tuple[tuple[Pipe, Pipe], ...]:
        """Who frees buffers for whom: with one buffer each, a piece comes when the one before it has left."""
        if self.schedule.double_buffer:
            return ((self._unit, Pipe.MTE2), (Pipe.MTE3, self._unit))
        return ((Pipe.MTE3, Pipe.MTE2),)

    def _piece(self, at: AffineExpr, half: AffineExpr, count: Expr) -> None:
        b, unit, double = self.b, self._unit, self.schedule.double_buffer
        place = half * self.schedule.elements
        b.wait_flag(unit if double else Pipe.MTE3, Pipe.MTE2, half)
        for k, name in enumerate(self.names[:-1]):
            bypass = int(self.schedule.l2_bypass)
            self._copy("copy_gm_to_ubuf", (self.held[name], place), (b.arguments[k], at), count, bypass=bypass)
        b.set_flag(Pipe.MTE2, unit, half)
        b.wait_flag(Pipe.MTE2, unit, half)
        if double:
            b.wait_flag(Pipe.MTE3, unit, half)
        if unit is Pipe.S:
            b.emit("scalar_work", cycles=expression(count) * round(b.target.scalar.cycles_per_element))
        else:
            self._compute(place, count)
        if double:
            b.set_flag(unit, Pipe.MTE2, half)
        b.set_flag(unit, Pipe.MTE3, half)
        b.wait_flag(unit, Pipe.MTE3, half)
        out = b.arguments[len(self.names) - 1]
        self._copy("copy_ubuf_to_gm", (out, at), (self.held["z"], place), count)
        b.set_flag(Pipe.MTE3, unit if double else Pipe.MTE2, half)

    def _copy(self, name: str, to: _Offset, source: _Offset, count: Expr, **parameters: int) -> None:
        """One burst, in blocks of 32 bytes where it is known to have only whole ones."""
        size = DTYPES[self.dtype]
        if isinstance(count, int):
            self.b.emit(name, to, source, bursts=1, length=count * size // 32, **parameters)
        else:
            self.b.emit(f"{name}_align", to, source, bursts=1, length=count * size, **parameters)

    def _compute(self, place: Expr, count: Expr) -> None:
        """The formula on `count` elements; those that fill only a part of a repeat are masked by their number."""
        lanes = 256 // DTYPES[self.dtype]
        if not isinstance(count, int):
            self._masked(place, 0, count)
            return
        whole = count // lanes
        for start in range(0, whole, 255):
            self._run(place, start * lanes, min(255, whole - start))
        if count % lanes:
            self._masked(place, whole * lanes, count - whole * lanes)

    def _masked(self, place: Expr, at: int, count: Expr) -> None:
        self.b.emit("set_mask_count", count=count)
        self._run(place, at, 1)
        self.b.emit("set_mask_norm")

    def _run(self, place: Expr, at: int, repeat: int) -> None:
        for position, step in enumerate(FORMULAS[self.operation]):
            if position:
                self.b.barrier(Pipe.V)
            names = (step.to, *step.sources)
            operands = [(self.held[name], expression(place if name in self.names else 0) + at) for name in names]
            assert len(operands) == len(INSTRUCTIONS[step.instruction].spaces)
            self.b.emit(step.instruction, *operands, scalar=step.scalar, repeat=repeat)
