"""How accesses move along dimensions: strides, blocks of layouts, and the instructions that move a vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import NamedTuple, cast

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.dialects.element_types import BYTES
from msc.poly.affine import linear_form
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.remembered import remembered
from msc.poly.scalar import data_dims, indices, values_read
from msc.targets.machine import Machine

IRREGULAR = 1 << 40
"""The stride of an index that is not linear in the dimension."""


def coefficient(expr: AffineExpr, dim: int) -> int:
    """The coefficient of dimension `dim` in the expression, within a block; IRREGULAR if it is not constant."""
    if type(expr) is AffineDimExpr:  # types of expressions are abstract base classes, and slow where they do not match
        return int(expr.position == dim)
    if type(expr) is AffineConstantExpr:
        return 0
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return _saturated(coefficient(lhs, dim) + coefficient(rhs, dim))
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=factor)):
            return _saturated(coefficient(lhs, dim) * factor)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, lhs, AffineConstantExpr()):
            return coefficient(lhs, dim)
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, AffineConstantExpr(value=divisor)):
            inner = coefficient(lhs, dim)
            return inner // divisor if inner % divisor == 0 else 0
        case AffineBinaryOpExpr(_, lhs, rhs):
            return IRREGULAR if coefficient(lhs, dim) or coefficient(rhs, dim) else 0
        case _:
            return IRREGULAR


def _saturated(value: int) -> int:
    return IRREGULAR if abs(value) >= IRREGULAR // 2 else value


def strides(model: KernelModel, statement: KernelStatement, dim: int) -> tuple[int, ...]:
    """The distance in elements between neighbours along `dim`, for each access of the statement."""
    known = cast("dict[int, tuple[object, tuple[int, ...]]]", vars(statement).setdefault("strides", {}))
    if dim not in known or known[dim][0] is not model.arrays:
        found = tuple(_stride(model, statement, array, map_.results, dim) for array, map_ in statement.accesses())
        known[dim] = model.arrays, found
    return known[dim][1]


def _stride(model: KernelModel, statement: KernelStatement, array: int, index: tuple[AffineExpr, ...], dim: int) -> int:
    if model.arrays[array].kind == "internal":
        return int(any(coefficient(e, dim) for e in index))  # local buffers are laid out for the vectors
    per_axis = model.arrays[array].strides
    distance = _saturated(sum(coefficient(e, dim) * s for e, s in zip(index, per_axis, strict=True)))
    group = terms_together(model, statement, array, index)
    return distance if dim in statement.reduced else distance // group


def terms_together(model: KernelModel, statement: KernelStatement, array: int, index: Sequence[AffineExpr]) -> int:
    """How many terms of a sum lie side by side in the layout of an array, as words that instructions take; else 1.

    Of such an array, an element of what is not summed is a word.
    """
    return 1 if _term(model, statement, array, index) is None else model.arrays[array].shape[-1]


def term_dimension(model: KernelModel, statement: KernelStatement) -> int | None:
    """The dimension of which words have several terms; None where no array is laid out in words."""
    dims = (_term(model, statement, array, index.results) for array, index in statement.accesses()[1:])
    return next((dim for dim in dims if dim is not None), None)


def _term(model: KernelModel, statement: KernelStatement, array: int, index: Sequence[AffineExpr]) -> int | None:
    known = model.arrays[array]
    if statement.combine != "add" or not known.shape or known.shape[-1] < 2:
        return None
    if known.shape[-1] * BYTES[known.dtype] != BYTES["f32"]:
        return None
    match index[-1]:
        case AffineDimExpr(position=dim) if statement.extents[dim] == known.shape[-1]:
            return dim if dim in statement.reduced else None
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, AffineDimExpr(position=dim), AffineConstantExpr()):
            return dim if dim in statement.reduced else None
        case _:
            return None


def block_size(statement: KernelStatement, dim: int) -> int:
    """The largest common size of the blocks that layouts of arrays split dimension `dim` into; 0 without blocks."""
    return gcd(*(b for e in _remainders(statement) for b in _moduli(e, dim)))


@remembered
def _remainders(statement: KernelStatement) -> list[AffineExpr]:
    """The indices of a statement that have a remainder."""
    return [e for _, map_ in statement.accesses() for e in map_.results if _has_remainder(e)]


def _has_remainder(expr: AffineExpr) -> bool:
    return type(expr) is AffineBinaryOpExpr and (
        expr.kind is AffineBinaryOpKind.Mod or _has_remainder(expr.lhs) or _has_remainder(expr.rhs)
    )


def _moduli(expr: AffineExpr, dim: int) -> Iterator[int]:
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, lhs, AffineConstantExpr(value=modulus)) if coefficient(
            lhs, dim
        ):
            yield modulus
        case AffineBinaryOpExpr(_, lhs, rhs):
            yield from _moduli(lhs, dim)
            yield from _moduli(rhs, dim)
        case _:
            return


def pieces(extent: int, lanes: int) -> int:
    """Vector operations for `extent` elements: whole vectors, then a part of one for the tail."""
    return -(-extent // lanes)


def cuts(extent: int, size: int) -> list[tuple[int, int]]:
    """Tile sizes and how often each occurs."""
    whole = [(size, extent // size)] if extent >= size else []
    return [*whole, (extent % size, 1)] if extent % size else whole


def lanes_of(model: KernelModel, target: Machine) -> int:
    """Elements of a vector, by the widest type that the kernel computes on (narrow floats compute as f32).

    Values that are only indices of reads do not count.
    """
    values = {s.target for s in model.statements} | {a for s in model.statements for a in values_read(s.body)}
    return max(1, target.vector_bytes // max((_compute_bytes(model.arrays[a].dtype) for a in values), default=4))


def _compute_bytes(dtype: str) -> int:
    return 8 if dtype.endswith("64") else 4


EVERY_OTHER = 2
"""The stride of elements that generated code loads by a shuffle of two vectors, on every machine."""


class Moves(NamedTuple):
    """Instructions that load or store one vector: loads or stores, and shuffles that join or split its lanes."""

    memory: float
    shuffles: float = 0.0

    @property
    def all(self) -> float:
        return self.memory + self.shuffles


def vector_moves(stride: int, lanes: int, is_store: bool = False) -> Moves:
    """Instructions to load or store one vector whose lanes are `stride` elements apart."""
    if stride == 0:
        return Moves(0.5)
    if stride == EVERY_OTHER and not is_store and lanes > EVERY_OTHER:
        return Moves(2.0, 1.0)
    return Moves(1.0) if stride == 1 else Moves(lanes, lanes - 1)


def vectorisable(statement: KernelStatement, dim: int) -> bool:
    """Whether points along `dim` can run as lanes: numbers are linear in it, and no data index depends on it."""
    numbers = (index.expr for index in indices(statement.body) if dim in index.expr.used_dims())
    return all(linear_form(n) is not None for n in numbers) and dim not in data_dims(statement.body)


def copies_neighbours(strides: Sequence[int]) -> bool:
    """Whether contiguous elements are copied, or filled with a constant; `strides` are those of all accesses."""
    written, *read = strides
    return written == 1 and set(read) <= {0, 1} and (1 in read or not read)
