"""The differences between two schedules, in words."""

from __future__ import annotations

from collections.abc import Iterator

from msc.poly.schedule_tree.nodes import Cut, Loop, Tree, all_blocks, loops, walk

_MARKS = (
    ("unroll", "unrolled", "nothing unrolled"),
    ("parallel", "threads along", "one thread"),
    ("vector", "vectors along", "no vectors"),
)


def described_change(before: Tree, after: Tree) -> str:
    """The decisions of `after` that `before` takes otherwise: `oc tile 8, ow tile 3` or `order: kw, kh`."""
    return ", ".join(_changes(before, after)) or "the same"


def _changes(before: Tree, after: Tree) -> Iterator[str]:
    for axis in after.axes:
        old, new = _tiles(before, axis.name), _tiles(after, axis.name)
        if old != new:
            yield f"{axis.name} tile {' tile '.join(map(str, new))}" if new else f"{axis.name} not tiled"
    cuts = _cuts(before), _cuts(after)
    if cuts[0] != cuts[1]:
        yield from (
            (f"tail of {name} from {at} along {along}" for name, at, along in cuts[1]) if cuts[1] else ("no tail",)
        )
    kept = set(_order(before)) & set(_order(after))
    old, new = ([name for name in _order(tree) if name in kept] for tree in (before, after))
    if old != new:
        yield f"order: {', '.join(new)}"
    for mark, some, none in _MARKS:
        old, new = _marked(before, mark), _marked(after, mark)
        if old != new:
            yield f"{some} {' and '.join(new)}" if new else none
    old, new = _prefetched(before), _prefetched(after)
    if old != new:
        yield f"prefetch {' and '.join(new)}" if new else "nothing prefetched"


def _prefetched(tree: Tree) -> tuple[str, ...]:
    found = (each for block in all_blocks(tree.body) for each in block.prefetches)
    return tuple(dict.fromkeys(f"{each.array} ahead {each.ahead} of {each.axis}" for each in found))


def _tiles(tree: Tree, axis: str) -> tuple[int, ...]:
    """The tiles of an axis, the largest first."""
    sizes = {loop.tile for loop in loops(tree) if loop.axis == axis and loop.tile is not None}
    return tuple(sorted(sizes, reverse=True))


def _cuts(tree: Tree) -> tuple[tuple[str, int, str], ...]:
    found = [node for node in walk(tree.body) if isinstance(node, Cut)]
    return tuple(dict.fromkeys((cut.axis, cut.at, _carrier(cut)) for cut in found))


def _carrier(cut: Cut) -> str:
    inside = (node for node in walk(cut.tail) if isinstance(node, Loop) and node.mark == "vector")
    return next((loop.axis for loop in inside), "no vector")


def _order(tree: Tree) -> tuple[str, ...]:
    """The axes of loops that are not in a register tile, in the order of the text."""
    outside = (loop.axis for loop in loops(tree) if loop.mark not in ("vector", "unroll"))
    return tuple(dict.fromkeys(outside))


def _marked(tree: Tree, mark: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(loop.axis for loop in loops(tree) if loop.mark == mark))
