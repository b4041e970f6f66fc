"""The cycles of the instructions of one statement, by its register tile.

A tile is a number of rows by a number of vectors. A step of a reduction issues one multiply-add for each sum of the
tile. It loads an operand that varies along the vectors once per vector, and one that varies along the rows once per
row. Arithmetic and loads are each divided by the number of their ports. A step takes the larger of the two, and a share
of the loads. All steps together take at least the latency of their chain of dependent additions. In short reductions, a
core works on the chains of several tiles at a time.

C compilers unroll short innermost loops. A value that one row reads in one step, and the next row in the next step, is
then read once and kept. This saves loads and takes registers; values without a register are stored and read again.

The tail of a loop is a smaller tile. Constants that are not a machine's were fitted to measured times of products and
convolutions, each with several tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import ceil, gcd, prod

from xdsl.ir.affine import AffineExpr

from msc.cost.access import (
    IRREGULAR,
    Moves,
    block_size,
    copies_neighbours,
    cuts,
    pieces,
    strides,
    terms_together,
    vector_moves,
    vectorisable,
)
from msc.cost.regrouped_lanes import interleaved, transposed
from msc.cost.statement_tiles import StatementTile
from msc.cost.tile_shape import TileRead, TileShape
from msc.dialects.element_types import BYTES
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Read, Scalar
from msc.targets.abilities import Unit
from msc.targets.machine import Machine


class StatementCost:
    """The cycles of one statement on a target, for any tile; `lanes` are those of its kernel.

    Of a `unit` on registers a step of the sum is one of its terms.
    """

    def __init__(
        self, model: KernelModel, statement: KernelStatement, lanes: int, target: Machine, unit: Unit | None = None
    ) -> None:
        self.model, self.statement, self.lanes, self._unit = model, statement, lanes, unit
        self.target = target.of(model.arrays[statement.target].dtype)
        self._known: dict[tuple[StatementTile, frozenset[int], frozenset[int]], float] = {}

    def cycles(
        self, tile: StatementTile, stored: AbstractSet[int] = frozenset(), loaded: AbstractSet[int] = frozenset()
    ) -> float:
        """The cycles of all tiles, including the tails.

        `stored` are internal arrays that registers do not hold; `loaded` are accesses whose values are in registers.
        """
        key = tile, frozenset(stored), frozenset(loaded)
        if key not in self._known:
            self._known[key] = self._cycles(*key)
        return self._known[key]

    def _cycles(self, tile: StatementTile, stored: frozenset[int], loaded: frozenset[int]) -> float:
        tile = self._compiled(tile)
        extents, sums = self.statement.extents, self._sums(tile)
        steps = [d for d in self._reduced if d != tile.vector] if sums else []
        around = self.statement.points / prod(extents[d] for d, _ in tile.cut) / prod(extents[d] for d in steps)
        count, accesses = prod(extents[d] for d in steps), self._reads(tile, loaded)
        total = 0.0
        for part in product(*(cuts(extents[dim], size) for dim, size in tile.cut)):
            sizes = tuple(size for size, _ in part)
            *rows, width = sizes if tile.vector is not None else (*sizes, 1)
            shape = self._shape(tuple(rows), width, tile)
            one = self._summed(shape, tile, accesses, count) if sums else self._once(shape, tile, accesses, stored)
            one += self._tail_inside(shape, tile, accesses, count) + self._between_blocks(shape, tile)
            total += prod(times for _, times in part) * one
        return around * total

    def _compiled(self, tile: StatementTile) -> StatementTile:
        """The tile with the vectors that C compilers make of an innermost plain loop over contiguous elements.

        They do so if a schedule has no vectors, or only moves vectors whose lanes are apart. Vectors with arithmetic
        stay as they are written.
        """
        moves = not self._instructions_of_arithmetic
        apart = tile.vector is None or (moves and any(s > 1 for s in self._strides[tile.vector]))
        if not apart or self._reduced:
            return tile
        plain = [d for d in tile.loops[-1:] if set(self._strides[d]) <= {0, 1} and self._strides[d][0]]
        plain = [d for d in plain if self._vectorisable[d]]
        if not plain:
            return tile
        rows = tile.rows if tile.vector is None else (*tile.rows, (tile.vector, tile.width))
        rows = tuple((d, n) for d, n in rows if d != plain[0])
        return replace(tile, rows=rows, vector=plain[0], width=self.statement.extents[plain[0]], tail=0, across=None)

    def _shape(self, rows: tuple[int, ...], width: int, tile: StatementTile) -> TileShape:
        tail = tile.tail if width == tile.width else 0
        whole = width - tail
        is_vector, part = self._is_vector(tile), self.target.part
        vectors = pieces(whole, self.lanes) if is_vector else whole
        issued = self._issued(whole) if is_vector else whole * part
        along_rows = tail and tile.across not in tile.inner
        of_rows, issued_of_rows = (pieces(prod(rows), self.lanes), self._issued(prod(rows))) if along_rows else (0, 0.0)
        return TileShape(
            rows, vectors, whole, tail, of_rows, issued, issued_of_rows, part, self.lanes if is_vector else 1
        )

    def _issued(self, extent: int) -> float:
        """Vectors for `extent` elements; the last one counts the units that it needs."""
        part = self.target.part
        return pieces(extent, max(1, int(self.lanes * part))) * part

    @cached_property
    def _strides(self) -> list[tuple[int, ...]]:
        return [strides(self.model, self.statement, d) for d in range(len(self.statement.extents))]

    @cached_property
    def _arrays(self) -> list[int]:
        return [array for array, _ in self.statement.accesses()]

    @cached_property
    def _reduced(self) -> tuple[int, ...]:
        return self.statement.reduced

    @cached_property
    def _operations(self) -> tuple[float, float]:
        """Products of one vector, and its other instructions."""
        if self._unit is not None:
            return self._unit.cycles / self._unit.shape.k, 0.0
        combined = self.statement.combine is not None
        products, others = operations(self.statement.body, self.target)
        return products, others + (combined and not (self.target.fma and is_product(self.statement.body)))

    @cached_property
    def _arithmetic(self) -> float:
        """Cycles of the arithmetic of one vector."""
        (products, others), ports = self._operations, self.target.ports
        each = max(products, others) / ports.arithmetic
        return max(each, (products + others) / (ports.arithmetic + ports.beside))

    def _units(self, vectors: float, shuffled: float) -> float:
        """Cycles of the arithmetic of some vectors and of shuffles, which take some of the same units."""
        ports = self.target.ports
        both = vectors * sum(self._operations) + shuffled
        together = both / (ports.arithmetic + ports.beside) if shuffled else 0.0
        return max(vectors * self._arithmetic, shuffled / ports.shuffle, together)

    @cached_property
    def _instructions_of_arithmetic(self) -> float:
        """Arithmetic instructions of one vector."""
        return self._arithmetic * self.target.ports.arithmetic

    @cached_property
    def _latency(self) -> float:
        """The latency of the operation that sums: a multiply-add or an addition."""
        latency = self.target.latency
        if self._unit is not None:
            return self._unit.latency / self._unit.shape.k
        fused = self.target.fma and is_product(self.statement.body)
        return latency.multiply_add if fused else latency.add

    @cached_property
    def _vectorisable(self) -> list[bool]:
        return [vectorisable(self.statement, d) for d in range(len(self.statement.extents))]

    @cached_property
    def _blocks(self) -> list[int]:
        return [block_size(self.statement, d) for d in range(len(self.statement.extents))]

    def _sums(self, tile: StatementTile) -> bool:
        """Whether the innermost loop accumulates into the same registers."""
        return bool(self._reduced) and (tile.vector is None or not tile.inner or tile.inner[-1] in self._reduced)

    def _is_vector(self, tile: StatementTile) -> bool:
        """Whether it runs as vectors: if a layout has blocks, the tile is one block wide."""
        return (
            tile.vector is not None and self._vectorisable[tile.vector] and self._blocks[tile.vector] in (0, tile.width)
        )

    def _reads(self, tile: StatementTile, loaded: frozenset[int]) -> list[TileRead]:
        innermost = next((d for d in reversed(tile.inner) if d != tile.vector), None)
        return [self._read(k, tile, innermost) for k in range(1, len(self._arrays)) if k not in loaded]

    def _read(self, access: int, tile: StatementTile, innermost: int | None) -> TileRead:
        apart = [self._strides[dim][access] for dim, _ in tile.rows]
        below = self._strides[innermost][access] if innermost is not None else 0
        again = tuple(abs(s // below) if s and below and s % below == 0 else 0 for s in apart)
        along = self._along(access, tile)
        loads = self._moves(access, tile), self._across(access, tile)
        terms = 1 if self._unit is None else self._unit.shape.k
        if terms > 1 and along:  # each lane has its terms side by side, in memory or by shuffles
            joined = terms_together(self.model, self.statement, *self._access(access)) == terms
            each = Moves(*(moved / terms for moved in loads[0])) if joined else loads[0]
            loads = each._replace(shuffles=each.shuffles + (not joined)), loads[1]
        split = self._split(access, tile)
        return TileRead(self._arrays[access], tuple(map(bool, apart)), again, along, *loads, split, 1 / terms)

    def _access(self, access: int) -> tuple[int, Sequence[AffineExpr]]:
        array, index = self.statement.accesses()[access]
        return array, index.results

    def _split(self, access: int, tile: StatementTile) -> float:
        """Additional loads or stores for vectors that cross lines, as a fraction of all."""
        if tile.vector is None or not self._is_vector(tile):
            return 0.0
        key = access, tile.vector
        if key not in self._splits:
            share = share_split(self.model, self.statement, access, tile.vector, self.lanes, self.target)
            self._splits[key] = share * self.target.ports.split
        return self._splits[key]

    @cached_property
    def _splits(self) -> dict[tuple[int, int], float]:
        """Results of `_split` by access and dimension of the vectors."""
        return {}

    def _along(self, access: int, tile: StatementTile) -> bool:
        return tile.vector is not None and bool(self._strides[tile.vector][access])

    def _moves(self, access: int, tile: StatementTile) -> Moves:
        """Instructions that load or store one vector, or one element without vectors.

        Only tiles one vector wide load whole rows and transpose them, and interleave vectors to store them.
        """
        if tile.vector is None or not self._is_vector(tile):
            return Moves(self.target.code.divided if tile.vector is not None and self._blocks[tile.vector] else 1.0)
        stride = self._strides[tile.vector][access]
        each = vector_moves(stride or 1, self.lanes, is_store=not access)
        if each.memory == 1 or not tile.rows or tile.width != self.lanes:
            return each
        row, count = tile.rows[-1]
        step = self._strides[row][access]
        regrouped = transposed(step, count, self.lanes) if access else interleaved(stride, step, count)
        return each if regrouped is None else min(each, regrouped, key=lambda way: way.all)

    def _across(self, access: int, tile: StatementTile) -> float:
        """Instructions to load or store one vector along the rows."""
        if tile.across is None:
            return 1.0
        return max(1.0, vector_moves(self._strides[tile.across][access], self.lanes, is_store=not access).memory)

    def _once(self, shape: TileShape, tile: StatementTile, accesses: list[TileRead], local: frozenset[int]) -> float:
        """The cycles of a tile of a statement without sums."""
        held = {a for a in self._arrays if self.model.arrays[a].kind == "internal" and a not in local}
        reads = [access for access in accesses if access.array not in held]
        read = sum(shape.rows * shape.of_a_row(access) + shape.of_tails(access) for access in reads)
        read += sum(self._requests(access, shape, tile) for access in accesses)
        stores = self._moves(0, tile)
        row = shape.moves(stores.memory) * (1 + self._split(0, tile))
        stored = shape.rows * row + shape.more * self._across(0, tile)
        written = stored if self._arrays[0] not in held else 0.0
        ports, code = self.target.ports, self.target.code
        memory = max(read / ports.load, written / ports.store)
        shuffled = sum(shape.rows * shape.shuffled(access.loads) for access in reads if access.along)
        shuffled += shape.rows * shape.shuffled(stores) if self._arrays[0] not in held else 0.0
        arithmetic = self._units(shape.operations, shuffled)
        loops = code.iteration * self._iterations(shape, tile)
        return max(arithmetic, memory) + code.overlap * min(arithmetic, memory) + loops

    def _iterations(self, shape: TileShape, tile: StatementTile) -> float:
        """Its share of the iterations of C loops: compilers unroll few vectors and short loops, and call `memcpy`."""
        unrolled, trips, d = self.target.code.unrolled, tile.trips(self.statement.extents), tile.vector
        whole = d is not None and tile.width >= self.statement.extents[d] and not self._instructions_of_arithmetic
        called = d is not None and whole and copies_neighbours(self._strides[d])
        of_a_row = 0 if called else 1 if shape.vectors <= unrolled else shape.vectors
        return (shape.rows * of_a_row + shape.more) / tile.beside / (trips if trips <= unrolled else 1)

    def _summed(self, shape: TileShape, tile: StatementTile, accesses: list[TileRead], count: int) -> float:
        """The cycles of a tile of a reduction of `count` steps."""
        trips = tile.trips(self.statement.extents)
        latency, code = self.target.latency, self.target.code
        unrolled = trips <= code.unrolled and trips * self._statements(shape, accesses) <= code.unrolled_sums
        step, read = self._step(shape, tile, accesses, trips if unrolled else 1)
        work = count * (shape.registers * self._instructions_of_arithmetic + read)
        chain = count * self._latency * self._links(shape, tile) / max(1.0, code.window / max(work, 1.0))
        lanes = shape.rows * latency.reduce_lanes if tile.vector in self._reduced else 0
        if work <= code.straight and unrolled:
            return max(count * step, chain) + lanes
        step += code.short_entry / trips if unrolled else code.iteration + code.entry / trips
        return max(count * step, chain) + code.tile + lanes

    def _statements(self, shape: TileShape, accesses: list[TileRead]) -> float:
        """The size of a step for C compilers that unroll it: its sums, and moves of single lanes."""
        apart = (
            access.times(shape.counts) * shape.vectors * (access.loads.all - 1) for access in accesses if access.along
        )
        return shape.registers + sum(max(0.0, more) for more in apart)

    def _between_blocks(self, shape: TileShape, tile: StatementTile) -> float:
        """The cycles to load and store the sums of a tile in each of several blocks."""
        if tile.blocks == 1:
            return 0.0
        copied = shape.registers / self.target.ports.load + shape.registers / self.target.ports.store
        return tile.blocks * copied + (tile.blocks - 1) * self.target.code.tile

    def _tail_inside(self, shape: TileShape, tile: StatementTile, accesses: list[TileRead], count: int) -> float:
        """The cycles of the tail's columns that are summed along an inner loop, in all rows."""
        if not shape.tail or tile.across not in tile.inner:
            return 0.0
        sums = shape.rows * shape.tail
        read = sum(
            access.times(shape.counts) * (shape.tail if access.along else 1) * access.across for access in accesses
        )
        ports, latency, code = self.target.ports, self.target.latency, self.target.code
        step = max(sums / ports.arithmetic, read / ports.load, self._latency) + code.iteration
        return count / self.lanes * step + code.tile + sums * latency.reduce_lanes

    def _links(self, shape: TileShape, tile: StatementTile) -> float:
        """Dependent additions of a step."""
        if tile.vector not in self._reduced:
            return 1.0
        chains = self.target.chains
        return shape.vectors / chains if shape.vectors >= 2 * chains else shape.vectors

    def _step(
        self, shape: TileShape, tile: StatementTile, accesses: list[TileRead], unrolled: int
    ) -> tuple[float, float]:
        """Cycles of a step and its loads, if `unrolled` steps are unrolled."""
        read = held = shuffled = 0.0
        for access in accesses:
            size = shape.of_a_row(access)
            times, distinct = access.times(shape.counts), access.distinct(shape.counts, unrolled)
            if distinct < times * unrolled:
                held += access.live(shape.counts, unrolled) * size
            read += distinct * size / unrolled + shape.of_tails(access)
            shuffled += distinct * shape.shuffled(access.loads) / unrolled if access.along else 0.0
            read += self._requests(access, shape, tile)
        ports = self.target.ports
        arithmetic, memory = self._units(shape.operations, shuffled), read / ports.load
        spilled = self._spilled(shape, tile, accesses, held) / unrolled
        return max(arithmetic, memory) + self.target.code.overlap * memory + spilled, read

    def _requests(self, access: TileRead, shape: TileShape, tile: StatementTile) -> int:
        """The prefetches of an array in a step: one for each line that the step reads."""
        asked = tile.requested.count(self._names[access.array]) if tile.requested else 0
        elements = access.times(shape.counts) * (shape.width if access.along else 1)
        return asked * ceil(elements * BYTES[self.model.arrays[access.array].dtype] / self.target.line) if asked else 0

    @cached_property
    def _names(self) -> Sequence[str]:
        return array_names(self.model)

    def _spilled(self, shape: TileShape, tile: StatementTile, accesses: list[TileRead], held: float) -> float:
        """Cycles for values without a register, if `held` vectors are kept for later steps.

        A sum along the lanes needs one register for each chain, however many vectors it reads.
        """
        if tile.vector in self._reduced:
            sums, operands = shape.rows * min(shape.vectors, self.target.chains), 1
        else:
            sums = shape.registers
            operands = min((int(shape.instructions(access)) for access in accesses), default=0)
        registers, code = self.target.vector_registers, self.target.code
        missing = max(0.0, sums + max(held, operands) - registers)
        tight = max(0, sums + operands + code.spare_registers - registers)
        return code.spill * missing + code.tight * tight


