"""The predicted cycles of a kernel with a schedule: one cost model for decisions and reports.

It orders the loops of a reduction, compares vectors along two loops, and decides which loops threads share. `msc tune`
first tries the schedules that it predicts to be fastest, and `msc explain` shows it beside measured times. Register
tiles have a model of their own (`tiling`). Nothing is measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import ceil, inf, prod

from xdsl.ir.affine import AffineExpr

from msc.cost.access import lanes_of, pieces
from msc.cost.instructions import StatementCost
from msc.cost.matrix_units import copies, instruction_of, unit_cycles, unit_of, without_instruction
from msc.cost.statement_loops import StatementLoops, shared_sizes, statement_loops, tile_of
from msc.cost.traffic import CountedLoop, Execution, Moved, Nest, Traffic
from msc.dialects.element_types import BYTES
from msc.poly.kernel_text import array_names
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.remembered import remembered
from msc.poly.scalar import reads
from msc.poly.schedule_tree.moves import chain
from msc.poly.schedule_tree.nodes import Axis, Block, Cut, Loop, Node, Run, Tree
from msc.poly.schedule_tree.nodes import loops as loops_of
from msc.targets.abilities import Unit
from msc.targets.machine import CodeCosts, Level, Machine


@dataclass(frozen=True)
class Prediction:
    """Cycles of one call by resource: instructions, copies to scratchpads, and data from each level behind L1.

    `levels` have names, memory last. In `stalls` instructions wait for lines that nothing fetches ahead, in `stores`
    each store waits for the one before it. `members` are the predictions of the members of a kernel with several.
    """

    instruction_cycles: float
    levels: tuple[tuple[str, float], ...]
    code: CodeCosts
    stalls: float = 0.0
    stores: float = 0.0
    members: tuple[Prediction, ...] = ()

    @property
    def memory_cycles(self) -> float:
        """The cycles of the level that takes longest."""
        return max((cycles for _, cycles in self.levels), default=0.0)

    @property
    def cycles(self) -> float:
        """Resources work at the same time: the busiest counts whole, the others in part.

        Of memory a larger part counts, because a load from it takes longer than a core looks ahead. Members run one
        after the other, so that their cycles add up.
        """
        if self.members:
            return sum(member.cycles for member in self.members)
        *caches, memory = (cycles for _, cycles in self.levels)
        parts, exposed = (self.instruction_cycles + self.stalls, self.stores, *caches), self.code.exposed
        near = (1 - exposed) * max(parts) + exposed * sum(parts)
        return max(near, memory) + self.code.exposed_memory * min(near, memory)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts of a kernel's cost on a machine, which its schedules have in common."""

    machine: Machine
    traffic: Traffic
    statements: tuple[StatementCost, ...]
    loaded: dict[tuple[tuple[Axis, ...], tuple[tuple[int, ...], ...]], Mapping[int, frozenset[int]]]
    """By the axes of a schedule, and the statements in the same loops."""
    instructions: dict[tuple[int, Unit], StatementCost] = field(default_factory=dict[tuple[int, Unit], StatementCost])

    def on_unit(self, model: KernelModel, number: int, unit: Unit) -> StatementCost:
        """The cost of a statement whose products an instruction on registers sums."""
        if (number, unit) not in self.instructions:
            plain = self.statements[number]
            self.instructions[number, unit] = StatementCost(model, plain.statement, plain.lanes, self.machine, unit)
        return self.instructions[number, unit]


@remembered
def _known_parts(model: KernelModel) -> list[_Parts]:
    """A cache: the parts of a kernel's cost for each machine."""
    del model
    return []


@remembered
def _known_predictions(tree: Tree) -> dict[tuple[_Parts, int], Prediction]:
    """A cache: the predictions of a schedule, by the parts of its cost and the number of threads."""
    del tree
    return {}


