"""A matrix product with an element-wise operation behind it: cube cores hand tiles to the vector cores of their block.

Tiles go through global memory, or from L0C straight to UB where the machine has that path. A tile is handed over by a
flag between cores, and the next one when the vector cores have taken it.
"""

from __future__ import annotations

from xdsl.ir.affine import AffineExpr

from msc.dialects.davinci import KernelOp
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.matmul import MatmulWriter, Tile
from msc.lowering.ascend.matmul_tiling import MatmulSchedule, MatmulShape
from msc.lowering.ascend.vector import FORMULAS, compute
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, Pipe, Space

_FULL, _TAKEN = 0, 1
"""The flags between the cores of a block: a tile is there, and a tile was taken."""
_ELEMENTS = 8192
"""Elements that a vector core takes at a time, at most."""


def fused_matmul_kernel(
    shape: MatmulShape, schedule: MatmulSchedule, target: DavinciTarget, operation: str, via: str = "gm"
) -> KernelOp:
    """The kernel of `operation`(A B). Raises MSC1021 for a path that the machine has not."""
    if target.cores.coupled or via not in ("gm", "ub") or (via == "ub" and not target.features.fixpipe_to_ub):
        message = f"{target.name} has no path '{via}' from the cube to its vector cores"
        raise MscError(Diagnostic("MSC1021", message, help="via is gm, or ub where the Fixpipe writes to UB"))
    sizes = [(shape.dtype, shape.m * shape.k), (shape.dtype, shape.k * shape.n), (shape.out_dtype, shape.m * shape.n)]
    builder = KernelBuilder(f"matmul_{operation}", target, "mix", schedule.cores, sizes)
    builder.name_arguments("a", "b", "c")
    landing = (
        builder.alloc(Space.ub, shape.out_dtype, schedule.base[0] * schedule.base[1], "landing")
        if via == "ub"
        else None
    )
    cube = MatmulWriter(builder, shape, schedule, finished=lambda tile: _hand_over(builder), landing=landing)
    vector = _VectorPart(builder, shape, schedule, operation, landing)
    with builder.section("cube"):
        cube.write()
        builder.wait_for_cores(2, _TAKEN)
    with builder.section("vector"):
        vector.write(cube)
    return builder.finish()


def _hand_over(builder: KernelBuilder) -> None:
    builder.wait_for_cores(2, _TAKEN)
    builder.tell_cores(Pipe.FIX, 2, _FULL)


class _VectorPart:
    def __init__(
        self,
        builder: KernelBuilder,
        shape: MatmulShape,
        schedule: MatmulSchedule,
        operation: str,
        landing: Buffer | None,
    ) -> None:
        self.b, self.shape, self.schedule, self.operation, self.landing = builder, shape, schedule, operation, landing
        self.whole = shape.n % schedule.base[1] == 0 and schedule.single[1] % schedule.base[1] == 0
        self.chunk = max(1, min(schedule.base[0] // 2, _ELEMENTS // schedule.base[1])) if self.whole else 1
        elements = self.chunk * schedule.base[1]
        self.held = {name: builder.alloc(Space.ub, shape.out_dtype, 2 * elements, name) for name in "xz"}
        if any(step.to == "t" for step in FORMULAS[operation]):
            self.held["t"] = builder.alloc(Space.ub, shape.out_dtype, elements, "t")
        self.elements = elements

    def write(self, cube: MatmulWriter) -> None:
        """What a vector core does: its half of the rows of each tile."""
        b = self.b
        backward = [(s, t, k) for s, t in ((Pipe.V, Pipe.MTE2), (Pipe.MTE3, Pipe.V)) for k in range(2)]
        for source, target, event in backward:
            b.set_flag(source, target, event)
        sub = b.sub_block()
        b.tell_cores(Pipe.S, 2, _TAKEN)
        cube.visit_tiles(lambda tile: self._tile(tile, sub))
        for source, target, event in backward:
            b.wait_flag(source, target, event)

    def _tile(self, tile: Tile, sub: AffineExpr) -> None:
        b, half = self.b, self.schedule.base[0] // 2
        b.wait_for_cores(2, _FULL)
        stop = b.minimum(sub * half + half, tile.rows, name="stop")
        with b.loop(sub * half, stop, self.chunk, "row") as row:
            rows: Expr = self.chunk
            if not (isinstance(tile.rows, int) and half % self.chunk == 0):
                rows = b.minimum(expression(stop) - row, self.chunk, name="rows")
            self._chunk(tile, row, rows)
        b.tell_cores(Pipe.MTE3, 2, _TAKEN)

    def _chunk(self, tile: Tile, row: AffineExpr, rows: Expr) -> None:
        b, size, n = self.b, DTYPES[self.shape.out_dtype], self.shape.n
        turn = row // self.chunk % 2
        place, line = turn * self.elements, expression(tile.columns) * size
        at = (expression(tile.m) + row) * n + tile.n
        gap = line * -1 + n * size
        c, x, z = b.arguments[2], self.held["x"], self.held["z"]
        b.wait_flag(Pipe.V, Pipe.MTE2, turn)
        if self.landing is None:
            b.emit("copy_gm_to_ubuf_align", (x, place), (c, at), bursts=rows, length=line, src_gap=gap)
        b.set_flag(Pipe.MTE2, Pipe.V, turn)
        b.wait_flag(Pipe.MTE2, Pipe.V, turn)
        b.wait_flag(Pipe.MTE3, Pipe.V, turn)
        count = rows * tile.columns if isinstance(tile.columns, int) else tile.columns
        held, places = dict(self.held), {"x": place, "z": place}
        if self.landing is not None:
            held["x"], places["x"] = self.landing, row * self.schedule.base[1]
        compute(b, FORMULAS[self.operation], held, places, count, self.shape.out_dtype)
        b.set_flag(Pipe.V, Pipe.MTE2, turn)
        b.set_flag(Pipe.V, Pipe.MTE3, turn)
        b.wait_flag(Pipe.V, Pipe.MTE3, turn)
        b.emit("copy_ubuf_to_gm_align", (c, at), (z, place), bursts=rows, length=line, dst_gap=gap)
        b.set_flag(Pipe.MTE3, Pipe.V, turn)
