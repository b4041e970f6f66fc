"""The schedules of published matrix products: programs of the vendor's library, by its tiling parameters."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.tiles import buffers_of, cheapest, check_base, depths, halves_of, in_turn, tiles_of, whole_base
from msc.schedule.cube.trees import CubeSchedule
from msc.targets.davinci import DavinciTarget


def library_schedule(
    shape: MatmulShape,
    target: DavinciTarget,
    *,
    cores: int | None = None,
    grid: tuple[int, int] | None = None,
    single: tuple[int, int] | None = None,
    base: tuple[int, int, int] | None = None,
    depth_a1: int | None = None,
    depth_b1: int | None = None,
    big_packets: bool | None = None,
    l2_split: tuple[int, int] | None = None,
    constant_tiling: bool = False,
    unit_flag: bool | None = None,
    double_buffer: bool = True,
    scalar_cycles: float | None = None,
    turns: bool | None = None,
) -> CubeSchedule:
    """The schedule of a program as far as it is published; the rest by rule (docs/ascend.md has the keys).

    Rule: where no base tile is published, that of msc, whose cores take tiles in turn; else the split over all cores
    whose busiest core has least to compute and, of equal ones, least to load. A schedule that asks for no big packets
    has one base tile in L1, as the plain template of the library. Unit flags are on there and off with big packets.
    Raises MSC1021 for what does not fit.
    """
    packets = big_packets if big_packets is not None else depth_a1 is None
    own = base is None and single is None
    tile = base or (cheapest(shape, target) if own and packets and grid is None else whole_base(shape, target))
    check_base(shape, target, tile)
    held = depths(shape, target, tile, (depth_a1, depth_b1), packets)
    in_turns = (own and grid is None and l2_split is None) if turns is None else turns
    if in_turns:
        made = in_turn(shape, target, tile, held, least=2 if turns else 1, cores=cores)
    else:
        made = _in_parts(shape, target, tile, grid, single, cores)
    unit = (not packets or own) if unit_flag is None else unit_flag
    each = (max(1, held[0] // 2), max(1, held[1] // 2)) if packets else (1, 1)
    made = replace(
        made,
        packets=each,
        buffers=buffers_of(held, each),
        halves=halves_of(shape, target, tile) if double_buffer else 1,
        unit_flag=unit,
        sums=2 if not unit and 8 * tile[0] * tile[1] <= target.buffers.l0c else 1,
        rotated=(own or in_turns) and made.cores > 1,
        l2_split=l2_split or (1, 1),
    )
    step = _step_cycles(made, target, constant_tiling) if scalar_cycles is None else scalar_cycles
    return replace(made, scalar_cycles=step)


def _step_cycles(schedule: CubeSchedule, target: DavinciTarget, constant_tiling: bool) -> float:
    """What the library's API costs the scalar unit in a base step, by the moves to L1 that a step has."""
    moves = 1 / schedule.packets[0] + 1 / schedule.packets[1]
    cost = target.scalar.high_level_step - target.scalar.high_level_load * (2 - moves)
    return cost * (target.scalar.constant_tiling if constant_tiling else 1.0)


def _in_parts(
    shape: MatmulShape,
    target: DavinciTarget,
    base: tuple[int, int, int],
    grid: tuple[int, int] | None,
    single: tuple[int, int] | None,
    cores: int | None,
) -> CubeSchedule:
    """Each core has one part of C."""
    cores = cores or (grid[0] * grid[1] if grid else target.cores.cube)
    rows, columns = grid or _grid(shape, base, cores)
    parts = zip((shape.m, shape.n), (rows, columns), base, strict=False)
    m, n = single or tuple(ceil(ceil(size / part) / tile) * tile for size, part, tile in parts)
    batches = max(1, min(shape.count, cores // (rows * columns))) if shape.batch else 1
    return CubeSchedule(base, (1, 1), (1, 1), (rows, columns), (m, n), batches * rows * columns, batches=batches)


def _grid(shape: MatmulShape, base: tuple[int, int, int], cores: int) -> tuple[int, int]:
    tiles_m, tiles_n = tiles_of(shape, base)

    def cost(rows: int) -> tuple[int, int]:
        per_m, per_n = ceil(tiles_m / rows), ceil(tiles_n / (cores // rows))
        return per_m * per_n, per_m * base[0] + per_n * base[1]

    used = min(cores, tiles_m * tiles_n)
    rows = min((r for r in range(1, used + 1)), key=lambda r: (cost(r), r))
    return rows, max(1, min(cores // rows, tiles_n))