@remembered
def _known_instructions(tree: Tree) -> dict[tuple[_Parts, int], float]:
    """A cache: the cycles of a schedule's instructions, by the parts of its cost and the number of threads."""
    del tree
    return {}


def _parts_of(model: KernelModel, machine: Machine) -> _Parts:
    known = _known_parts(model)
    for parts in known:
        if parts.machine is machine:
            return parts
    lanes = lanes_of(model, machine)
    statements = tuple(_statement_cost(model, statement, lanes, machine) for statement in model.statements)
    known.append(_Parts(machine, Traffic(model, machine), statements, {}))
    return known[-1]


def _statement_cost(model: KernelModel, statement: KernelStatement, lanes: int, target: Machine) -> StatementCost:
    """The cost of a statement of a kernel: layers of a network have many statements in common."""
    names = array_names(model)
    arrays = tuple((names[array], model.arrays[array]) for array, _ in statement.accesses())
    return _cost_of(_Alike(replace(statement, names=(), operation=0), arrays, model.arrays), lanes, target)


@dataclass(frozen=True)
class _Alike:
    """A statement with what its cost depends on: the arrays that it accesses, among `all`, and their names."""

    statement: KernelStatement
    arrays: tuple[tuple[str, Array], ...]
    all: tuple[Array, ...] = field(compare=False)


@lru_cache(maxsize=2048)
def _cost_of(alike: _Alike, lanes: int, target: Machine) -> StatementCost:
    model = KernelModel(alike.all, (alike.statement,), ())
    return StatementCost(model, alike.statement, lanes, target, instruction_of(model, 0, target))


