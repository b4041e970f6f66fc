"""Lists of cases for the simulator: TOML in, each case a kernel with a forced schedule and, perhaps, measured times."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, prod
from pathlib import Path
from typing import Any, cast

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.copies import CopySchedule, copy_kernel
from msc.lowering.ascend.fused_matmul import fused_matmul_kernel
from msc.lowering.ascend.matmul import matmul_kernel
from msc.lowering.ascend.vector import FORMULAS, vector_kernel, vector_schedule
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.tiles import buffers_of, cheapest, check_base, depths, halves_of, in_turn, tiles_of, whole_base
from msc.schedule.cube.trees import CubeSchedule
from msc.sim.machine import L2_STARTS, L2State
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean, raise_any
from msc.support.files import read_source
from msc.targets.davinci import DEFAULT_TARGET, DavinciTarget, davinci_target
from msc.targets.davinci_isa import DTYPES

_MATMUL_OPS = ("matmul", "matmul_relu", "matmul_gelu")
OPS = (*_MATMUL_OPS, "copy", *sorted(FORMULAS))
"""What a case may ask for."""

_COMMON = {
    "name": str, "target": str, "op": str, "schedule": dict, "published": dict, "dtype": str, "source": str,
    "l2": str, "l2_mb": int, "fitted": list,
}  # fmt: skip
_MATMUL_KEYS = {
    "m": int, "n": int, "k": int, "out_dtype": str, "transpose_a": bool, "transpose_b": bool, "layout": str, "via": str,
}  # fmt: skip
_MATMUL_SCHEDULE: Mapping[str, type | tuple[type, int]] = {
    "cores": int, "grid": (int, 2), "single": (int, 2), "base": (int, 3), "depth_a1": int, "depth_b1": int,
    "big_packets": bool, "l2_split": (int, 2), "constant_tiling": bool, "unit_flag": bool, "double_buffer": bool,
    "scalar_cycles": float, "via": str,
}  # fmt: skip
_VECTOR_SCHEDULE: Mapping[str, type | tuple[type, int]] = {
    "cores": int, "elements": int, "double_buffer": bool, "l2_bypass": bool, "bank_free": bool, "unit": str,
}  # fmt: skip
_COPY_SCHEDULE: Mapping[str, type | tuple[type, int]] = {
    "cores": int, "tile": (int, 2), "repeat": int, "same_address": bool, "l2_bypass": bool, "path": str,
}  # fmt: skip
_COPY_KEYS = {"shape": list, "path": str, "tile": list, "cores": int, "repeat": int, "same_address": bool}


@dataclass(frozen=True)
class Case:
    """One case as the file has it."""

    name: str
    target: str
    op: str
    keys: Mapping[str, object]
    schedule: Mapping[str, object]
    published: Mapping[str, float]
    l2: L2State | None = None
    fitted: frozenset[str] = frozenset()
    """The published figures that figures of the machine were fitted on."""

    @property
    def computes(self) -> bool:
        """Whether its kernel computes: copies move what nothing has written, the scalar unit is timed alone."""
        return self.op != "copy" and self.schedule.get("unit") != "scalar"


def read_cases(path: Path, target: str | None = None) -> list[Case]:
    """The cases of a file; those that name no target are for `target`. Raises MSC1022 for what is no case."""
    try:
        table = tomllib.loads(read_source(path))
    except (ValueError, RecursionError) as error:
        raise _wrong(str(path), f"is no TOML: {error}") from error
    listed = table.get("cases")
    if not isinstance(listed, list) or not listed:
        raise _wrong(str(path), "holds no [[cases]]")
    made: list[Case] = []
    wrong: list[Diagnostic] = []
    for position, entry in enumerate(cast("list[object]", listed)):
        if not isinstance(entry, dict):
            raise _wrong(str(path), f"case {position + 1} is no table")
        try:
            made.append(_case(cast("dict[str, object]", entry), position, target))
        except MscError as error:
            wrong.extend(error.diagnostics)
    raise_any(wrong)
    return made


def _case(entry: dict[str, object], position: int, target: str | None) -> Case:
    name = str(entry.get("name", f"case {position + 1}"))
    op = entry.get("op")
    if op not in OPS:
        raise _wrong(name, f"op is {op!r}", did_you_mean(str(op), OPS) or f"there are {', '.join(OPS)}")
    assert isinstance(op, str)
    matmul, copy = op in _MATMUL_OPS, op == "copy"
    keys = _MATMUL_KEYS if matmul else _COPY_KEYS if copy else {"shape": list}
    _check(name, entry, {**_COMMON, **keys})
    schedule = cast("dict[str, object]", entry.get("schedule", {}))
    if copy:
        schedule = {**{key: entry[key] for key in _COPY_SCHEDULE if key in entry}, **schedule}
    _check(name, schedule, _MATMUL_SCHEDULE if matmul else _COPY_SCHEDULE if copy else _VECTOR_SCHEDULE)
    if entry.get("dtype", "f16") not in DTYPES:
        raise _wrong(name, f"dtype is {entry['dtype']!r}", f"there are {', '.join(DTYPES)}")
    published = cast("dict[str, object]", entry.get("published", {}))
    _check(name, published, dict.fromkeys(published, float))
    named = str(entry.get("target", target or DEFAULT_TARGET))
    davinci_target(named)
    numbers = {key: float(cast("float", v)) for key, v in published.items()}
    return Case(name, named, op, entry, schedule, numbers, _l2(name, entry), _fitted(name, entry, numbers))


def _l2(name: str, entry: Mapping[str, object]) -> L2State | None:
    start = entry.get("l2", "warm")
    if start not in L2_STARTS:
        raise _wrong(name, f"l2 is {start!r}", f"there are {', '.join(L2_STARTS)}")
    size = cast("int | None", entry.get("l2_mb"))
    return L2State.of(str(start), size) if entry.keys() & {"l2", "l2_mb"} else None


def _fitted(name: str, entry: Mapping[str, object], published: Mapping[str, float]) -> frozenset[str]:
    fitted = [str(key) for key in cast("list[object]", entry.get("fitted", []))]
    for key in fitted:
        if key not in published:
            raise _wrong(name, f"{key} is fitted on, and not published")
    return frozenset(fitted)


def _check(name: str, given: Mapping[str, object], known: Mapping[str, type | tuple[type, int]]) -> None:
    for key, value in given.items():
        if key not in known:
            raise _wrong(name, f"there is no key '{key}'", did_you_mean(key, known) or f"there are {', '.join(known)}")
        kind = known[key]
        if not _fits(value, kind):
            raise _wrong(name, f"{key} is {value!r}")


def _fits(value: object, kind: type | tuple[type, int]) -> bool:
    if isinstance(kind, tuple):
        element, count = kind
        items = cast("list[object]", value) if isinstance(value, list) else []
        return len(items) == count and all(_fits(item, element) for item in items)
    if kind is list:
        items = cast("list[object]", value) if isinstance(value, list) else []
        return bool(items) and all(isinstance(item, str) or _fits(item, int) for item in items)
    if kind in (int, float):
        number = isinstance(value, int | kind) and not isinstance(value, bool)
        return number and (kind is float or cast("int", value) >= 1) and cast("float", value) >= 0
    return isinstance(value, kind)


def case_kernel(case: Case) -> DavinciKernelOp:
    """The kernel of a case; what its schedule leaves out is chosen. Raises MSC1021, MSC1022."""
    if case.op in _MATMUL_OPS:
        return _matmul(case)
    if case.op == "copy":
        return _copy(case)
    target = davinci_target(case.target)
    total, dtype = prod(_integers(case, case.keys, "shape")), str(case.keys.get("dtype", "f16"))
    if dtype not in ("f16", "f32"):
        raise _wrong(case.name, f"the vector unit computes in f16 and f32, not in {dtype}")
    return vector_kernel(case.op, total, dtype, vector_schedule(case.op, total, dtype, target, case.schedule), target)


def _matmul(case: Case) -> DavinciKernelOp:
    keys, target = case.keys, davinci_target(case.target)
    m, n, k = (_integer(case, keys, key) for key in "mnk")
    dtype = str(keys.get("dtype", "f16"))
    out = str(keys.get("out_dtype", "i32" if DTYPES[dtype] == 1 else dtype))
    layout = keys.get("layout", "ND")
    if layout not in ("ND", "NZ"):
        raise _wrong(case.name, f"layout is {layout!r}", "A and B lie in rows, ND, or in fractals, NZ")
    turned_a, turned_b = (bool(keys.get(key, False)) for key in ("transpose_a", "transpose_b"))
    shape = MatmulShape(m, n, k, dtype, out, turned_a, turned_b, fractal=layout == "NZ")
    wishes: dict[str, Any] = {key: _frozen(value) for key, value in case.schedule.items() if key != "via"}
    schedule = library_schedule(shape, target, **wishes)
    if not target.features.fixpipe_to_gm:
        if dtype != "f16" or layout == "NZ":
            raise _wrong(case.name, f"{target.name} multiplies f16 in rows here", "dtype is f16 and layout ND")
        return fused_matmul_kernel(shape, schedule, target, case.op.removeprefix("matmul").removeprefix("_"), "ub")
    via = str(case.schedule.get("via", keys.get("via", "fixpipe" if case.op == "matmul_relu" else "gm"))).lower()
    if case.op == "matmul" or via == "fixpipe":
        if case.op == "matmul_gelu":
            raise _wrong(case.name, "the Fixpipe computes a ReLU, no GELU", "via is gm or ub")
        return matmul_kernel(shape, schedule, target, relu=case.op == "matmul_relu")
    return fused_matmul_kernel(shape, schedule, target, case.op.removeprefix("matmul_"), via)


def _frozen(value: object) -> object:
    return tuple(cast("list[int]", value)) if isinstance(value, list) else value


def _copy(case: Case) -> DavinciKernelOp:
    target = davinci_target(case.target)
    *outer, width = _integers(case, case.keys, "shape")
    height = prod(outer)
    schedule = case.schedule
    tile = _integers(case, schedule, "tile") if "tile" in schedule else [1, width]
    path = str(schedule.get("path", "gm->ub"))
    cores = _integer(case, schedule, "cores", target.cores.vector if "ub" in path else target.cores.cube)
    share = max(1, height // tile[0] * (width // tile[1]) // cores)
    chosen = CopySchedule(
        path, height, width, tile[0], tile[1], cores, _integer(case, schedule, "repeat", share),
        bool(schedule.get("same_address", False)), bool(schedule.get("l2_bypass", False)),
    )  # fmt: skip
    return copy_kernel(chosen, str(case.keys.get("dtype", "f16")), target)


def _integer(case: Case, keys: Mapping[str, object], key: str, otherwise: int | None = None) -> int:
    value = keys.get(key, otherwise)
    if not isinstance(value, int):
        raise _wrong(case.name, f"{key} is missing")
    return value


def _integers(case: Case, keys: Mapping[str, object], key: str) -> list[int]:
    value = keys.get(key)
    if not isinstance(value, list):
        raise _wrong(case.name, f"{key} is missing")
    if not all(isinstance(item, int) for item in cast("list[object]", value)):
        raise _wrong(case.name, f"{key} is {value!r}")
    return cast("list[int]", value)


def _wrong(name: str, what: str, advice: str | None = None) -> MscError:
    return MscError(Diagnostic("MSC1022", f"'{name}': {what}", help=advice))


# The schedules of published matrix products: programs of the vendor's library, by its tiling parameters.
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
