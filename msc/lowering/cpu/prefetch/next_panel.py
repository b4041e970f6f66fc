"""Where the next panel of an operand lies, for those who read the present one again and again.

A register tile's stream is a panel. Tiles of other rows read the same panel; then a loop outside goes on to the next
one, which comes from memory, all of it while the first tile waits. Asked for evenly while all tiles read this panel, it
arrives beside their arithmetic; a few bytes an iteration, counted straight on, cost one instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.loop import ForOp, LoadOp
from msc.ir.typed import static_shape
from msc.poly.affine import linear_form, simplified
from msc.targets.machine import Machine


@dataclass(frozen=True)
class PrefetchAddress:
    """An element of a buffer: `ahead` elements after an affine index, over the same values."""

    map: AffineMap
    indices: tuple[SSAValue, ...]
    ahead: int | AffineExpr


def next_panel(
    loop: ForOp, tile: Sequence[ForOp], load: LoadOp, elements: int, size: int, machine: Machine
) -> list[PrefetchAddress]:
    """Places in the next panel, of elements of `size` bytes, a line apart, to ask for in every iteration of `loop`.

    `load`, in the loops of `tile`, reads `elements` an iteration. Every time that the loop runs through the panel, it
    asks for another part of the next one. None where a panel is read once, lies in pieces, or there is one only, and
    where it is read so often that asking takes longer than the first tile waits.
    """
    around: object = loop
    while isinstance(around, ForOp) and around.variable in load.indices:
        around = around.parent_op()
    again: list[ForOp] = []
    while isinstance(around, ForOp) and around.variable not in load.indices:
        again.insert(0, around)
        around = around.parent_op()
    if not again or not isinstance(around, ForOp) or not all(map(counts_from_zero, (*again, loop))):
        return []
    repeated = prod(trips(outer) for outer in again)
    if not 1 < repeated <= machine.code.panel_reads or distance(load, loop) != elements:
        return []
    step = -(-elements // repeated)
    starts = range(distance(load, around), distance(load, around) + step, machine.line // size)
    part = -(-elements * trips(loop) // repeated)
    return [_place((*again, loop), tile, load, start, (part, step)) for start in starts]


def _place(
    loops: tuple[ForOp, ...], tile: Sequence[ForOp], load: LoadOp, start: int, steps: tuple[int, int]
) -> PrefetchAddress:
    """`start` elements after the panel, and a part for each reading and a step for each iteration further."""
    *again, loop = loops
    inside = {each.variable for each in (loop, *tile)}
    indices = tuple(dict.fromkeys((*(v for v in load.indices if v not in inside), *(each.variable for each in loops))))
    dims = {value: AffineExpr.dimension(k) for k, value in enumerate(indices)}
    reading: AffineExpr = AffineExpr.constant(0)
    for each in again:
        reading = reading * trips(each) + dims[each.variable]
    ahead = simplified(reading * steps[0] + dims[loop.variable] * steps[1] + start)
    first = [AffineExpr.constant(0) if v in inside else dims[v] for v in load.indices]
    results = tuple(simplified(e.replace_dims_and_symbols(first, [])) for e in load.map.results)
    return PrefetchAddress(AffineMap(len(indices), 0, results), indices, ahead)


def distance(load: LoadOp, loop: ForOp) -> int:
    """Elements between what two iterations of a loop read."""
    strides = [prod(static_shape(load.source)[k + 1 :]) for k in range(len(load.map.results))]
    position = list(load.indices).index(loop.variable)
    moved = sum(_coefficient(e, position) * s for e, s in zip(load.map.results, strides, strict=True))
    return moved * loop.step.value.data


def trips(loop: ForOp) -> int:
    """Iterations of a loop; 1 where they are not constant."""
    iterations = loop.constant_range
    return len(iterations) if iterations is not None else 1


def _coefficient(expr: AffineExpr, position: int) -> int:
    form = linear_form(expr)
    return form.coefficients.get(position, 0) if form is not None else 0


def counts_from_zero(loop: ForOp) -> bool:
    """Whether the variable of a loop is the number of its iteration."""
    iterations = loop.constant_range
    return iterations is not None and iterations.start == 0 and iterations.step == 1
