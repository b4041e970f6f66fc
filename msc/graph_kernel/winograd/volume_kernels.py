"""The kernels that pass `winograd` puts in place of the convolution of a volume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import SSAValue

from msc.dialects.ms.convolution import Conv2dOp
from msc.dialects.ms.movement import TransposeOp
from msc.graph.emitter import Emitter
from msc.graph_kernel.winograd.winograd_kernels import WinogradKernels
from msc.ir.typed import static_shape


class VolumeKernels(WinogradKernels):
    """One kernel whose convolution of a volume is computed in tiles of the images that the volume is made of.

    Each image is transformed once. The product sums over the taps along the depth too: for each place in a tile it is a
    convolution along the depth, and the places are the groups of one convolution.
    """

    def _input(self, emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        tiles = self._tiles(emit, values[0], self._size, self._matrices.input)
        return [replace(self._axes, depth=self._conv.shape(0)[2]).to_matrices(emit, tiles)]

    def _stored(self, weight: SSAValue, emit: Emitter) -> SSAValue:
        """`[oc, ic, kd, 3, 3]` to `[(place in tile, oc), ic, kd, 1]`."""
        places = self._places(weight, emit, [3, 4, 0, 1, 2])
        rows, columns, outputs, *others = static_shape(places)
        return emit.reshape(places, (rows * columns * outputs, *others, 1))

    def _product(self, emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        tiles, filters = values
        count, places, channels = static_shape(tiles)
        depth = self._conv.shape(0)[2]
        volume = (self._batch, depth, count // (self._batch * depth), places * channels)
        images = emit(TransposeOp, emit.reshape(tiles, volume), perm=[0, 3, 1, 2])
        products = emit(Conv2dOp, images, filters, group=places)
        matrices = emit(TransposeOp, products, perm=[0, 2, 3, 1])
        *rows, columns = static_shape(matrices)
        return [emit.reshape(matrices, (prod(rows), columns))]  # an output's axes may be merged, not split

    def _results(self, product: SSAValue, emit: Emitter) -> SSAValue:
        rows, columns = static_shape(product)
        places = self._size**2
        return super()._results(emit.reshape(product, (rows, places, columns // places)), emit)
