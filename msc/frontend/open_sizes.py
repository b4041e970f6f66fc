"""Calls alike but for sizes: after the second shape one compiled graph serves all further ones.

Python may do anything with a size, so a call of new sizes is read again, which is quick; what was compiled serves it if
its graph is the one that `SizeFunctions` derives. Sizes that were equal in all calls so far are one size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr

from msc.dialects.open_sizes import DIMENSIONS
from msc.frontend.execution import compiled
from msc.frontend.modes import TOLD_INPUTS, Wishes
from msc.graph.shapes.size_comparison import sample_sizes
from msc.graph.shapes.size_functions import SizeFunctions, SizelessGraph, Sizes
from msc.ir.entry import find_entry
from msc.support.arrays import Array
from msc.support.diagnostics import DecidedByCall, MscError

if TYPE_CHECKING:
    from msc.runtime.compiled_model import CompiledModel

Shapes: TypeAlias = tuple[tuple[int, ...], ...]
"""Those of the tensors of a call."""
Place: TypeAlias = tuple[int, int]
"""A tensor among those of a call, and an axis."""
Ranges: TypeAlias = Mapping[Place, tuple[int, int | None]]
"""The least size of places that are known to be open, and the largest if there is one."""
Read: TypeAlias = Callable[[Shapes], tuple[ModuleOp, Mapping[str, Array]]]
"""The graph of a call with other shapes, and its weights."""

LEAST_RANGE = 64
"""An open size may be at least as large as this."""

MAXIMUM_OPENINGS = 8
"""Graphs of open sizes of one kind of call; what outgrows them again and again is compiled for each shape."""

REMEMBERED = 32
"""Shapes of calls that are compared to find what is open."""


@dataclass(frozen=True)
class OpenGraph:
    """A graph that is compiled for ranges of sizes."""

    groups: Sequence[Sequence[Place]]
    """Which places have each size."""
    ranges: Sequence[tuple[int, int]]
    largest: Shapes
    functions: SizeFunctions
    model: CompiledModel

    def __str__(self) -> str:
        ranges = [f"{low}..{high}" for low, high in self.ranges]
        names = {place: text for text, group in zip(ranges, self.groups, strict=True) for place in group}
        return ", ".join(
            "x".join(names.get((leaf, axis), str(n)) for axis, n in enumerate(shape)) or "a number"
            for leaf, shape in enumerate(self.largest)
        )

    def sizes_of(self, shapes: Shapes) -> Sizes | None:
        """The sizes in a call; None for shapes that the graph is not compiled for."""
        sizes = tuple(shapes[leaf][axis] for (leaf, axis), *_ in self.groups)
        is_inside = all(low <= size <= high for size, (low, high) in zip(sizes, self.ranges, strict=True))
        return sizes if is_inside and _with_sizes(self.largest, self.groups, sizes) == shapes else None


@dataclass
class AlikeCalls:
    """Calls whose tensors have the same types and ranks; `told` are places that are open from the first call on."""

    told: Ranges = field(default_factory=dict[Place, tuple[int, int | None]])
    seen: list[Shapes] = field(default_factory=list[Shapes])
    graphs: list[OpenGraph] = field(default_factory=list[OpenGraph])
    refusals: list[tuple[Sequence[Place], str]] = field(default_factory=list[tuple["Sequence[Place]", str]])
    """Places that could not be left open, and why."""

    def model(
        self, shapes: Shapes, module: ModuleOp, weights: Mapping[str, Array], read: Read, wishes: Wishes
    ) -> CompiledModel | None:
        """What is compiled for open sizes and serves a call of this graph; None if the call needs its own."""
        outline: SizelessGraph | None = None
        is_inside = False
        for graph in reversed(self.graphs):
            sizes = graph.sizes_of(shapes)
            if sizes is not None:
                is_inside = True
                outline = outline or SizelessGraph.of(module, weights)
                if graph.functions.serve(sizes, outline):
                    return graph.model
        if shapes not in self.seen:
            self.seen = [*self.seen[-REMEMBERED + 1 :], shapes]
        if is_inside or len(self.graphs) >= MAXIMUM_OPENINGS:
            return None
        groups = list(self._groups())
        places = [place for group in groups for place in group]
        if not groups or places in [refused for refused, _ in self.refusals] or 0 in _sizes_at(shapes, places):
            return None
        outline = outline or SizelessGraph.of(module, weights)
        reason = ""
        for ranges in self._ranges(groups):
            try:
                graph = _opened(self.seen[-1], groups, ranges, read, wishes)
            except (MscError, ValueError) as error:
                reason = error.diagnostics[0].message if isinstance(error, MscError) else str(error)
                if isinstance(error, DecidedByCall):  # whatever the range
                    break
                continue
            sizes = graph.sizes_of(shapes)
            if sizes is not None and graph.functions.serve(sizes, outline):
                self.graphs.append(graph)
                return graph.model
            reason = "the graph of this call is another one"
        self.refusals.append((places, reason))
        return None

    def _groups(self) -> Iterator[list[Place]]:
        """The open places, those together that had equal sizes in all calls."""
        groups: dict[object, list[Place]] = {}
        for leaf, shape in enumerate(self.seen[-1]):
            for axis in range(len(shape)):
                place = leaf, axis
                sizes = tuple(shapes[leaf][axis] for shapes in self.seen)
                if place in self.told or len(set(sizes)) > 1:
                    groups.setdefault((sizes, place if place in self.told else None), []).append(place)
        yield from groups.values()

    def _ranges(self, groups: Sequence[Sequence[Place]]) -> Iterator[Sequence[tuple[int, int]]]:
        """Ranges to try: with room for larger calls, and without where there are no such calls, or too much memory."""
        told = [self.told.get(group[0]) for group in groups]
        sizes = [sorted(size for shapes in self.seen for size in _sizes_at(shapes, group)) for group in groups]
        seen = [(own[0], own[-1]) for own in sizes]
        roomy = [(low, max(LEAST_RANGE, 2 << (high - 1).bit_length())) for low, high in seen]
        for ranges in ([(1, high) for _, high in roomy], roomy, seen):
            yield [
                between if found is None else (found[0], found[1] or between[1])
                for found, between in zip(told, ranges, strict=True)
            ]


def told_ranges(target: object, shapes: Shapes) -> Ranges:
    """The open places of the arguments of a Cell as `set_inputs` described them."""
    described: Sequence[Any] = getattr(target, "__dict__", {}).get(TOLD_INPUTS, ())
    if [len(content.shape) for content in described] != [len(shape) for shape in shapes]:
        return {}
    return {
        (leaf, axis): content.ranges.get(axis, (1, None))
        for leaf, content in enumerate(described)
        for axis, size in enumerate(content.shape)
        if size == -1
    }


def _opened(
    shapes: Shapes, groups: Sequence[Sequence[Place]], ranges: Sequence[tuple[int, int]], read: Read, wishes: Wishes
) -> OpenGraph:
    """Compile a graph for ranges of sizes. Raises ValueError and MscError if there is no such graph."""
    if any(low == high for low, high in ranges):
        raise ValueError("a size has no range")
    highest = tuple(high for _, high in ranges)
    largest = _with_sizes(shapes, groups, highest)
    module, weights = read(largest)
    at = {sizes: read(_with_sizes(shapes, groups, sizes)) for sizes in sample_sizes(ranges)}
    outlines = {sizes: SizelessGraph.of(*sample) for sizes, sample in at.items()}
    functions = SizeFunctions(SizelessGraph.of(module, weights), outlines, highest)
    names = [f"size{number:04}" for number in range(len(groups))]
    _name_dimensions(module, largest, {place: n for n, group in zip(names, groups, strict=True) for place in group})
    least = tuple(low for low, _ in ranges)
    with suppress(MscError, ValueError):  # no call can have those sizes, as an image may be smaller than a filter
        at[least] = at.get(least) or read(_with_sizes(shapes, groups, least))
    model = compiled(module, weights, wishes, dict(zip(names, ranges, strict=True)), at)
    return OpenGraph(groups, ranges, largest, functions, model)


def _name_dimensions(module: ModuleOp, shapes: Shapes, names: Mapping[Place, str]) -> None:
    """Say which dimensions of arguments are open, and how their sizes are called."""
    function = find_entry(module)
    assert function is not None
    assert function.arg_attrs is not None
    given = list(function.arg_attrs)
    for leaf, shape in enumerate(shapes):
        dims = [StringAttr(names.get((leaf, axis), "")) for axis in range(len(shape))]
        if any(name.data for name in dims):
            given[leaf] = DictionaryAttr({**given[leaf].data, DIMENSIONS: ArrayAttr(dims)})
    function.arg_attrs = ArrayAttr(given)


def _sizes_at(shapes: Shapes, places: Sequence[Place]) -> list[int]:
    return [shapes[leaf][axis] for leaf, axis in places]


def _with_sizes(shapes: Shapes, groups: Sequence[Sequence[Place]], sizes: Sequence[int]) -> Shapes:
    """Shapes with these sizes at the places that have them."""
    size = {place: n for group, n in zip(groups, sizes, strict=True) for place in group}
    return tuple(tuple(size.get((leaf, axis), n) for axis, n in enumerate(shape)) for leaf, shape in enumerate(shapes))
