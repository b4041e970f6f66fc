"""Programs that only move: each core moves a tile along one path, again and again. For measuring paths."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Expr, KernelBuilder, up
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, Space

PATHS = ("gm->ub", "ub->gm", "gm->l1", "gm->l1 nd2nz", "l1->l0a", "l1->l0b", "l0c->gm", "ub->ub")
"""The paths that a copy may take."""


@dataclass(frozen=True)
class CopySchedule:
    """`repeat` tiles of `rows` x `columns` elements a core, of a matrix of `height` x `width`.

    Cores take tiles after each other, or all the same one (`same_address`).
    """

    path: str
    height: int
    width: int
    rows: int
    columns: int
    cores: int
    repeat: int
    same_address: bool = False
    l2_bypass: bool = False


def copy_kernel(schedule: CopySchedule, dtype: str, target: DavinciTarget) -> DavinciKernelOp:
    """The kernel of a copy. Raises MSC1021 for an unknown path or a tile that does not fit."""
    if schedule.path not in PATHS:
        message = f"there is no path '{schedule.path}' for a copy"
        raise MscError(
            Diagnostic("MSC1021", message, help=did_you_mean(schedule.path, PATHS) or f"there are {', '.join(PATHS)}")
        )
    if schedule.rows > schedule.height or schedule.columns > schedule.width:
        message = f"tile = [{schedule.rows}, {schedule.columns}] is larger than the shape"
        raise MscError(Diagnostic("MSC1021", message))
    kind = "vector" if "ub" in schedule.path else "cube"
    elements = schedule.height * schedule.width
    builder = KernelBuilder("copy", target, kind, schedule.cores, [(dtype, elements)])
    builder.name_arguments("x")
    across, down = schedule.width // schedule.columns, schedule.height // schedule.rows
    block = builder.block_index()
    with builder.loop(0, schedule.repeat, 1, "i") as i:
        tile: Expr = 0 if schedule.same_address else (block * schedule.repeat + i) % (across * down)
        at: Expr = 0
        if isinstance(tile, AffineExpr):
            at = tile // across * (schedule.rows * schedule.width) + tile % across * schedule.columns
        _move(builder, schedule, dtype, at)
    return builder.finish()


def _move(b: KernelBuilder, s: CopySchedule, dtype: str, at: Expr) -> None:
    size = DTYPES[dtype]
    line = s.columns * size
    gap = (s.width - s.columns) * size
    padded = up(line, 32)
    assert isinstance(padded, int)
    elements = s.rows * padded // size
    x = b.arguments[0]
    match s.path:
        case "gm->ub":
            ub = b.alloc(Space.ub, dtype, elements)
            b.emit(
                "copy_gm_to_ubuf_align", (ub, 0), (x, at), bursts=s.rows, length=line, src_gap=gap,
                bypass=int(s.l2_bypass),
            )  # fmt: skip
        case "ub->gm":
            ub = b.alloc(Space.ub, dtype, elements)
            b.emit("copy_ubuf_to_gm_align", (x, at), (ub, 0), bursts=s.rows, length=line, dst_gap=gap)
        case "gm->l1":
            l1 = b.alloc(Space.cbuf, dtype, elements)
            b.emit("copy_gm_to_cbuf", (l1, 0), (x, at), bursts=s.rows, length=padded // 32, src_gap=gap // 32)
        case "gm->l1 nd2nz":
            rows = up(s.rows, 16)
            assert isinstance(rows, int)
            l1 = b.alloc(Space.cbuf, dtype, rows * padded // size)
            b.emit(
                "copy_gm_to_cbuf_multi_nd2nz", (l1, 0), (x, at), n=s.rows, d=s.columns, src_stride=s.width,
                dst_stride=rows,
            )  # fmt: skip
        case "l1->l0a" | "l1->l0b":
            l1, name = b.alloc(Space.cbuf, dtype, elements), "ca" if s.path.endswith("a") else "cb"
            l0 = b.alloc(Space[name], dtype, elements)
            b.emit(f"load_cbuf_to_{name}", (l0, 0), (l1, 0), repeat=max(1, s.rows * padded // 512))
        case "ub->ub":
            one, two = b.alloc(Space.ub, dtype, elements), b.alloc(Space.ub, dtype, elements)
            b.emit("copy_ubuf_to_ubuf", (two, 0), (one, 0), bursts=s.rows, length=padded // 32)
        case _:
            rows = up(s.rows, 16)
            assert isinstance(rows, int)
            cc = b.alloc(Space.cc, "f32", rows * -(-s.columns // 16) * 16)
            b.emit("copy_matrix_cc_to_gm", (x, at), (cc, 0), n=s.columns, m=s.rows, dst_stride=s.width, src_stride=rows)
