"""The parts of loops and cuts of a tree, each of which runs a block.

If a tile does not divide its extent, a loop has two parts, so that every loop has constant bounds and needs no
guard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from xdsl.ir.affine import AffineExpr

from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Axis, Block, Cut, Loop, ScheduleError, Tree, below, blocks, walk
from msc.poly.schedule_tree.ranges import NOTHING, ZERO, Count, Range, Steps, counts, isl_text, tiled


@dataclass(frozen=True)
class Part:
    """Iterations of an axis, `steps` over them if there is a loop, and what is `left` of the axis in its `body`.

    The tail of an open axis, which is less than a tile, `is_tail`.
    """

    range: Range
    body: Block
    left: Range
    steps: Steps | None = None
    is_tail: bool = False


class Parts:
    """The parts of the loops and cuts of a tree that fits its kernel."""

    def __init__(self, model: KernelModel, tree: Tree) -> None:
        self._model, self._tree = model, tree
        first = len(model.sizes)
        self._counted = {key: AffineExpr.dimension(first + k) for k, key in enumerate(tile_counts(model, tree))}

    def of(self, node: Loop | Cut, ranges: Mapping[str, Range]) -> list[Part]:
        """The parts of a node, in order; `ranges` is what the loops around leave of axes. Raises ScheduleError."""
        bound = self._bound(node)
        whole = ranges.get(node.axis) or Range.whole(self._tree.axis(node.axis).extent, bound)
        if isinstance(node, Cut):
            return [Part(half, body, half) for half, body in _halves(node, whole)]
        if node.tile is not None:
            return self._tiles(node, node.tile, whole, bound)
        if whole.size == 1 and node.axis in ranges:
            return [Part(whole, node.body, whole)]
        return [Part(whole, node.body, NOTHING, whole.points())]

    def _tiles(self, loop: Loop, tile: int, whole: Range, bound: AffineExpr | None) -> list[Part]:
        ragged = bound is not None and is_ragged(self._model, self._tree, loop)
        cut = tiled(whole, tile, bound, self._counted, ragged=ragged)
        return [
            Part(part, loop.body, part.in_tile(size), part.tiles(size), size < tile and len(cut) > 1)
            if size
            else Part(part, loop.body, part)
            for part, size in cut
        ]

    def _bound(self, node: Loop | Cut) -> AffineExpr | None:
        return bound_of(self._model, self._tree.axis(node.axis), below(node), node.line)

    def facts(self) -> list[str]:
        """What isl may know of the parameters: the least sizes, and that tiles end before what they are cut from.

        Of the largest sizes it would know where only one tile fits.
        """
        found = [f"n{k} >= {size.low}" for k, size in enumerate(self._model.sizes)]
        for loop, _ in _open_tiles(self._model, self._tree):
            ends = [ZERO, *(part.range.high for part in self.of(loop, {}))]
            found += [f"{isl_text(low)} <= {isl_text(high)}" for low, high in pairwise(ends)]
        return found


def _halves(cut: Cut, whole: Range) -> list[tuple[Range, Block]]:
    """The parts of a range that run the head and the tail; a range may have only one of them."""
    if whole.span is not None and (cut.at >= whole.span.stop or cut.at <= whole.span.start):
        return [(whole, cut.head if cut.at >= whole.span.stop else cut.tail)]
    if whole.span is None or whole.size is None or not whole.is_fixed:
        raise ScheduleError(f"axis {cut.axis} cannot be cut here: iteration {cut.at} is in no known tile", cut.line)
    before = cut.at - whole.span.start
    return [(whole.part(0, before), cut.head), (whole.part(before, whole.size - before), cut.tail)]


def tile_counts(model: KernelModel, tree: Tree) -> dict[Count, AffineExpr]:
    """The counts of tiles that are parameters of the loops, after the sizes, and their values over these."""
    found: dict[Count, AffineExpr] = {}
    for loop, bound in _open_tiles(model, tree):
        assert loop.tile is not None
        found |= counts(loop.tile, bound, ragged=is_ragged(model, tree, loop))
    return found


def is_ragged(model: KernelModel, tree: Tree, loop: Loop) -> bool:
    """Whether the last tile of a loop may have any number of iterations: plain steps of reductions."""
    dims, inside = tree.axis(loop.axis).dims, (n for n in walk(loop.body) if isinstance(n, Loop))
    points = [each for each in inside if each.axis == loop.axis]
    is_sum = all(dims[s] in model.statements[s].reduced for s in below(loop))
    return is_sum and not any(each.mark or each.tile is not None for each in points)


def _open_tiles(model: KernelModel, tree: Tree) -> Iterable[tuple[Loop, AffineExpr]]:
    """The outermost tile loops over axes with a bound, and the bound."""

    def visit(block: Block, seen: frozenset[str]) -> Iterable[tuple[Loop, AffineExpr]]:
        for node in block.nodes:
            inner = seen
            if isinstance(node, Loop) and node.axis not in seen:
                bound = bound_of(model, tree.axis(node.axis), below(node), node.line)
                inner = seen | {node.axis}
                if bound is not None and node.tile is not None:
                    yield node, bound
            for each in blocks(node):
                yield from visit(each, inner)

    return visit(tree.body, frozenset()) if model.sizes else ()


def bound_of(model: KernelModel, axis: Axis, numbers: frozenset[int], line: int = 0) -> AffineExpr | None:
    """The end of an axis for some statements, if that is before its extent: the same for all of them."""
    found = {model.statements[s].bound(d) for s, d in axis.dims.items() if s in numbers}
    if len(found) > 1:
        ends = ", ".join(sorted(map(str, found)))
        raise ScheduleError(f"axis {axis.name} ends at different places: {ends}", line)
    return found.pop() if found else None


def label(axis: str) -> str:
    """What a loop is called in C: the number that tells axes of one name apart is left out."""
    return re.sub(r"_\d+$", "", axis)
