"""Dimensions of different statements that mean the same, as they index the same axes of arrays.

Where values pass between statements through arrays indexed by a dimension or a constant along each axis, dependences
pair equal dimensions, and this finds every loop that could be shared at once. So it does where dimensions are the
digits of an index, as groups and their channels are of a grouped convolution's: statements with the same digits pair
them, and no other dimension equals one. isl's scheduler finds others too, but its time grows fast with the number of
statements. Either way it is a proposal: whether statements may share a loop is for
the dependences to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.poly.digits import Digits, index_digits
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.remembered import remembered
from msc.poly.scalar import reads

_Dimension = tuple[int, int]
"""A statement and one of its dimensions."""


@dataclass(frozen=True)
class LoopAlignment:
    """`loops`: statement -> dimension, where each of the statements has one, all of the same extent, not just one.

    `by_digits`: the same, of dimensions that are digits of an index somewhere. `is_complete`: no other loops can be
    shared, but by statements that have nothing in common.
    """

    loops: tuple[Mapping[int, int], ...]
    by_digits: tuple[Mapping[int, int], ...]
    is_complete: bool


def aligned(model: KernelModel, statements: Sequence[int]) -> LoopAlignment:
    """How dimensions of the statements are aligned."""
    known, key = _known(model), tuple(statements)
    if key not in known:
        known[key] = _aligned(model, key)
    return known[key]


@remembered
def _known(model: KernelModel) -> dict[tuple[int, ...], LoopAlignment]:
    """What is known of a kernel's statements."""
    del model
    return {}


def _aligned(model: KernelModel, statements: Sequence[int]) -> LoopAlignment:
    loops = _loops(model, _classes(model, statements, by_digits=False), statements)
    classes = _classes(model, statements, by_digits=True)
    more = tuple(loop for loop in _loops(model, classes, statements) if loop not in loops)
    unique = all(len(dict(members)) == len(members) for members in classes)
    return LoopAlignment(loops, more, unique and _is_plain(model, statements))


def is_aligned(model: KernelModel, loop: Mapping[int, int]) -> bool:
    """Whether dimensions, statement -> dimension, are aligned, be it by statements that have none of them."""
    return any(loop.items() <= members for members in _classes_of_all(model))


@remembered
def _classes_of_all(model: KernelModel) -> list[set[_Dimension]]:
    return _classes(model, range(len(model.statements)), by_digits=False)


def _loops(
    model: KernelModel, classes: Sequence[set[_Dimension]], statements: Sequence[int]
) -> tuple[Mapping[int, int], ...]:
    return tuple(dict(members) for members in classes if _is_shared(model, members, statements))


def is_along(model: KernelModel, loop: Mapping[int, int], array: int, axis: int) -> bool:
    """Whether a loop, statement -> dimension, is all that the index along an axis moves with, in all statements."""
    return all(
        len(index) > axis and s in loop and index[axis] == AffineDimExpr(loop[s]) for s, index in _indices(model, array)
    )


def _indices(model: KernelModel, array: int) -> Iterator[tuple[int, Sequence[AffineExpr]]]:
    """The statements that access an array, and at which index."""
    everywhere = _accesses(model, range(len(model.statements)))
    return ((statement, index) for statement, accessed, index in everywhere if accessed == array)


def _classes(model: KernelModel, statements: Sequence[int], *, by_digits: bool) -> list[set[_Dimension]]:
    found: dict[_Dimension, set[_Dimension]] = {
        (s, d): {(s, d)} for s in statements for d in range(len(model.statements[s].extents))
    }
    for pair in _pairs(model, statements, by_digits=by_digits):
        large, small = sorted((found[at] for at in pair), key=len, reverse=True)
        if large is not small:
            large |= small
            found |= dict.fromkeys(small, large)
    return list({min(members): members for members in found.values()}.values())


def _is_shared(model: KernelModel, members: set[_Dimension], statements: Sequence[int]) -> bool:
    extents = {model.statements[s].extents[d] for s, d in members}
    return len(extents) == 1 and extents != {1} and sorted(s for s, _ in members) == sorted(statements)


def _pairs(
    model: KernelModel, statements: Sequence[int], *, by_digits: bool
) -> Iterator[tuple[_Dimension, _Dimension]]:
    """Dimensions that index the same axis of an array alike, each with the first one that does."""
    first: dict[tuple[int, int, Digits, int], _Dimension] = {}
    for s, array, index in _accesses(model, statements):
        for axis, expr in enumerate(index):
            if not by_digits and not isinstance(expr, AffineDimExpr):
                continue
            form, dims = index_digits(model.statements[s], expr) or ((), ())
            for digit, dim in enumerate(dims):
                yield first.setdefault((array, axis, form, digit), (s, dim)), (s, dim)


def _is_plain(model: KernelModel, statements: Sequence[int]) -> bool:
    """Whether arrays through which values pass from a statement to another are indexed by dimensions and constants.

    Or by digits, the same wherever there are several.
    """
    written = {model.statements[s].target for s in statements}
    passing = written & {array for s in statements for array in _arrays_read(model.statements[s])}
    if any(passing & set(model.statements[s].whole_reads()) for s in statements):
        return False
    forms: dict[tuple[int, int], Digits] = {}
    for s, array, index in _accesses(model, statements):
        for axis, expr in enumerate(index if array in passing else ()):
            if isinstance(expr, AffineConstantExpr):
                continue
            digits = index_digits(model.statements[s], expr)
            if digits is None or (digits[0] and forms.setdefault((array, axis), digits[0]) != digits[0]):
                return False
    return True


def _arrays_read(statement: KernelStatement) -> Iterator[int]:
    yield from (read.operand for read in reads(statement.body))
    if statement.combine:
        yield statement.target


def _accesses(model: KernelModel, statements: Sequence[int]) -> Iterator[tuple[int, int, tuple[AffineExpr, ...]]]:
    """Statement, array and index of each access."""
    for s in statements:
        for array, map_ in model.statements[s].accesses():
            yield s, array, map_.results
