"""Moves under way share what they pass: HBM and L2 between cores, L1 between the queues of one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from msc.codegen.davinci.simulate import simulate_kernel
from msc.lowering.ascend.builder import KernelBuilder
from msc.schedule.cube.sharing import Loads, OperandMoves, side_by_side
from msc.sim.result import PIPES, SimulationResult
from msc.targets.davinci import davinci_target
from msc.targets.davinci_isa import Space

B1 = davinci_target("ascend910b1")
CORES, LONG, SHORT = 48, 180, 8


def one_long_move(others: int) -> float:
    """Cycles of a core that moves LONG KB from HBM, beside cores that make so many moves of SHORT KB meanwhile."""
    b = KernelBuilder("k", B1, "vector", CORES, [("f16", CORES * LONG * 512)])
    x, ub, block = b.arguments[0], b.alloc(Space.ub, "f16", LONG * 512), b.block_index()
    together = round(B1.cores.launch_us * B1.clock.mhz)
    b.emit("scalar_work", cycles=(block * -1 + CORES) * together)
    first = b.minimum(block, 1)
    with b.loop(0, first * -1 + 1):
        b.emit("copy_gm_to_ubuf", (ub, 0), (x, 0), bursts=1, length=LONG * 32, bypass=1)
    with b.loop(0, first * others) as i:
        at = block * (LONG * 512) + i * (SHORT * 512)
        b.emit("copy_gm_to_ubuf", (ub, 0), (x, at), bursts=1, length=SHORT * 32, bypass=1)
    return simulate_kernel(b.finish()).cores[0].busy[PIPES.index("mte2")]


def test_a_move_is_slower_only_while_others_run() -> None:
    """What a move loses is what the others take meanwhile, not a share of its whole length."""
    alone, *beside = (one_long_move(others) for others in (0, 1, 4, 16))
    taken = [n * (CORES - 1) * SHORT * 1024 / B1.shared.hbm for n in (1, 4, 16)]
    assert all(a < b for a, b in pairwise([alone, *beside]))
    for cycles, most in zip(beside, taken, strict=True):
        assert cycles - alone <= most * 1.02
    assert beside[0] - alone < 0.1 * alone


def test_hbm_is_neither_idle_nor_exceeded_while_all_ask_for_more() -> None:
    moves = 20
    b = KernelBuilder("k", B1, "vector", CORES, [("f16", CORES * moves * 16384)])
    x, ub, block = b.arguments[0], b.alloc(Space.ub, "f16", 16384), b.block_index()
    with b.loop(0, moves) as i:
        at = (block * moves + i) * 16384
        b.emit("copy_gm_to_ubuf", (ub, 0), (x, at), bursts=1, length=1024, bypass=1)
    result = simulate_kernel(b.finish())
    needed = CORES * moves * 32768 / B1.shared.hbm
    started = CORES * B1.cores.launch_us * B1.clock.mhz
    assert needed < result.cycles < needed + started


def queues_of_l1(moves: int, loads: int) -> SimulationResult:
    """MTE2 writes 64 KB to L1 so many times, and MTE1 reads 32 KB from elsewhere in L1 so many times."""
    b = KernelBuilder("k", B1, "cube", 1, [("f16", 32768)])
    l1, l0 = b.alloc(Space.cbuf, "f16", 131072), b.alloc(Space.cb, "f16", 16384)
    with b.loop(0, moves):
        b.emit(
            "copy_gm_to_cbuf_multi_nd2nz", (l1, 0), (b.arguments[0], 0), n=128, d=256, src_stride=256, dst_stride=128
        )
    with b.loop(0, loads):
        b.emit("load_cbuf_to_cb", (l0, 0), (l1, 65536), repeat=64)
    return simulate_kernel(b.finish())


@pytest.mark.parametrize("moves", [16, 24])
def test_reads_and_writes_of_l1_slow_each_other(moves: int) -> None:
    loads = 64
    together, reads, writes = queues_of_l1(moves, loads), queues_of_l1(0, loads), queues_of_l1(moves, 0)
    slower = [together.busy(pipe) / alone.busy(pipe) for pipe, alone in (("mte1", reads), ("mte2", writes))]
    assert min(slower) > 1.02
    accesses = moves * 65536 / B1.mte1.l1_write + loads * 32768 / B1.mte1.l0b
    assert together.cycles >= accesses / B1.mte1.l1_accesses
    assert together.cycles < reads.cycles + writes.cycles


@pytest.mark.parametrize(("moves", "loads"), [(16, 32), (8, 64)])
def test_the_cost_model_of_tilings_shares_as_the_simulator_does(moves: int, loads: int) -> None:
    written, reads = 65536.0, 32768 / B1.mte1.l0b
    move = OperandMoves(queues_of_l1(moves, 0).busy("mte2") / moves, written)
    load = Loads(reads * loads / moves, B1.mte1.gap * loads / moves)
    loading, moving = side_by_side([load], [move], B1, 1)
    together = queues_of_l1(moves, loads)
    assert together.busy("mte1") == pytest.approx(moves * loading, rel=0.03)
    assert together.busy("mte2") == pytest.approx(moves * moving, rel=0.03)
