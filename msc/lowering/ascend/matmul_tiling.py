"""How a matrix product is cut: over cores, into base tiles, and what of the operands L1 holds. Plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, gcd, prod

from msc.lowering.ascend.dealt_tiles import Deal, cores_of, deal_of
from msc.lowering.ascend.shared_cycles import Loads, OperandMoves, side_by_side
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES


@dataclass(frozen=True)
class BatchAxis:
    """One dimension of many products: how many there are, and how far apart the operands of two neighbours lie."""

    extent: int
    a: int
    b: int
    c: int


@dataclass(frozen=True)
class MatmulShape:
    """C[m, n] = A[m, k] B[k, n]; `transpose_*` say that an operand is stored the other way round.

    `bias` says that one is added in the cube. `batch` repeats the product, the outermost dimension first.
    `row_*` are the elements between two stored rows, where
    rows lie further apart than they are long. With `fractal`, A and B lie in columns of 32 bytes (NZ), which `row_*`
    then count the rows of.
    """

    m: int
    n: int
    k: int
    dtype: str = "f16"
    out_dtype: str = "f16"
    transpose_a: bool = False
    transpose_b: bool = False
    batch: tuple[BatchAxis, ...] = ()
    row_a: int | None = None
    row_b: int | None = None
    row_c: int | None = None
    bias: bool = False
    fractal: bool = False

    @property
    def elements(self) -> tuple[int, int, int]:
        """What A, B and C hold, without a batch; an operand in NZ has whole fractals."""
        sides = ((self.m, self.k, self.transpose_a), (self.k, self.n, self.transpose_b))
        a, b = (self._stored(*((n, m) if turned else (m, n))) for m, n, turned in sides)
        return a, b, self.m * self.n

    def _stored(self, rows: int, columns: int) -> int:
        if not self.fractal:
            return rows * columns
        return ceil(rows / 16) * 16 * ceil(columns / self.c0) * self.c0

    @property
    def rows(self) -> tuple[int, int, int]:
        """Elements between two stored rows of A, of B and of C; of an operand in NZ its rows, in whole fractals."""
        if self.fractal:
            a, b = self.k if self.transpose_a else self.m, self.n if self.transpose_b else self.k
            return ceil(a / 16) * 16, ceil(b / 16) * 16, self.n
        a, b = self.m if self.transpose_a else self.k, self.k if self.transpose_b else self.n
        return self.row_a or a, self.row_b or b, self.row_c or self.n

    @property
    def count(self) -> int:
        """How many products there are."""
        return prod(each.extent for each in self.batch)

    @property
    def sum_dtype(self) -> str:
        """The type of L0C."""
        return "i32" if DTYPES[self.dtype] == 1 else "f32"

    @property
    def c0(self) -> int:
        """Elements of 32 bytes."""
        return 32 // DTYPES[self.dtype]

    @property
    def step(self) -> int:
        """What base tiles are multiples of along k: fractals that are turned come in squares."""
        return max(16, self.c0)

    @property
    def edges(self) -> tuple[int, int]:
        """What the rows and columns of base tiles are multiples of: squares of bytes that are turned have 32."""
        return self.step if self.transpose_a else 16, 16 if self.transpose_b else self.step


@dataclass(frozen=True)
class MatmulSchedule:
    """Everything that decides a matrix product's program; see docs/ascend.md for the keys of a case."""

    grid: tuple[int, int]
    single: tuple[int, int]
    base: tuple[int, int, int]
    depth_a1: int
    depth_b1: int
    big_packets: bool
    l2_split: tuple[int, int]
    constant_tiling: bool
    unit_flag: bool
    double_buffer: bool
    scalar_cycles: float | None
    batches: int = 1
    """Cores that share the batch, each with a grid of its own."""
    rotated: bool = False
    """Each core begins at another part of k: so cores that share rows do not ask for the same lines at a time."""
    deal: Deal | None = None
    """Cores take tiles in turn; `grid` then counts tiles. Else each has one part of C."""

    @property
    def cores(self) -> int:
        """How many cores take part."""
        if self.deal is not None:
            return self.deal.cores
        return self.batches * self.grid[0] * self.grid[1]

    def packet(self, depth: int) -> int:
        """Base tiles that one move to L1 brings."""
        return max(1, depth // 2) if self.big_packets else 1

    def buffers(self, depth: int) -> int:
        """Packets of an operand that L1 holds."""
        return min(3, max(1, depth // self.packet(depth)))


@dataclass(frozen=True)
class MatmulWishes:
    """The schedule of a case as far as it says something; None is left to the rule of `matmul_schedule`."""

    cores: int | None = None
    grid: tuple[int, int] | None = None
    single: tuple[int, int] | None = None
    base: tuple[int, int, int] | None = None
    depth_a1: int | None = None
    depth_b1: int | None = None
    big_packets: bool | None = None
    l2_split: tuple[int, int] | None = None
    constant_tiling: bool | None = None
    unit_flag: bool | None = None
    double_buffer: bool | None = None
    scalar_cycles: float | None = None
    dealt: bool | None = None


def matmul_schedule(shape: MatmulShape, target: DavinciTarget, wishes: MatmulWishes) -> MatmulSchedule:
    """The schedule of a product: what is wished, and by rule the rest.

    Rule: the base tile of the fewest predicted cycles, among those whose halves fill L0A, L0B and L0C unless these
    leave cores idle; packets that fill L1. Where the base tile is msc's own, cores take tiles in turn, as many cores as
    end first; else the split over all cores whose busiest core has least to compute and, of equal ones, least to load.
    A schedule that asks for no big packets has one base tile in L1, as the plain template of the vendor's library. Unit
    flags are on there and off with big packets, likewise. Where the base tile is msc's own, unit flags are on, and
    cores begin at different parts of k. Raises MSC1021 for what does not fit.
    """
    packets = wishes.big_packets if wishes.big_packets is not None else wishes.depth_a1 is None
    own = wishes.base is None and wishes.single is None
    base = wishes.base or (
        _cheapest(shape, target) if own and packets and wishes.grid is None else _base(shape, target)
    )
    _check_base(shape, target, base)
    dealt = own and wishes.grid is None and wishes.l2_split is None if wishes.dealt is None else wishes.dealt
    cores = wishes.cores or (wishes.grid[0] * wishes.grid[1] if wishes.grid else target.cores.cube)
    deal = None
    if dealt:
        deal = _deal(shape, target, base, wishes)
        cores = 1 if deal is None else deal.cores
    grid = _tiles(shape, base) if deal else wishes.grid or _grid(shape, base, cores)
    single = base[:2] if deal else wishes.single or _single(shape, base, grid)
    depth_a, depth_b = _depths(shape, target, base, wishes, packets)
    made = MatmulSchedule(
        grid=grid,
        single=single,
        base=base,
        depth_a1=depth_a,
        depth_b1=depth_b,
        big_packets=packets,
        l2_split=wishes.l2_split or (1, 1),
        constant_tiling=bool(wishes.constant_tiling),
        unit_flag=not packets or own if wishes.unit_flag is None else wishes.unit_flag,
        double_buffer=wishes.double_buffer is not False,
        scalar_cycles=wishes.scalar_cycles,
        batches=max(1, min(shape.count, cores // (grid[0] * grid[1]))) if shape.batch else 1,
        deal=deal,
    )
    return replace(made, rotated=(own or dealt) and made.cores > 1)


def scalar_cycles(schedule: MatmulSchedule, target: DavinciTarget) -> float:
    """What the scalar unit spends on one base step: the high-level API's cost, by the moves to L1 that a step has."""
    if schedule.scalar_cycles is not None:
        return schedule.scalar_cycles
    moves = 1 / schedule.packet(schedule.depth_a1) + 1 / schedule.packet(schedule.depth_b1)
    cost = target.scalar.high_level_step - target.scalar.high_level_load * (2 - moves)
    return cost * (target.scalar.constant_tiling if schedule.constant_tiling else 1.0)


_ERROR = 0.03
"""How far predictions are from the simulator, as a part: what is predicted to be better by less is not preferred."""

_MANY = 4
"""From so many tiles a core on, cores have nearly as many, and smaller tiles gain nothing."""

_EDGES = (16, 32, 64, 96, 128, 192, 256)
"""Rows and columns of base tiles that are compared."""


def _cheapest(shape: MatmulShape, target: DavinciTarget) -> tuple[int, int, int]:
    """The base tile of the fewest predicted cycles: of those that fill L0C, or of all where these leave cores idle."""
    whole, (by_m, by_n) = _base(shape, target), shape.edges
    found = [whole]
    if ceil(shape.m / whole[0]) * ceil(shape.n / whole[1]) * shape.count >= _MANY * target.cores.cube:
        m, n = whole[1], whole[0]
        if m <= shape.m and n <= shape.n and m % by_m == n % by_n == 0:
            found.append((m, n, _depth(shape, target, m, n)))
    else:
        ms, ns = (
            sorted({min(ceil(e / by) * by, ceil(size / by) * by) for e in _EDGES})
            for size, by in ((shape.m, by_m), (shape.n, by_n))
        )
        found += [(m, n, _depth(shape, target, m, n)) for m in ms for n in ns]
    fitting = [base for base in found if base[2] and base[0] * base[1] * 4 <= target.buffers.l0c]
    best = min(fitting, key=lambda base: _predicted(shape, target, base))
    return best if _predicted(shape, target, best) < (1 - _ERROR) * _predicted(shape, target, whole) else whole


def _predicted(shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]) -> float:
    """Cycles of a product by its base tile, until the last core ends."""
    rows, columns = _tiles(shape, base)
    return cores_of(rows * columns * shape.count, _tile_cycles(shape, target, base), target)[1]


def _tile_cycles(shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]) -> float:
    """Cycles of a tile by the slowest pipe, with all cores at work that have tiles."""
    (m, n, k), size, (rows, columns) = base, DTYPES[shape.dtype], _tiles(shape, base)
    used = min(target.cores.cube, rows * columns * shape.count)
    step_k = {1: target.cube.s8_k, 2: target.cube.f16_k, 4: target.cube.f32_k}[size]
    product = m // 16 * (n // 16) * k / step_k + target.cube.gap
    step = max(product, *side_by_side(*_traffic(shape, target, base), target, used))
    out = m * ceil(n * DTYPES[shape.out_dtype] / target.gm.packet) * target.gm.write_packet
    return ceil(shape.k / k) * step + out / 2 + target.cube.restart


def _tiles(shape: MatmulShape, base: tuple[int, int, int]) -> tuple[int, int]:
    """Rows and columns of tiles."""
    return ceil(shape.m / base[0]), ceil(shape.n / base[1])


def _deal(shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int], wishes: MatmulWishes) -> Deal | None:
    """How cores take tiles in turn; None where one core does all."""
    rows, columns = _tiles(shape, base)
    total = rows * columns * shape.count
    cores = wishes.cores or cores_of(total, _tile_cycles(shape, target, base), target)[0]
    cores = min(max(cores, 2) if wishes.dealt else cores, total)
    return deal_of((rows, columns), base[:2], cores) if cores > 1 else None


def _traffic(
    shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]
) -> tuple[list[Loads], list[OperandMoves]]:
    """What MTE1 and MTE2 do in a base step, for A and for B.

    An operand whose rows lie along m or n comes in rows of its tile; its fractals are turned, an instruction for each
    row of squares. Rows along k are as long as a packet's base tiles, and an operand is one load.
    """
    (m, n, k), size, gm, mte1 = base, DTYPES[shape.dtype], target.gm, target.mte1
    depth, _ = _depths(shape, target, base, MatmulWishes(), packets=True)
    packet = max(1, depth // 2)
    loads, moves = list[Loads](), list[OperandMoves]()
    sides = ((m, mte1.l0a, shape.transpose_a), (n, mte1.l0b, not shape.transpose_b))
    for (extent, bandwidth, across), pitch in zip(sides, shape.rows, strict=False):
        row = (extent if across else min(packet * k, shape.k)) * size
        written = extent * k * size
        moves.append(
            OperandMoves(gm.l1_start / packet + written / row * _row_cycles(row, pitch * size, target), written)
        )
        loads.append(Loads(written / bandwidth, (ceil(k / shape.step) if across else 1) * mte1.gap))
    return loads, moves


def _row_cycles(row: int, pitch: int, target: DavinciTarget) -> float:
    """Cycles of a row of so many bytes on its way to L1: packets stay within a line, and rows begin anywhere in one."""
    line, gm = target.shared.line, target.gm
    starts = range(0, line, gcd(line, row, pitch))

    def cycles(start: int) -> float:
        first = min(row, line - start)
        whole, tail = divmod(row - first, line)
        parts = [first, *([tail] if tail else [])]
        return sum(max(gm.l1_packet, gm.nd2nz_packet_512 * p / line) for p in parts) + whole * gm.nd2nz_packet_512

    return sum(map(cycles, starts)) / len(starts)


def _depth(shape: MatmulShape, target: DavinciTarget, m: int, n: int) -> int:
    """The most of k that L0 has room for twice."""
    size = DTYPES[shape.dtype]
    most = min(target.buffers.l0a // 2 // m, target.buffers.l0b // 2 // n) // size // shape.step * shape.step
    return min(most, 4 * 64 // size, -(-shape.k // shape.step) * shape.step)


def _base(shape: MatmulShape, target: DavinciTarget) -> tuple[int, int, int]:
    size, sums = DTYPES[shape.dtype], target.buffers.l0c // 4
    by_m, by_n = shape.edges
    n = min(256, -(-shape.n // by_n) * by_n)
    m = min(sums // n // by_m * by_m, 256 if n < 256 else 128, -(-shape.m // by_m) * by_m)
    k = min(target.buffers.l0a // 2 // m, target.buffers.l0b // 2 // n) // size // shape.step * shape.step
    return m, n, max(shape.step, min(k, -(-shape.k // shape.step) * shape.step))


def _check_base(shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]) -> None:
    m, n, k = base
    size = DTYPES[shape.dtype]
    step = shape.step if shape.transpose_a or not shape.transpose_b else shape.c0
    by_m, by_n = shape.edges
    if min(base) < 1 or m % by_m or n % by_n or k % step:
        raise _unfit(f"base = {list(base)}: m is a multiple of {by_m}, n of {by_n}, k of {step}")
    for name, needs, has in (
        ("L0A", m * k * size, target.buffers.l0a),
        ("L0B", n * k * size, target.buffers.l0b),
        ("L0C", m * n * 4, target.buffers.l0c),
    ):
        if needs > has:
            raise _unfit(f"base = {list(base)} needs {needs} bytes of {name}, which has {has}")


def _grid(shape: MatmulShape, base: tuple[int, int, int], cores: int) -> tuple[int, int]:
    tiles_m, tiles_n = ceil(shape.m / base[0]), ceil(shape.n / base[1])

    def cost(rows: int) -> tuple[int, int]:
        per_m, per_n = ceil(tiles_m / rows), ceil(tiles_n / (cores // rows))
        return per_m * per_n, per_m * base[0] + per_n * base[1]

    used = min(cores, tiles_m * tiles_n)
    rows = min((r for r in range(1, used + 1)), key=lambda r: (cost(r), r))
    return rows, max(1, min(cores // rows, tiles_n))


def _single(shape: MatmulShape, base: tuple[int, int, int], grid: tuple[int, int]) -> tuple[int, int]:
    m, n = (
        ceil(ceil(size / part) / tile) * tile
        for size, part, tile in ((shape.m, grid[0], base[0]), (shape.n, grid[1], base[1]))
    )
    return m, n


def _depths(
    shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int], wishes: MatmulWishes, packets: bool
) -> tuple[int, int]:
    size, room = DTYPES[shape.dtype], target.buffers.l1 - target.buffers.l1_reserved
    room -= 3 * 4 * base[1] if shape.bias else 0
    a, b = base[0] * base[2] * size, base[1] * base[2] * size
    depth_a, depth_b = wishes.depth_a1, wishes.depth_b1
    if depth_a is None and depth_b is None:
        depth_a = depth_b = 1
        while packets and 2 * (depth_a * a + depth_b * b) <= room and depth_a * base[2] < 2 * shape.k:
            depth_a, depth_b = 2 * depth_a, 2 * depth_b
    depth_a, depth_b = depth_a or depth_b or 1, depth_b or depth_a or 1
    if depth_a * a + depth_b * b > room:
        raise _unfit(f"depth_a1 = {depth_a} and depth_b1 = {depth_b} need {depth_a * a + depth_b * b} bytes of L1")
    return depth_a, depth_b


def _unfit(message: str) -> MscError:
    return MscError(Diagnostic("MSC1021", message))
