"""Checks that the arrays that a tree places in the memories of a machine fit there.

An array takes the box that one iteration accesses; an operand of a unit that reads it from its own memory takes
the matrix that the unit reads. Places of nested blocks live at the same time, those of consecutive blocks do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from msc.dialects.element_types import BYTES
from msc.poly.affine import simplified, spread
from msc.poly.buffers import ArrayAccess, body_accesses, forwarded, local_buffers
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.nest import generate
from msc.poly.schedule_tree.intrinsics import intrinsic_product, operand_scopes, sizes
from msc.poly.schedule_tree.nodes import (
    COPIED_TO,
    Block,
    Loop,
    Place,
    ScheduleError,
    Tree,
    all_blocks,
    blocks,
    walk,
)
from msc.poly.storage import bodies, by_array, outermost
from msc.targets.abilities import Abilities, Scope


@dataclass(frozen=True)
class _At:
    """The iterations of each axis in one run of a block, and the bytes taken around it by scope."""

    left: Mapping[str, int] = field(default_factory=dict[str, int])
    taken: Mapping[str, int] = field(default_factory=dict[str, int])
    buffers: int = 1


def check_capacity(model: KernelModel, tree: Tree, abilities: Abilities) -> None:
    """Raise ScheduleError, with its line, for the first place that does not fit. Takes trees that isl has proved."""
    limited = {name for name, scope in abilities.scopes.items() if scope.bytes}
    if any(place.scope in limited for block in all_blocks(tree.body) for place in block.places):
        _Check(model, tree, abilities).block(tree.body, _At())


class _Check:
    def __init__(self, model: KernelModel, tree: Tree, abilities: Abilities) -> None:
        self._model, self._tree, self._abilities = model, tree, abilities
        self._names = array_names(model)
        self._numbers = {id(block): k for k, block in enumerate(all_blocks(tree.body))}
        around = outermost(model, tree)
        self._bodies = list(bodies(generate(model, tree), around))

    def block(self, block: Block, at: _At) -> None:
        taken = dict(at.taken)
        for place in block.places:
            scope = self._abilities.scopes.get(place.scope)
            if scope is None or not scope.bytes:
                continue
            if place.scope == "register":
                self._check_registers(self._bytes(block, place, at), scope, place)
                continue
            size = -(-self._bytes(block, place, at) // scope.align) * scope.align * at.buffers
            taken[scope.name] = taken.get(scope.name, 0) + size
            if taken[scope.name] > scope.bytes:
                beside = f", {taken[scope.name] - size} of them taken" if taken[scope.name] > size else ""
                message = f"{place.array} takes {size} bytes of {scope.name}, which has {scope.bytes}{beside}"
                raise ScheduleError(message, place.line)
        for node in block.nodes:
            inner = replace(at, taken=taken, buffers=1)
            if isinstance(node, Loop):
                inner = replace(inner, left={**at.left, node.axis: node.tile or 0}, buffers=node.buffers)
            for each in blocks(node):
                self.block(each, inner)

    @staticmethod
    def _check_registers(size: int, scope: Scope, place: Place) -> None:
        """C compilers assign registers; a register tile must not be larger than all of them."""
        if size > scope.bytes:
            message = f"{place.array} takes {size} bytes of registers, and there are {scope.bytes}"
            raise ScheduleError(message, place.line)

    def _bytes(self, block: Block, place: Place, at: _At) -> int:
        array = self._names.index(place.array)
        matrix = self._matrix(block, array, place.scope, at)
        elements = matrix if matrix is not None else self._box(block, array, place)
        return elements * BYTES[self._model.arrays[array].dtype]

    def _matrix(self, block: Block, array: int, scope: str, at: _At) -> int | None:
        """The elements that a unit below the block reads or writes of an array in a memory of its own."""
        for node in walk(block):
            unit = self._abilities.units.get(node.unit) if isinstance(node, Loop) else None
            product = intrinsic_product(self._model, node) if unit is not None and isinstance(node, Loop) else None
            if unit is None or product is None:
                continue
            left, step = sizes(self._model, self._tree, product, at.left), unit.steps
            for operand, memory, roles in operand_scopes(product, unit):
                if (operand, memory) == (array, scope):
                    return left["batch"] * prod(-(-left[role] // step.of(role)) * step.of(role) for role in roles)
        return None

    def _reached(self, array: int, uses: Sequence[ArrayAccess], outer: Mapping[int, range]) -> int:
        """The elements of the box around what one iteration accesses, which begins anywhere."""
        shape = self._model.arrays[array].shape

        def inner(use: ArrayAccess) -> Mapping[int, range]:
            return {d: each for d, each in use.inner.items() if d not in outer}

        axes = zip(shape, *(use.index for use in uses), strict=True)
        reach = [
            min(size, max(spread(simplified(e), inner(use), outer) for e, use in zip(exprs, uses, strict=True)) + 1)
            for size, *exprs in axes
        ]
        return prod(reach)

    def _box(self, block: Block, array: int, place: Place) -> int:
        most = 0
        for body, around in self._bodies:
            if body.block != self._numbers[id(block)]:
                continue
            for uses in by_array(body_accesses(self._model, body, around.ranges, {array})).values():
                if place.scope == "register" and forwarded(uses):
                    continue
                if place.scope == "register" and any(use.rolled for use in uses):
                    message = f"a loop that is not unrolled goes over {place.array}: registers have no index"
                    raise ScheduleError(f"{message}. Unroll it, or place {place.array} in stack", place.line)
                buffers = local_buffers(uses, around.depth)
                if buffers is None and place.scope not in COPIED_TO:
                    most = max(most, self._reached(array, uses, around.ranges))
                    continue
                if buffers is None:
                    raise ScheduleError(
                        f"the elements of {place.array} that an iteration accesses are no box of constant size",
                        place.line,
                    )
                most = max(most, sum(prod(buffer.shape) for buffer in buffers))
        return most
