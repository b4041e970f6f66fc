"""The schedules of products on the cube: as a tree, and what a tree says.

    for n tile 1024 parallel 20, m tile 128 parallel, n tile 256 parallel
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

Cores share the parallel loops: 20 cores, and core after core takes the next tile, in their order. `for m tile 512
parallel, n tile 1792 parallel, n tile 256, m tile 128` gives each core one part of C instead. Packets come to L1 and
base tiles to L0A and L0B while the ones before them are used. Sums have two places in L0C if the loop around them is a
pipeline. Of a convolution, load3d brings windows of the image in L1 to L0A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from msc.poly.kernel_text import array_names
from msc.poly.schedule_tree.moves import mapped
from msc.poly.schedule_tree.nodes import Block, Cut, Loop, Mark, Node, Place, Run, ScheduleError, Tree, below, walk
from msc.schedule.cube.convolutions import CubeConvolution
from msc.schedule.cube.kernels import CubeKernel
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import PACKETS

_UNSPLIT = (1, 1)


@dataclass(frozen=True)
class CubeSchedule:
    """What a schedule says of a product.

    A base tile has `base` iterations of m, n and k. A move to L1 brings `packets` base tiles of A and of B, and L1 has
    `buffers` of these. L0A and L0B have `halves` base tiles, L0C has `sums`. Cores take base tiles in turn, of
    `grid` tiles along m and n, or else each has one part of `single` iterations of m and n, in a grid of cores.
    """

    base: tuple[int, int, int]
    packets: tuple[int, int]
    buffers: tuple[int, int]
    grid: tuple[int, int]
    single: tuple[int, int]
    cores: int
    in_turn: bool = False
    along: str = "n"
    """In turns, tiles come in bands along m or n; in parts, the axis of the outer loop of a core."""
    high: int = 1
    """Tiles of a band, one above the other."""
    batches: int = 1
    """Groups of cores that share the products of a batch."""
    halves: int = 2
    sums: int = 1
    unit_flag: bool = True
    """Whether the Fixpipe follows the cube by a flag in L0C, instead of an event of the whole tile."""
    rotated: bool = True
    """Each core begins at another part of k, so cores that share rows do not ask for the same lines at a time."""
    scalar_cycles: float = 0.0
    """What the scalar unit computes in a base step."""
    l2_split: tuple[int, int] = _UNSPLIT
    """Pieces of a core's part along m and n, one after the other, so that what cores read together stays in L2."""


def tree_of(kernel: CubeKernel, schedule: CubeSchedule) -> Tree:
    """The tree of a schedule."""
    return _Writer(kernel, schedule).tree()


