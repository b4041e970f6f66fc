"""The places of a tree: the storage of each intermediate array.

A value that is used at the point that computes it stays in a register. Any other array is stored around the statements
that access it and no further out, in a buffer of the elements that an iteration accesses: in registers or on the stack
if there is room. A larger array is stored in an output that is computed from it, which needs no additional cache and
whose lines are then cached, or in the workspace. An array that is computed in front of loops that all read it may be
in the workspace an iteration at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import prod

from msc.dialects.element_types import BYTES
from msc.poly.buffers import (
    ArrayAccess,
    LocalBuffer,
    body_accesses,
    forwarded,
    local_buffer,
    local_buffers,
    steps_along,
    takes_all,
)
from msc.poly.dependences import Dependences
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.nest import Body, Nest, generate
from msc.poly.overwriting import aliased_outputs
from msc.poly.scalar import reads
from msc.poly.schedule_tree.moves import cache_write, with_blocks, without_places
from msc.poly.schedule_tree.nodes import Loop, Place, Run, Tree, all_blocks, below, walk
from msc.poly.schedule_tree.nodes import Loop as TreeLoop
from msc.poly.schedule_tree.proof import lost
from msc.poly.schedule_tree.to_isl import to_isl
from msc.poly.storage import Around, bodies, by_array, outermost
from msc.schedule.loops.outline import loops_around
from msc.targets.machine import Machine

ORDER = ("register", "stack", "output", "workspace")
"""Scopes, nearest first: an array is stored in the farthest that one of its buffers needs."""


def stored(model: KernelModel, deps: Dependences, tree: Tree, machine: Machine) -> Tree:
    """The tree with places for its intermediates, by the room of a machine in registers and on the stack."""
    bare = without_places(tree)
    if not any(array.kind == "internal" for array in model.arrays):
        return bare
    return with_sums_in_registers(model, _Search(model, deps, bare, machine).result(), machine)


class _Search:
    def __init__(self, model: KernelModel, deps: Dependences, tree: Tree, machine: Machine) -> None:
        self._model, self._deps, self._bare, self._machine = model, deps, tree, machine
        self._names = array_names(model)
        self._blocks = list(all_blocks(tree.body))
        self._outermost = outermost(model, tree)
        self._between = {each.array for each in model.materialized}

    def result(self) -> Tree:
        arrays = [k for k, array in enumerate(self._model.arrays) if array.kind == "internal"]
        paths = {a: self._path(a) for a in arrays}
        homes = {a: path[-1] for a, path in paths.items()}
        nests = self._nests(homes)
        moved = {a for a in arrays if self._is_inside_points(paths[a]) and not self._is_forwarded(a, nests)}
        if moved:
            homes |= {a: self._outside(a, paths[a]) for a in moved}
            nests = self._nests(homes)
        return self._with_places(self._scopes(nests, homes))

    def _path(self, array: int) -> list[int]:
        """The blocks around all accesses to an array, outermost first."""
        touching = frozenset(
            k
            for k, s in enumerate(self._model.statements)
            if s.target == array or any(r.operand == array for r in reads(s.body))
        )
        numbers = {id(block): k for k, block in enumerate(self._blocks)}
        block, path = self._blocks[0], [0]
        while (node := next((n for n in block.nodes if touching <= below(n)), None)) and isinstance(node, TreeLoop):
            block = node.body
            path.append(numbers[id(block)])
        return path

    def _is_inside_points(self, path: Sequence[int]) -> bool:
        return any(isinstance(node, Run) for node in self._blocks[path[-1]].nodes)

    def _is_forwarded(self, array: int, nests: Sequence[Nest]) -> bool:
        uses = [
            body_accesses(self._model, body, place.ranges, {array})
            for body, place in bodies(nests, self._outermost)
            if self._is_home(body, array)
        ]
        return all(forwarded(each) for each in uses if each)

    def _is_home(self, body: Body, array: int) -> bool:
        places = self._provisional[body.block].places
        return any(place.array == self._names[array] for place in places)

    def _outside(self, array: int, path: Sequence[int]) -> int:
        """The innermost block of a path that loses no value of an array, outside of vector and unrolled loops."""
        for block in reversed(path):
            if any(loop.mark in ("vector", "unroll") for loop in self._around(block)):
                continue
            tree = self._with_places({block: [Place(self._names[array], "stack")]})
            if not any(True for rows in to_isl(self._model, tree).places for _ in lost(self._model, self._deps, rows)):
                return block
        return 0

    def _around(self, block: int) -> list[TreeLoop]:
        """The loops around a block."""
        found = [node for node in walk(self._bare.body) if isinstance(node, TreeLoop)]
        return [loop for loop in found if any(each is self._blocks[block] for each in all_blocks(loop.body))]

    def _nests(self, homes: Mapping[int, int]) -> Sequence[Nest]:
        placed: dict[int, list[Place]] = {}
        for array, block in homes.items():
            placed.setdefault(block, []).append(Place(self._names[array], "stack"))
        tree = self._with_places(placed)
        self._provisional = list(all_blocks(tree.body))
        return generate(self._model, tree)

    def _scopes(self, nests: Sequence[Nest], homes: Mapping[int, int]) -> dict[int, list[Place]]:
        """Places by the number of their block."""
        worst: dict[int, str] = {}
        room: dict[int, int] = {}
        places = list(bodies(nests, self._outermost))
        holding = {id(body) for body, around in places if self._holds(body, around, homes)}
        for body, around in places:
            left = room.setdefault(id(body), self._machine.stack_of_places)
            in_front = any(id(inner) in holding for inner, _ in bodies(body.inside, around))
            found = self._lying(self._uses(body, around, homes), around, left, in_front=in_front)
            for array, (scope, size) in found.items():
                worst[array] = max(worst.get(array, "register"), scope, key=_rank)
                left -= size
            for inner, _ in bodies(body.inside, around):
                room[id(inner)] = left
        placed: dict[int, list[Place]] = {}
        for array, scope in sorted(worst.items(), key=lambda pair: (_rank(pair[1]), pair[0])):
            block = 0 if scope == "workspace" else homes[array]
            placed.setdefault(block, []).append(Place(self._names[array], scope.removeprefix("part of ")))
        return placed

    def _uses(self, body: Body, around: Around, homes: Mapping[int, int]) -> dict[int, list[ArrayAccess]]:
        """The accesses to each array that is stored in a body."""
        here = {a for a, block in homes.items() if block == body.block}
        return by_array(body_accesses(self._model, body, around.ranges, here))

    def _holds(self, body: Body, around: Around, homes: Mapping[int, int]) -> bool:
        """Whether some array in a body needs memory."""
        return not all(map(forwarded, self._uses(body, around, homes).values()))

    def _lying(
        self,
        uses: Mapping[int, list[ArrayAccess]],
        around: Around,
        room: int,
        *,
        in_front: bool,
    ) -> dict[int, tuple[str, int]]:
        """The scope of each array that is stored in a body, and its bytes on the stack.

        Blocks of arrays between members are on the stack only if these and all other arrays there are small.
        """
        found = {a: ("register", 0) for a, each in uses.items() if forwarded(each)}
        own = {a: each for a, each in uses.items() if a not in found and a not in self._between}
        found |= self._in_front(own, around, room) if in_front else self._innermost(own, around, room)
        blocks = {a: each for a, each in uses.items() if a not in found}
        small = min(room, self._machine.l2 // self._machine.code.stacked) - sum(size for _, size in found.values())
        return found | self._in_front(blocks, around, small)

    def _innermost(
        self, uses: Mapping[int, list[ArrayAccess]], around: Around, room: int
    ) -> dict[int, tuple[str, int]]:
        """The scope of each array, and the bytes that it takes there."""
        found: dict[int, tuple[str, int]] = {}
        buffers = {a: local_buffers(each, around.depth) for a, each in uses.items()}
        sizes = {a: self._bytes(a, each) for a, each in buffers.items()}
        least = self._machine.code.register_buffer
        large = [a for a in buffers if sizes[a] > least and (sizes[a] > room or not _is_transposed(buffers[a]))]
        aliased = aliased_outputs(self._model, self._bare, large)
        for array, each in buffers.items():
            if array in aliased:
                found[array] = self._names[aliased[array]], 0
            elif each is not None and sizes[array] <= room:
                found[array] = self._local(uses[array], sizes[array]), sizes[array]
                room -= sizes[array]
            else:
                found[array] = "workspace", 0
        return found

    def _in_front(self, uses: Mapping[int, list[ArrayAccess]], around: Around, room: int) -> dict[int, tuple[str, int]]:
        """The scopes and bytes of arrays that are computed in front of the loops whose places read them."""
        found: dict[int, tuple[str, int]] = {}
        for array, each in uses.items():
            buffer = local_buffer(each, around.depth)
            size = self._bytes(array, None if buffer is None else (buffer,))
            if buffer is None:
                found[array] = "workspace", 0
            elif size <= room:
                found[array] = self._local(each, size), size
                room -= size
            else:
                found[array] = "part of workspace", 0
        return found

    def _local(self, uses: Sequence[ArrayAccess], size: int) -> str:
        """The scope of a local buffer: registers have no index, so only unrolled loops can go over them."""
        in_registers = size <= self._machine.register_file and not any(use.rolled for use in uses)
        return "register" if in_registers else "stack"

    def _bytes(self, array: int, buffers: Sequence[LocalBuffer] | None) -> int:
        shapes = [self._model.arrays[array].shape] if buffers is None else [b.shape for b in buffers]
        return sum(map(prod, shapes)) * BYTES[self._model.arrays[array].dtype]

    def _with_places(self, placed: Mapping[int, Sequence[Place]]) -> Tree:
        numbers = count()
        return with_blocks(self._bare, lambda block: replace(block, places=tuple(placed.get(next(numbers), ()))))


def _rank(scope: str) -> int:
    known = {"register": 0, "stack": 1, "part of workspace": 3, "workspace": 4}
    return known.get(scope, 2)


def _is_transposed(buffers: Sequence[LocalBuffer] | None) -> bool:
    """Whether vectors run across the rows: a buffer of their own stores lanes contiguously."""
    return any(buffer.axes[-1] != len(buffer.axes) - 1 for buffer in buffers or () if buffer.axes)


def with_sums_in_registers(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with a copy of each tile of sums that registers hold, in the block that sums it up.

    Takes a tree with places.
    """
    names = array_names(model)
    scopes = {place.array: place.scope for block in all_blocks(tree.body) for place in block.places}
    for number, statement in enumerate(model.statements):
        name = names[statement.target]
        if statement.combine is not None and scopes.get(name, "register") != "register":
            tree = _with_copy(model, tree, number, name, machine)
    return tree


