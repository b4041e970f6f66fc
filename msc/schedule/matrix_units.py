"""Products on the units of a machine (`[unit]`): by instructions on registers, or in the memories of a matrix unit.

Register tiles stay as the strategy chose them; their steps take as many terms as an instruction. Of a matrix unit the
tree names the memories: around the reduction the sums are in the one that the unit writes, around the instructions the
operands are in those that it reads. The tiles are those with the fewest cycles of copies and products. docs/targets.md
has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, prod

from msc.cost.access import strides, term_dimension, terms_together
from msc.cost.prediction import KernelCost
from msc.dialects.element_types import BYTES
from msc.poly.affine import linear_form
from msc.poly.contraction import Contraction, UnitProduct, contractions, unit_product
from msc.poly.dependences import Dependences
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.intrinsics import sizes
from msc.poly.schedule_tree.moves import chain, find, put, tensorise, with_blocks
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Node, Place, Run, Tree, all_blocks, below, blocks, loops
from msc.targets.abilities import BITS, Abilities, Role, Unit
from msc.targets.machine import Machine

_WORD = 32
"""Bits of the terms that lie side by side."""


def unit_schedule(model: KernelModel, deps: Dependences, machine: Machine) -> tuple[Tree, str] | None:
    """The schedule of a product on a matrix unit of a machine, and why; None where no unit takes it."""
    abilities = machine.abilities
    found = unit_product(model, deps) if abilities.units else None
    if found is None:
        return None
    units = (unit for unit in abilities.units.values() if not unit.in_registers and not unit.is_function)
    unit = next((u for u in units if _takes(model, found.contraction, u)), None)
    if unit is None:
        return None
    search = _Search(model, found, unit, abilities, machine)
    best = min(search.tiles(), key=search.cost, default=None)
    if best is None:
        return None
    held = ", ".join(f"{axis} {size}" for axis, size in best.items())
    return search.tree(best), f"{unit.name} multiplies {unit.shape}; its memories hold tiles of {held}"


def _takes(model: KernelModel, contraction: Contraction, unit: Unit) -> bool:
    return unit.order(contraction.a.dtype, contraction.b.dtype, model.arrays[contraction.target].dtype) is not None


def with_instructions(cost: KernelCost, tree: Tree, reasons: list[str]) -> Tree:
    """The tree with the steps of its products on instructions that take several terms, where cycles say that it pays.

    Takes and gives a tree with places and prefetches.
    """
    if not any(unit.in_registers or unit.is_function for unit in cost.target.units):
        return tree
    for contraction in contractions(cost.model):
        options = [_by_instruction(cost.model, tree, contraction, unit, cost.target) for unit in cost.target.units]
        options += [each for unit in cost.target.units for each in _by_function(cost, tree, contraction, unit)]
        best = min(filter(None, options), key=lambda each: cost.prediction(each, 1).cycles, default=tree)
        before, after = (cost.prediction(each, 1).cycles for each in (tree, best))
        if after <= before and best is not tree:
            used = next(loop.unit for loop in loops(best) if loop.unit and contraction.statement in below(loop))
            reasons.append(f"{used}: {after:.0f} cycles predicted, {before:.0f} without")
            tree = best
    return tree


def _by_instruction(
    model: KernelModel, tree: Tree, contraction: Contraction, unit: Unit, machine: Machine
) -> Tree | None:
    """The tree whose loop over terms takes those of an instruction at a time, right inside the lanes."""
    if not unit.in_registers or unit.shape.n != machine.lanes(BYTES["f32"]) or not _takes(model, contraction, unit):
        return None
    new, terms = tree, unit.shape.k
    lies_in_words = term_dimension(model, model.statements[contraction.statement]) is not None
    for path in _paths(tree.body, contraction.statement, ()):
        at = max((k for k, loop in enumerate(path) if _is_steps(tree, loop, contraction)), default=None)
        if at is None or below(path[at]) != frozenset({contraction.statement}) or tuple(chain(path[at])) != path[at:]:
            continue
        tiles = [each.tile for each in path[:at] if each.axis == path[at].axis and each.tile]
        extent = tiles[-1] if tiles else tree.axis(path[at].axis).extent
        is_tile = all(each.mark in ("unroll", "vector") and each.tile is None for each in path[at + 1 :])
        if is_tile and extent >= (terms if lies_in_words else 2 * terms):
            new = put(new, path[at], _in_steps(path[at], unit))
    return None if new is tree else new


def _by_function(cost: KernelCost, tree: Tree, contraction: Contraction, unit: Unit) -> Iterator[Tree]:
    """The tree whose tiles of a product a function of the unit computes: as many rows as it takes, or half of them.

    Terms are outermost there, as it reads each factor once. Sums are on the stack, and the statements beside it go
    over the rows one by one, along the same vectors. Where half of L2 does not hold the left factor, an outermost loop
    goes over as many rows as it holds.
    """
    model = cost.model
    paths = list(_paths(tree.body, contraction.statement, ()))
    lie = _lies_in_words(model, contraction, unit) if len(paths) == 1 and _takes(model, contraction, unit) else None
    if lie is None:
        return
    path = paths[0]
    start = next(k for k in range(len(path) + 1) if _is_nest(path[k:]))
    around, inner = path[:start], path[start:]
    dims = {loop.axis: tree.axis(loop.axis).dims.get(contraction.statement) for loop in inner}
    names = [next((axis for axis, dim in dims.items() if dim == wanted), "") for wanted in lie]
    summed = [axis for axis, dim in dims.items() if dim in contraction.k]
    apart = [axis for axis, dim in dims.items() if dim not in (*contraction.k, *lie)]
    points = sizes(model, tree, contraction, {loop.axis: loop.tile or 1 for loop in around} | dict.fromkeys(apart, 1))
    if not all(names) or not summed or points["k"] > unit.shape.k:
        return
    rows, columns = (next((loop for loop in reversed(around) if loop.axis == axis), None) for axis in names)
    widths = {id(columns): unit.shape.n} if columns is not None and points["n"] % unit.shape.n == 0 else {}
    if points["n"] > unit.shape.n and not widths:
        return
    nest = Block((Run((contraction.statement,)),))
    for axis in reversed([*apart, *summed, *names]):
        nest = Block((Loop(axis, nest, mark="intrinsic", unit=unit.name) if axis == summed[0] else Loop(axis, nest),))
    extent, sums = model.statements[contraction.statement].extents[lie[0]], array_names(model)[contraction.target]
    held = cost.target.levels[1].bytes // 2 // (points["k"] * BYTES[contraction.a.dtype])
    for size in _heights(extent, rows, around, unit):
        new = _with_function(tree, inner[0], nest.nodes[0], {**widths, id(rows): size}, sums)
        yield new
        height = held // (size or 1) * (size or 1)
        is_free = len(new.body.nodes) == 1 and rows is not None and not around[0].mark and around[0].axis != rows.axis
        if is_free and (size or 1) < height < extent:
            yield put(new, new.body.nodes[0], Loop(names[0], new.body, height))


def _is_nest(path: Sequence[Loop]) -> bool:
    """Whether loops over points are right in each other, with nothing beside them."""
    return not path or (
        tuple(chain(path[0])) == tuple(path) and all(loop.tile is None and loop.mark != "parallel" for loop in path)
    )


def _with_function(tree: Tree, old: Loop, new: Node, tiles: Mapping[int, int | None], sums: str) -> Tree:
    """The tree with a function's loops, around which the sums are on the stack, and loops over tiles of new sizes."""
    around = next(block for block in all_blocks(tree.body) if old in block.nodes)
    rolled = {id(loop) for loop in loops(Tree((), around)) if loop.mark == "unroll"}

    def changed(node: Node) -> Node:
        if node is old:
            return new
        if not isinstance(node, Loop):
            return node
        mark = "" if id(node) in rolled else node.mark
        return replace(node, mark=mark, tile=tiles.get(id(node), node.tile))

    def moved(block: Block) -> Block:
        places = tuple(replace(each, scope="stack") if each.array == sums else each for each in block.places)
        return replace(block, nodes=tuple(map(changed, block.nodes)), places=places)

    return with_blocks(tree, moved)


