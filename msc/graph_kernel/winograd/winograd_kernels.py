"""The kernels that pass `winograd` puts in place of one convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from msc.analysis.constancy import is_constant
from msc.analysis.patterns import Pattern, pattern_of
from msc.cost.register_tiles import MUCH_LESS
from msc.dialects.gk import COMPUTE_AT, KernelOp, YieldOp
from msc.dialects.gk.attributes import GK_REASONS
from msc.dialects.ms.axis_transforms import TransformAxisOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.convolution import Conv2dOp
from msc.dialects.ms.linear import BatchMatmulOp
from msc.dialects.ms.movement import SliceOp, TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.properties import to_attribute
from msc.dialects.ms.structure import ConstantOp
from msc.graph.emitter import Emitter
from msc.graph_kernel.kernel_results import only_pad
from msc.graph_kernel.winograd.tile_axes import COLUMN, ROW, TileAxes
from msc.graph_kernel.winograd.transforms import TAPS, Matrix, filtering_matrices
from msc.ir.typed import static_shape

Build = Callable[[Emitter, Sequence[SSAValue]], Sequence[SSAValue]]
"""Emits the operations of a kernel's body on its arguments, and gives what it yields."""


class WinogradKernels:
    """One kernel whose convolution is computed in tiles of `tile` by `tile` results, `block` rows of them at a time.

    Where tiles reach over the end of the image, which is padded and cut then, channels may be filled up to whole
    vectors of `lanes` as well: then no transformation or product has parts of vectors.
    """

    def __init__(self, kernel: KernelOp, conv: Conv2dOp, tile: int, block: int, lanes: int) -> None:
        self._kernel, self._conv, self._tile = kernel, conv, tile
        self._matrices = filtering_matrices(tile)
        self._size = tile + TAPS - 1
        self._batch, self._outputs, *image = conv.result_shape()
        self._tiles = [-(-length // tile) for length in image]
        self._is_whole = not any(length % tile for length in image)
        inputs = conv.shape(1)[1]
        self._more_inputs, self._more_outputs = (
            0 if self._is_whole else _until_whole(channels, lanes) for channels in (inputs, self._outputs)
        )
        rows, columns = self._tiles
        self._axes = TileAxes(self._batch, rows, columns, block)

    def replace(self) -> None:
        """Put the new kernels in front of the old one, and erase that."""
        x, weight = (self._kernel.inputs[self._argument(k)] for k in range(2))
        transformed = self._in_blocks("winograd_input", [self._padded(x)], self._input)
        multiplied = self._in_blocks("winograd_product", [transformed, self._filters(weight)], _product)
        results = self._finish(multiplied)
        for before, after in zip(self._kernel.results, results, strict=True):
            after.name_hint = before.name_hint
            before.replace_all_uses_with(after)
        Rewriter.erase_op(self._kernel)

    def _argument(self, operand: int) -> int:
        value = self._conv.operands[operand]
        assert isinstance(value, BlockArgument)
        return value.index

    def _emit(self, label: str, inputs: Sequence[SSAValue], build: Build) -> Sequence[SSAValue]:
        """A new kernel's results."""
        block, emit = Block(arg_types=[v.type for v in inputs]), Emitter(self._conv)
        results = build(emit, block.args)
        for op in emit.ops:
            op.location = self._conv.location
        block.add_ops([*emit.ops, YieldOp(*results)])
        made = KernelOp(label, inputs, [v.type for v in results], Region(block))
        made.location = self._kernel.location
        reason = f"ms.conv2d by Winograd's algorithm, {self._tile} x {self._tile} results a tile"
        made.attributes[GK_REASONS] = ArrayAttr([StringAttr(reason)])
        self._insert([made])
        return made.results

    def _in_blocks(self, label: str, inputs: Sequence[SSAValue], build: Build) -> SSAValue:
        """A new kernel's one result, which the next one reads block by block."""
        (result,) = self._emit(label, inputs, build)
        assert isinstance(result.owner, KernelOp)
        if self._axes.blocks:
            axes = range(len(self._axes.blocks))
            result.owner.attributes[COMPUTE_AT] = DenseArrayBase.from_list(i64, list(axes))
        return result

    def _insert(self, ops: Sequence[Operation]) -> None:
        block = self._kernel.parent
        assert block is not None
        block.insert_ops_before(ops, self._kernel)

    def _padded(self, x: SSAValue) -> SSAValue:
        """The image, larger where the last tiles reach over its end; a padding in front takes that on."""
        lengths = zip(self._tiles, static_shape(x)[2:], strict=True)
        more = [self._more_inputs, *(tiles * self._tile + TAPS - 1 - length for tiles, length in lengths)]
        if not any(more):
            return x
        if _is_zero_padding(x):
            return _widened(x, more)
        amounts = [*(0 for _ in static_shape(x)), 0, *more]
        return self._emit("winograd_pad", [x], lambda emit, v: [emit(PadOp, v[0], pad=amounts)])[0]

    def _input(self, emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """`[n, c, h, w]` to `[blocks..., place in tile, tile, c]`."""
        tiles = self._axes.windows(emit, values[0], self._size, self._tile)
        return [self._axes.to_matrices(emit, self._transformed(emit, tiles, self._matrices.input))]

    def _transformed(self, emit: Emitter, tiles: SSAValue, matrix: Matrix) -> SSAValue:
        """An image in tiles with each row, then each column of a tile transformed."""
        for axis in (ROW, COLUMN):
            tiles = emit(TransformAxisOp, tiles, axis=self._axes.image.index(axis), matrix=_entries(matrix))
        return tiles

    def _filters(self, weight: SSAValue) -> SSAValue:
        """`[oc, ic, 3, 3]` to `[place in tile, ic, oc]`, in front of the kernels; a constant is computed once."""
        if not is_constant(weight):
            return self._emit("winograd_filter", [weight], lambda emit, v: [self._transformed_filters(v[0], emit)])[0]
        emit = Emitter(self._conv)
        filters = self._transformed_filters(weight, emit)
        for op in emit.ops:
            op.location = self._conv.location
        self._insert(emit.ops)
        return filters

    def _transformed_filters(self, weight: SSAValue, emit: Emitter) -> SSAValue:
        matrix = _entries(self._matrices.filter)
        if self._more_inputs or self._more_outputs:
            weight = emit(PadOp, weight, pad=[0, 0, 0, 0, self._more_outputs, self._more_inputs, 0, 0])
        rows = emit(TransformAxisOp, weight, axis=2, matrix=matrix)
        places_first = emit(TransposeOp, emit(TransformAxisOp, rows, axis=3, matrix=matrix), perm=[2, 3, 1, 0])
        outputs, inputs = static_shape(weight)[:2]
        return emit.reshape(places_first, (self._size**2, inputs, outputs))

    def _results(self, product: SSAValue, emit: Emitter) -> SSAValue:
        """`[blocks..., place in tile, tile, oc]` to an image in tiles, of results."""
        return self._transformed(emit, self._axes.to_image(emit, product, self._size), self._matrices.output)

    def _image(self, results: SSAValue, emit: Emitter) -> SSAValue:
        outputs = self._outputs + self._more_outputs
        return emit.reshape(results, (self._batch, outputs, *(count * self._tile for count in self._tiles)))

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
        """What broadcasts to `[n, oc, h, w]` as it broadcasts to `_results`."""
        return emit.reshape(value, self._axes.split(static_shape(value), self._tile))

    def _part(self, image: SSAValue, emit: Emitter) -> SSAValue:
        """The results of the convolution in the image of whole tiles."""
        shape = self._conv.result_shape()
        return emit(SliceOp, image, begin=[0] * len(shape), end=shape)

    def _copied(self, known: dict[SSAValue, SSAValue], emit: Emitter) -> list[SSAValue]:
        """The results of the kernel by copies of all its operations but the convolution, on other values."""
        for op in self._kernel.body.block.ops:
            if isinstance(op, MsOp) and op is not self._conv:
                copy = op.clone(known)
                if copy.operands:
                    copy.set_result_types(copy.infer())
                emit.ops.append(copy)
                known |= zip(op.results, copy.results, strict=True)
        return [known[value] for value in self._kernel.terminator.values]

    def _is_elementwise(self) -> bool:
        """Whether all that follows works on the elements of the image, whatever its axes are called."""
        rest = [op for op in self._kernel.body.block.ops if isinstance(op, MsOp) and op is not self._conv]
        return all(_is_free_of_axes(op) for op in rest)


def _until_whole(channels: int, lanes: int) -> int:
    """How many channels of zeros fill the last vector, 0 where these would be many."""
    more = -channels % lanes
    return more if channels + more < MUCH_LESS * channels else 0


def _is_free_of_axes(op: MsOp) -> bool:
    if isinstance(op, ConstantOp):
        return prod(static_shape(op.result)) == 1
    named = {"shape", "axis", "begin"} & set(op.properties)
    return pattern_of(op).pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST) and not named


def _product(emit: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [emit(BatchMatmulOp, *values)]


def _entries(matrix: Matrix) -> list[float]:
    return [float(entry) for entry in chain.from_iterable(matrix)]


def _is_zero_padding(x: SSAValue) -> bool:
    """Whether a value is made by a kernel that only pads with zeros, and is used once."""
    if not isinstance(x.owner, KernelOp) or x.uses.get_length() != 1:
        return False
    pad = only_pad(x.owner)
    return pad is not None and pad.real("value") == 0


def _widened(x: SSAValue, more: Sequence[int]) -> SSAValue:
    """The value of a padding kernel with more elements at the end of its last axes."""
    kernel = x.owner
    assert isinstance(kernel, KernelOp)
    pad = kernel.body.block.first_op
    assert isinstance(pad, PadOp)
    amounts = list(pad.ints("pad"))
    for k, count in enumerate(more):
        amounts[k - len(more)] += count
    pad.properties["pad"] = to_attribute(amounts)
    pad.set_result_types(pad.infer())
    return Rewriter.replace_value_with_new_type(x, pad.results[0].type)