class _Writer:
    def __init__(self, kernel: CubeKernel, schedule: CubeSchedule) -> None:
        self._kernel, self._schedule = kernel, schedule
        self._names = array_names(kernel.model)

    def tree(self) -> Tree:
        kernel = self._kernel
        first, count = kernel.statement, len(kernel.model.statements)
        body = [*self._each(range(first)), *self._reduction(), *self._each(range(first + 1, count))]
        block = Block(tuple(body), self._places("l0c", kernel.sums))
        for loop in reversed(list(self._around())):
            block = Block((replace(loop, body=block),))
        return Tree(kernel.axes, block)

    def _around(self) -> Iterator[Loop]:
        """The loops around the sums, the outermost first."""
        loops = list(self._in_turn() if self._schedule.in_turn else self._in_parts())
        cores = self._schedule.cores
        for number, loop in enumerate(loops):
            is_first = loop.mark == "parallel" and all(each.mark != "parallel" for each in loops[:number])
            yield replace(loop, cores=cores) if is_first else loop

    def _in_turn(self) -> Iterator[Loop]:
        """Parallel loops over tiles, in the order in which cores take them; an axis with one tile has a plain loop."""
        kernel, schedule = self._kernel, self._schedule
        m, n = ((x, b, t) for x, b, t in zip((kernel.m, kernel.n), schedule.base, schedule.grid, strict=False))
        along, across = (m, n) if schedule.along == "m" else (n, m)
        order = [along, across] if schedule.high == 1 else [across, along]
        if 1 < schedule.high < along[2] and across[2] > 1:
            order.insert(0, (along[0], along[1] * schedule.high, along[2]))
        for axis in kernel.batch:
            yield self._loop(axis, None, "parallel")
        for axis, size, tiles in order:
            if tiles > 1:
                yield self._loop(axis, size, "parallel")
        for axis, size, tiles in (n, m):
            if tiles == 1 and axis:
                yield self._loop(axis, size)

    def _in_parts(self) -> Iterator[Loop]:
        kernel, schedule = self._kernel, self._schedule
        if schedule.batches > 1:
            (axis,) = kernel.batch
            yield self._loop(axis, ceil(kernel.shape.count / schedule.batches), "parallel")
        for axis, size, parts in zip((kernel.m, kernel.n), schedule.single, schedule.grid, strict=True):
            if parts > 1:
                yield self._loop(axis, size, "parallel")
        for axis in kernel.batch:
            yield self._loop(axis, None)
        inner = [(x, b) for x, b in zip((kernel.m, kernel.n), schedule.base, strict=False) if x]
        inner = inner if schedule.along == "m" else inner[::-1]
        for number, (axis, size) in enumerate(inner):
            pipelined = number == len(inner) - 1 and schedule.sums > 1
            yield replace(self._loop(axis, size, "pipeline"), buffers=2) if pipelined else self._loop(axis, size)

    def _loop(self, axis: str, tile: int | None, mark: Mark = "") -> Loop:
        return Loop(axis, Block(), None if tile is None else min(tile, self._kernel.extent(axis)), mark)

    def _reduction(self) -> tuple[Node, ...]:
        kernel, schedule, base_k = self._kernel, self._schedule, self._schedule.base[2]
        nest: Block = Block((Run((kernel.statement,)),))
        for axis in reversed([name for name in (kernel.m, kernel.n, kernel.k) if name]):
            nest = Block((Loop(axis, nest),))
        first = nest.nodes[0]
        assert isinstance(first, Loop)
        places = (*self._places("l0a", kernel.a), *self._places("l0b", kernel.b))
        nest = Block((replace(first, mark="intrinsic", unit="mad"),), places)
        step = self._piped(base_k, schedule.halves, nest)
        packets = zip(schedule.packets, schedule.buffers, (kernel.a, kernel.b), strict=True)
        large, small = sorted(packets, key=lambda packet: -packet[0])
        if large[:2] == small[:2]:
            return self._packet(large, step, kernel.a, kernel.b).nodes
        return self._packet(large, self._packet(small, step, small[2]), large[2]).nodes

    def _packet(self, packet: tuple[int, int, int], body: Block, *arrays: int) -> Block:
        count, buffers, _ = packet
        return self._piped(count * self._schedule.base[2], buffers, replace(body, places=self._places("l1", *arrays)))

    def _places(self, scope: str, *arrays: int) -> tuple[Place, ...]:
        return tuple(Place(self._names[a], scope) for a in dict.fromkeys(arrays))

    def _piped(self, tile: int, buffers: int, body: Block) -> Block:
        loop = replace(self._loop(self._kernel.k, tile), body=body)
        return Block((replace(loop, mark="pipeline", buffers=buffers) if buffers > 1 else loop,))

    def _each(self, statements: Sequence[int]) -> tuple[Node, ...]:
        if not statements:
            return ()
        kernel = self._kernel
        held = {kernel.model.statements[s].target for s in statements}
        passed = sorted(a for a in held if kernel.model.arrays[a].kind == "internal" and a != kernel.sums)
        body = Block((Run(tuple(statements)),), self._places("register", *passed))
        for axis in (kernel.n, kernel.m):
            body = Block((Loop(axis, body),)) if axis else body
        return body.nodes


