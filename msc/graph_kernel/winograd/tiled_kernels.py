"""What stands in the place of one kernel around a convolution: new kernels on images in tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import prod
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from msc.analysis.patterns import Pattern, pattern_of
from msc.dialects import ms
from msc.dialects.gk import COMPUTE_AT, KernelOp, KernelYieldOp
from msc.dialects.gk.attributes import GK_REASONS
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.properties import to_attribute
from msc.graph.emitter import Emitter
from msc.graph_kernel.kernel_results import only_pad
from msc.graph_kernel.winograd.tile_axes import COLUMN, ROW, TileAxes
from msc.graph_kernel.winograd.transforms import TAPS, Matrix, filtering_matrices
from msc.ir.typed import static_shape

TiledConvolution: TypeAlias = ms.Conv2dOp | ms.Conv3dOp
"""Convolutions of images, and of volumes of them."""

Build = Callable[[Emitter, Sequence[SSAValue]], Sequence[SSAValue]]
"""Emits the operations of a kernel's body on its arguments, and gives what it yields."""


def is_plain(conv: TiledConvolution) -> bool:
    """Whether a convolution is dense, not strided and of f32: f16 and bf16 have no digits to lose."""
    plain = {*conv.ints("stride"), *conv.ints("dilation"), conv.int_("group")} == {1}
    return plain and conv.dtype(0) == "f32"


class TiledKernels:
    """New kernels in front of `kernel`, around one convolution, by tiles of `tile` by `tile` places of an image."""

    WHAT: ClassVar[str] = "ms.conv2d"
    """What is computed, for reports."""

    def __init__(self, kernel: KernelOp, conv: TiledConvolution, tile: int, axes: TileAxes) -> None:
        self._kernel, self._conv, self._tile, self._axes = kernel, conv, tile, axes
        self._matrices = filtering_matrices(tile)
        self._size = tile + TAPS - 1

    def _replace_with(self, results: Sequence[SSAValue]) -> None:
        """Others read `results`; the old kernel goes."""
        for before, after in zip(self._kernel.results, results, strict=True):
            after.name_hint = before.name_hint
            before.replace_all_uses_with(after)
        Rewriter.erase_op(self._kernel)

    def _emit(self, label: str, inputs: Sequence[SSAValue], build: Build) -> Sequence[SSAValue]:
        """A new kernel's results."""
        block, emit = Block(arg_types=[v.type for v in inputs]), Emitter(self._conv)
        results = build(emit, block.args)
        for op in emit.ops:
            op.location = self._conv.location
        block.add_ops([*emit.ops, KernelYieldOp(*results)])
        made = KernelOp(label, inputs, [v.type for v in results], Region(block))
        made.location = self._kernel.location
        reason = f"{self.WHAT} by Winograd's algorithm, {self._tile} x {self._tile} results a tile"
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

    def _reaching(self, x: SSAValue, overlap: int, channels: int, axes: Sequence[int] = (0, 1, 2, 3)) -> SSAValue:
        """An image of `channels` more, and larger where tiles that overlap reach over its end.

        A padding in front takes that on. `axes` are where the batch, channels, rows and columns lie.
        """
        counts, shape = (self._axes.rows, self._axes.columns), static_shape(x)
        lengths = zip(counts, (shape[axis] for axis in axes[2:]), strict=True)
        found = [0, channels, *(tiles * self._tile + overlap - length for tiles, length in lengths)]
        more = [0] * len(shape)
        for axis, count in zip(axes, found, strict=True):
            more[axis] = count
        if not any(more):
            return x
        if _is_zero_padding(x):
            return _widened(x, more)
        amounts = [*(0 for _ in more), *more]
        return self._emit("winograd_pad", [x], lambda emit, v: [emit(ms.PadOp, v[0], pad=amounts)])[0]

    def _tiles(self, emit: Emitter, image: SSAValue, size: int, matrix: Matrix) -> SSAValue:
        """Windows of `size` of an image `[n, c, h, w]` or a volume, transformed; the axes are `image` of the tiles."""
        return self._transformed(emit, self._axes.windows(emit, image, size, self._tile), matrix)

    def _transformed(self, emit: Emitter, tiles: SSAValue, matrix: Matrix) -> SSAValue:
        """An image in tiles with each row, then each column of a tile transformed."""
        for axis in (ROW, COLUMN):
            tiles = emit(ms.TransformAxisOp, tiles, axis=self._axes.image.index(axis), matrix=entries(matrix))
        return tiles

    def _copied(self, known: dict[SSAValue, SSAValue], emit: Emitter) -> list[SSAValue]:
        """The results of the kernel by copies of all its operations but the convolution, on other values.

        What reads values without others in their place only the convolution needs.
        """
        for op in self._kernel.body.block.ops:
            if isinstance(op, MsOp) and op is not self._conv and all(operand in known for operand in op.operands):
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


def _is_free_of_axes(op: MsOp) -> bool:
    if isinstance(op, ms.ConstantOp):
        return prod(static_shape(op.result)) == 1
    named = {"shape", "axis", "begin"} & set(op.properties)
    return pattern_of(op).pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST) and not named


def places_first(emit: Emitter, tiles: SSAValue) -> SSAValue:
    """`[blocks..., tile, place in tile, c]` with a matrix for each place in a tile; and back."""
    rank = len(static_shape(tiles))
    return emit(ms.TransposeOp, tiles, perm=[*range(rank - 3), rank - 2, rank - 3, rank - 1])


def entries(matrix: Matrix) -> list[float]:
    """A matrix row by row, as `ms.transform_axis` takes it."""
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
    assert isinstance(pad, ms.PadOp)
    amounts = list(pad.ints("pad"))
    for k, count in enumerate(more):
        amounts[k - len(more)] += count
    pad.properties["pad"] = to_attribute(amounts)
    pad.set_result_types(pad.infer())
    return Rewriter.replace_value_with_new_type(x, pad.results[0].type)
