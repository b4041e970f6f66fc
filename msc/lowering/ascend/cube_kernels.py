"""The DaVinci kernel of a `gk.kernel` that is a matrix product: the cube's, with the vector unit behind it if need be.

What follows the sums runs on the Fixpipe where that can do it, else on the vector unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msc.dialects import davinci
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.convolution import ConvolutionWriter
from msc.lowering.ascend.fused_matmul import Inputs, write_fused
from msc.lowering.ascend.kernels import CoreUnit, KernelRequest
from msc.lowering.ascend.matmul import MatmulWriter
from msc.lowering.ascend.operands import Epilogue, OutputTile
from msc.lowering.ascend.tile_program import tile_program
from msc.lowering.ascend.tile_writer import TileSource
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.cube.kernels import CubeKernel, cube_kernel
from msc.schedule.cube.products import StridedArray
from msc.schedule.cube.strategy import CubeForm
from msc.schedule.cube.trees import CubeSchedule


def _form(request: KernelRequest) -> CubeForm | None:
    """None for a kernel that is no product, or that the machine's cube does not take."""
    features = request.target.features
    if not request.is_static or len(request.outputs) != 1 or not (features.nd2nz or features.ub_to_l1):
        return None
    kernel = cube_kernel(request.model, request.target)
    if kernel is None:
        return None
    if kernel.form is None and (
        tile_program(kernel.product) is None or kernel.shape.out_dtype not in ("f16", "bf16", "f32")
    ):
        return None
    return CubeForm(kernel, request.target)


def _written(request: KernelRequest, form: CubeForm, tree: Tree) -> davinci.DavinciKernelOp:
    return _Kernel(request, form.kernel, form.schedule(tree)).write()


UNIT = CoreUnit("the cube", _form, _written)


@dataclass(frozen=True)
class _Kernel:
    request: KernelRequest
    kernel: CubeKernel
    schedule: CubeSchedule

    def write(self) -> davinci.DavinciKernelOp:
        form = self.kernel.form
        if form is not None:
            builder = self.request.builder("cube", self.schedule.cores)
            bias = None if form.bias is None else self._bias(builder, form.bias[0])
            scaling = None if form.scaling is None else (form.scaling.scale, form.scaling.offset)
            self._writer(builder, Epilogue(form.relu, bias, scaling)).write()
            return builder.finish()
        program = tile_program(self.kernel.product)
        assert program is not None
        coupled = self.request.target.cores.coupled
        builder = self.request.builder("cube" if coupled else "mix", self.schedule.cores)
        inputs = Inputs(
            [self._source(builder, access) for access, _ in program.tiles],
            [self._source(builder, access) for access, _ in program.rows],
        )
        via = "ub" if coupled else "gm"
        return write_fused(
            builder, self.kernel.shape, self.schedule, program, inputs, via, partial(self._writer, builder)
        )

    def _writer(self, builder: KernelBuilder, epilogue: Epilogue) -> MatmulWriter:
        kernel, schedule = self.kernel, self.schedule
        out, windows = self._place(builder, kernel.product.out), kernel.windows
        if windows is not None:
            operands = ((self._argument(builder, kernel.a), 0), (self._argument(builder, kernel.b), 0), out)
            return ConvolutionWriter(builder, kernel.shape, schedule, windows, epilogue, operands)
        operands = (self._place(builder, kernel.product.a), self._place(builder, kernel.product.b), out)
        return MatmulWriter(builder, kernel.shape, schedule, epilogue, operands)

    def _argument(self, builder: KernelBuilder, array: int) -> Buffer:
        return builder.arguments[(*self.request.inputs, *self.request.outputs).index(array)]

    def _place(self, builder: KernelBuilder, access: StridedArray) -> tuple[Buffer, int]:
        return self._argument(builder, access.array), access.first

    def _bias(self, builder: KernelBuilder, access: StridedArray) -> Callable[[OutputTile], tuple[Buffer, Expr]]:
        source = self._source(builder, access)
        return lambda tile: (source(tile).argument, source(tile).first)

    def _source(self, builder: KernelBuilder, access: StridedArray) -> Callable[[OutputTile], TileSource]:
        """Where an array begins for a tile of the batch."""
        argument = self._argument(builder, access.array)
        steps = [access.strides.get(axis, 0) for axis in self.kernel.product.batch]

        def source(tile: OutputTile) -> TileSource:
            first = expression(access.first)
            for place, step in zip(tile.batch, steps, strict=False):
                first = expression(place) * step + first
            return TileSource(argument, access.strides.get(self.kernel.product.m, 0), first)

        return source