def schedule_in(tree: Tree, kernel: CubeKernel, target: DavinciTarget) -> CubeSchedule:
    """What a tree says. Raises ScheduleError, with its line, for what the cube does not do."""
    names = {tuple(sorted(axis.dims.items())): axis.name for axis in kernel.axes}
    known = {axis.name: names.get(tuple(sorted(axis.dims.items()))) for axis in tree.axes}
    for axis in tree.axes:
        if known[axis.name] is None:
            has = ", ".join(names.values())
            raise ScheduleError(f"axis {axis.name}: the axes of this product are {has}, of all statements", axis.line)
    for node in walk(tree.body):
        if isinstance(node, Cut):
            raise ScheduleError("the cube runs all tiles alike, and cuts no axis", node.line)
    named = mapped(tree, lambda node: node if isinstance(node, Run) else replace(node, axis=known[node.axis] or ""))
    return _Reader(kernel, target).schedule(named)


class _Reader:
    def __init__(self, kernel: CubeKernel, target: DavinciTarget) -> None:
        self._kernel, self._target = kernel, target
        self._names = array_names(kernel.model)
        self._sums, self._a, self._b = (self._names[x] for x in (kernel.sums, kernel.a, kernel.b))

    def schedule(self, tree: Tree) -> CubeSchedule:
        around, block = self._around(tree.body)
        packets, buffers, step, halves = self._k(self._reduction(block))
        shape = self._kernel.shape
        base = {loop.axis: loop.tile or 0 for loop in around}
        m, n = (
            _up(base.get(axis, self._kernel.extent(axis)), by)
            for axis, by in zip((self._kernel.m, self._kernel.n), shape.edges, strict=True)
        )
        sums = around[-1].buffers if around and around[-1].mark == "pipeline" else 1
        if sums > 2:
            raise ScheduleError("the cube has two places of sums at most", around[-1].line)
        made = CubeSchedule(
            (m, n, step), packets, buffers, (1, 1), (_up(shape.m, m), _up(shape.n, n)), 1,
            halves=halves, sums=sums, unit_flag=sums == 1, rotated=self._kernel.windows is None,
        )  # fmt: skip
        made = self._shared(made, around)
        return replace(made, rotated=made.rotated and made.cores > 1)

    def _around(self, block: Block) -> tuple[list[Loop], Block]:
        """The loops around the sums, and the block of these."""
        found = list[Loop]()
        while not any(place.array == self._sums for place in block.places):
            node = block.nodes[0] if len(block.nodes) == 1 else None
            line = next((each.line for each in (*block.places, *block.nodes)), 0)
            if not isinstance(node, Loop) or block.places or node.axis == self._kernel.k:
                raise ScheduleError(f"the cube needs {self._sums} in l0c inside of loops over tiles", line)
            if node.tile is None and node.axis not in self._kernel.batch:
                raise ScheduleError(f"the cube takes tiles of {node.axis} here, and no points", node.line)
            if node.mark not in ("", "parallel") and (node.mark != "pipeline" or node.axis in self._kernel.batch):
                raise ScheduleError(f"the cube has no {node.mark} here", node.line)
            if node.mark == "pipeline" and not node.body.places:
                raise ScheduleError(f"the cube has a pipeline right around {self._sums} only", node.line)
            found.append(node)
            block = node.body
        extra = next((place for place in block.places if (place.array, place.scope) != (self._sums, "l0c")), None)
        if extra is not None:
            raise ScheduleError(f"the cube places {self._sums} in l0c here, and nothing else", extra.line)
        return found, block

    def _reduction(self, block: Block) -> Loop:
        """The outermost loop over k; what precedes and follows it runs over whole tiles."""
        found: Loop | None = None
        for node in block.nodes:
            if self._kernel.statement in below(node):
                found = node if isinstance(node, Loop) else None
                continue
            for loop in (each for each in (node, *walk(Block((node,)))) if isinstance(each, Loop)):
                if loop.tile is not None or loop.mark or any(p.scope != "register" for p in loop.body.places):
                    raise ScheduleError("the cube runs these statements over a whole tile, from register", loop.line)
            others = below(node)
            if found is None and max(others) > self._kernel.statement:
                raise ScheduleError("the cube runs these statements behind the sums", node.line)
        if found is None:
            raise ScheduleError("the cube needs a loop over k around the sums", block.nodes[0].line)
        return found

    def _k(self, loop: Loop) -> tuple[tuple[int, int], tuple[int, int], int, int]:
        """Packets and buffers of A and B, the step of k, and the base tiles that L0A and L0B have."""
        packets = dict[str, Loop]()
        while not any(place.scope in ("l0a", "l0b") for place in loop.body.places):
            inside = loop.body.nodes[0] if len(loop.body.nodes) == 1 else None
            if loop.axis != self._kernel.k or loop.tile is None or not isinstance(inside, Loop):
                raise ScheduleError(f"the cube takes tiles of {self._kernel.k} from l1 to l0a and l0b here", loop.line)
            if not loop.body.places:
                raise ScheduleError("the cube has a loop over packets for each place in l1, and no other", loop.line)
            for place in loop.body.places:
                if place.scope != "l1" or place.array in packets or place.array not in (self._a, self._b):
                    raise ScheduleError(f"the cube places {self._a} and {self._b} in l1 once", place.line)
                packets[place.array] = loop
            loop = inside
        self._check_l0(loop)
        for array in (self._a, self._b):
            if array not in packets:
                raise ScheduleError(f"the cube takes {array} from l1, where it has no place", loop.line)
        if max(packets[self._a].buffers, packets[self._b].buffers) > PACKETS or loop.buffers > 2:
            raise ScheduleError(f"the cube has {PACKETS} buffers in l1 and 2 in l0 at most", loop.line)
        windows, shape = self._kernel.windows, self._kernel.shape
        step = _up(loop.tile or 1, shape.step if windows is None else windows.c0)
        a, b = (ceil((packets[x].tile or 1) / step) for x in (self._a, self._b))
        if windows is not None:
            self._check_windows(windows, packets, loop)
        return (a, b), (packets[self._a].buffers, packets[self._b].buffers), step, loop.buffers

    def _check_l0(self, loop: Loop) -> None:
        found = {(place.array, place.scope) for place in loop.body.places}
        if found != {(self._a, "l0a"), (self._b, "l0b")} or loop.axis != self._kernel.k or loop.tile is None:
            raise ScheduleError(f"the cube has {self._a} in l0a and {self._b} in l0b for tiles of k", loop.line)
        inside = loop.body.nodes[0] if len(loop.body.nodes) == 1 else None
        if not isinstance(inside, Loop) or inside.mark != "intrinsic":
            raise ScheduleError("the cube needs an intrinsic right here", loop.line)

    def _check_windows(self, windows: CubeConvolution, packets: dict[str, Loop], step: Loop) -> None:
        """Packets of images and filters are whole taps of channels, and steps are parts of them."""
        whole, depth = windows.taps * windows.c0, windows.depth
        a, b = (packets[array].tile or 1 for array in (self._a, self._b))
        for tile, array in ((a, self._a), (b, self._b)):
            if tile % whole and tile < depth:
                message = f"load3d takes {array} in packets of {whole}: each tap of {windows.c0} channels, not {tile}"
                raise ScheduleError(message, packets[array].line)
            if tile % (step.tile or 1) or (step.tile or 1) % windows.c0:
                message = f"a packet of {tile} is whole steps of multiples of {windows.c0}, not {step.tile}"
                raise ScheduleError(message, step.line)

    def _shared(self, made: CubeSchedule, around: Sequence[Loop]) -> CubeSchedule:
        """How cores share the loops around the sums."""
        kernel = self._kernel
        shared = [loop for loop in around if loop.mark == "parallel"]
        alone = [loop for loop in around if loop.mark != "parallel"]
        tiles = [loop for loop in shared if loop.axis not in kernel.batch]
        batch = [loop.axis for loop in around if loop.axis in kernel.batch]
        left = [loop for loop in alone if loop.axis not in kernel.batch and loop.tile]
        last = {loop.axis: loop for loop in around}
        if batch != sorted(batch, key=kernel.batch.index) or set(batch) != set(kernel.batch):
            raise ScheduleError(f"the cube runs the batch in the order {', '.join(kernel.batch)}", around[0].line)
        each = {loop.axis: ceil(kernel.extent(loop.axis) / (loop.tile or 1)) for loop in last.values()}
        whole_batch = all(loop.tile is None for loop in shared if loop.axis in kernel.batch)
        ends = all(last[loop.axis].mark == "parallel" or each[loop.axis] == 1 for loop in left)
        if shared and whole_batch and ends and all(last[axis].mark == "parallel" for axis in kernel.batch):
            return self._in_turn(made, tiles, shared)
        return self._in_parts(made, around, shared, left)

    def _in_turn(self, made: CubeSchedule, tiles: Sequence[Loop], shared: Sequence[Loop]) -> CubeSchedule:
        kernel = self._kernel
        rows, columns = ceil(kernel.shape.m / made.base[0]), ceil(kernel.shape.n / made.base[1])
        if [loop.axis for loop in shared[: len(kernel.batch)]] != list(kernel.batch):
            raise ScheduleError("cores of the cube share the batch outside of tiles", shared[0].line)
        along, high = "m", 1
        if tiles:
            along = "m" if tiles[0].axis == kernel.m else "n"
            position = 0 if along == "m" else 1
            inner = [loop.axis for loop in tiles[1:]]
            if len(tiles) == 3 and inner == [kernel.n if along == "m" else kernel.m, tiles[0].axis]:
                high, bands = (tiles[0].tile or 1) // made.base[position], (rows, columns)[position]
                if bands % max(1, high) or (tiles[0].tile or 1) % made.base[position]:
                    message = f"{bands} tiles along {tiles[0].axis} are no bands of {high}"
                    raise ScheduleError(message, tiles[0].line)
            elif len(tiles) > 2 or len(set(inner) | {tiles[0].axis}) < len(tiles):
                raise ScheduleError("cores of the cube take tiles in rows, columns or bands", tiles[0].line)
        total = rows * columns * kernel.shape.count
        return replace(
            made, grid=(rows, columns), single=made.base[:2], in_turn=True, along=along, high=max(1, high),
            cores=self._cores(shared, total),
        )  # fmt: skip

    def _cores(self, shared: Sequence[Loop], total: int) -> int:
        most = min(self._target.cores.cube, total)
        cores = shared[0].cores or most
        if cores > most:
            raise ScheduleError(f"{most} cores of the cube share {total} tiles at most, not {cores}", shared[0].line)
        return cores

    def _in_parts(
        self, made: CubeSchedule, around: Sequence[Loop], shared: Sequence[Loop], left: Sequence[Loop]
    ) -> CubeSchedule:
        kernel = self._kernel
        parts = {loop.axis: loop for loop in shared}
        order = [axis for axis in (*kernel.batch, kernel.m, kernel.n) if axis in parts]
        if [loop.axis for loop in shared] != order:
            raise ScheduleError(
                f"cores of the cube share parts once along each axis: {', '.join(order)}", shared[0].line
            )
        sizes, grid = list[int](), list[int]()
        for axis, base, extent in zip((kernel.m, kernel.n), made.base, (kernel.shape.m, kernel.shape.n), strict=False):
            part = parts[axis].tile or extent if axis in parts else extent
            if part % base and part < extent:
                raise ScheduleError(f"a core's part of {axis} is whole tiles of {base}, not {part}", parts[axis].line)
            sizes.append(_up(part, base))
            grid.append(ceil(extent / part))
        axes = [loop.axis for loop in left]
        if len(set(axes)) < len(axes):
            raise ScheduleError("a core of the cube has one loop over tiles along each axis", left[0].line)
        batch = [parts[axis] for axis in kernel.batch if axis in parts]
        if batch and len(kernel.batch) > 1:
            raise ScheduleError("cores of the cube share one axis of a batch in parts", batch[0].line)
        batches = ceil(kernel.shape.count / (batch[0].tile or 1)) if batch else 1
        total = batches * prod(grid)
        if total > self._target.cores.cube or (shared and (shared[0].cores or total) != total):
            message = f"there are {total} parts for {shared[0].cores or self._target.cores.cube} cores of the cube"
            raise ScheduleError(f"{message}; each core has one", shared[0].line)
        return replace(
            made, single=(sizes[0], sizes[1]), grid=(grid[0], grid[1]), batches=batches, cores=total,
            along="m" if axes[:1] == [kernel.m] and len(axes) > 1 else "n",
        )  # fmt: skip


def _up(size: int, multiple: int) -> int:
    return ceil(size / multiple) * multiple
