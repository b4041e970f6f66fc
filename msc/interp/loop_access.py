"""Index texts of loop-stage loads and stores, and the checks that static bounds do not make superfluous."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from msc.poly.intervals import Interval, interval

_SIGNS = {
    AffineBinaryOpKind.Add: "+",
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.FloorDiv: "//",
    AffineBinaryOpKind.Mod: "%",
}


def affine_text(expr: AffineExpr, names: Sequence[str]) -> str:
    """An affine expression as Python."""
    match expr:
        case AffineConstantExpr():
            return str(expr.value)
        case AffineDimExpr():
            return names[expr.position]
        case AffineBinaryOpExpr(AffineBinaryOpKind.CeilDiv, lhs, rhs):
            return f"(-(-{affine_text(lhs, names)} // {affine_text(rhs, names)}))"
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return f"({affine_text(lhs, names)} {_SIGNS[kind]} {affine_text(rhs, names)})"
        case _:
            raise ValueError(f"affine expression {expr} has symbols")


@dataclass(frozen=True)
class TranslatedAccess:
    """Where a load or store goes: one expression a dimension, the lanes that it touches and the steps between them."""

    shape: tuple[int, ...]
    map: AffineMap
    names: tuple[str, ...]
    ranges: tuple[Interval, ...]
    lanes: int = 1
    steps: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        buffer: SSAValue,
        map_: AffineMap,
        indices: Sequence[SSAValue],
        names: Mapping[SSAValue, str],
        ranges: Mapping[SSAValue, Interval],
        lanes: int = 1,
        steps: Sequence[int] = (),
    ) -> TranslatedAccess:
        """The access of an operation whose operands have Python names and, where known, ranges."""
        shape = cast("MemRefType[Attribute]", buffer.type).get_shape()
        known = tuple(ranges.get(v) for v in indices)
        return cls(shape, map_, tuple(names[v] for v in indices), known, lanes, tuple(steps))

    def expressions(self) -> list[str]:
        """The index of the first lane, as Python."""
        return [affine_text(e, self.names) for e in self.map.results]

    def checks(self) -> Iterator[str]:
        """Conditions, as Python, that say that the access is inside its buffer, where that is not proved."""
        for axis, (size, expr) in enumerate(zip(self.shape, self.map.results, strict=True)):
            reach = (self.lanes - 1) * self.steps[axis] if self.steps else 0
            low, high = min(0, reach), max(0, reach)
            known = interval(expr, self.ranges)
            if known is None or size < 0 or known[0] + low < 0 or known[1] + high >= size:
                yield f"{-low} <= {affine_text(expr, self.names)} < %s.shape[{axis}] - {high}"

    def scalar_index(self) -> str:
        """The subscript of one element."""
        return ", ".join(self.expressions()) or "()"

    def vector_index(self, arange: str) -> str:
        """The subscript of all lanes: a slice if they lie along one dimension, else index arrays times `arange`."""
        texts = self.expressions()
        moving = [axis for axis, step in enumerate(self.steps) if step]
        for axis in moving:
            step, start = self.steps[axis], texts[axis]
            stop = f"{start} + {(self.lanes - 1) * step + 1}"
            sliced = len(moving) == 1 and step > 0
            texts[axis] = (
                f"{start}:{stop}" + (f":{step}" if step > 1 else "") if sliced else f"{start} + {step} * {arange}"
            )
        return ", ".join(texts)

    @property
    def uniform(self) -> bool:
        """Whether all lanes are one element."""
        return not any(self.steps)


def lane_numbers(lanes: int) -> Any:
    """0, 1, ... lanes - 1."""
    return np.arange(lanes)
