"""The order of loops: it decides which loads iterations share, and how pages are traversed.

By default the loops of a reduction are in the order of their strides, the largest outermost. With another loop
innermost, rows of a register tile may read what the previous row read one step earlier, as in the windows of a
convolution, or the compiler unrolls its few steps (`prediction`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msc.cost.access import strides, term_dimension
from msc.cost.prediction import KernelCost
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import nested, put
from msc.poly.schedule_tree.nodes import Axis, Loop, Node, Tree, below
from msc.schedule.loops.outline import outline, own_loops_of
from msc.targets.machine import Machine

FASTER = 0.98
"""The part of a schedule's predicted time that another order must come to, to be taken."""


def with_best_order(cost: KernelCost, tree: Tree, band: Collection[str], reasons: list[str]) -> Tree:
    """The tree with the loop of each reduction innermost that is predicted to make the kernel fastest.

    `band` are the axes that all nodes share.
    """
    for position in range(len(outline(tree).nodes)):
        tree = _with_terms_innermost(cost.model, tree, outline(tree).nodes[position], band)
        orders = list(_orders(cost, tree, outline(tree).nodes[position], band))
        if not orders:
            continue
        most = FASTER * cost.prediction(tree, 1).cycles
        found = cost.fastest([order for _, order in orders], most)
        if found is not None:
            best, tree = orders[found[0]]
            reasons.append(f"{best} innermost: its iterations read the same data, or are few")
    return tree


def _with_terms_innermost(model: KernelModel, tree: Tree, node: Node, band: Collection[str]) -> Tree:
    """The tree with the loop over terms that lie in words innermost: an instruction takes a word of them."""
    last, own = _loop_over_terms(model, tree, node, band), own_loops_of(node, band)
    if last is None or last is own[-1]:
        return tree
    (new,) = nested([*(loop for loop in own if loop is not last), last], own[-1].body).nodes
    return put(tree, own[0], new)


def _loop_over_terms(model: KernelModel, tree: Tree, node: Node, band: Collection[str]) -> Loop | None:
    """A node's own loop over terms that lie in words; None where they do not, or where a loop runs as vectors."""
    dims = {s: dim for s in below(node) if (dim := term_dimension(model, model.statements[s])) is not None}
    own = own_loops_of(node, band) if dims else ()
    if any(loop.mark for loop in own):
        return None
    return next((loop for loop in own if any(tree.axis(loop.axis).dims.get(s) == dims[s] for s in dims)), None)


def _orders(cost: KernelCost, tree: Tree, node: Node, band: Collection[str]) -> Iterator[tuple[str, Tree]]:
    """The tree with each of a node's own loops innermost that is not, if the node is one reduction."""
    own, statements = own_loops_of(node, band), below(node)
    if _loop_over_terms(cost.model, tree, node, band) is not None:
        return
    if len(statements) > 1 or not all(cost.model.statements[s].reduced for s in statements):
        return
    for last in own[:-1]:
        if not any(loop.mark == "vector" for loop in own):
            order: list[Loop] = [*(loop for loop in own if loop is not last), last]
            (new,) = nested(order, own[-1].body).nodes
            yield last.axis, put(tree, own[0], new)


def in_fewest_pages(cost: KernelCost, axes: Sequence[Axis], made: Callable[[Sequence[Axis]], Tree]) -> Tree:
    """The tree `made` of an order of axes: the one of the fewest pages, unless the order of memory is faster."""
    guess = _fewest_pages_last(cost.model, axes, cost.target)
    tree = made(guess)
    if list(guess) == list(axes):
        return tree
    other = made(axes)
    return tree if cost.fastest([other], FASTER * cost.prediction(tree, 1).cycles) is None else other


def _fewest_pages_last(model: KernelModel, axes: Sequence[Axis], machine: Machine) -> Sequence[Axis]:
    """The axes of a band, innermost the one that goes through the fewest pages, if the last one goes through many.

    Many are more than L2 holds: the next run of that loop finds neither lines nor translations of addresses. Each
    of the few pages is then read or written on from where the step before has left it.
    """
    if not axes or _pages(model, axes[-1], machine) <= machine.l2 // machine.page:
        return axes
    last = min(axes, key=lambda axis: _pages(model, axis, machine))
    return [*(axis for axis in axes if axis is not last), last]


def _pages(model: KernelModel, axis: Axis, machine: Machine) -> int:
    """The pages of an array that one run along an axis goes through, of the array with the most."""
    return max(
        min(axis.extent, -(-axis.extent * abs(stride) * BYTES[model.arrays[array].dtype] // machine.page))
        for s, dim in axis.dims.items()
        for stride, (array, _) in zip(
            strides(model, model.statements[s], dim), model.statements[s].accesses(), strict=True
        )
    )
