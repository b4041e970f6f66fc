"""Which arrays of a kernel hold integers, whatever their type: what may be computed, rounded and converted as floats.

Requantisation is a chain of f32 statements, which a conversion to bytes ends. Its values are integers from the first
rounding on, and bytes from the last clamp on: so conversions, which round to even, neither round nor saturate.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from msc.dialects.element_types import is_float
from msc.poly.compute import integer_range
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar, reads

IntegerRange: TypeAlias = tuple[float, float]
"""The least and the greatest integer that a value may be, infinite where nothing is known."""

_EVERY: IntegerRange = (-math.inf, math.inf)
_MONOTONE = ("add", "sub", "max", "min", "round")
_EXACT = {"f16": 1 << 11, "bf16": 1 << 8, "f32": 1 << 24, "f64": 1 << 53}
"""Integers up to here are values of a float type."""


class Integers:
    """The ranges of the arrays that hold integers, and the roundings whose results only bytes are made of."""

    def __init__(self, model: KernelModel) -> None:
        self._model = model
        self._ranges: dict[int, IntegerRange | None] = {}
        for statement in model.statements:
            self._note(statement)

    def _note(self, statement: KernelStatement) -> None:
        target = statement.target
        found = self.range(statement.body) if statement.combine is None else None
        if target in self._ranges:
            known = self._ranges[target]
            found = None if known is None or found is None else (min(known[0], found[0]), max(known[1], found[1]))
        self._ranges[target] = found

    def range(self, s: Scalar) -> IntegerRange | None:
        """Of a value that is an integer; None for one that may be another number."""
        found = self._found(s)
        if is_float(s.dtype) or s.dtype == "i1":
            return found
        whole = integer_range(s.dtype)
        return found if found is not None and whole[0] <= found[0] and found[1] <= whole[1] else whole

    def _found(self, s: Scalar) -> IntegerRange | None:
        match s:
            case Constant():
                value = float(s.value)
                return (value, value) if value.is_integer() else None
            case Read():
                return (0, 1) if s.dtype == "i1" else self._ranges.get(s.operand)
            case Cast(bits=False):
                found = self.range(s.arg)
                exact = _EXACT.get(s.dtype, math.inf)  # beyond it a float is another integer, or infinite
                return found if found is None or max(-found[0], found[1]) <= exact else _EVERY
            case Apply():
                return self._applied(s)
            case _:
                return None

    def _applied(self, s: Apply) -> IntegerRange | None:
        if s.op == "round":
            return self.range(s.args[0]) or _EVERY
        given = [self.range(arg) for arg in s.args]
        if s.op not in ("add", "sub", "max", "min") or any(each is None for each in given):
            return None
        (a, b), (c, d) = (each for each in given if each is not None)
        if s.op in ("max", "min"):
            choose = max if s.op == "max" else min
            return choose(a, c), choose(b, d)
        least, most = (a + c, b + d) if s.op == "add" else (a - d, b - c)
        return (least, most) if max(-least, most) <= _EXACT.get(s.dtype, math.inf) else _EVERY

    def fits(self, s: Scalar, dtype: str) -> bool:
        """Whether a value is an integer of a type: a conversion to it changes nothing."""
        found, (least, most) = self.range(s), integer_range(dtype)
        return found is not None and least <= found[0] and found[1] <= most

    def is_small(self, s: Scalar) -> bool:
        """Whether f32 holds a value exactly."""
        found = self.range(s)
        return found is not None and max(-found[0], found[1]) <= _EXACT["f32"]

    def becomes_bytes(self, s: Scalar) -> bool:
        """Whether a statement is `s`, and nothing is made of it but integers, by monotone steps and a clamp.

        What saturates on the way is clamped at the end, and nobody sees the sign of a zero.
        """
        targets = {statement.target for statement in self._model.statements if statement.body == s}
        return bool(targets) and all(self._ends(target) for target in targets)

    def _ends(self, array: int) -> bool:
        users = [s for s in self._model.statements if any(read.operand == array for read in reads(s.body))]
        if self._model.arrays[array].kind == "output" or not users:
            return False
        return all(self._is_step(user.body) and self._continues(user) for user in users)

    def _is_step(self, s: Scalar) -> bool:
        """A conversion to an integer that fits, or a monotone operation with a literal."""
        if isinstance(s, Cast):
            return not is_float(s.dtype) and s.dtype != "i1" and isinstance(s.arg, Read) and self.fits(s.arg, s.dtype)
        if not isinstance(s, Apply) or s.op not in _MONOTONE or s.dtype != "f32":
            return False
        return sum(isinstance(arg, Read) for arg in s.args) == 1 and all(
            isinstance(arg, Read | Constant) for arg in s.args
        )

    def _continues(self, user: KernelStatement) -> bool:
        return user.combine is None and (isinstance(user.body, Cast) or self._ends(user.target))
