"""The schedule trees of matrix products on the cube: a schedule as a tree, and the schedule that a tree says.

    for m tile 512 parallel, n tile 1792 parallel
      for n tile 256, m tile 128
        place t0 in l0c
        for m, n
          run S0
        for k tile 256 pipeline 2
          place in0, in1 in l1
          for k tile 64 pipeline 2
            place in0 in l0a
            place in1 in l0b
            for m intrinsic mad, n, k
              run S1
        for m, n
          run S2

Cores share the parallel loops; packets come to L1 and base tiles to L0A and L0B while the ones before them are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from msc.lowering.ascend.matmul_tiling import MatmulSchedule, MatmulShape, MatmulWishes, matmul_schedule
from msc.lowering.ascend.products import CubeProduct, Outline
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Block, Loop, Node, Place, Run, Tree, loops
from msc.targets.davinci import DavinciTarget


def tree_of(model: KernelModel, outlined: Outline, product: CubeProduct, schedule: MatmulSchedule) -> Tree | None:
    """The tree of a schedule; None for products of batches, and where A and B have changed places."""
    contraction = outlined.found.contraction
    axes = {axis.name for axis in outlined.found.axes}
    named = {product.m, product.n, *product.k} - {""}
    changed = product.a.array != contraction.a.operand or product.a.array == product.b.array
    if product.batch or axes != named or changed or len(product.k) > 1:
        return None
    return _Builder(model, outlined, product, schedule).tree()


class _Builder:
    def __init__(self, model: KernelModel, outlined: Outline, product: CubeProduct, schedule: MatmulSchedule) -> None:
        self._model, self._found, self._product, self._schedule = model, outlined.found, product, schedule
        self._names = array_names(model.arrays)
        self._k = product.k[0] if product.k else ""

    def tree(self) -> Tree:
        schedule, product = self._schedule, self._product
        contraction = self._found.contraction
        body = [*self._each(self._found.before), *self._reduction(), *self._each(self._found.after)]
        tile = Block(tuple(body), self._places("l0c", contraction.target))
        inside = self._loop(product.n, schedule.base[1], self._loop(product.m, schedule.base[0], tile))
        (rows, columns), (single_m, single_n) = schedule.grid, schedule.single
        if columns > 1:
            inside = self._shared(product.n, single_n, inside)
        if rows > 1:
            inside = self._shared(product.m, single_m, inside)
        return Tree(self._found.axes, inside)

    def _reduction(self) -> tuple[Node, ...]:
        schedule, contraction = self._schedule, self._found.contraction
        a, b, base_k = contraction.a.operand, contraction.b.operand, schedule.base[2]
        nest: Block = Block((Run((contraction.statement,)),))
        for axis in reversed([name for name in (self._product.m, self._product.n, self._k) if name]):
            nest = Block((Loop(axis, nest),))
        first = nest.nodes[0]
        assert isinstance(first, Loop)
        nest = Block((replace(first, mark="intrinsic", unit="mad"),))
        places = (*self._places("l0a", a), *self._places("l0b", b))
        step = self._piped(base_k, 2 if schedule.double_buffer else 1, Block(nest.nodes, places))
        packets = [
            (schedule.packet(d) * base_k, schedule.buffers(d), x)
            for d, x in ((schedule.depth_a1, a), (schedule.depth_b1, b))
        ]
        (large, small) = sorted(packets, key=lambda packet: -packet[0])
        if large[:2] == small[:2]:
            return self._piped(large[0], large[1], Block(step.nodes, self._places("l1", a, b))).nodes
        inner = self._piped(small[0], small[1], Block(step.nodes, self._places("l1", small[2])))
        return self._piped(large[0], large[1], Block(inner.nodes, self._places("l1", large[2]))).nodes

    def _places(self, scope: str, *arrays: int) -> tuple[Place, ...]:
        return tuple(Place(self._names[a], scope) for a in dict.fromkeys(arrays))

    def _piped(self, tile: int, buffers: int, body: Block) -> Block:
        if not self._k:
            return body
        size = min(tile, self._product.size(self._k))
        mark = "pipeline" if buffers > 1 else ""
        return Block((Loop(self._k, body, size, mark, buffers=buffers if mark else 1),))

    def _loop(self, axis: str, tile: int, body: Block) -> Block:
        return Block((Loop(axis, body, min(tile, self._product.size(axis))),)) if axis else body

    def _shared(self, axis: str, tile: int, body: Block) -> Block:
        return Block((Loop(axis, body, min(tile, self._product.size(axis)), "parallel"),))

    def _each(self, statements: Sequence[int]) -> tuple[Node, ...]:
        if not statements:
            return ()
        sums = self._found.contraction.target
        held = {self._model.statements[s].target for s in statements}
        passed = sorted(a for a in held if self._model.arrays[a].kind == "internal" and a != sums)
        body = Block((Run(tuple(statements)),), self._places("register", *passed))
        for axis in (self._product.n, self._product.m):
            body = Block((Loop(axis, body),)) if axis else body
        return body.nodes


def schedule_in(tree: Tree, shape: MatmulShape, product: CubeProduct, target: DavinciTarget) -> MatmulSchedule:
    """The schedule that a tree says, as far as it is of the form above. Raises MSC1021 for what does not fit."""
    tiles = [loop for loop in loops(tree) if loop.tile is not None]
    k = product.k[0] if product.k else ""
    shared = {loop.axis: loop.tile or 0 for loop in tiles if loop.mark == "parallel"}
    base = {loop.axis: loop.tile or 0 for loop in tiles if loop.mark != "parallel"}
    m, n, step = (_up(base.get(axis, 1), by) for axis, by in ((product.m, 16), (product.n, 16), (k, shape.step)))
    packets = [loop for loop in tiles if loop.axis == k and any(p.scope == "l1" for p in loop.body.places)]
    depths = [max(1, ceil((loop.tile or 1) / step)) * loop.buffers for loop in packets] or [1]
    single = (_up(shared.get(product.m, shape.m), m), _up(shared.get(product.n, shape.n), n))
    a_first = len(packets) < 2 or any(p.array == _array_a(product) for p in packets[0].body.places)
    first, last = depths[0], depths[-1]
    wishes = MatmulWishes(
        grid=(ceil(shape.m / single[0]), ceil(shape.n / single[1])),
        single=single,
        base=(m, n, step),
        depth_a1=first if a_first else last,
        depth_b1=last if a_first else first,
        big_packets=True,
        unit_flag=True,
        scalar_cycles=0.0,
    )
    made = matmul_schedule(shape, target, wishes)
    return replace(made, rotated=made.cores > 1)


def _array_a(product: CubeProduct) -> str:
    return f"in{product.a.array}"


def _up(size: int, multiple: int) -> int:
    return ceil(size / multiple) * multiple
