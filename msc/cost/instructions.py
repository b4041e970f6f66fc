"""What the instructions of one statement cost, by how it is cut into register tiles.

A tile is some rows by some vectors. In a step of a reduction it does one multiply-add for each of its sums, loads what
moves along the vectors once per vector, and what moves along the rows once per row. A step takes the largest of the
arithmetic, the loads (two of each a cycle) and what streams from L2 when a panel of vectors outgrows L1, and somewhat
more for what does not overlap. Rows that lie so far apart that they share sets of L1 come from L2 in each step.
All steps together take at least a chain of dependent additions, but for short ones, of which a core works on several
tiles at a time.

C compilers spell short innermost loops out. Then what one row reads in one step, and the next row in the next step, is
read once and kept: that saves loads, and takes registers; values that find none are stored and read again.

What is left at the end of a loop is a smaller tile. Constants that are not a machine's were fitted to measured times
of products and convolutions, each with several tiles, by a program that was not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import ceil, prod

from msc.cost.access import access_cost, block_size, copies_neighbours, cuts, pieces, strides, vectorisable
from msc.cost.line_splits import share_split
from msc.cost.operations import is_product, operations
from msc.cost.regrouped_lanes import interleaved_cost, transposed_cost
from msc.cost.statement_tiles import StatementTile
from msc.dialects.element_types import BYTES
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel, KernelStatement
from msc.targets.machine import Machine


@dataclass(frozen=True)
class _Access:
    """A read under one tile: which rows it moves along, and instructions to load one vector."""

    array: int
    rows: tuple[bool, ...]
    again: tuple[int, ...]
    """By how many steps of the innermost loop each row is ahead of the one before it; 0 if they never meet."""
    along: bool
    instructions: float
    across: float
    """Instructions to load one vector along the rows."""
    split: float
    """What vectors that lie in two lines take more, as a part of the loads."""

    def times(self, counts: tuple[int, ...]) -> int:
        """How often a step needs it."""
        return prod(n for n, moves in zip(counts, self.rows, strict=True) if moves)

    def distinct(self, counts: tuple[int, ...], trips: int) -> int:
        """How many different ones `trips` steps need."""
        saved = (rows * (n - 1) * (trips - s) for rows, n, s in self._met(counts, trips))
        return self.times(counts) * trips - max(saved, default=0)

    def live(self, counts: tuple[int, ...], trips: int) -> int:
        """How many of those wait at a time for a later step."""
        waiting = (
            (rows * (n - 1) * (trips - s), rows * (n - 1) * min(s, trips - s))
            for rows, n, s in self._met(counts, trips)
        )
        return max(waiting, default=(0, 0))[1]

    def _met(self, counts: tuple[int, ...], trips: int) -> Iterator[tuple[int, int, int]]:
        """For dimensions whose rows read what others read before: rows of all others, their count, steps between."""
        all_rows = self.times(counts)
        return ((all_rows // n, n, s) for n, s in zip(counts, self.again, strict=True) if 0 < s < trips)


class StatementCost:
    """The cycles of one statement on a target, for any tile; `lanes` are those of its kernel."""

    def __init__(self, model: KernelModel, statement: KernelStatement, lanes: int, target: Machine) -> None:
        self.model, self.statement, self.lanes, self.target = model, statement, lanes, target
        self._known: dict[tuple[StatementTile, frozenset[int], frozenset[int]], float] = {}

    def cycles(
        self, tile: StatementTile, stored: AbstractSet[int] = frozenset(), loaded: AbstractSet[int] = frozenset()
    ) -> float:
        """Of all tiles, those at the end included.

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
        """The tile with the vectors that C compilers make of an innermost plain loop over neighbours.

        They do so if a schedule has no vectors, or only moves elements whose lanes lie apart. Vectors with arithmetic
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

    def _shape(self, rows: tuple[int, ...], width: int, tile: StatementTile) -> _Shape:
        tail = tile.tail if width == tile.width else 0
        whole = width - tail
        is_vector, part = self._is_vector(tile), self.target.part
        vectors = pieces(whole, self.lanes) if is_vector else whole
        issued = self._issued(whole) if is_vector else whole * part
        along_rows = tail and tile.across not in tile.inner
        of_rows, issued_of_rows = (pieces(prod(rows), self.lanes), self._issued(prod(rows))) if along_rows else (0, 0.0)
        return _Shape(rows, vectors, whole, tail, of_rows, issued, issued_of_rows, part)

    def _issued(self, extent: int) -> float:
        """Vectors for so many elements, of which the last one is as wide as units that it needs."""
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
    def _arithmetic(self) -> float:
        """Cycles of the arithmetic of one vector: products, and what other units do beside them."""
        combined, ports = self.statement.combine is not None, self.target.ports
        products, others = operations(self.statement.body, self.target)
        others += combined and not (self.target.fma and is_product(self.statement.body))
        each = max(products, others) / ports.arithmetic
        return max(each, (products + others) / (ports.arithmetic + ports.beside))

    @cached_property
    def _instructions_of_arithmetic(self) -> float:
        """Instructions of one vector."""
        return self._arithmetic * self.target.ports.arithmetic

    @cached_property
    def _latency(self) -> float:
        """The latency of the operation that sums: a product is added with its multiplication."""
        latency = self.target.latency
        fused = self.target.fma and is_product(self.statement.body)
        return latency.multiply_add if fused else latency.add

    @cached_property
    def _vectorisable(self) -> list[bool]:
        return [vectorisable(self.statement, d) for d in range(len(self.statement.extents))]

    @cached_property
    def _blocks(self) -> list[int]:
        return [block_size(self.statement, d) for d in range(len(self.statement.extents))]

    def _sums(self, tile: StatementTile) -> bool:
        """Whether the innermost loop sums into the same registers again and again."""
        return bool(self._reduced) and (tile.vector is None or not tile.inner or tile.inner[-1] in self._reduced)

    def _is_vector(self, tile: StatementTile) -> bool:
        """Whether it runs as vectors: where a layout has blocks, they are whole ones."""
        return (
            tile.vector is not None and self._vectorisable[tile.vector] and self._blocks[tile.vector] in (0, tile.width)
        )

    def _reads(self, tile: StatementTile, loaded: frozenset[int]) -> list[_Access]:
        innermost = next((d for d in reversed(tile.inner) if d != tile.vector), None)
        return [self._read(k, tile, innermost) for k in range(1, len(self._arrays)) if k not in loaded]

    def _read(self, access: int, tile: StatementTile, innermost: int | None) -> _Access:
        apart = [self._strides[dim][access] for dim, _ in tile.rows]
        below = self._strides[innermost][access] if innermost is not None else 0
        again = tuple(abs(s // below) if s and below and s % below == 0 else 0 for s in apart)
        along = self._along(access, tile)
        loads = self._instructions(access, tile), self._across(access, tile)
        return _Access(self._arrays[access], tuple(map(bool, apart)), again, along, *loads, self._split(access, tile))

    def _split(self, access: int, tile: StatementTile) -> float:
        """What vectors that lie in two lines take more, as a part of the loads or stores."""
        if tile.vector is None or not self._is_vector(tile):
            return 0.0
        key = access, tile.vector
        if key not in self._splits:
            share = share_split(self.model, self.statement, access, tile.vector, self.lanes, self.target)
            self._splits[key] = share * self.target.ports.split
        return self._splits[key]

    @cached_property
    def _splits(self) -> dict[tuple[int, int], float]:
        """By access and dimension of the vectors what is known so far."""
        return {}

    def _along(self, access: int, tile: StatementTile) -> bool:
        return tile.vector is not None and bool(self._strides[tile.vector][access])

    def _instructions(self, access: int, tile: StatementTile) -> float:
        """Instructions to load or store one vector, or one element without vectors.

        Only tiles one vector wide load rows whole and transpose them, and store what alternates side by side.
        """
        if tile.vector is None or not self._is_vector(tile):
            return self.target.code.divided if tile.vector is not None and self._blocks[tile.vector] else 1.0
        stride = self._strides[tile.vector][access]
        each = max(1.0, access_cost(stride, self.lanes, is_store=not access))
        if each == 1 or not tile.rows or tile.width != self.lanes:
            return each
        (row, count), regroup = tile.rows[-1], transposed_cost if access else interleaved_cost
        return min(each, regroup(stride, self._strides[row][access], count, self.lanes))

    def _across(self, access: int, tile: StatementTile) -> float:
        """To load or store one vector along the rows."""
        if tile.across is None:
            return 1.0
        return max(1.0, access_cost(self._strides[tile.across][access], self.lanes, is_store=not access))

    def _once(self, shape: _Shape, tile: StatementTile, accesses: list[_Access], local: frozenset[int]) -> float:
        """A tile of a statement that sums nothing."""
        held = {a for a in self._arrays if self.model.arrays[a].kind == "internal" and a not in local}
        reads = [access for access in accesses if access.array not in held]
        read = sum(shape.rows * shape.of_a_row(access) + shape.of_tails(access) for access in reads)
        row = shape.moves(self._instructions(0, tile)) * (1 + self._split(0, tile))
        stored = shape.rows * row + shape.more * self._across(0, tile)
        written = stored if self._arrays[0] not in held else 0.0
        ports, code = self.target.ports, self.target.code
        memory = max(read / ports.load, written / ports.store)
        arithmetic = shape.operations * self._arithmetic
        loops = code.iteration * self._iterations(shape, tile)
        return max(arithmetic, memory) + code.overlap * min(arithmetic, memory) + loops

    def _iterations(self, shape: _Shape, tile: StatementTile) -> float:
        """Its share of the iterations of C loops: compilers unroll few vectors and short loops, and call `memcpy`."""
        unrolled, trips, d = self.target.code.unrolled, tile.trips(self.statement.extents), tile.vector
        whole = d is not None and tile.width >= self.statement.extents[d] and not self._instructions_of_arithmetic
        called = d is not None and whole and copies_neighbours(self._strides[d])
        of_a_row = 0 if called else 1 if shape.vectors <= unrolled else shape.vectors
        return (shape.rows * of_a_row + shape.more) / tile.beside / (trips if trips <= unrolled else 1)

    def _summed(self, shape: _Shape, tile: StatementTile, accesses: list[_Access], count: int) -> float:
        """A tile of a reduction of `count` steps."""
        trips = tile.trips(self.statement.extents)
        latency, code = self.target.latency, self.target.code
        unrolled = trips <= code.unrolled and trips * shape.registers <= code.unrolled_sums
        step, read = self._step(shape, tile, accesses, trips if unrolled else 1)
        work = count * (shape.registers * self._instructions_of_arithmetic + read)
        chain = count * self._latency * self._links(shape, tile) / max(1.0, code.window / max(work, 1.0))
        lanes = shape.rows * latency.reduce_lanes if tile.vector in self._reduced else 0
        if work <= code.straight and unrolled:
            return max(count * step, chain) + lanes
        step += code.short_entry / trips if unrolled else code.iteration + code.entry / trips
        return max(count * step, chain) + code.tile + lanes

    def _between_blocks(self, shape: _Shape, tile: StatementTile) -> float:
        """Each block loads the sums of a tile and stores them, where there are several."""
        if tile.blocks == 1:
            return 0.0
        copied = shape.registers / self.target.ports.load + shape.registers / self.target.ports.store
        return tile.blocks * copied + (tile.blocks - 1) * self.target.code.tile

    def _tail_inside(self, shape: _Shape, tile: StatementTile, accesses: list[_Access], count: int) -> float:
        """Columns of the tail that are summed along an inner loop, each with each row."""
        if not shape.tail or tile.across not in tile.inner:
            return 0.0
        sums = shape.rows * shape.tail
        read = sum(
            access.times(shape.counts) * (shape.tail if access.along else 1) * access.across for access in accesses
        )
        ports, latency, code = self.target.ports, self.target.latency, self.target.code
        step = max(sums / ports.arithmetic, read / ports.load, self._latency) + code.iteration
        return count / self.lanes * step + code.tile + sums * latency.reduce_lanes

    def _links(self, shape: _Shape, tile: StatementTile) -> float:
        """Additions of a step that wait for one another."""
        if tile.vector not in self._reduced:
            return 1.0
        chains = self.target.chains
        return shape.vectors / chains if shape.vectors >= 2 * chains else shape.vectors

    def _step(self, shape: _Shape, tile: StatementTile, accesses: list[_Access], unrolled: int) -> tuple[float, float]:
        """Cycles of a step and its loads, where so many are unrolled."""
        read = held = 0.0
        for access in accesses:
            size = shape.of_a_row(access)
            times, distinct = access.times(shape.counts), access.distinct(shape.counts, unrolled)
            if distinct < times * unrolled:
                held += access.live(shape.counts, unrolled) * size
            read += distinct * size / unrolled + shape.of_tails(access)
            read += tile.requested.count(self._names[access.array]) * self._lines(access, shape)
        ports = self.target.ports
        arithmetic, memory = shape.operations * self._arithmetic, read / ports.load
        spilled = self._spilled(shape, tile, accesses, held) / unrolled
        return max(arithmetic, memory) + self.target.code.overlap * memory + spilled, read

    def _lines(self, access: _Access, shape: _Shape) -> int:
        """The lines that hold what a step reads of an array."""
        elements = access.times(shape.counts) * (shape.width if access.along else 1)
        return ceil(elements * BYTES[self.model.arrays[access.array].dtype] / self.target.line)

    @cached_property
    def _names(self) -> Sequence[str]:
        return array_names(self.model.arrays)

    def _spilled(self, shape: _Shape, tile: StatementTile, accesses: list[_Access], held: float) -> float:
        """Cycles for what finds no register, where so much is held for later steps.

        A sum along the lanes needs as many registers as it has chains, however many vectors it reads.
        """
        if tile.vector in self._reduced:
            sums, operands = shape.rows * min(shape.vectors, self.target.chains), 1
        else:
            sums = shape.registers
            operands = min((int(shape.instructions(access)) for access in accesses), default=0)
        missing = max(0.0, sums + max(held, operands) - self.target.vector_registers)
        code = self.target.code
        tight = max(0, sums + operands + code.spare_registers - self.target.vector_registers)
        return code.spill * missing + code.tight * tight


@dataclass(frozen=True)
class _Shape:
    """A tile, whole or what is left of one: how many of each row dimension, by so many vectors."""

    counts: tuple[int, ...]
    vectors: int
    width: int
    tail: int
    of_rows: int
    """Vectors along the rows for each column of the tail."""
    issued: float
    """What a row takes of the units, in whole vectors: the last one may be narrow."""
    issued_of_rows: float
    """The same of vectors along the rows, for each column of the tail."""
    part: float
    """What an element takes of a unit."""

    @cached_property
    def rows(self) -> int:
        return prod(self.counts)

    @cached_property
    def registers(self) -> int:
        return self.rows * self.vectors + self.more

    @cached_property
    def operations(self) -> float:
        """Whole vectors that units work on."""
        return self.rows * self.issued + self.tail * self.issued_of_rows

    @property
    def more(self) -> int:
        """Vectors along the rows."""
        return self.tail * self.of_rows

    def of_tails(self, access: _Access) -> float:
        """Instructions to load what the columns of the tail read."""
        if not any(access.rows):
            return self.tail * access.along * bool(self.of_rows)
        return access.across * (self.more if access.along else self.of_rows)

    def instructions(self, access: _Access) -> float:
        """To load all that it reads, what rows have in common once."""
        return access.times(self.counts) * self.of_a_row(access)

    def of_a_row(self, access: _Access) -> float:
        """To load what one row reads."""
        return self.moves(access.instructions) * (1 + access.split) if access.along else 1.0

    def moves(self, instructions: float) -> float:
        """For all lanes of a row, at so many a vector: those that lie apart are moved one by one."""
        apart = max(self.width, self.vectors) * self.part
        return self.issued if instructions <= 1 else min(self.vectors * instructions, apart)
