"""The kernels that pass `winograd` puts in place of the gradient of a convolution by its filter.

A tile d of an image and a filter g give y = output ((filter g) * (input d)), linear in both. So of the gradient dy by y
the filter gets, from all tiles,

    filter^T (sum of (output^T dy) * (input d))

whose sums are a product of matrices for each place in a tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import SSAValue

from msc.dialects.gk import KernelOp
from msc.dialects.ms.axis_transforms import TransformAxisOp
from msc.dialects.ms.convolution import Conv2dOp
from msc.dialects.ms.linear import BatchMatmulOp
from msc.dialects.ms.movement import TransposeOp
from msc.graph.emitter import Emitter
from msc.graph_kernel.layout.transposed_inputs import transposed_input
from msc.graph_kernel.winograd.tile_axes import TileAxes
from msc.graph_kernel.winograd.tiled_kernels import TiledKernels, entries, is_plain, places_first
from msc.graph_kernel.winograd.transforms import TAPS, Matrix, transposed
from msc.ir.typed import static_shape


def gradient_by_filter(kernel: KernelOp) -> Conv2dOp | None:
    """The one convolution of a kernel, if it is the gradient of a convolution by its 3x3 filter.

    It takes the channels of images, which kernels transpose, for a batch, and has 3x3 results.
    """
    found = [op for op in kernel.body.block.ops if isinstance(op, Conv2dOp)]
    if len(found) != 1 or not _fits(found[0]):
        return None
    return None if any(transposed_input(kernel, operand) is None for operand in found[0].operands) else found[0]


def _fits(conv: Conv2dOp) -> bool:
    return is_plain(conv) and conv.result_shape()[2:] == (TAPS, TAPS) and 0 not in conv.shape(1)


class FilterGradientKernels(TiledKernels):
    """One kernel whose convolution of `[ic, n, h + 2, w + 2]` by `[oc, n, h, w]` is a filter's gradient."""

    WHAT: ClassVar[str] = "a filter's gradient"

    def __init__(self, kernel: KernelOp, conv: Conv2dOp, tile: int) -> None:
        _, batch, *image = conv.shape(1)
        rows, columns = (-(-length // tile) for length in image)
        super().__init__(kernel, conv, tile, TileAxes(batch, rows, columns, 0))
        self._given: list[int] = []

    def replace(self) -> None:
        """Put the new kernels in front of the old one, and erase that."""
        size, output = self._size, transposed(self._matrices.output)
        x = self._transformed_image("winograd_input", 0, size, self._matrices.input)
        dy = self._transformed_image("winograd_gradient", 1, self._tile, output)
        (sums,) = self._emit("winograd_product", [x, dy], _product)
        self._replace_with(self._finish(sums))

    def _transformed_image(self, label: str, operand: int, size: int, matrix: Matrix) -> SSAValue:
        """An operand of the convolution, transformed in tiles of `size`, which overlap in what is more than a tile."""
        found = transposed_input(self._kernel, self._conv.operands[operand])
        assert found is not None
        self._given.append(found.index)
        found.read()
        channels, batch, *spatial = found.perm
        axes = (batch, channels, *spatial)

        def build(emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            image = values[0] if axes == (0, 1, 2, 3) else emit(TransposeOp, values[0], perm=axes)
            return [self._axes.to_matrices(emit, self._tiles(emit, image, size, matrix))]

        reaching = self._reaching(found.source, size - self._tile, 0, axes)
        return self._emit(label, [reaching], build)[0]

    def _finish(self, sums: SSAValue) -> Sequence[SSAValue]:
        """Transform to the filter's taps, and do what followed the convolution."""
        others = [k for k in range(len(self._kernel.inputs)) if k not in self._given]
        arguments = [self._kernel.body.block.args[k] for k in others]

        def build(emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            known: dict[SSAValue, SSAValue] = dict(zip(arguments, values[1:], strict=True))
            known[self._conv.results[0]] = self._taps(values[0], emit)
            return self._copied(known, emit)

        return self._emit(self._kernel.label.data, [sums, *(self._kernel.inputs[k] for k in others)], build)

    def _taps(self, sums: SSAValue, emit: Emitter) -> SSAValue:
        """`[place in tile, ic, oc]` to `[ic, oc, 3, 3]`."""
        apart = emit.reshape(sums, (self._size, self._size, *static_shape(sums)[1:]))
        filters = emit(TransposeOp, apart, perm=[2, 3, 0, 1])
        for axis in (2, 3):
            filters = emit(TransformAxisOp, filters, axis=axis, matrix=entries(transposed(self._matrices.filter)))
        return filters


def _product(emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The sum over tiles at each place."""
    return [emit(BatchMatmulOp, *(places_first(emit, v) for v in values), transpose_a=True)]