# The number of vector instructions of a statement's arithmetic.
def operations(scalar: Scalar, target: Machine) -> tuple[float, float]:
    """Vector instructions of one vector: products, and all others."""
    match scalar:
        case Apply():
            below = [operations(arg, target) for arg in scalar.args]
            products, others = (sum(each) for each in zip(*below, strict=True))
            own = _own(scalar, target)
            return products + own[0], others + own[1]
        case Cast():
            products, others = operations(scalar.arg, target)
            return products, others + 1.0
        case Constant() | Read():
            return 0.0, 0.0
        case _:
            return 0.0, 1.0


def _own(scalar: Apply, target: Machine) -> tuple[float, float]:
    """Instructions of the operator itself; a multiply-add is one instruction."""
    operator = OPERATORS[scalar.op]
    if operator.cost:
        return operator.times * getattr(target.operators, operator.cost), 0.0
    if scalar.op == "mul":
        return 1.0, 0.0
    fused = target.fma and scalar.op in ("add", "sub") and any(map(is_product, scalar.args))
    return 0.0, 0.0 if fused else 1.0


def is_product(scalar: Scalar) -> bool:
    """Whether it is a product."""
    return isinstance(scalar, Apply) and scalar.op == "mul"


# The share of an access's vectors that cross the border between two cache lines.
def share_split(
    model: KernelModel, statement: KernelStatement, access: int, vector: int, lanes: int, machine: Machine
) -> float:
    """The fraction of an access's contiguous vectors along `vector` that cross the end of a line.

    Arrays begin at a line; vectors of local arrays cross none.
    """
    number, index = statement.accesses()[access]
    array, every = model.arrays[number], range(len(statement.extents))
    if array.kind == "internal" or strides(model, statement, vector)[access] != 1:
        return 0.0
    size = BYTES[array.dtype]
    line, bytes_of_vector = machine.line // size, min(lanes, statement.extents[vector]) * size
    steps = [(strides(model, statement, d)[access], statement.extents[d]) for d in every if d != vector]
    if line < 2 or any(step >= IRREGULAR for step, _ in steps):
        return 0.0
    zeros = (0,) * len(statement.extents)
    start = sum(e.eval(zeros, ()) * s for e, s in zip(index.results, array.strides, strict=True))
    places = [float(k == start % line) for k in range(line)]
    for step, extent in (*steps, (lanes, -(-statement.extents[vector] // lanes))):
        places = _moved(places, step % line, extent)
    unit = min(int(machine.vector_bytes * machine.part), bytes_of_vector)
    return sum(part * _crossing(k * size, bytes_of_vector, unit, machine.line) for k, part in enumerate(places))


def _moved(places: list[float], step: int, extent: int) -> list[float]:
    """How often an access begins at each place of a line, after a loop moves it."""
    line = len(places)
    if not step or extent == 1:
        return places
    count = min(extent, line // gcd(step, line))
    return [sum(places[(k - n * step) % line] for n in range(count)) / count for k in range(line)]


def _crossing(begin: int, size: int, unit: int, line: int) -> float:
    """The part of the units of a vector that cross the end of a line."""
    units = range(begin, begin + size, unit)
    return sum(place % line + unit > line for place in units) / len(units)
