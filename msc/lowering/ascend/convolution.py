"""Writes a convolution for the cube: load3d takes windows of an image in L1 to L0A, as rows of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.convolution_tiling import ConvolutionTiling, rows_of_image
from msc.lowering.ascend.convolutions import CubeConvolution
from msc.lowering.ascend.matmul import MatmulWriter
from msc.lowering.ascend.matmul_tiling import BatchAxis, MatmulShape
from msc.lowering.ascend.operands import NOTHING, Epilogue, FractalOperand, Operand, OutputTile, Rows, RowsOperand, Way
from msc.lowering.ascend.rows_to_l1 import Matrix


def convolution_shape(convolution: CubeConvolution, out_dtype: str, *, bias: bool) -> MatmulShape:
    """The product that a convolution is for each image and group: pixels by output channels."""
    c = convolution
    image = c.height.size * c.width.size * c.pixel
    steps = {axis: c.product.out.strides.get(axis, 0) for axis in c.product.batch}
    return MatmulShape(
        c.pixels, c.outputs, c.depth, c.product.dtype, out_dtype, transpose_b=True,
        batch=tuple(
            BatchAxis(c.parts, c.channels, c.outputs * c.c0, step)
            if axis == c.group
            else BatchAxis(c.images, image, 0, step)
            for axis, step in steps.items()
        ),
        row_c=c.product.out.strides.get(c.product.m, 0) or c.outputs * c.parts, bias=bias,
    )  # fmt: skip


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
        tiling: ConvolutionTiling,
        convolution: CubeConvolution,
        epilogue: Epilogue = NOTHING,
        operands: tuple[tuple[Buffer, int], ...] = (),
    ) -> None:
        self.tiling, self.convolution = tiling, convolution
        super().__init__(builder, shape, tiling.schedule, epilogue, operands)

    def make_operand(self, is_a: bool) -> Operand:
        t, c, (base_m, base_n, base_k) = self.tiling, self.convolution, self.tiling.schedule.base
        packet, buffers = t.packet(c, is_a=is_a), t.buffers_a if is_a else t.buffers_b
        way = Way(is_a, base_m if is_a else base_n, base_k, c.depth, packet, buffers, 0 if is_a else 3)
        if is_a:
            return ImageOperand(self.builder, way, self.sources[0], c, t.groups_a, self.halves)
        rows = Rows(self.sources[1], c.outputs * c.parts, False, c.c0)
        return FractalOperand(self.builder, way, rows, c.product.dtype, self.halves)
