"""Cycles of MTE1 and MTE2 that run side by side: what L1 and L2 leave each of them, as the simulator shares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
