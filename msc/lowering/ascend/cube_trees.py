"""The schedule trees of matrix products on the cube: a schedule as a tree, and the schedule that a tree says.

    for n tile 1024 parallel, m tile 128 parallel, n tile 256 parallel
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

Cores share the parallel loops: core after core takes the next tile, in their order. `for m tile 512 parallel, n tile
1792 parallel, n tile 256, m tile 128` gives each core one part of C instead. Packets come to L1 and base tiles to L0A
and L0B while the ones before them are used. The products of a batch have loops of their own around those over tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Literal

from msc.lowering.ascend.dealt_tiles import Deal
from msc.lowering.ascend.matmul_tiling import MatmulSchedule, MatmulShape, MatmulWishes, matmul_schedule
from msc.lowering.ascend.products import CubeProduct, ProductKernel
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Block, Loop, Mark, Node, Place, Run, Tree, loops
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget


def tree_of(model: KernelModel, outlined: ProductKernel, product: CubeProduct, schedule: MatmulSchedule) -> Tree | None:
    """The tree of a schedule; None where A and B have changed places, and where cores share a batch in parts."""
    contraction = outlined.found.contraction
    axes = {axis.name for axis in outlined.found.axes}
    named = {product.m, product.n, *product.k, *product.batch} - {""}
    changed = product.a.array != contraction.a.operand or product.a.array == product.b.array
    in_parts = bool(product.batch) and schedule.deal is None and schedule.cores > 1
    if in_parts or axes != named or changed or len(product.k) > 1:
        return None
    return _Builder(model, outlined, product, schedule).tree()


class _Builder:
    def __init__(
        self, model: KernelModel, outlined: ProductKernel, product: CubeProduct, schedule: MatmulSchedule
    ) -> None:
        self._model, self._found, self._product, self._schedule = model, outlined.found, product, schedule
        self._names = array_names(model)
        self._k = product.k[0] if product.k else ""

    def tree(self) -> Tree:
        schedule, product = self._schedule, self._product
        contraction = self._found.contraction
        body = [*self._each(self._found.before), *self._reduction(), *self._each(self._found.after)]
        tile = Block(tuple(body), self._places("l0c", contraction.target))
        if schedule.deal is not None:
            return Tree(self._found.axes, self._batched(self._dealt(schedule.deal, tile), "parallel"))
        inside = self._loop(product.n, schedule.base[1], self._loop(product.m, schedule.base[0], tile))
        (rows, columns), (single_m, single_n) = schedule.grid, schedule.single
        if columns > 1:
            inside = self._shared(product.n, single_n, inside)
        if rows > 1:
            inside = self._shared(product.m, single_m, inside)
        return Tree(self._found.axes, self._batched(inside, ""))

    def _batched(self, body: Block, mark: Mark) -> Block:
        """Loops over the products of a batch, the outermost dimension first."""
        for axis in reversed(self._product.batch):
            body = Block((Loop(axis, body, None, mark),))
        return body

    def _dealt(self, deal: Deal, tile: Block) -> Block:
        """Parallel loops over tiles, in the order in which cores take them; an axis with one tile has a plain loop."""
        product, base, (rows, columns) = self._product, self._schedule.base, self._schedule.grid
        m, n = (product.m, base[0], rows), (product.n, base[1], columns)
        along, across = (m, n) if deal.axis == "m" else (n, m)
        order = [along, across] if deal.high == 1 else [across, along]
        if 1 < deal.high < along[2] and across[2] > 1:
            order.insert(0, (along[0], along[1] * deal.high, along[2]))
        for axis, size, tiles in (m, n):
            tile = tile if tiles > 1 else self._loop(axis, size, tile)
        for axis, size, tiles in reversed(order):
            tile = self._shared(axis, size, tile) if tiles > 1 else tile
        return tile

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
    of_tiles = [loop for loop in tiles if loop.axis in (product.m, product.n)]
    shared = [loop for loop in of_tiles if loop.mark == "parallel"]
    innermost = {loop.axis: loop for loop in of_tiles}
    base = {loop.axis: loop.tile or 0 for loop in tiles}
    least = ((product.m, shape.edges[0]), (product.n, shape.edges[1]), (k, shape.step))
    m, n, step = (_up(base.get(axis, 1), by) for axis, by in least)
    packets = [loop for loop in tiles if loop.axis == k and any(p.scope == "l1" for p in loop.body.places)]
    depths = [max(1, ceil((loop.tile or 1) / step)) * loop.buffers for loop in packets] or [1]
    a_first = len(packets) < 2 or any(p.array == _array_a(product) for p in packets[0].body.places)
    first, last = depths[0], depths[-1]
    wishes = MatmulWishes(
        base=(m, n, step),
        depth_a1=first if a_first else last,
        depth_b1=last if a_first else first,
        big_packets=True,
        unit_flag=True,
        scalar_cycles=0.0,
    )
    is_batched = any(loop.axis in product.batch and loop.mark == "parallel" for loop in loops(tree))
    if (shared or is_batched) and all(
        loop in shared or product.size(axis) <= (loop.tile or 0) for axis, loop in innermost.items()
    ):
        made = matmul_schedule(shape, target, replace(wishes, dealt=True))
        return (
            made if made.deal is None or not shared else replace(made, deal=_deal_in(shared, product, made, made.deal))
        )
    parts = {loop.axis: loop.tile or 0 for loop in shared}
    single = (_up(parts.get(product.m, shape.m), m), _up(parts.get(product.n, shape.n), n))
    grid = (ceil(shape.m / single[0]), ceil(shape.n / single[1]))
    made = matmul_schedule(shape, target, replace(wishes, grid=grid, single=single))
    return replace(made, rotated=made.cores > 1)


def _deal_in(shared: Sequence[Loop], product: CubeProduct, made: MatmulSchedule, deal: Deal) -> Deal:
    """The order of tiles that parallel loops say. Raises MSC1021 where the last band would be narrower."""
    along: Literal["m", "n"] = "m" if shared[0].axis == product.m else "n"
    at = 0 if along == "m" else 1
    high = (shared[0].tile or 1) // made.base[at] if len(shared) == 3 else 1
    if made.grid[at] % max(1, high):
        message = f"{made.grid[at]} tiles along {shared[0].axis} are no bands of {high}"
        raise MscError(Diagnostic("MSC1021", message, help="each band has as many tiles as the others"))
    return replace(deal, axis=along, high=max(1, high))


def _array_a(product: CubeProduct) -> str:
    return f"in{product.a.array}"


def _up(size: int, multiple: int) -> int:
    return ceil(size / multiple) * multiple
