"""Whether two iterations of a loop may access one element that one of them writes: by ranges, else exactly by isl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from msc.poly.access_bounds import MAX_OPERATIONS, LoopRange, Undecided, VectorAccess, iterations
from msc.poly.affine import linear_form
from msc.poly.dependences import isl_expr


@dataclass(frozen=True)
class Touch:
    """An access in a loop nest, of which the first loops are those that all touches share."""

    access: VectorAccess
    loops: tuple[LoopRange, ...]
    ranges: tuple[tuple[int, int], ...]
    is_write: bool


def are_disjoint(touches: Sequence[Touch], place: int) -> bool:
    """Whether iterations of loop `place` touch elements of their own, by one axis that the loop's variable alone moves.

    What is True is proved; False means that it is not known.
    """
    return any(
        _moves_apart([_along(t, axis, place) for t in touches], touches[0].loops[place].step)
        for axis in range(min(len(t.access.index) for t in touches))
    )


_Along = tuple[int, tuple[tuple[int, int], ...], int, int]
"""Along an axis: the factor of the loop's variable, those of the loops around it, and the least and largest rest."""


def _along(touch: Touch, axis: int, place: int) -> _Along | None:
    form = linear_form(touch.access.index[axis])
    if form is None:
        return None
    outer = tuple(sorted((d, c) for d, c in form.coefficients.items() if d < place))
    low = high = form.constant
    for d, c in form.coefficients.items():
        if d > place:
            ends = sorted((c * touch.ranges[d][0], c * touch.ranges[d][1]))
            low, high = low + ends[0], high + ends[1]
    distance = touch.access.steps[axis] * (touch.access.lanes - 1)
    return form.coefficients.get(place, 0), outer, low + min(0, distance), high + max(0, distance)


def _moves_apart(found: Sequence[_Along | None], step: int) -> bool:
    known = [one for one in found if one is not None]
    if len(known) < len(found) or len({(factor, outer) for factor, outer, _, _ in known}) != 1:
        return False
    return max(high for *_, high in known) - min(low for _, _, low, _ in known) < abs(known[0][0]) * step


def conflict(touches: Sequence[Touch], place: int) -> tuple[int, int] | None:
    """Two values of the variable of loop `place` whose iterations touch one element that one writes; None if none do.

    Raises Undecided where isl would take too long.
    """
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        every = _union([_relation(t, place) for t in touches])
        writes = _union([_relation(t, place) for t in touches if t.is_write])
        together = writes.apply_range(every.reverse())
        names = [f"a{k}" for k in range(place + 1)], [f"b{k}" for k in range(place + 1)]
        same = " and ".join([*(f"a{k} = b{k}" for k in range(place)), f"a{place} != b{place}"])
        other = isl.Map(f"{{ [{', '.join(names[0])}] -> [{', '.join(names[1])}] : {same} }}")
        found = together.intersect(other)
        if found.is_empty():
            return None
        point = found.wrap().sample_point()
    except isl.Error as error:
        raise Undecided from error
    finally:
        context.set_max_operations(0)
    first, second = (point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in (place, 2 * place + 1))
    return min(int(first), int(second)), max(int(first), int(second))


def _relation(touch: Touch, place: int) -> isl.Map:
    """From the loops up to the one at `place` to the elements that an iteration of it touches."""
    names = [f"d{k}" for k in range(len(touch.loops))]
    axes = range(len(touch.access.index))
    places = [f"e{axis} = {isl_expr(touch.access.index[axis])} + {touch.access.steps[axis]} lane" for axis in axes]
    conditions = " and ".join((*iterations(touch.loops), *places, f"0 <= lane < {touch.access.lanes}"))
    inner = ", ".join([*names[place + 1 :], "lane"])
    elements = ", ".join(f"e{axis}" for axis in axes)
    return isl.Map(f"{{ [{', '.join(names[: place + 1])}] -> [{elements}] : exists {inner} : {conditions} }}")


def _union(relations: Sequence[isl.Map]) -> isl.Map:
    total = relations[0]
    for relation in relations[1:]:
        total = total.union(relation)
    return total
