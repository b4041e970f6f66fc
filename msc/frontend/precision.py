"""Mixed precision: the element type in which operations compute while a cell runs.

A cell has a `ComputePrecision`, or takes that of the cell that calls it. Operations then convert their float operands;
what they convert are values, so parameters keep their own type, and a gradient passes back through the conversions.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from msc.frontend.dtypes import DType, bfloat16, float16, float32
from msc.frontend.tensor import Tensor

ATTRIBUTE = "_precision"
"""Of a cell: its Precision."""
_CONVERTED = (float16, bfloat16, float32)


@dataclass(frozen=True)
class ComputePrecision:
    """What computes in `dtype`: the named operations, whose results become f32 again, or all of them but the wide ones.

    Operations have the names of the `ms` dialect, and primitives their own.
    """

    dtype: DType
    operations: frozenset[str] | None = None
    gives_f32: bool = False
    """Whether what a cell gives is converted to f32."""
    wide: frozenset[str] = frozenset()
    """The operations and primitives that compute in f32 nonetheless."""

    current: ClassVar[ComputePrecision | None] = None
    """That of the cell that runs; None converts nothing."""

    def type_for(self, name: str) -> DType | None:
        """What an operation computes in; None for the types of its operands."""
        if name == "cast" or (self.operations is not None and name not in self.operations):
            return None
        return float32 if name in self.wide else self.dtype

    @classmethod
    def of_primitive(cls, name: str) -> ComputePrecision | None:
        """That of a primitive that the running cell's precision names; None for others."""
        current = cls.current
        if current is None or name not in (current.wide if current.operations is None else current.operations):
            return None
        is_narrow = current.operations is not None
        return ComputePrecision(current.dtype, gives_f32=True) if is_narrow else ComputePrecision(float32)


def converted(tensor: Tensor, dtype: DType) -> Tensor:
    """A tensor of f16, bf16 or f32 as one of another of these; all others as they are."""
    return tensor.astype(dtype) if tensor.dtype in _CONVERTED and tensor.dtype is not dtype else tensor


def converted_operands(dtype: DType, operands: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The operands of an operation that computes in a type."""
    return [None if operand is None else converted(operand, dtype) for operand in operands]


@contextmanager
def computing_in(precision: ComputePrecision | None) -> Generator[None]:
    """Within, operations compute in a precision; None changes nothing."""
    before = ComputePrecision.current
    ComputePrecision.current = precision or before
    try:
        yield
    finally:
        ComputePrecision.current = before


def given(precision: ComputePrecision | None, result: Any) -> Any:
    """What a cell of its own precision gives."""
    if precision is None or not precision.gives_f32:
        return result
    if isinstance(result, Tensor):
        return converted(result, float32)
    if type(result) in (tuple, list):
        return type(result)(given(precision, item) for item in result)
    return result


def own_precision(cell: object) -> ComputePrecision | None:
    """What a cell says for itself and for the cells in it."""
    return cell.__dict__.get(ATTRIBUTE)


def set_precision(cell: object, precision: ComputePrecision | None) -> None:
    """Say what a cell, and the cells in it that say nothing, compute in."""
    setattr(cell, ATTRIBUTE, precision)
