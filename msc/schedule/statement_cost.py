"""What the instructions of one statement cost, by how it is cut into register tiles.

A tile is some rows by some vectors. In a step of a reduction it does one multiply-add for each of its sums, loads what
moves along the vectors once per vector, and what moves along the rows once per row. A step takes the largest of the
arithmetic, the loads (two of each a cycle) and what streams from the second cache when a panel of vectors outgrows the
first, and somewhat more for what does not overlap. Rows that lie so far apart that they share sets of the first cache
come from the second in each step. All steps together take at least a chain of dependent additions, but for short
ones, of which a core works on several tiles at a time.

C compilers spell short innermost loops out. Then what one row reads in one step, and the next row in the next step, is
read once and kept: that saves loads, and takes registers; values that find none are stored and read again.

What is left at the end of a loop is a smaller tile. Constants that are not a machine's were fitted to measured times
of products and convolutions, each with several tiles, by a program that was not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from msc.cost.register_tiles import rows_kept
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar
from msc.schedule.access import access_cost, block_size, cuts, pieces, strides, vectorisable
from msc.targets.machine import Machine

ARITHMETIC_PORTS, LOAD_PORTS, STORE_PORTS = 2, 2, 1
UPDATE_LATENCY = 4
CHAINS = 4
"""Sums that a long reduction along the lanes keeps apart (`vectorize`)."""
WINDOW = 550.0
"""Instructions that a core looks ahead."""
PAGE_BYTES = 4096
L2_BYTES_PER_CYCLE = 64.0
FAR_ROW_CYCLES = 0.04
"""What reading an element of a row costs where each pass over the rows comes from the third cache (measured)."""
OVERLAP = 0.13
"""The part of loads and streams that arithmetic does not hide."""
UNROLLED = 8
"""Iterations of an innermost loop that C compilers spell out."""
SPELLED_OUT = 110
"""Sums of all iterations of an innermost loop that they spell out."""
STRAIGHT = 150.0
"""Instructions of loops that C compilers spell out whole."""
ITERATION, ENTRY, SHORT_ENTRY, TILE = 0.2, 2.0, 0.6, 10.0
"""Cycles of an iteration, of entering an innermost loop, or one that is spelled out, and of beginning a tile."""
SPILL, TIGHT = 1.9, 0.07
"""Cycles for a value without a register, which is stored and read, and for one of SPARE_REGISTERS that is taken."""
SPARE_REGISTERS = 7
"""Registers for what C compilers load ahead."""
PAGE = 0.8
"""Cycles of a row that lies in another page than the one before it."""
LANES_REDUCED = 12
"""Cycles to reduce the lanes of one vector to one element."""
_INSTRUCTIONS = {
    **dict.fromkeys(("div", "rem", "mod", "sqrt", "rsqrt"), 8.0),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log1p", "sigmoid", "tanh", "erf", "softplus"), 20.0),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"), 40.0),
    **dict.fromkeys(("pow", "atan2"), 60.0),
}
"""Vector instructions of operators that are not one."""


@dataclass(frozen=True)
class Tile:
    """How a statement is cut: dimensions with how many of each, the rows, by `width` of dimension `vector`.

    `inner` are the dimensions of its loops below those that it shares with other statements, innermost last.
    """

    rows: tuple[tuple[int, int], ...]
    vector: int | None
    width: int
    inner: tuple[int, ...] = ()
    rest: int = 0
    across: int | None = None
    """The last `rest` of the width run as vectors along this dimension, of the rows or of the inner ones."""

    @property
    def cut(self) -> tuple[tuple[int, int], ...]:
        """All dimensions that it cuts, with how much of each."""
        return self.rows if self.vector is None else (*self.rows, (self.vector, self.width))


@dataclass(frozen=True)
class _Access:
    """A read under one tile: which rows it moves along, and instructions to load one vector."""

    rows: tuple[bool, ...]
    again: tuple[int, ...]
    """By how many steps of the innermost loop each row is ahead of the one before it; 0 if they never meet."""
    along: bool
    instructions: float
    kept: int
    """Rows whose cache lines stay in the first cache until they are read whole; 0 if it does not matter."""
    far: bool
    across: float
    """Instructions to load one vector along the rows."""
    jumps: bool
    """Whether vectors from beyond the second cache lie in another page in each step: nothing fetches them ahead."""

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
        """Of dimensions whose rows read what others read before: rows of all others, their count, steps between."""
        all_rows = self.times(counts)
        return ((all_rows // n, n, s) for n, s in zip(counts, self.again, strict=True) if 0 < s < trips)


class StatementCost:
    """The cycles of one statement on a target, for any tile; `lanes` are those of its kernel."""

    def __init__(self, model: KernelModel, statement: KernelStatement, lanes: int, target: Machine) -> None:
        self.model, self.statement, self.lanes, self.target = model, statement, lanes, target

    def cycles(self, tile: Tile, stored: AbstractSet[int] = frozenset()) -> float:
        """Of all tiles, those at the end included; `stored` are internal arrays that registers do not hold."""
        extents, sums = self.statement.extents, self._sums(tile)
        steps = [d for d in self._reduced if d != tile.vector] if sums else []
        around = self.statement.points / prod(extents[d] for d, _ in tile.cut) / prod(extents[d] for d in steps)
        count, accesses = prod(extents[d] for d in steps), self._reads(tile)
        total = 0.0
        for part in product(*(cuts(extents[dim], size) for dim, size in tile.cut)):
            sizes = tuple(size for size, _ in part)
            *rows, width = sizes if tile.vector is not None else (*sizes, 1)
            shape = self._shape(tuple(rows), width, tile)
            one = self._summed(shape, tile, accesses, count) if sums else self._once(shape, tile, accesses, stored)
            one += self._rest_inside(shape, tile, accesses, count)
            total += prod(times for _, times in part) * one
        return around * total

    def _shape(self, rows: tuple[int, ...], width: int, tile: Tile) -> _Shape:
        rest = tile.rest if width == tile.width else 0
        whole = width - rest
        vectors = pieces(whole, self.lanes) if self._is_vector(tile) else whole
        along_rows = rest and tile.across not in tile.inner
        return _Shape(rows, vectors, whole, rest, pieces(prod(rows), self.lanes) if along_rows else 0)

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
        """Vector instructions of one vector; a product that is added is one."""
        body, combined = self.statement.body, self.statement.combine is not None
        fused = combined and isinstance(body, Apply) and body.op == "mul"
        return _operators(body) + combined - (fused and self.target.fma)

    @cached_property
    def _vectorisable(self) -> bool:
        return vectorisable(self.statement)

    @cached_property
    def _blocks(self) -> list[int]:
        return [block_size(self.statement, d) for d in range(len(self.statement.extents))]

    @cached_property
    def _all_steps(self) -> int:
        return prod(self.statement.extents[d] for d in self._reduced)

    def _sums(self, tile: Tile) -> bool:
        """Whether the innermost loop sums into the same registers again and again."""
        return bool(self._reduced) and (tile.vector is None or not tile.inner or tile.inner[-1] in self._reduced)

    def _is_vector(self, tile: Tile) -> bool:
        """Whether it runs as vectors: where a layout has blocks, they are whole ones."""
        return tile.vector is not None and self._vectorisable and self._blocks[tile.vector] in (0, tile.width)

    def _reads(self, tile: Tile) -> list[_Access]:
        innermost = next((d for d in reversed(tile.inner) if d != tile.vector), None)
        return [self._read(k, tile, innermost) for k in range(1, len(self._arrays))]

    def _read(self, access: int, tile: Tile, innermost: int | None) -> _Access:
        array = self.model.arrays[self._arrays[access]]
        apart = [self._strides[dim][access] for dim, _ in tile.rows]
        below = self._strides[innermost][access] if innermost is not None else 0
        again = tuple(abs(s // below) if s and below and s % below == 0 else 0 for s in apart)
        along = self._along(access, tile)
        itemsize = BYTES[array.dtype]
        kept = min((rows_kept(self.target, abs(s) * itemsize) for s in apart if s), default=0) if not along else 0
        size = prod(array.shape) * itemsize if array.kind != "internal" else 0
        far = any(apart) and not along and size > self.target.l2 // 2
        jumps = along and size > self.target.l2 and below * itemsize >= PAGE_BYTES
        loads = self._instructions(access, tile), kept, far, self._across(access, tile), jumps
        return _Access(tuple(map(bool, apart)), again, along, *loads)

    def _along(self, access: int, tile: Tile) -> bool:
        return tile.vector is not None and bool(self._strides[tile.vector][access])

    def _instructions(self, access: int, tile: Tile) -> float:
        """To load or store one vector, or one element where there are none."""
        if tile.vector is None or not self._is_vector(tile):
            return 1.0
        return max(1.0, access_cost(self._strides[tile.vector][access], self.lanes))

    def _across(self, access: int, tile: Tile) -> float:
        """To load or store one vector along the rows."""
        return 1.0 if tile.across is None else max(1.0, access_cost(self._strides[tile.across][access], self.lanes))

    def _once(self, shape: _Shape, tile: Tile, accesses: list[_Access], local: AbstractSet[int]) -> float:
        """A tile of a statement that sums nothing."""
        in_memory = [self.model.arrays[a].kind != "internal" or a in local for a in self._arrays]
        read = sum(
            shape.rows * shape.of_a_row(access) + shape.of_rests(access)
            for access, counts in zip(accesses, in_memory[1:], strict=True)
            if counts
        )
        stored = shape.rows * shape.moves(self._instructions(0, tile)) + shape.more * self._across(0, tile)
        written = stored if in_memory[0] else 0.0
        memory = max(read / LOAD_PORTS, written / STORE_PORTS)
        arithmetic = shape.registers * self._arithmetic / ARITHMETIC_PORTS
        return max(arithmetic, memory) + OVERLAP * min(arithmetic, memory) + ITERATION * shape.registers

    def _summed(self, shape: _Shape, tile: Tile, accesses: list[_Access], count: int) -> float:
        """A tile of a reduction of `count` steps."""
        below = [d for d in tile.inner if d != tile.vector]
        trips = self.statement.extents[below[-1]] if below else 1
        spelled_out = trips <= UNROLLED and trips * shape.registers <= SPELLED_OUT
        step, read = self._step(shape, tile, accesses, trips if spelled_out else 1)
        work = count * (shape.registers * self._arithmetic + read)
        chain = count * UPDATE_LATENCY * self._links(shape, tile) / max(1.0, WINDOW / max(work, 1.0))
        lanes = shape.rows * LANES_REDUCED if tile.vector in self._reduced else 0
        if work <= STRAIGHT and spelled_out:
            return max(count * step, chain) + lanes + self._pages(tile, shape)
        step += SHORT_ENTRY / trips if spelled_out else ITERATION + ENTRY / trips
        return max(count * step, chain) + TILE + lanes + self._pages(tile, shape)

    def _rest_inside(self, shape: _Shape, tile: Tile, accesses: list[_Access], count: int) -> float:
        """Columns of the rest that are summed along an inner loop, each with each row."""
        if not shape.rest or tile.across not in tile.inner:
            return 0.0
        sums = shape.rows * shape.rest
        read = sum(
            access.times(shape.counts) * (shape.rest if access.along else 1) * access.across for access in accesses
        )
        step = max(sums / ARITHMETIC_PORTS, read / LOAD_PORTS, UPDATE_LATENCY) + ITERATION
        return count / self.lanes * step + TILE + sums * LANES_REDUCED

    def _pages(self, tile: Tile, shape: _Shape) -> float:
        """Cycles for rows that lie in pages of their own."""
        far = (
            n
            for (dim, _), n in zip(tile.rows, shape.counts, strict=True)
            for stride in self._bytes_apart[dim]
            if stride >= PAGE_BYTES
        )
        return PAGE * sum(far)

    @cached_property
    def _bytes_apart(self) -> list[list[int]]:
        """For each dimension and access."""
        sizes = [BYTES[self.model.arrays[a].dtype] for a in self._arrays]
        return [[abs(s) * b for s, b in zip(per_access, sizes, strict=True)] for per_access in self._strides]

    def _links(self, shape: _Shape, tile: Tile) -> float:
        """Additions of a step that wait for one another."""
        if tile.vector not in self._reduced:
            return 1.0
        return shape.vectors / CHAINS if shape.vectors >= 2 * CHAINS else shape.vectors

    def _step(self, shape: _Shape, tile: Tile, accesses: list[_Access], unrolled: int) -> tuple[float, float]:
        """Cycles of a step and its loads, where so many are spelled out."""
        read = held = far = far_rows = 0.0
        for access in accesses:
            size = shape.of_a_row(access)
            times, distinct = access.times(shape.counts), access.distinct(shape.counts, unrolled)
            if distinct < times * unrolled:
                held += access.live(shape.counts, unrolled) * size
            read += distinct * size / unrolled + shape.of_rests(access)
            if access.along and not any(access.rows) and self._streams(tile.width):
                far += shape.vectors * self.target.vector_bytes / L2_BYTES_PER_CYCLE
            far += shape.rows if 0 < access.kept < shape.rows else 0
            far += PAGE * size * access.jumps
            far_rows += FAR_ROW_CYCLES * shape.rows if access.far else 0
        arithmetic, memory = shape.registers * self._arithmetic / ARITHMETIC_PORTS, read / LOAD_PORTS
        spilled = self._spilled(shape, accesses, held) / unrolled
        return max(arithmetic, memory, far) + OVERLAP * (memory + far) + far_rows + spilled, read

    def _spilled(self, shape: _Shape, accesses: list[_Access], held: float) -> float:
        """Cycles for what finds no register, where so much is held for later steps."""
        operands = min((int(shape.instructions(access)) for access in accesses), default=0)
        missing = max(0.0, shape.registers + max(held, operands) - self.target.vector_registers)
        tight = max(0, shape.registers + operands + SPARE_REGISTERS - self.target.vector_registers)
        return SPILL * missing + TIGHT * tight

    def _streams(self, width: int) -> bool:
        """Whether what the vectors read in all steps of the reduction outgrows the first cache."""
        return self._all_steps * width * self.target.vector_bytes // self.lanes > self.target.l1 // 2


@dataclass(frozen=True)
class _Shape:
    """A tile, whole or what is left of one: how many of each row dimension, by so many vectors."""

    counts: tuple[int, ...]
    vectors: int
    width: int
    rest: int
    of_rows: int
    """Vectors along the rows for each column of the rest."""

    @cached_property
    def rows(self) -> int:
        return prod(self.counts)

    @cached_property
    def registers(self) -> int:
        return self.rows * self.vectors + self.more

    @property
    def more(self) -> int:
        """Vectors along the rows."""
        return self.rest * self.of_rows

    def of_rests(self, access: _Access) -> float:
        """Instructions to load what the columns of the rest read."""
        if not any(access.rows):
            return self.rest * access.along * bool(self.of_rows)
        return access.across * (self.more if access.along else self.of_rows)

    def instructions(self, access: _Access) -> float:
        """To load all that it reads, what rows have in common once."""
        return access.times(self.counts) * self.of_a_row(access)

    def of_a_row(self, access: _Access) -> float:
        """To load what one row reads."""
        return self.moves(access.instructions) if access.along else 1.0

    def moves(self, instructions: float) -> float:
        """For all lanes of a row, at so many a vector: those that lie apart are moved one by one."""
        return min(self.vectors * instructions, max(self.width, self.vectors))


def _operators(scalar: Scalar) -> float:
    match scalar:
        case Apply():
            return _INSTRUCTIONS.get(scalar.op, 1.0) + sum(map(_operators, scalar.args))
        case Cast():
            return 1.0 + _operators(scalar.arg)
        case Constant() | Read():
            return 0.0
        case _:
            return 1.0
