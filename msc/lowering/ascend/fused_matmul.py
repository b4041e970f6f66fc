"""A matrix product with element-wise work behind it: cube cores hand tiles to the vector cores of their block.

Tiles go through global memory, where they lie in the output until it is written, or from L0C straight to UB where the
machine has that path. A flag between cores says that a tile is there; the vector cores set another when they have
read it, and the next tile waits for that. Cores that have both units do one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.ir.affine import AffineExpr

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.lowering.ascend.matmul import MatmulWriter
from msc.lowering.ascend.operands import Epilogue, OutputTile
from msc.lowering.ascend.tile_program import TileProgram, formula_program
from msc.lowering.ascend.tile_writer import Spot, TileSource, TileWriter
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.trees import CubeSchedule
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import Pipe, Space

_FULL, _TAKEN = 0, 1
"""The flags between the cores of a block: a tile is there, and a tile was taken."""


@dataclass(frozen=True)
class Inputs:
    """What the vector unit reads beside the sums, by the tile of the output."""

    tiles: Sequence[Callable[[OutputTile], TileSource]]
    rows: Sequence[Callable[[OutputTile], TileSource]]


def check_path(builder: KernelBuilder, via: str) -> None:
    """Raise MSC1021 for a path from the cube to the vector unit that a machine has not."""
    target = builder.target
    if via not in ("gm", "ub") or (via == "ub" and not target.features.fixpipe_to_ub):
        message = f"{target.name} has no path '{via}' from the cube to its vector cores"
        raise MscError(Diagnostic("MSC1021", message, help="via is gm, or ub where the Fixpipe writes to UB"))


def fused_matmul_kernel(
    shape: MatmulShape, schedule: CubeSchedule, target: DavinciTarget, operation: str, via: str = "gm"
) -> DavinciKernelOp:
    """The kernel of `operation`(A B). Raises MSC1021 for a path that the machine has not."""
    sizes = list(zip((shape.dtype, shape.dtype, shape.out_dtype), shape.elements, strict=True))
    kind = "cube" if target.cores.coupled else "mix"
    builder = KernelBuilder(f"matmul_{operation}" if operation else "matmul", target, kind, schedule.cores, sizes)
    builder.name_arguments("a", "b", "c")
    return write_fused(builder, shape, schedule, formula_program(operation), Inputs((), ()), via)


def write_fused(
    builder: KernelBuilder,
    shape: MatmulShape,
    schedule: CubeSchedule,
    program: TileProgram,
    inputs: Inputs,
    via: str = "gm",
    writer: Callable[[Epilogue], MatmulWriter] | None = None,
) -> DavinciKernelOp:
    """The kernel of a program on A B, which `writer` writes; the last argument is its output.

    Raises MSC1021 for a path that there is not.
    """
    check_path(builder, via)
    coupled = builder.target.cores.coupled
    landing = None
    if via == "ub":
        rows = schedule.base[0] if coupled else schedule.base[0] // 2
        landing = builder.alloc(Space.ub, shape.out_dtype, rows * schedule.base[1], "landing")
    halves = 1 if coupled else 2
    types = (shape.out_dtype, builder.arguments[-1].dtype)

    def finished(tile: OutputTile) -> None:
        if coupled:
            part.tile_here(tile)
        else:
            if landing is None:
                builder.wait_for_cores(_TAKEN)
            builder.tell_cores(Pipe.FIX, _FULL)

    cube = (writer or partial(MatmulWriter, builder, shape, schedule))(Epilogue(finished=finished, landing=landing))
    vector = TileWriter(builder, program, types, schedule.base[1], schedule.base[0] // halves, landing is not None)
    vector.landing = landing
    part = _VectorPart(builder, shape, schedule, vector, inputs)
    if coupled:
        part.begin_here()
        cube.write()
        part.end_here()
        return builder.finish()
    cube.before_landing = lambda: builder.wait_for_cores(_TAKEN)
    with builder.section("cube"):
        cube.write()
        builder.wait_for_cores(_TAKEN)
    with builder.section("vector"):
        part.write(cube)
    return builder.finish()


class _VectorPart:
    def __init__(
        self, builder: KernelBuilder, shape: MatmulShape, schedule: CubeSchedule, writer: TileWriter, inputs: Inputs
    ) -> None:
        self.b, self.shape, self.schedule, self.writer, self.inputs = builder, shape, schedule, writer, inputs

    def write(self, cube: MatmulWriter) -> None:
        """What a vector core does: its half of the rows of each tile."""
        b = self.b
        self.writer.begin()
        sub = b.sub_block()
        b.tell_cores(Pipe.S if self.writer.landing is None else Pipe.V, _TAKEN)
        cube.visit_tiles(lambda tile: self._tile(tile, sub))
        self.writer.end()

    def _tile(self, tile: OutputTile, sub: AffineExpr) -> None:
        b = self.b
        half: Expr = self.schedule.base[0] // 2
        b.wait_for_cores(_FULL)
        first: Expr = sub * half
        if self.writer.landing is not None:  # the Fixpipe halves the rows that a tile has
            half = (expression(tile.rows) + 1) // 2
            first = expression(b.minimum(sub * self.schedule.base[0], half, name="first"))
        stop = b.minimum(first + half, tile.rows, name="stop")
        self._rows(tile, first, stop)
        b.tell_cores(Pipe.MTE3, _TAKEN)

    def _rows(self, tile: OutputTile, first: Expr, stop: Expr) -> None:
        spot = Spot(tile.m, tile.n, tile.rows, tile.columns)
        self.writer.write(spot, first, stop, _Reading(self, tile), self.out(tile))

    def out(self, tile: OutputTile) -> TileSource:
        """The output, where sums land too."""
        return TileSource(self.b.arguments[-1], self.shape.rows[2], tile.at_c)

    def begin_here(self) -> None:
        """Before the tiles of a core with both units."""
        self.writer.begin()
        self.b.set_flag(Pipe.V, Pipe.FIX, 0)

    def tile_here(self, tile: OutputTile) -> None:
        """A tile that the Fixpipe has written to UB on a core with both units."""
        b = self.b
        b.set_flag(Pipe.FIX, Pipe.V, 2)
        b.wait_flag(Pipe.FIX, Pipe.V, 2)
        self._rows(tile, 0, tile.rows)
        b.set_flag(Pipe.V, Pipe.FIX, 0)

    def end_here(self) -> None:
        """Behind them."""
        self.writer.end()
        self.b.wait_flag(Pipe.V, Pipe.FIX, 0)


@dataclass(frozen=True)
class _Reading:
    part: _VectorPart
    at: OutputTile

    def tile(self, number: int) -> TileSource:
        return self.part.out(self.at) if number < 0 else self.part.inputs.tiles[number](self.at)

    def row(self, number: int) -> TileSource:
        return self.part.inputs.rows[number](self.at)
