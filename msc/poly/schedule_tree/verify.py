"""Checks that a tree fits its kernel: its axes are dimensions of statements, and its loops run each statement once.

Legality, that no dependence is violated, is checked separately (`proof`): isl decides it for trees that fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.scalar import data_dims, reads
from msc.poly.schedule_tree.intrinsics import check_intrinsic
from msc.poly.schedule_tree.nodes import (
    COPIED_TO,
    Axis,
    Block,
    Cut,
    Loop,
    Node,
    Place,
    Run,
    ScheduleError,
    Tree,
    below,
    statements,
    walk,
)
from msc.poly.schedule_tree.parts import bound_of
from msc.poly.schedule_tree.prefetches import check_prefetches
from msc.targets.abilities import PLAIN, Abilities


def verify(model: KernelModel, tree: Tree, abilities: Abilities = PLAIN) -> None:
    """Raise ScheduleError, with its line, for a clause of a tree that does not fit its kernel or machine.

    An array may live in a scope of the machine, or in an output, of which it takes no element that is needed.
    """
    check_structure(tree)
    _check_complete(model, tree)
    for axis in tree.axes:
        _check_axis(model, axis)
    _Walk(model, tree, abilities).block(tree.body, _Around())
    check_prefetches(model, tree, abilities)


def check_structure(tree: Tree) -> None:
    """Raise ScheduleError, with its line, for a tree that fits no kernel."""
    _check_distinct(tree)
    names = {axis.name for axis in tree.axes}
    for node in walk(tree.body):
        if not isinstance(node, Run) and node.axis not in names:
            raise ScheduleError(
                f"there is no axis {node.axis}: there are {', '.join(sorted(names)) or 'none'}", node.line
            )


def _check_complete(model: KernelModel, tree: Tree) -> None:
    """Each statement runs somewhere, and there are no others."""
    count, run = len(model.statements), statements(tree.body)
    for node in walk(tree.body):
        if isinstance(node, Run) and max(node.statements, default=0) >= count:
            known = ", ".join(f"S{s}" for s in range(count))
            raise ScheduleError(f"there is no S{max(node.statements)}: there are {known}", node.line)
    missing = [f"S{s} is missing" for s in range(count) if s not in run]
    if missing:
        raise ScheduleError(f"{', '.join(missing)}; a schedule runs every statement once")


def _check_axis(model: KernelModel, axis: Axis) -> None:
    for number, dimension in axis.dims.items():
        extents = model.statements[number].extents if number < len(model.statements) else ()
        if dimension >= len(extents):
            raise ScheduleError(f"axis {axis.name}: there is no S{number}.{dimension}", axis.line)
        if extents[dimension] != axis.extent:
            raise ScheduleError(f"axis {axis.name}: S{number}.{dimension} has extent {extents[dimension]}", axis.line)


def _check_distinct(tree: Tree) -> None:
    names = Counter(axis.name for axis in tree.axes)
    dims = Counter(pair for axis in tree.axes for pair in axis.dims.items())
    for axis in tree.axes:
        if names[axis.name] > 1:
            raise ScheduleError(f"two axes are named {axis.name}", axis.line)
        for number, dimension in axis.dims.items():
            if dims[number, dimension] > 1:
                raise ScheduleError(f"two axes run over S{number}.{dimension}", axis.line)


_NONE = 0
"""Iterations that are left of an axis below the loop over its points."""


@dataclass(frozen=True)
class _Around:
    """What stands around a node: by axis the iterations that its loops leave, and those of the whole axis between its
    cuts; marks of loops, arrays placed.
    """

    left: Mapping[str, int] = field(default_factory=dict[str, int])
    between: Mapping[str, range] = field(default_factory=dict[str, range])
    marks: tuple[str, ...] = ()
    placed: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def iterations(self, axis: Axis) -> int:
        """How many iterations of an axis are left."""
        return self.left.get(axis.name, len(self.between.get(axis.name, range(axis.extent))))


class _Walk:
    def __init__(self, model: KernelModel, tree: Tree, abilities: Abilities) -> None:
        self._model, self._tree, self._abilities = model, tree, abilities
        self._arrays = dict(zip(array_names(model), model.arrays, strict=True))

    def block(self, block: Block, around: _Around) -> None:
        for place in block.places:
            self._place(place, block, around)
            if place.partial:
                self._partial(place, block, around)
        here = dict[str, tuple[str, ...]]()
        for place in block.places:
            here[place.array] = (*here.get(place.array, ()), place.scope)
        for scopes in here.values():
            if len(scopes) > 1 and (len(set(scopes)) < len(scopes) or not PLAIN.scopes.keys().isdisjoint(scopes)):
                raise ScheduleError("an array has one place in a block", block.places[0].line)
        placed = {**around.placed, **here}
        seen: set[int] = set()
        for node in block.nodes:
            for number in sorted(below(node)):
                if number in seen:
                    raise ScheduleError(f"S{number} runs twice; a schedule runs every statement once", node.line)
            seen |= below(node)
            self._node(node, replace(around, placed=placed))

    def _place(self, place: Place, block: Block, around: _Around) -> None:
        name, scope, line = place.array, place.scope, place.line
        array = self._arrays.get(name)
        if array is None:
            raise ScheduleError(f"there is no array {name}: there are {', '.join(self._arrays)}", line)
        home = self._arrays.get(scope)
        if scope not in self._abilities.scopes and (home is None or home.kind != "output" or array.kind != "internal"):
            known = f"{', '.join(self._abilities.scopes)}, or an output for an intermediate"
            raise ScheduleError(f"there is no scope {scope}: there are {known}", line)
        if array.kind == "output" and scope in PLAIN.scopes:
            raise ScheduleError(f"{name} is an output, which is stored in memory of the caller", line)
        if array.kind == "input" and scope == "workspace":
            raise ScheduleError(f"{name} is an input: only the stack or registers can hold a copy", line)
        number = list(self._arrays).index(name)
        if not any(number == each for s in statements(block) for each, _ in self._model.statements[s].accesses()):
            raise ScheduleError(f"no statement of this block accesses {name}", line)
        if scope in around.placed.get(name, ()) and not place.partial:
            raise ScheduleError(f"{name} is placed in {scope} already", line)

    def _partial(self, place: Place, block: Block, around: _Around) -> None:
        """Partial sums are of an array that blocks around place too, and to which all below it adds, or multiplies."""
        name, line, number = place.array, place.line, list(self._arrays).index(place.array)
        if place.scope not in COPIED_TO:
            known = " or ".join(COPIED_TO)
            raise ScheduleError(f"partial sums are in {known}, not in {place.scope}", line)
        if name not in around.placed or self._arrays[name].kind != "internal":
            raise ScheduleError(f"partial sums need an enclosing block that places {name}", line)
        combines = set[str | None]()
        for s in sorted(statements(block)):
            statement = self._model.statements[s]
            if any(read.operand == number for read in reads(statement.body)):
                raise ScheduleError(f"S{s} reads {name}, of which there are partial sums here", line)
            combines |= {statement.combine} if statement.target == number else set()
        if len(combines) != 1 or None in combines:
            raise ScheduleError(f"no statement below is a sum into {name}: there are no partial sums", line)

    def _node(self, node: Node, around: _Around) -> None:
        match node:
            case Run():
                self._run(node, around)
            case Cut():
                self._cut(node, around)
            case Loop():
                self._loop(node, around)

    def _axis(self, node: Loop | Cut) -> Axis:
        axis = self._tree.axis(node.axis)
        for number in sorted(below(node)):
            if number not in axis.dims:
                raise ScheduleError(f"S{number} runs below it, and has no axis {axis.name}", node.line)
        if not below(node):
            raise ScheduleError("no statement runs below it", node.line)
        return axis

    def _run(self, run: Run, around: _Around) -> None:
        for number in run.statements:
            if run.statements.count(number) > 1:
                raise ScheduleError(f"S{number} runs twice; a schedule runs every statement once", run.line)
            for dimension, extent in enumerate(self._model.statements[number].extents):
                axis = next((a for a in self._tree.axes if a.dims.get(number) == dimension), None)
                if extent > 1 and (axis is None or around.iterations(axis) > 1):
                    what = f"S{number}.{dimension}{f', axis {axis.name}' if axis is not None else ''}"
                    raise ScheduleError(f"no loop around S{number} runs over all iterations of {what}", run.line)

    def _cut(self, cut: Cut, around: _Around) -> None:
        axis = self._axis(cut)
        if statements(cut.head) != statements(cut.tail):
            raise ScheduleError("head and tail run the same statements", cut.line)
        if bound_of(self._model, axis, below(cut)) is not None:
            raise ScheduleError(f"axis {axis.name} ends at an open size, and cannot be cut", cut.line)
        whole = around.between.get(axis.name, range(axis.extent))
        if len(whole) == 1:
            raise ScheduleError(f"one iteration of axis {axis.name} is left here, which cannot be cut", cut.line)
        if not whole.start < cut.at < whole.stop:
            message = f"axis {axis.name} is cut between {whole.start + 1} and {whole.stop - 1}, not at {cut.at}"
            raise ScheduleError(message, cut.line)
        for block, part in ((cut.head, range(whole.start, cut.at)), (cut.tail, range(cut.at, whole.stop))):
            self.block(block, replace(around, between={**around.between, axis.name: part}))

    def _loop(self, loop: Loop, around: _Around) -> None:
        axis = self._axis(loop)
        left = around.left.get(loop.axis, axis.extent)
        if left == _NONE and loop.axis in around.left:
            raise ScheduleError(f"a loop around this one runs over the points of axis {axis.name} already", loop.line)
        if loop.tile is not None and not 1 <= loop.tile <= max(left, 1):
            raise ScheduleError(
                f"a tile of axis {axis.name} is 1 to {left} iterations here, not {loop.tile}", loop.line
            )
        self._check_mark(loop, axis, around)
        marks = (*around.marks, loop.mark) if loop.mark else around.marks
        self.block(loop.body, replace(around, left={**around.left, loop.axis: loop.tile or _NONE}, marks=marks))

    def _check_mark(self, loop: Loop, axis: Axis, around: _Around) -> None:
        bound = bound_of(self._model, axis, below(loop), loop.line)
        if loop.mark == "vector" and loop.tile is not None:
            raise ScheduleError("vectors run over the points of an axis, not over its tiles", loop.line)
        for number in sorted(below(loop)) if loop.mark == "vector" else ():
            if axis.dims[number] in data_dims(self._model.statements[number].body):
                raise ScheduleError(f"S{number} reads each element of {loop.axis} at other data: no vectors", loop.line)
        most = {"parallel": self._abilities.parallel, "vector": 1}.get(loop.mark)
        if most is not None and around.marks.count(loop.mark) >= most:
            raise ScheduleError(f"a loop around this one is {loop.mark} already", loop.line)
        if loop.mark == "intrinsic":
            check_intrinsic(self._model, self._tree, loop, around.left, around.placed, self._abilities)
        if loop.mark == "pipeline":
            self._check_pipeline(loop)
        whole = around.iterations(axis) // (loop.tile or 1)
        if loop.mark == "parallel" and bound is None and whole <= 1 and not self._abilities.shares_tails:
            what = "iteration" if loop.tile is None else "whole tile"
            raise ScheduleError(f"threads share nothing: the loop has one {what}", loop.line)
        if loop.mark == "parallel" and {"vector", "unroll"} & set(around.marks):
            raise ScheduleError("a parallel loop cannot be inside an unrolled or vector loop", loop.line)
        if loop.cores > self._abilities.cores:
            message = f"there are {self._abilities.cores} cores"
            if not self._abilities.cores:
                message = "an option says how many threads there are, and no schedule"
            raise ScheduleError(message, loop.line)
        if loop.least:
            self._check_least(loop, axis, bound is not None)
        if loop.mark == "unroll" and bound is not None and axis.name not in around.left:
            raise ScheduleError(f"axis {axis.name} ends at an open size, and cannot be unrolled", loop.line)

    def _check_pipeline(self, loop: Loop) -> None:
        if not self._abilities.overlaps:
            message = "this machine has no pipelines: nothing fills one buffer while another is read"
            raise ScheduleError(message, loop.line)
        if not loop.body.places:
            raise ScheduleError("a pipeline needs places directly below it, and there are none", loop.line)

    def _check_least(self, loop: Loop, axis: Axis, is_open: bool) -> None:
        if not is_open:
            message = f"axis {axis.name} has {axis.extent} iterations in every call, so 'from' has no meaning"
            raise ScheduleError(message, loop.line)
        most = -(-axis.extent // (loop.tile or 1))
        if not 2 <= loop.least <= most:
            raise ScheduleError(f"threads share 2 to {most} iterations here, not from {loop.least} on", loop.line)