def _with_copy(model: KernelModel, tree: Tree, statement: int, name: str, machine: Machine) -> Tree:
    path = list(loops_around(tree.body, statement))
    steps = [k for k, loop in enumerate(path) if _is_step(model, tree, statement, loop)]
    if not steps or steps[0] == 0 or len(path[steps[0] - 1].body.nodes) > 1:
        return tree
    inside, around = path[steps[0] :], path[steps[0] - 1]
    points = [loop for loop in inside if not _is_step(model, tree, statement, loop)]
    if any(loop.mark not in ("unroll", "vector") for loop in points):
        return tree
    sizes = {loop.axis: loop.tile for loop in path if loop.tile is not None}
    axes = [tree.axis(loop.axis) for loop in points]
    inside = {axis.dims[statement]: range(sizes.get(axis.name, axis.extent)) for axis in axes}
    if not all(takes_all(steps, inside) for steps in steps_along(model.statements[statement].write, inside)):
        return tree  # the copy would hold sums of other tiles, too
    elements = prod(map(len, inside.values()))
    if elements * BYTES[model.arrays[model.statements[statement].target].dtype] > machine.register_file:
        return tree
    return cache_write(tree, name, around, "register")


def _is_step(model: KernelModel, tree: Tree, statement: int, loop: Loop) -> bool:
    """Whether a loop runs over steps of a reduction one by one."""
    dim = tree.axis(loop.axis).dims[statement]
    return loop.tile is None and not loop.mark and dim in model.statements[statement].reduced
