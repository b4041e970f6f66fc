"""Checks that the points of a vector loop can run as lanes, as `vectorize` requires of their nests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.ir.affine import AffineExpr

from msc.poly.affine import linear_form, simplified
from msc.poly.buffers import compose
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.nest import ForLoop, Nest, generate, right_inside, walk
from msc.poly.scalar import indices
from msc.poly.schedule_tree.moves import mapped
from msc.poly.schedule_tree.nodes import Loop, Node, ScheduleError, Tree, below, loops
from msc.poly.schedule_tree.parts import label
from msc.poly.schedule_tree.same_loops import of_loops
from msc.poly.storage import Around, instances, outermost


def refused_vectors(model: KernelModel, tree: Tree) -> dict[Loop, str]:
    """The vector loops of a tree that have no vector form, and why."""
    if not any(loop.mark == "vector" for loop in loops(tree)):
        return {}
    found: dict[Loop, str] = {}
    for name, statement, reason in _refusals_of_loops(model, tree):
        for loop in loops(tree):
            if loop.mark == "vector" and label(loop.axis) == name and statement in below(loop):
                found.setdefault(loop, reason)
    return found


@of_loops
def _refusals_of_loops(model: KernelModel, tree: Tree) -> Sequence[tuple[str, int, str]]:
    return tuple(_refusals(model, generate(model, tree), outermost(model, tree)))


def check_lanes(model: KernelModel, tree: Tree) -> None:
    """Raise ScheduleError, with its line, for a vector loop that has no vector form."""
    for loop, reason in refused_vectors(model, tree).items():
        raise ScheduleError(f"{loop.axis} is no vector loop: {reason}", loop.line)


def with_lanes(model: KernelModel, tree: Tree, reasons: list[str]) -> Tree:
    """The tree with those of its vector loops that have a vector form; the others are plain."""
    refused = refused_vectors(model, tree)
    reasons += [f"no vectors along {loop.axis}: {reason}" for loop, reason in refused.items()]
    return without_vectors(tree, refused) if refused else tree


def without_vectors(tree: Tree, refused: Mapping[Loop, str]) -> Tree:
    """The tree with these vector loops as plain ones, and with them the unrolled loops of their tiles.

    Those would unroll single elements: hundreds of them, for which C compilers take seconds.
    """
    plain = mapped(tree, lambda n: replace(n, mark="") if isinstance(n, Loop) and n in refused else n)
    in_vectors = frozenset[int]().union(*(below(loop) for loop in loops(plain) if loop.mark == "vector"))

    def rolled(node: Node) -> Node:
        of_elements = isinstance(node, Loop) and node.mark == "unroll" and below(node).isdisjoint(in_vectors)
        return replace(node, mark="") if of_elements else node

    return mapped(plain, rolled)


def _refusals(model: KernelModel, nests: Sequence[Nest], around: Around) -> Iterator[tuple[str, int, str]]:
    """Name of a vector loop, a statement below it, and why that has no vector form."""
    for nest in nests:
        if isinstance(nest, ForLoop) and nest.kind == "vector":
            yield from ((nest.name, *each) for each in _of_vector(model, nest, around))
        else:
            inside = around.inside(nest) if isinstance(nest, ForLoop) else around
            yield from _refusals(model, right_inside(nest), inside)


def _of_vector(model: KernelModel, loop: ForLoop, around: Around) -> Iterator[tuple[int, str]]:
    loops = (each for each in walk(loop.body) if isinstance(each, ForLoop))
    inner = next((each for each in loops if not (each.unit or each.kind == "unroll") or not _is_constant(each)), None)
    reason = None if inner is None else f"the loop over {inner.name} inside it is not unrolled"
    for instance, place in instances(loop.body, around.inside(loop)):
        refusal = reason or _reason(model.statements[instance.statement], instance.index, around.depth, place.ranges)
        if refusal is not None:
            yield instance.statement, refusal


def _is_constant(loop: ForLoop) -> bool:
    """Whether a loop has the same bounds in every call and every iteration of the loops around."""
    return not any(simplified(e).used_dims() for e in (loop.lower, loop.upper))


def _reason(statement: KernelStatement, at: Sequence[AffineExpr], lane: int, ranges: Mapping[int, range]) -> str | None:
    """Why a statement at a point has no vector form along a dimension of the nest."""
    numbers = (index.expr.replace_dims_and_symbols(list(at), []) for index in indices(statement.body))
    if any(lane in e.used_dims() and linear_form(e) is None for e in (simplified(n, ranges) for n in numbers)):
        return "it divides its induction variable by a constant"
    for _, map_ in statement.accesses():
        index = [simplified(e, ranges) for e in compose(map_, at)]
        if any(lane in e.used_dims() and linear_form(e) is None for e in index):
            return "an index divides by a constant"
    return None
