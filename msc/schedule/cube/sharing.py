"""What cores and queues share: cycles of MTE1 and MTE2 side by side, and of tiles that cores take in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from msc.targets.davinci import DavinciTarget


@dataclass(frozen=True)
class Loads:
    """MTE1's loads of one operand in a step: `reads` are cycles in which they read L1, `between` those in which not."""

    reads: float
    between: float


@dataclass(frozen=True)
class OperandMoves:
    """MTE2's moves of one operand in a step: the cycles if nothing slows them, the bytes that they write to L1."""

    cycles: float
    written: float


def side_by_side(
    loads: Sequence[Loads], moves: Sequence[OperandMoves], target: DavinciTarget, cores: int
) -> tuple[float, float]:
    """Cycles of MTE1 and of MTE2 in a step in which both always have something to do, on so many `cores`.

    Cores have equal shares of L2. While MTE1 loads, each queue has its part of the accesses that L1 serves, or what the
    other one leaves (msc/sim/core/sharing.c). Any load may run beside any move.
    """
    mte1 = target.mte1
    moving = [max(move.cycles, move.written * cores / target.shared.l2_read) for move in moves]
    loading = moved = 0.0
    for load in loads:
        reads = load.reads / (load.reads + load.between)
        for move, cycles in zip(moves, moving, strict=True):
            writes = move.written / mte1.l1_write / cycles
            of_writes = _speed(writes, mte1.l1_write_share, reads, mte1.l1_accesses)
            of_reads = _speed(reads, 1 - mte1.l1_write_share, writes * of_writes, mte1.l1_accesses)
            together = (load.reads + load.between) / of_reads * cycles / sum(moving)
            loading += together
            moved += together * of_writes
    if moved <= sum(moving):
        return loading, loading + sum(moving) - moved
    part = sum(moving) / moved
    return part * loading + (1 - part) * sum(load.reads + load.between for load in loads), part * loading


def _speed(wanted: float, share: float, other: float, accesses: float) -> float:
    """The speed of a queue that wants so many accesses a cycle beside another one."""
    return min(1.0, max(share * accesses, accesses - other) / wanted)


def cores_of(tiles: int, cycles: float, target: DavinciTarget) -> tuple[int, float]:
    """How many cores end first with so many tiles of so many cycles each, and when. Each core starts after the last."""
    each = target.cores.launch_us * target.clock.mhz
    return min(((cores, _end(tiles, cores, cycles, each)) for cores in range(1, min(target.cores.cube, tiles) + 1)),
               key=lambda found: (found[1], found[0]))  # fmt: skip


def _end(tiles: int, cores: int, cycles: float, each: float) -> float:
    turns, more = divmod(tiles, cores)
    return max((cores - 1) * each + turns * cycles, (more - 1) * each + (turns + 1) * cycles if more else 0.0)


def bands(tiles: tuple[int, int], base: tuple[int, int], cores: int) -> tuple[str, int]:
    """The axis and the height of the bands of tiles in which cores bring least in a turn: the edges of its tiles.

    What cores take in turn differs by one tile, contiguous parts by a row of tiles; in bands, cores read the same rows
    of A and columns of B. All bands have one height. (CATLASS: block swizzle.)
    """
    rows, columns = tiles

    def brought(band: tuple[str, int]) -> int:
        axis, high = band
        along, across = base if axis == "m" else (base[1], base[0])
        return min(high, cores) * along + ceil(cores / high) * across

    found = [("n", high) for high in range(1, columns + 1) if columns % high == 0]
    return min([*found, *(("m", high) for high in range(1, rows + 1) if rows % high == 0)], key=brought)