class KernelCost:
    """The cost of a call of one kernel on a machine, for any schedule.

    `fresh` are the arrays of which a loop around the kernel passes another part in each iteration. `far` has, for an
    array, the bytes of other arrays that are accessed between two calls.
    """

    def __init__(
        self,
        model: KernelModel,
        target: Machine,
        fresh: frozenset[int] = frozenset(),
        far: Mapping[int, int] | None = None,
    ) -> None:
        self.model, self.target, self.lanes, self.fresh = model, target, lanes_of(model, target), fresh
        self._far, self._parts = far, _parts_of(model, target)
        self.statements = self._parts.statements

    def moved(self, tree: Tree, free: Collection[int] = (), among: Collection[int] | None = None) -> tuple[Moved, ...]:
        """The data from the level behind each cache in one call on one core, for the statements `among` all.

        Arrays that are `free` do not count.
        """
        return self._parts.traffic.of(nests_of(self.model, tree), far=self._far, free=free, among=among)

    def instructions(self, tree: Tree, threads: int, among: Collection[int] | None = None) -> float:
        """Cycles of the busiest thread's instructions, without waiting for memory; of statements `among`."""
        if among is not None:
            return self._instructions(tree, threads, among)
        known, key = _known_instructions(tree), (self._parts, threads)
        if key not in known:
            known[key] = self._instructions(tree, threads, range(len(self.statements)))
        return known[key]

    def _instructions(self, tree: Tree, threads: int, among: Collection[int]) -> float:
        loops = statement_loops(tree)
        stored, shared = self._stored(tree, loops), _shared(tree, threads or self.target.cores)
        counted = {number: each for number, each in loops.items() if number in among}
        together = _together(counted)
        loaded, summed = self._loaded(tree, together), self._summed(together)
        beside = {number: len(numbers) for numbers in together for number in numbers}
        return sum(
            self._statement(tree, each, number not in summed, beside[number], stored, loaded.get(number, frozenset()))
            * shared.part(each)
            for number, each in counted.items()
        )

    def prediction(
        self, tree: Tree, threads: int, moved: Sequence[Moved] | None = None, instructions: float | None = None
    ) -> Prediction:
        """The cycles of one call; `threads` of 0 are all cores.

        `moved` and `instructions` are the results of the methods of these names, if known.
        """
        if moved is not None or instructions is not None or self._far:
            return self._predicted(tree, threads, moved, instructions)
        known, key = _known_predictions(tree), (self._parts, threads)
        if key not in known:
            known[key] = self._predicted(tree, threads)
        return known[key]

    def _predicted(
        self, tree: Tree, threads: int, moved: Sequence[Moved] | None = None, instructions: float | None = None
    ) -> Prediction:
        cycles = self.instructions(tree, threads) if instructions is None else instructions
        call, share = self.target.synchronisation.call, _shared(tree, threads or self.target.cores).share
        pads = tuple((name, cycles * share) for name, cycles in copies(self.model, tree, self.target).items())
        whole = self._prediction(call + cycles, share, moved or self.moved(tree), pads)
        if not self.model.materialized:
            return whole
        members = self.model.members
        each = [self.instructions(tree, threads, member) for member in members]
        each[0] += call
        parts = (self._prediction(e, share, self.moved(tree, (), m)) for e, m in zip(each, members, strict=True))
        return replace(whole, members=tuple(parts))

    def _prediction(
        self, instructions: float, share: float, moved: Sequence[Moved], pads: tuple[tuple[str, float], ...] = ()
    ) -> Prediction:
        """The prediction from the cycles of instructions and scratchpads, and the data moved on one core."""
        given = list(zip(self.target.levels[1:], moved, strict=True))
        levels = (*pads, *((level.name, self._given(level, found) * share) for level, found in given))
        stalls = sum(self._stalls(level, found) for level, found in given) * share
        stores = sum(level.latency * found.lost_stores for level, found in given) * self.target.code.lost_stores * share
        return Prediction(instructions, levels, self.target.code, stalls, stores)

    def fastest(
        self, trees: Sequence[Tree], most: float = inf, margins: Sequence[float] | None = None
    ) -> tuple[int, float] | None:
        """The first of the trees that take the fewest cycles on one thread, fewer than `most`, and those cycles.

        `margins` are factors for the cycles of each tree. Traffic takes longest to predict: trees whose instructions
        alone take too many cycles are skipped.
        """
        best: tuple[float, int, float] | None = None
        instructions = [self.instructions(tree, 1) for tree in trees]
        factors = margins or [1.0] * len(trees)
        for k in sorted(range(len(trees)), key=lambda k: factors[k] * instructions[k]):
            if factors[k] * instructions[k] > (most if best is None else best[0]):
                break
            cycles = self.prediction(trees[k], 1).cycles
            if factors[k] * cycles < most:
                found = factors[k] * cycles, k, cycles
                best = found if best is None else min(best, found)
        return None if best is None else best[1:]

    def _given(self, level: Level, found: Moved) -> float:
        """Cycles that a level takes for its data: its rate limits them, or the misses that a core waits for."""
        waited = found.jumping * level.latency / self.target.ports.misses
        return max(found.bytes / level.bytes_per_cycle, waited)

    def _stalls(self, level: Level, found: Moved) -> float:
        """Cycles that instructions wait for lines that nothing fetches ahead; a core hides the latency of L2.

        They wait for a part of the lines lost to few sets, whichever level these come from.
        """
        hidden = self.target.levels[1].latency
        far = found.jumping * max(0.0, level.latency - hidden)
        return (far + found.lost * level.latency * self.target.code.lost) / self.target.ports.misses

    def _statement(
        self, tree: Tree, each: StatementLoops, plain: bool, beside: int, stored: frozenset[int], loaded: frozenset[int]
    ) -> float:
        """The cycles of a statement. A `plain` one, beside no reduction, pays for loops over single elements."""
        unit, cost = unit_of(each.around, self.target), self.statements[each.statement]
        if unit is not None and not unit.in_registers:
            return unit_cycles(tree, each.around, unit, self.model, each.statement)
        if unit is not None:
            each = replace(each, around=without_instruction(each.around), own=without_instruction(each.own))
            cost = self._parts.on_unit(self.model, each.statement, unit)
        tile = tile_of(tree, each, self.model.statements[each.statement].reduced, plain, beside)
        return cost.cycles(tile, stored, loaded)

    def _summed(self, together: Sequence[tuple[int, ...]]) -> set[int]:
        """The statements in the same loops as a reduction."""
        return {n for numbers in together if any(self.model.statements[k].reduced for k in numbers) for n in numbers}

    def _loaded(self, tree: Tree, together: tuple[tuple[int, ...], ...]) -> Mapping[int, frozenset[int]]:
        """The reads of each statement that repeat an earlier read in the same loops."""
        known, key = self._parts.loaded, (tree.axes, together)
        if key not in known:
            known[key] = dict(found for numbers in together for found in self._read_again(tree, numbers))
        return known[key]

    def _read_again(self, tree: Tree, numbers: Sequence[int]) -> Iterator[tuple[int, frozenset[int]]]:
        before = set[object]()
        for number in numbers:
            again = set[int]()
            for k, read in enumerate(self._reads_by_axis(tree, number), 1):
                again |= {k} if read in before else set()
                before.add(read)
            if again:
                yield number, frozenset(again)

    def _reads_by_axis(self, tree: Tree, number: int) -> Iterator[object]:
        """The reads of a statement, with the axes of a tree in the place of its dimensions."""
        statement = self.model.statements[number]
        places = {axis.dims[number]: k for k, axis in enumerate(tree.axes) if number in axis.dims}
        axes = [AffineExpr.dimension(places.get(d, 0)) for d in range(len(statement.extents))]
        for read in reads(statement.body):
            yield read.operand, tuple(e.replace_dims_and_symbols(axes, []) for e in read.index.results), read.indirect

    def _stored(self, tree: Tree, loops: Mapping[int, StatementLoops]) -> frozenset[int]:
        """Internal arrays that one node passes to another and that registers do not hold."""
        internal = (k for k, array in enumerate(self.model.arrays) if array.kind == "internal")
        return frozenset(k for k in internal if self._registers(k, tree, loops) > self.target.vector_registers)

    def _registers(self, array: int, tree: Tree, loops: Mapping[int, StatementLoops]) -> int:
        """Vectors of an array that are live between two nodes."""
        touching = [each for n, each in loops.items() if array in self._touched[n]]
        if len({id(each.around) for each in touching}) <= 1:
            return 0
        sizes = shared_sizes(tree, touching)
        writers = [each for each in touching if self.model.statements[each.statement].target == array]
        return max((self._waiting(each, sizes, tree) for each in writers), default=0)

    def _waiting(self, loops: StatementLoops, sizes: Mapping[str, int], tree: Tree) -> int:
        """Vectors that a statement writes in one run of a block, which has `sizes` iterations of some axes."""
        number, statement = loops.statement, self.model.statements[loops.statement]
        left = {axis.dims[number]: sizes.get(axis.name, axis.extent) for axis in tree.axes if number in axis.dims}
        lanes = {tree.axis(loop.axis).dims[number] for loop in loops.around if loop.mark == "vector"}
        counts = {d: left.get(d, statement.extents[d]) for d in self._written[number]}
        return prod(pieces(size, self.lanes) if d in lanes else size for d, size in counts.items())

    @cached_property
    def _touched(self) -> list[set[int]]:
        return [{array for array, _ in s.accesses()} for s in self.model.statements]

    @cached_property
    def _written(self) -> list[set[int]]:
        return [s.write.used_dims() for s in self.model.statements]


