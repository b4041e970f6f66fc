"""The kernels that pass `winograd` puts in place of one convolution."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, SSAValue

from msc.analysis.constancy import is_constant
from msc.cost.register_tiles import MUCH_LESS
from msc.dialects.gk import KernelOp
from msc.dialects.ms.axis_transforms import TransformAxisOp
from msc.dialects.ms.linear import BatchMatmulOp
from msc.dialects.ms.movement import SliceOp, TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.graph.emitter import Emitter
from msc.graph_kernel.layout.stored_inputs import erase_unread, moves_before, repeated
from msc.graph_kernel.winograd.tile_axes import TileAxes
from msc.graph_kernel.winograd.tiled_kernels import TiledConvolution, TiledKernels, entries, places_first
from msc.graph_kernel.winograd.transforms import TAPS
from msc.ir.typed import static_shape


class WinogradKernels(TiledKernels):
    """One kernel whose convolution is computed in tiles of `tile` by `tile` results, `block` rows of them at a time.

    Where tiles reach over the end of the image, which is padded and cut then, channels may be filled up to whole
    vectors of `lanes` as well: then no transformation or product has parts of vectors.
    """

    def __init__(self, kernel: KernelOp, conv: TiledConvolution, tile: int, block: int, lanes: int) -> None:
        self._batch, self._outputs, *depth = conv.result_shape()[:-2]
        image = conv.result_shape()[-2:]
        rows, columns = (-(-length // tile) for length in image)
        super().__init__(kernel, conv, tile, TileAxes(self._batch, rows, columns, block, *depth))
        self._is_whole = not any(length % tile for length in image)
        inputs = conv.shape(1)[1]
        self._more_inputs, self._more_outputs = (
            0 if self._is_whole else _until_whole(channels, lanes) for channels in (inputs, self._outputs)
        )

    def replace(self) -> None:
        """Put the new kernels in front of the old one, and erase that."""
        x, weight = (self._kernel.inputs[self._argument(k)] for k in range(2))
        rank = len(static_shape(x))
        image = self._reaching(x, TAPS - 1, self._more_inputs, (0, 1, rank - 2, rank - 1))
        transformed = self._in_blocks("winograd_input", [image], self._input)
        multiplied = self._in_blocks("winograd_product", [transformed, self._filters(weight)], self._product)
        self._replace_with(self._finish(multiplied))
        erase_unread(weight)

    def _argument(self, operand: int) -> int:
        value = self._conv.operands[operand]
        assert isinstance(value, BlockArgument)
        return value.index

    def _input(self, emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [self._axes.to_matrices(emit, self._tiles(emit, values[0], self._size, self._matrices.input))]

    def _filters(self, weight: SSAValue) -> SSAValue:
        """As the product reads them, in front of the kernels, of a constant; it is computed once.

        Others `[oc, ic, 3, 3]` to `[row, ic, column, oc]`: a kernel that has all places of a channel at a time writes a
        few parts of memory then, which fall into different sets of the caches.
        """
        if not is_constant(weight):
            return self._computed_filters(weight)
        emit = Emitter(self._conv)
        filters = self._stored(weight, emit)
        for op in emit.ops:
            op.location = self._conv.location
        self._insert(emit.ops)
        return filters

    def _stored(self, weight: SSAValue, emit: Emitter) -> SSAValue:
        """`[oc, ic, 3, 3]` to `[place in tile, ic, oc]`."""
        places = self._places(weight, emit, [2, 3, 1, 0])
        return emit.reshape(places, (self._size**2, *static_shape(places)[2:]))

    def _computed_filters(self, weight: SSAValue) -> SSAValue:
        """By a kernel that also moves elements as others in front did: those of a gradient are swapped and reversed."""
        source, moves = moves_before(weight)

        def build(emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            views = repeated(moves, values[0])
            emit.ops += views
            return [self._places(views[-1].results[0] if views else values[0], emit, [2, 1, 3, 0])]

        return self._emit("winograd_filter", [source], build)[0]

    def _places(self, weight: SSAValue, emit: Emitter, order: Sequence[int]) -> SSAValue:
        """The transformed filters with their axes in some order."""
        matrix, taps = entries(self._matrices.filter), len(static_shape(weight)) - 2
        if self._more_inputs or self._more_outputs:
            weight = emit(PadOp, weight, pad=[*[0] * (taps + 2), self._more_outputs, self._more_inputs, *[0] * taps])
        for axis in (taps, taps + 1):
            weight = emit(TransformAxisOp, weight, axis=axis, matrix=matrix)
        return emit(TransposeOp, weight, perm=order)

    def _product(self, emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        tiles, filters = values
        if len(static_shape(filters)) > 3:
            apart = emit(TransposeOp, filters, perm=[0, 2, 1, 3])
            filters = emit.reshape(apart, (self._size**2, *static_shape(apart)[2:]))
        return [places_first(emit, emit(BatchMatmulOp, places_first(emit, tiles), filters))]

    def _results(self, product: SSAValue, emit: Emitter) -> SSAValue:
        """`[blocks..., tile, place in tile, oc]` to an image in tiles, of results."""
        return self._transformed(emit, self._axes.to_image(emit, product, self._size), self._matrices.output)

    def _image(self, results: SSAValue, emit: Emitter) -> SSAValue:
        depth = self._conv.result_shape()[2:-2]
        image = self._axes.rows * self._tile, self._axes.columns * self._tile
        return emit.reshape(results, (self._batch, self._outputs + self._more_outputs, *depth, *image))

    def _finish(self, product: SSAValue) -> Sequence[SSAValue]:
        """Transform back and do what followed the convolution, in one kernel if that works on any axes."""
        given = [self._argument(k) for k in range(2)]
        others = [k for k in range(len(self._kernel.inputs)) if k not in given]
        inputs = [self._kernel.inputs[k] for k in others]
        arguments = [self._kernel.body.block.args[k] for k in others]

        def in_tiles(emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            known: dict[SSAValue, SSAValue] = {
                old: self._in_tiles(new, emit) for old, new in zip(arguments, values[1:], strict=True)
            }
            known[self._conv.results[0]] = self._results(values[0], emit)
            return [self._image(result, emit) for result in self._copied(known, emit)]

        def on_image(emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            known: dict[SSAValue, SSAValue] = dict(zip(arguments, values[1:], strict=True))
            known[self._conv.results[0]] = self._part(values[0], emit)
            return self._copied(known, emit)

        label = self._kernel.label.data
        if self._is_whole and self._is_elementwise():
            return self._emit(label, [product, *inputs], in_tiles)
        image = self._emit("winograd_output", [product], lambda e, v: [self._image(self._results(v[0], e), e)])
        return self._emit(label, [*image, *inputs], on_image)

    def _in_tiles(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """What broadcasts to the result of the convolution as it broadcasts to `_results`."""
        return emit.reshape(value, self._axes.split(static_shape(value), self._tile))

    def _part(self, image: SSAValue, emit: Emitter) -> SSAValue:
        """The results of the convolution in the image of whole tiles."""
        shape = self._conv.result_shape()
        return emit(SliceOp, image, begin=[0] * len(shape), end=shape)


def _until_whole(channels: int, lanes: int) -> int:
    """How many channels of zeros fill the last vector, 0 where these would be many."""
    more = -channels % lanes
    return more if channels + more < MUCH_LESS * channels else 0
