"""The schedule of a matrix product on the cube: base tiles, packets and cores of the fewest predicted cycles."""

from __future__ import annotations

from math import ceil, gcd

from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.sharing import Loads, OperandMoves, bands, cores_of, side_by_side
from msc.schedule.cube.trees import CubeSchedule
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, PACKETS

_DEPTH = 256
"""The longest row of a base tile that is tried, on every machine."""


def product_schedule(
    shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int] | None = None
) -> CubeSchedule:
    """The schedule of a product, of a base tile if one is given. Raises MSC1021 for one that does not fit.

    Rule: the base tile of the fewest predicted cycles, among those whose halves fill L0A, L0B and L0C unless these
    leave cores idle; packets that fill L1; as many cores as end first take tiles in turn.
    """
    chosen = base or cheapest(shape, target)
    check_base(shape, target, chosen)
    return in_turn(shape, target, chosen, depths(shape, target, chosen), least=2 if base else 1)


def in_turn(
    shape: MatmulShape,
    target: DavinciTarget,
    base: tuple[int, int, int],
    held: tuple[int, int],
    least: int = 1,
    cores: int | None = None,
) -> CubeSchedule:
    """The schedule whose cores, `least` or more if none are given, take base tiles in turn; one core takes all of C.

    `held` are the base tiles of A and of B that L1 holds, in packets of half of them.
    """  # fmt: skip
    rows, columns = tiles_of(shape, base)
    total = rows * columns * shape.count
    cores = min(max(least, cores or cores_of(total, _tile_cycles(shape, target, base), target)[0]), total)
    many = cores > 1
    along, high = bands((rows, columns), base[:2], cores) if many else ("n", 1)
    single = base[:2] if many else (rows * base[0], columns * base[1])
    grid = (rows, columns) if many else (1, 1)
    packets = (max(1, held[0] // 2), max(1, held[1] // 2))
    return CubeSchedule(
        base, packets, buffers_of(held, packets), grid, single, cores, many, along, high,
        halves=halves_of(shape, target, base), rotated=many,
    )  # fmt: skip


def buffers_of(held: tuple[int, int], packets: tuple[int, int]) -> tuple[int, int]:
    """The packets that L1 has room for."""
    a, b = (min(PACKETS, max(1, x // packet)) for x, packet in zip(held, packets, strict=True))
    return a, b


def halves_of(shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]) -> int:
    """The base tiles that L0A and L0B hold, each: two at most."""
    m, n, k = base
    each = 2 * k * DTYPES[shape.dtype]
    return 2 if each * m <= target.buffers.l0a and each * n <= target.buffers.l0b else 1


_ERROR = 0.03
"""How far predictions are from the simulator, as a part: what is predicted to be better by less is not preferred."""

_MANY = 4
"""From so many tiles a core on, cores have nearly as many, and smaller tiles gain nothing."""

_EDGES = (16, 32, 64, 96, 128, 192, 256)
"""Rows and columns of base tiles that are compared."""


def cheapest(shape: MatmulShape, target: DavinciTarget) -> tuple[int, int, int]:
    """The base tile of the fewest predicted cycles: of those that fill L0C, or of all where these leave cores idle."""
    whole, (by_m, by_n) = whole_base(shape, target), shape.edges
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
    rows, columns = tiles_of(shape, base)
    return cores_of(rows * columns * shape.count, _tile_cycles(shape, target, base), target)[1]


def _tile_cycles(shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]) -> float:
    """Cycles of a tile by the slowest pipe, with all cores at work that have tiles."""
    (m, n, k), size, (rows, columns) = base, DTYPES[shape.dtype], tiles_of(shape, base)
    used = min(target.cores.cube, rows * columns * shape.count)
    step_k = {1: target.cube.s8_k, 2: target.cube.f16_k, 4: target.cube.f32_k}[size]
    product = m // 16 * (n // 16) * k / step_k + target.cube.gap
    step = max(product, *side_by_side(*_traffic(shape, target, base), target, used))
    out = m * ceil(n * DTYPES[shape.out_dtype] / target.gm.packet) * target.gm.write_packet
    return ceil(shape.k / k) * step + out / 2 + target.cube.restart


def tiles_of(shape: MatmulShape, base: tuple[int, int, int]) -> tuple[int, int]:
    """Rows and columns of tiles."""
    return ceil(shape.m / base[0]), ceil(shape.n / base[1])


def _traffic(
    shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]
) -> tuple[list[Loads], list[OperandMoves]]:
    """What MTE1 and MTE2 do in a base step, for A and for B.

    An operand whose rows lie along m or n comes in rows of its tile; its fractals are turned, an instruction for each
    row of squares. Rows along k are as long as a packet's base tiles, and an operand is one load.
    """
    (m, n, k), size, gm, mte1 = base, DTYPES[shape.dtype], target.gm, target.mte1
    depth, _ = depths(shape, target, base)
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
    return min(most, _DEPTH // size, -(-shape.k // shape.step) * shape.step)


def whole_base(shape: MatmulShape, target: DavinciTarget) -> tuple[int, int, int]:
    """The base tile whose halves fill L0A, L0B and L0C."""
    size, sums = DTYPES[shape.dtype], target.buffers.l0c // 4
    by_m, by_n = shape.edges
    n = min(256, -(-shape.n // by_n) * by_n)
    m = min(sums // n // by_m * by_m, 256 if n < 256 else 128, -(-shape.m // by_m) * by_m)
    k = min(target.buffers.l0a // 2 // m, target.buffers.l0b // 2 // n) // size // shape.step * shape.step
    return m, n, max(shape.step, min(k, -(-shape.k // shape.step) * shape.step))


def check_base(shape: MatmulShape, target: DavinciTarget, base: tuple[int, int, int]) -> None:
    """Raise MSC1021 for a base tile that L0 does not hold, or that cuts fractals."""
    m, n, k = base
    size = DTYPES[shape.dtype]
    step = shape.step if shape.transpose_a or not shape.transpose_b else shape.c0
    by_m, by_n = shape.edges
    if min(base) < 1 or m % by_m or n % by_n or k % step:
        raise unfit(f"base = {list(base)}: m is a multiple of {by_m}, n of {by_n}, k of {step}")
    for name, needs, has in (
        ("L0A", m * k * size, target.buffers.l0a),
        ("L0B", n * k * size, target.buffers.l0b),
        ("L0C", m * n * 4, target.buffers.l0c),
    ):
        if needs > has:
            raise unfit(f"base = {list(base)} needs {needs} bytes of {name}, which has {has}")


def depths(
    shape: MatmulShape,
    target: DavinciTarget,
    base: tuple[int, int, int],
    wished: tuple[int | None, int | None] = (None, None),
    packets: bool = True,
) -> tuple[int, int]:
    """The base tiles of A and B that L1 holds: what is wished, or as many as fit in packets."""  # fmt: skip
    size, room = DTYPES[shape.dtype], target.buffers.l1 - target.buffers.l1_reserved
    room -= 3 * 4 * base[1] if shape.bias else 0
    a, b = base[0] * base[2] * size, base[1] * base[2] * size
    depth_a, depth_b = wished
    if depth_a is None and depth_b is None:
        depth_a = depth_b = 1
        while packets and 2 * (depth_a * a + depth_b * b) <= room and depth_a * base[2] < 2 * shape.k:
            depth_a, depth_b = 2 * depth_a, 2 * depth_b
    depth_a, depth_b = depth_a or depth_b or 1, depth_b or depth_a or 1
    if depth_a * a + depth_b * b > room:
        raise unfit(f"depth_a1 = {depth_a} and depth_b1 = {depth_b} need {depth_a * a + depth_b * b} bytes of L1")
    return depth_a, depth_b


def unfit(message: str) -> MscError:
    """The error of a schedule that does not fit."""
    return MscError(Diagnostic("MSC1021", message))
