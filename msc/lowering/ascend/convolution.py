"""Writes a convolution for the cube: load3d takes windows of an image in L1 to L0A, as rows of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.matmul import MatmulWriter
from msc.lowering.ascend.operands import NOTHING, Epilogue, FractalOperand, Operand, OutputTile, Rows, RowsOperand, Way
from msc.lowering.ascend.rows_to_l1 import Matrix
from msc.schedule.cube.convolutions import CubeConvolution, rows_of_image
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.trees import CubeSchedule


@dataclass(frozen=True)
class _Window:
    """What a tile reads of an image: from row `first` on, `height` rows, with `above` and `below` outside of it."""

    first: Expr
    height: Expr
    above: Expr
    below: Expr


class ImageOperand(RowsOperand):
    """A of a convolution: windows of an image that lies channels last."""

    def __init__(
        self, builder: KernelBuilder, way: Way, image: Buffer, convolution: CubeConvolution, groups: int, halves: int
    ) -> None:
        self.c, self.image, self.groups = convolution, image, groups
        pad = groups * rows_of_image(convolution, way.extent) * convolution.width.size * convolution.c0
        super().__init__(builder, way, convolution.product.dtype, halves, pad)
        self.window = _Window(0, 0, 0, 0)

    def begin(self, tile: OutputTile) -> None:
        b, c = self.builder, self.c
        height, outputs = c.height, c.width.outputs
        m = expression(tile.m)
        top = m // outputs * height.stride - height.pad
        bottom = (m + tile.rows - 1) // outputs * height.stride + ((height.taps - 1) * height.dilation - height.pad)
        outside = expression(b.minimum(top, 0, name="outside"))
        last = expression(b.minimum(bottom, height.size - 1, name="last"))
        first = top + outside * -1
        self.window = _Window(first, last + first * -1 + 1, outside * -1, bottom + last * -1)

    def move(self, tile: OutputTile, k: AffineExpr) -> None:
        c, window = self.c, self.window
        group = k // (c.taps * c.c0)
        whole = self.groups * c.c0
        channels: Expr = whole
        if c.channels % whole:
            channels = self.builder.minimum(group * -c.c0 + c.channels, whole, name="channels")
        pixels = expression(window.height) * c.width.size
        source = expression(window.first) * (c.width.size * c.pixel) + group * c.c0 + tile.at_a
        self.rows_to_place(k, Matrix(self.image, source, pixels, channels, c.pixel, whole), pixels)

    def to_l0(self, tile: OutputTile, k: AffineExpr, start: AffineExpr, depth: Expr, half: AffineExpr) -> None:
        c, way, window = self.c, self.way, self.window
        height, width = c.height, c.width
        span = (width.outputs - 1) * width.stride + (width.taps - 1) * width.dilation + 1
        self.builder.emit(
            "img2colv2_cbuf_to_ca", (self.l0, half * (way.step * way.extent)),
            (self.l1, way.place(start) * self.pad), h=window.height, w=width.size, c=self.groups * c.c0,
            pad_left=width.pad, pad_right=max(0, span - width.size - width.pad), pad_top=window.above,
            pad_bottom=window.below, stride_w=width.stride, stride_h=height.stride, filter_w=width.taps,
            filter_h=height.taps, dilation_w=width.dilation, dilation_h=height.dilation, k_extension=depth,
            m_extension=tile.rows, k_start=k - start, m_start=expression(tile.m) % width.outputs,
            pad_value=c.pad_value % 256,
        )  # fmt: skip


class ConvolutionWriter(MatmulWriter):
    """Writes the tiles of a convolution."""

    def __init__(
        self,
        builder: KernelBuilder,
        shape: MatmulShape,
        schedule: CubeSchedule,
        convolution: CubeConvolution,
        epilogue: Epilogue = NOTHING,
        operands: tuple[tuple[Buffer, int], ...] = (),
    ) -> None:
        self.convolution = convolution
        super().__init__(builder, shape, schedule, epilogue, operands)

    def make_operand(self, is_a: bool) -> Operand:
        c, way = self.convolution, self.way(is_a, self.convolution.depth)
        if is_a:
            groups = way.packet * way.step // (c.taps * c.c0)
            return ImageOperand(self.builder, way, self.sources[0], c, groups, self.halves)
        rows = Rows(self.sources[1], c.outputs * c.parts, False, c.c0)
        return FractalOperand(self.builder, way, rows, c.product.dtype, self.halves)