def _lies_in_words(model: KernelModel, contraction: Contraction, unit: Unit) -> tuple[int, int] | None:
    """The dimensions of a function's rows and columns, where operands lie as it reads them; else None.

    Terms of a row of `a` lie side by side, and the words of `b` too along the columns.
    """
    statement = model.statements[contraction.statement]
    terms = term_dimension(model, statement)
    if terms is None or not contraction.m or not contraction.n or not unit.terms(statement.extents[terms]):
        return None
    rows, columns = contraction.m[-1], contraction.n[-1]
    a, b = contraction.a, contraction.b
    words = terms_together(model, statement, b.operand, b.index.results) * BITS[unit.b.types[0]]
    if words != _WORD or any(linear_form(expr) is None for expr in a.index.results):
        return None
    numbers = [array for array, _ in statement.accesses()]
    along = {dim: strides(model, statement, dim)[numbers.index(a.operand)] for dim in (rows, terms)}
    across = strides(model, statement, columns)[numbers.index(b.operand)]
    return (rows, columns) if along[terms] == 1 and along[rows] > 0 and across == 1 else None


def _heights(extent: int, tiles: Loop | None, around: Sequence[Loop], unit: Unit) -> Sequence[int | None]:
    """The rows of a tile: as many as divide an extent into tiles of about the same size; None where there is one."""
    if tiles is None:
        return [None] if extent <= unit.shape.m else []
    outside = [each.tile for each in around if each.axis == tiles.axis and each is not tiles and each.tile]
    whole = min((extent, *outside))
    return sorted({ceil(whole / ceil(whole / most)) for most in (unit.shape.m, unit.shape.m // 2)}, reverse=True)


def _is_steps(tree: Tree, loop: Loop, contraction: Contraction) -> bool:
    dim = tree.axis(loop.axis).dims.get(contraction.statement)
    return not loop.mark and loop.tile is None and dim in contraction.k


def _in_steps(loop: Loop, unit: Unit) -> Loop:
    """A loop over terms as one over instructions, which are inside all loops right in it."""
    terms, instruction = unit.shape.k, Loop(loop.axis, Block(), mark="intrinsic", unit=unit.name)

    def inside(block: Block) -> Block:
        (node,) = block.nodes
        loop, body = (node, inside(node.body)) if isinstance(node, Loop) else (instruction, Block((node,)))
        return replace(block, nodes=(replace(loop, body=body),))

    body = inside(loop.body)
    ahead = (
        replace(each, ahead=ceil(each.ahead / terms) * terms) if each.axis == loop.axis else each
        for each in body.prefetches
    )
    return replace(loop, body=replace(body, prefetches=tuple(ahead)), tile=terms)


def _paths(block: Block, statement: int, around: tuple[Loop, ...]) -> Iterator[tuple[Loop, ...]]:
    """The loops around a statement, outermost first, for each place where it runs."""
    for node in block.nodes:
        if isinstance(node, Run) and statement in node.statements:
            yield around
        for each in blocks(node):
            yield from _paths(each, statement, (*around, node) if isinstance(node, Loop) else around)


_ROLES: tuple[Role, ...] = ("m", "n", "k")
Tiles = Mapping[str, int]
"""By axis the iterations of a tile that the memories hold."""


class _Search:
    def __init__(
        self, model: KernelModel, found: UnitProduct, unit: Unit, abilities: Abilities, machine: Machine
    ) -> None:
        self._model, self._found, self._unit, self._abilities, self._machine = model, found, unit, abilities, machine
        self._names = array_names(model)
        self._inner = {axis.name: size for role in ("m", "n", "k") for axis, size in self._points(role)}

    def _points(self, role: Role) -> Iterator[tuple[Axis, int]]:
        """By axis of a role the iterations that one instruction takes: the innermost first fill it."""
        room = self._unit.limit(role)
        for axis in reversed(self._found.of(role)):
            size = min(room, axis.extent)
            yield axis, size
            room //= size

    def tiles(self) -> Iterator[Tiles]:
        """Tiles that the unit's memories hold: instructions, doubled along each role."""
        choices = [self._grown(axis) for axis in self._found.axes if axis.name in self._inner]
        names = [axis.name for axis in self._found.axes if axis.name in self._inner]
        for each in product(*choices):
            tiles = dict(zip(names, each, strict=True))
            if self._fits(tiles):
                yield tiles

    def _grown(self, axis: Axis) -> list[int]:
        size, found = self._inner[axis.name], list[int]()
        while size < axis.extent:
            found.append(size)
            size *= 2
        return [*found, axis.extent]

    def _fits(self, tiles: Tiles) -> bool:
        taken: dict[str, int] = {}
        scopes = self._abilities.scopes
        for array, scope, size in ((a, scopes[name], size) for a, name, size in self._held(tiles) if name):
            bytes_ = size * BYTES[self._model.arrays[array].dtype]
            taken[scope.name] = taken.get(scope.name, 0) + ceil(bytes_ / scope.align) * scope.align
        return all(not scopes[name].bytes or size <= scopes[name].bytes for name, size in taken.items())

    def _held(self, tiles: Tiles) -> Iterator[tuple[int, str, int]]:
        """The arrays of the product, their scopes, and the elements of a tile, as the unit reads them."""
        size: dict[Role, int] = {"batch": 1}
        for role in _ROLES:
            points, step = prod(tiles[axis.name] for axis in self._found.of(role)), self._unit.steps.of(role)
            size[role] = ceil(points / step) * step
        contraction = self._found.contraction
        yield contraction.a.operand, self._unit.scope_of(0), size["m"] * size["k"]
        yield contraction.b.operand, self._unit.scope_of(1), size["n"] * size["k"]
        yield contraction.target, self._unit.scope_of(2), size["m"] * size["n"]

    def cost(self, tiles: Tiles) -> float:
        """Cycles: the larger of multiplying and of bringing operands, and the starts of copies and instructions."""
        unit = self._unit
        pads = {pad.name: pad for pad in self._machine.scratchpads}
        runs = prod(ceil(axis.extent / tiles.get(axis.name, 1)) for axis in self._found.axes)
        instructions = prod(ceil(axis.extent / self._inner.get(axis.name, 1)) for axis in self._found.axes)
        moved = 0.0
        for array, scope, size in self._held(tiles):
            if scope in pads and array != self._found.contraction.target:
                bytes_ = size * BYTES[self._model.arrays[array].dtype]
                moved += bytes_ / pads[scope].bytes_per_cycle + pads[scope].latency
        return max(instructions * unit.cycles, runs * moved) + runs * unit.latency

    def tree(self, tiles: Tiles) -> Tree:
        """The tree of tiles."""
        found, contraction = self._found, self._found.contraction
        outer = [axis for axis in found.axes if found.roles[axis.name] != "k"]
        sums = self._reduction(tiles)
        body = [self._each(found.before, outer, tiles), sums.nodes, self._each(found.after, outer, tiles)]
        places = (*sums.places, *self._places((contraction.target,)))
        block = Block(tuple(node for group in body for node in group), places)
        tree = Tree(found.axes, self._tiled(outer, tiles, block))
        first = next(axis.name for axis in found.axes if axis.name in self._inner)
        return tensorise(tree, find(tree, first, contraction.statement), self._unit.name)

    def _reduction(self, tiles: Tiles) -> Block:
        """The loops over tiles of k, those over instructions, and those of one instruction.

        Without a loop over k the block itself places the operands.
        """
        found, contraction = self._found, self._found.contraction
        named = [axis for axis in found.axes if axis.name in self._inner]
        inside: Block = Block((Run((contraction.statement,)),))
        for axis in reversed(named):
            inside = Block((Loop(axis.name, inside),))
        for axis in reversed(named):
            if self._inner[axis.name] < tiles[axis.name]:
                inside = Block((Loop(axis.name, inside, self._inner[axis.name]),))
        operands = dict.fromkeys((contraction.a.operand, contraction.b.operand))
        held = Block(inside.nodes, self._places(tuple(operands)))
        return self._tiled(found.of("k"), tiles, held)

    def _tiled(self, axes: Sequence[Axis], tiles: Tiles, body: Block) -> Block:
        """Loops over the tiles of axes around a body; of a batch over its points. One at least, which places need."""
        for axis in reversed(axes):
            body = Block((Loop(axis.name, body, tiles.get(axis.name)),))
        return body

    def _each(self, statements: Sequence[int], outer: Sequence[Axis], tiles: Tiles) -> tuple[Node, ...]:
        """Loops over the points of a tile around statements."""
        if not statements:
            return ()
        body = Block((Run(tuple(statements)),))
        for axis in reversed(outer):
            if axis.name in tiles:
                body = Block((Loop(axis.name, body),))
        return self._with_values(statements, body).nodes

    def _with_values(self, statements: Sequence[int], body: Block) -> Block:
        """What statements hand to each other at one point stays in registers."""
        held = {self._model.statements[s].target for s in statements}
        passed = [a for a in held if self._model.arrays[a].kind == "internal" and a != self._found.contraction.target]
        if not passed:
            return body
        places = tuple(Place(self._names[a], "register") for a in sorted(passed))

        def innermost(block: Block) -> Block:
            (node,) = block.nodes
            if isinstance(node, Loop):
                return replace(block, nodes=(replace(node, body=innermost(node.body)),))
            return replace(block, places=places)

        return innermost(body)

    def _places(self, arrays: Sequence[int]) -> tuple[Place, ...]:
        scopes = {array: scope for array, scope, _ in self._held(dict.fromkeys(self._inner, 1))}
        return tuple(Place(self._names[a], scopes[a]) for a in sorted(arrays) if scopes[a])
