"""The DaVinci kernel of a `gk.kernel` that is a matrix product: the cube's, with the vector unit behind it if need be.

What follows the sums runs on the Fixpipe where that can do it, else on the vector unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from msc.dialects import davinci
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.convolution import ConvolutionWriter, convolution_shape
from msc.lowering.ascend.convolution_tiling import ConvolutionTiling, convolution_tilings
from msc.lowering.ascend.convolutions import CubeConvolution, convolution
from msc.lowering.ascend.cube_trees import schedule_in, tree_of
from msc.lowering.ascend.fixpipe_form import FixpipeForm, fixpipe_form
from msc.lowering.ascend.fused_matmul import Inputs, write_fused
from msc.lowering.ascend.grouped_channels import have_same_loops, with_group_loops
from msc.lowering.ascend.kernels import KernelRequest
from msc.lowering.ascend.matmul import MatmulWriter
from msc.lowering.ascend.matmul_tiling import MatmulSchedule, MatmulShape, MatmulWishes, matmul_schedule
from msc.lowering.ascend.operands import Epilogue, OutputTile
from msc.lowering.ascend.products import CubeProduct, StridedArray, cube_product, matmul_shape, outline
from msc.lowering.ascend.tile_program import TileProgram, tile_program
from msc.lowering.ascend.tile_writer import TileSource
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.text import to_lines
from msc.support.diagnostics import MscError


def write(request: KernelRequest) -> davinci.DavinciKernelOp | None:
    """The kernel of a product; None for a kernel that is none, or that the machine's cube does not take."""
    features = request.target.features
    if not request.is_static or len(request.outputs) != 1 or not (features.nd2nz or features.ub_to_l1):
        return None
    try:
        return _write(request)
    except MscError as problem:
        if any(each.code != "MSC1021" for each in problem.diagnostics):
            raise
        if request.schedule is not None:
            raise request.refused("the cube", problem.diagnostics[0].message) from problem
        return None


def _write(request: KernelRequest) -> davinci.DavinciKernelOp | None:
    target, out_dtype = request.target, request.model.arrays[request.outputs[0]].dtype
    model = with_group_loops(request.model)
    product = cube_product(model, target)
    plain = None if product is None else matmul_shape(product, out_dtype)
    windows = convolution(model, target) if plain is None else None
    product = product if windows is None else windows.product
    if product is None or (plain is None and windows is None):
        return None
    form = fixpipe_form(product, target.buffers.bt) if target.features.fixpipe_to_gm else None
    program = None if form is not None else tile_program(product)
    if form is None and (program is None or out_dtype not in ("f16", "bf16", "f32")):
        return None
    bias = form is not None and form.bias is not None
    if windows is not None:
        if request.schedule is not None:
            raise request.refused("the cube", "msc chooses the tiles of a convolution")
        tiling = convolution_tilings(windows, target, out_dtype, bias=bias)[0]
        shape = convolution_shape(windows, out_dtype, bias=bias)
        return _Kernel(request, product, shape, tiling.schedule, (windows, tiling)).write(form, program)
    assert plain is not None
    shape = replace(plain, bias=bias)
    schedule = _schedule(request, model, product, shape)
    return _Kernel(request, product, shape, schedule).write(form, program)


def _schedule(request: KernelRequest, model: KernelModel, product: CubeProduct, shape: MatmulShape) -> MatmulSchedule:
    """The schedule that the kernel carries, or by rule, noted on it. Raises MSC0408 for one it cannot follow."""
    outlined, target = outline(model, request.target), request.target
    assert outlined is not None
    if not have_same_loops(model, request.model):
        if request.schedule is not None:
            raise request.refused("the cube", "msc chooses the tiles of a product of groups")
        return matmul_schedule(shape, target, MatmulWishes(scalar_cycles=0.0))
    if request.schedule is not None:
        made = schedule_in(request.schedule.data, shape, product, target)
        meant = tree_of(model, outlined, product, made)
        if meant is None or meant.body != request.schedule.data.body:
            notes = () if meant is None else tuple(to_lines(meant))
            raise request.refused("the cube", "its loops are no tiles of a product in L1 and L0", notes)
        request.note(request.schedule)
        return made
    made = matmul_schedule(shape, target, MatmulWishes(scalar_cycles=0.0))
    base = " x ".join(map(str, made.base))
    reason = f"base tiles of {base} (m, n, k) on {made.cores} of {target.cores.cube} cube cores"
    request.note(tree_of(model, outlined, product, made), [reason])
    return made


@dataclass(frozen=True)
class _Kernel:
    request: KernelRequest
    product: CubeProduct
    shape: MatmulShape
    schedule: MatmulSchedule
    windows: tuple[CubeConvolution, ConvolutionTiling] | None = None

    def write(self, form: FixpipeForm | None, program: TileProgram | None) -> davinci.DavinciKernelOp:
        if form is not None:
            builder = self.request.builder("cube", self.schedule.cores)
            bias = None if form.bias is None else self._bias(builder, form.bias[0])
            scaling = None if form.scaling is None else (form.scaling.scale, form.scaling.offset)
            self._writer(builder, Epilogue(form.relu, bias, scaling)).write()
            return builder.finish()
        assert program is not None
        coupled = self.request.target.cores.coupled
        builder = self.request.builder("cube" if coupled else "mix", self.schedule.cores)
        inputs = Inputs(
            [self._source(builder, access) for access, _ in program.tiles],
            [self._source(builder, access) for access, _ in program.rows],
        )
        via = "ub" if coupled else "gm"
        return write_fused(builder, self.shape, self.schedule, program, inputs, via, partial(self._writer, builder))

    def _writer(self, builder: KernelBuilder, epilogue: Epilogue) -> MatmulWriter:
        out = self._place(builder, self.product.out)
        if self.windows is not None:
            windows, tiling = self.windows
            operands = ((self._argument(builder, windows.image), 0), (self._argument(builder, windows.filters), 0), out)
            return ConvolutionWriter(builder, self.shape, tiling, windows, epilogue, operands)
        operands = (self._place(builder, self.product.a), self._place(builder, self.product.b), out)
        return MatmulWriter(builder, self.shape, self.schedule, epilogue, operands)

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
        steps = [access.strides.get(axis, 0) for axis in self.product.batch]

        def source(tile: OutputTile) -> TileSource:
            first = expression(access.first)
            for place, step in zip(tile.batch, steps, strict=False):
                first = expression(place) * step + first
            return TileSource(argument, access.strides.get(self.product.m, 0), first)

        return source
