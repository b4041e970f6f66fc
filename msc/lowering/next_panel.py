"""Where the next panel of an operand lies, for those who read the present one again and again.

A register tile's stream is a panel. Tiles of other rows read the same panel; then a loop outside goes on to the next
one, which comes from memory, all of it while the first tile waits. Asked for evenly while all tiles read this panel, it
arrives beside their arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.loop import ForOp, LoadOp
from msc.ir.typed import static_shape
from msc.poly.affine import linear_form

READS_THAT_PAY = 24
"""Of one panel: asking for the next one takes some hundredths of each, what the first one waits for is about one."""


@dataclass(frozen=True)
class Place:
    """An element of a buffer: `ahead` elements after an affine index, over the same values."""

    map: AffineMap
    indices: tuple[SSAValue, ...]
    ahead: int | AffineExpr


def next_panel(loop: ForOp, load: LoadOp) -> Place | None:
    """The place in the next panel that is as far in it as all reading of this one, by `load` in `loop`, has come.

    None where a panel is read once, or there is one only.
    """
    around: object = loop
    while isinstance(around, ForOp) and around.variable in load.indices:
        around = around.parent_op()
    again: list[ForOp] = []
    while isinstance(around, ForOp) and around.variable not in load.indices:
        again.insert(0, around)
        around = around.parent_op()
    loops = (*again, loop)
    if not again or not isinstance(around, ForOp) or not all(map(counts_from_zero, loops)):
        return None
    repeated = prod(trips(outer) for outer in again)
    return _place(loops, repeated, load, distance(load, around)) if 1 < repeated <= READS_THAT_PAY else None


def _place(loops: tuple[ForOp, ...], repeated: int, load: LoadOp, ahead: int) -> Place:
    """The innermost of the loops is at the iteration that one pass as long as all of them would have come to."""
    indices = tuple(dict.fromkeys((*load.indices, *(each.variable for each in loops))))
    dims = {value: AffineExpr.dimension(k) for k, value in enumerate(indices)}
    done = dims[loops[0].variable]
    for each in loops[1:]:
        done = done * trips(each) + dims[each.variable]
    moved = {**dims, loops[-1].variable: done // repeated}
    results = tuple(e.replace_dims_and_symbols([moved[v] for v in load.indices], []) for e in load.map.results)
    return Place(AffineMap(len(indices), 0, results), indices, ahead)


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
