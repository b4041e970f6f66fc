"""Storage planning: each internal array of a kernel lies in values, on the stack, or in a temporary argument."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from xdsl.ir.affine import AffineExpr

from msc.dialects.element_types import BYTES
from msc.poly.affine import bounds
from msc.poly.buffers import (
    ArrayAccess,
    LocalBuffer,
    body_accesses,
    forwarded,
    iterations,
    local_buffer,
    local_buffers,
)
from msc.poly.model import KernelModel
from msc.poly.nest import Body, Instance, Loop, Nest
from msc.poly.scalar import reads
from msc.poly.valid_extents import ranges_of
from msc.targets.machine import Machine

AliasedOutputs: TypeAlias = Callable[[Collection[int]], Mapping[int, int]]
"""Those of some internal arrays that may lie in an output until it is written, to that output."""


@dataclass(frozen=True)
class BodyArrays:
    """The internal arrays of a Body: forwarded ones, those in local buffers, in scratch, and in outputs."""

    forwarded: frozenset[int] = frozenset()
    local: Mapping[int, tuple[LocalBuffer, ...]] = field(default_factory=dict[int, tuple[LocalBuffer, ...]])
    scratch: Mapping[int, LocalBuffer] = field(default_factory=dict[int, LocalBuffer])
    aliased: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True)
class Storage:
    """The arrays of each Body, by its identity, and the temporaries of the function with their shapes."""

    inside: Mapping[int, BodyArrays]
    temporaries: Mapping[int, tuple[int, ...]]

    def has_copies(self, body: Body) -> bool:
        """Whether a Body keeps arrays on the stack for loops in it."""
        return bool(self.inside[id(body)].local) and any(map(_has_body, body.inside))


def plan_storage(
    model: KernelModel,
    nests: Sequence[Nest],
    counts: Sequence[AffineExpr],
    aliased_outputs: AliasedOutputs,
    machine: Machine,
) -> Storage:
    """Plan the storage of the internal arrays: local buffers take at most what the stack of `machine` has room for.

    Before the loops' variables are the sizes, and the `counts` over them.
    """
    search, ranges = _Search(model, aliased_outputs, machine), dict(ranges_of(model.sizes))
    for expr in counts:
        low, high = bounds(expr, ranges)
        ranges[len(ranges)] = range(low, high + 1)
    for nest in nests:
        search.visit(nest, _Around(ranges, machine.stack))
    return search.result()


@dataclass(frozen=True)
class _Around:
    """The variables around a place, the stack left, variables of loops that run at once, and arrays in scratch."""

    ranges: Mapping[int, range]
    room: int
    parallel: tuple[int, ...] = ()
    scratch: frozenset[int] = frozenset()

    @property
    def depth(self) -> int:
        return len(self.ranges)

    def inside(self, loop: Loop) -> _Around:
        ranges = {**self.ranges, self.depth: iterations(loop, self.ranges)}
        parallel = (*self.parallel, self.depth) if loop.kind == "parallel" else self.parallel
        return replace(self, ranges=ranges, parallel=parallel)


@dataclass
class _Search:
    model: KernelModel
    aliased_outputs: AliasedOutputs
    machine: Machine
    bodies: dict[int, BodyArrays] = field(default_factory=dict[int, BodyArrays])
    whole: set[int] = field(default_factory=set[int])
    """Arrays that are temporaries of their whole shape."""

    def visit(self, nest: Nest, around: _Around) -> None:
        match nest:
            case Loop():
                for inner in nest.body:
                    self.visit(inner, around.inside(nest))
            case Body():
                self._body(nest, around)
            case Instance():
                return

    def result(self) -> Storage:
        shapes = {array: self.model.arrays[array].shape for array in self.whole}
        bodies = {
            key: replace(arrays, scratch={a: self._alike(b) for a, b in arrays.scratch.items() if a not in self.whole})
            for key, arrays in self.bodies.items()
        }
        for array, buffer in (pair for arrays in bodies.values() for pair in arrays.scratch.items()):
            shapes[array] = tuple(map(max, shapes.get(array, buffer.shape), buffer.shape))
        return Storage(bodies, dict(sorted(shapes.items())))

    def _alike(self, buffer: LocalBuffer) -> LocalBuffer:
        """The buffer of a Body outside a parallel loop, as those inside have it: the rest of what threads share."""
        lead = max(len(b.lead) for arrays in self.bodies.values() for b in arrays.scratch.values()) - len(buffer.lead)
        zeros: tuple[AffineExpr, ...] = (AffineExpr.constant(0),) * lead
        return replace(buffer, shape=(*(1,) * lead, *buffer.shape), lead=(*zeros, *buffer.lead))

    def _body(self, body: Body, around: _Around) -> None:
        accesses = body_accesses(self.model, body, around.ranges)
        parts = [nest for nest in body.inside if _has_body(nest)]
        if not parts:
            self.bodies[id(body)] = self._innermost([a for a in accesses if a.array not in around.scratch], around)
            return
        scratch = _touched([nest for nest in body.inside if not _has_body(nest)], self.model) - around.scratch
        kept = self._in_front([a for a in accesses if a.array in scratch], around)
        self.bodies[id(body)] = kept
        room = around.room - sum(self._bytes(array, buffers) for array, buffers in kept.local.items())
        for nest in parts:
            self.visit(nest, replace(around, scratch=around.scratch | scratch, room=room))

    def _innermost(self, accesses: Sequence[ArrayAccess], around: _Around) -> BodyArrays:
        passed = forwarded(accesses)
        uses = _by_array(accesses, passed)
        found = {array: local_buffers(of_array, around.depth) for array, of_array in uses.items()}
        sizes = {array: self._bytes(array, buffers) for array, buffers in found.items()}
        large = [array for array, size in sizes.items() if size > self.machine.code.register_buffer]
        aliased = self.aliased_outputs([a for a in large if sizes[a] > around.room or not _is_turned(found[a])])
        local = self._that_fit({a: b for a, b in found.items() if b is not None and a not in aliased}, around.room)
        self.whole |= found.keys() - aliased.keys() - local.keys()
        return BodyArrays(frozenset(passed), local, aliased=aliased)

    def _that_fit(
        self, found: Mapping[int, tuple[LocalBuffer, ...]], room: int
    ) -> Mapping[int, tuple[LocalBuffer, ...]]:
        """Those of the arrays, in order, that find room on the stack."""
        local: dict[int, tuple[LocalBuffer, ...]] = {}
        for array, buffers in found.items():
            size = self._bytes(array, buffers)
            if size <= room:
                room -= size
                local[array] = buffers
        return local

    def _bytes(self, array: int, buffers: Sequence[LocalBuffer] | None) -> int:
        shapes = [self.model.arrays[array].shape] if buffers is None else [b.shape for b in buffers]
        return sum(map(prod, shapes)) * BYTES[self.model.arrays[array].dtype]

    def _in_front(self, accesses: Sequence[ArrayAccess], around: _Around) -> BodyArrays:
        uses = _by_array(accesses, set())
        found = {array: local_buffer(of_array, around.depth) for array, of_array in uses.items()}
        self.whole |= {array for array, buffer in found.items() if buffer is None}
        local = self._that_fit({a: (b,) for a, b in found.items() if b is not None}, around.room)
        scratch = {a: _apart(b, around) for a, b in found.items() if b is not None and a not in local}
        return BodyArrays(local=local, scratch=scratch)


def _is_turned(buffers: Sequence[LocalBuffer] | None) -> bool:
    """Whether vectors run across the rows: in a buffer of their own, lanes lie side by side."""
    return any(buffer.axes[-1] != len(buffer.axes) - 1 for buffer in buffers or () if buffer.axes)


def _by_array(accesses: Sequence[ArrayAccess], without: set[int]) -> dict[int, list[ArrayAccess]]:
    arrays = sorted({a.array for a in accesses} - without)
    return {array: [a for a in accesses if a.array == array] for array in arrays}


def _apart(buffer: LocalBuffer, around: _Around) -> LocalBuffer:
    """The buffer once for each of the iterations that run at once."""
    lead: tuple[AffineExpr, ...] = tuple(AffineExpr.dimension(depth) for depth in around.parallel)
    counts = tuple(around.ranges[depth].stop for depth in around.parallel)
    return replace(buffer, shape=(*counts, *buffer.shape), lead=lead)


def _has_body(nest: Nest) -> bool:
    match nest:
        case Body():
            return True
        case Loop():
            return any(map(_has_body, nest.body))
        case Instance():
            return False


def _touched(nests: Sequence[Nest], model: KernelModel) -> frozenset[int]:
    """The internal arrays that instances in loops access."""
    found: set[int] = set()
    for nest in nests:
        match nest:
            case Instance():
                statement = model.statements[nest.statement]
                found |= {statement.target, *(r.operand for r in reads(statement.body))}
            case Loop():
                found |= _touched(nest.body, model)
            case Body():
                found |= _touched(nest.inside, model)
    return frozenset(a for a in found if model.arrays[a].kind == "internal")