def _together(loops: Mapping[int, StatementLoops]) -> tuple[tuple[int, ...], ...]:
    """The statements directly inside the same loops, by their numbers."""
    found: dict[int, list[int]] = {}
    for number, each in loops.items():
        found.setdefault(id(each.around), []).append(number)
    return tuple(map(tuple, found.values()))


def predict(model: KernelModel, tree: Tree, target: Machine, threads: int) -> Prediction:
    """The cycles of one call of a kernel; `threads` of 0 are all cores."""
    return KernelCost(model, target).prediction(tree, threads)


def traffic(model: KernelModel) -> int:
    """Bytes of inputs and outputs."""
    return sum(prod(a.shape) * BYTES[a.dtype] for a in model.arrays if a.kind != "internal")


@dataclass(frozen=True)
class _Shared:
    """The loop that threads share, and the part of its iterations that the busiest of them runs."""

    loop: Loop | None
    share: float

    def part(self, loops: StatementLoops) -> float:
        """The share of a statement's work that the busiest thread does."""
        return self.share if any(loop is self.loop for loop in loops.around) else 1.0


def busiest(iterations: int, each: int, threads: int) -> int:
    """Iterations of the busiest thread: threads take `each` consecutive ones at a time, and one takes the tail."""
    return ceil(iterations // each / threads) * each + iterations % each


def _shared(tree: Tree, threads: int) -> _Shared:
    loop = next((loop for loop in loops_of(tree) if loop.mark == "parallel"), None)
    if loop is None:
        return _Shared(None, 1.0)
    extent = tree.axis(loop.axis).extent
    return _Shared(loop, busiest(extent, loop.tile or 1, threads) / extent if extent else 1.0)


# The loop nest of a schedule tree, as `traffic` reads it.
def nests_of(model: KernelModel, tree: Tree) -> tuple[Nest, ...]:
    """The loops of a tree, outermost first. A cut counts as its head over all iterations: the tail moves as much."""
    steps = {axis.name for axis in tree.axes if any(d in model.statements[s].reduced for s, d in axis.dims.items())}
    return _Walk(tree, steps).block(tree.body, {})


@dataclass(frozen=True)
class _Walk:
    tree: Tree
    steps: Collection[str]
    """Axes of reductions: the points of their blocks run one by one."""

    def block(self, block: Block, left: Mapping[str, int]) -> tuple[Nest, ...]:
        """The nests of a block; `left` is how many points of an axis the tiles around it leave."""
        return tuple(nest for node in block.nodes for nest in self._node(node, left))

    def _node(self, node: Node, left: Mapping[str, int]) -> tuple[Nest, ...]:
        match node:
            case Run():
                return tuple(Execution(number) for number in node.statements)
            case Cut():
                return self.block(node.head, left)
            case Loop(mark="intrinsic") if isinstance(node.body.nodes[0], Loop):
                return self._function(list(chain(node)), left)
            case Loop():
                axis = self.tree.axis(node.axis)
                now = left.get(axis.name, axis.extent)
                size = 1 if node.tile is None else node.tile
                body = self.block(node.body, {**left, axis.name: size})
                in_tile, sums = axis.name in left and node.tile is None, axis.name in self.steps
                is_point = (node.mark in ("vector", "unroll") and node.tile is None) or (in_tile and not sums)
                of_blocks = sums and node.tile is not None
                return (CountedLoop(axis.dims, ceil(now / size), body, is_point, in_tile and sums, of_blocks),)

    def _function(self, loops: Sequence[Loop], left: Mapping[str, int]) -> tuple[Nest, ...]:
        """The loops of a unit that performs several as one: a line of terms at a time for each row and column."""
        body = self.block(loops[-1].body, left)
        axes = [self.tree.axis(loop.axis) for loop in loops]
        trips = [left.get(axis.name, axis.extent) for axis in axes]
        parts = [
            _TOGETHER if axis.name in self.steps and trip > _TOGETHER else 1
            for axis, trip in zip(axes, trips, strict=True)
        ]
        for axis, part in zip(axes, parts, strict=True):
            body = (CountedLoop(axis.dims, part, body),) if part > 1 else body
        for axis, trip, part in reversed(list(zip(axes, trips, parts, strict=True))):
            body = (CountedLoop(axis.dims, ceil(trip / part), body, axis.name not in self.steps),)
        return body


_TOGETHER = 64
"""Terms of a row whose traffic is counted at once, whatever the machine."""
