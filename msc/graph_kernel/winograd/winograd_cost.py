"""Whether Winograd's algorithm makes a convolution faster, and how much of it runs at a time; nothing is measured.

Of each form the cost model says how long the kernels take that the passes behind `winograd` make of it, with the
schedules that they would get on one thread: forms round otherwise, and the number of threads must change no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from msc.analysis.bytes import bytes_of
from msc.analysis.constancy import is_constant
from msc.analysis.flops import flops
from msc.analysis.kernel_model import kernel_model
from msc.analysis.kernels import kernels_in
from msc.dialects.gk import KernelOp, KernelYieldOp
from msc.dialects.ms.convolution import Conv2dOp, Conv3dOp
from msc.dialects.ms.structure import GetParameterOp
from msc.graph_kernel.chains import reader_of
from msc.graph_kernel.compute_at_consumers import merge_asked, merge_faster
from msc.graph_kernel.forms import module_of
from msc.graph_kernel.kernel_results import only_pad
from msc.graph_kernel.layout.stored_inputs import transposition_kernel
from msc.graph_kernel.layout_passes import LAYOUTS
from msc.graph_kernel.winograd.filter_gradient import gradient_by_filter
from msc.graph_kernel.winograd.tiled_kernels import TiledConvolution
from msc.graph_kernel.winograd.transforms import TAPS, TILES
from msc.ir.typed import tensor_type
from msc.schedule.kernel_cycles import KernelCycles
from msc.targets.machine import Machine

_ELEMENT_BYTES = 4
_WASTE = 1.125
"""Times its even share of blocks that the busiest thread may have: a bound of the search, of no machine."""
_GAIN = 1.15
"""How much faster it must be by the model to be taken: Winograd's algorithm rounds more, and models err."""
_PART = 3
"""One in so many bytes of a cache a block may take, beside what its kernels read: a bound of the search."""


@dataclass(frozen=True)
class ConvolutionForm:
    """How a convolution is computed: results of a tile along an axis (0: none), rows of tiles in a block (0: all)."""

    tile: int = 0
    block: int = 0


@dataclass(frozen=True)
class Sizes:
    """A convolution: channels in and out, and the results along the two axes of each of `batch` images."""

    batch: int
    inputs: int
    outputs: int
    height: int
    width: int

    @staticmethod
    def of(conv: Conv2dOp) -> Sizes:
        batch, outputs, height, width = conv.result_shape()
        return Sizes(batch, conv.shape(1)[1], outputs, height, width)

    def rows(self, tile: int) -> int:
        """Rows of tiles in an image."""
        return -(-self.height // tile)

    def row_bytes(self, tile: int) -> int:
        """Bytes of a row of tiles, transformed, and of their products."""
        places, columns = (tile + TAPS - 1) ** 2, -(-self.width // tile)
        return places * columns * (self.inputs + self.outputs) * _ELEMENT_BYTES

    def blocks(self, tile: int, target: Machine) -> Sequence[int]:
        """Rows of tiles in the largest block that a part of each cache holds, of caches that do not hold half of all.

        Of a cache that is shared a quarter counts.
        """
        rows, row_bytes = self.rows(tile), self.row_bytes(tile)
        own = [cache.bytes // (4 if cache.shared_by == "machine" else 1) for cache in target.caches[1:]]
        small = [size for size in own if self.batch * rows * row_bytes > 2 * size]
        fitting = [[n for n in range(1, rows + 1) if not rows % n and n * row_bytes <= size // _PART] for size in small]
        return sorted({blocks[-1] for blocks in fitting if blocks})

    def shared(self, form: ConvolutionForm, threads: int) -> ConvolutionForm:
        """The form with the largest blocks, no larger than its own, that threads share evenly; else all at once."""
        rows = self.rows(form.tile) if form.block else 0
        even = (n for n in range(form.block, 0, -1) if rows % n == 0 and _is_even(self.batch * rows // n, threads))
        return replace(form, block=next(even, 0))


def _is_even(blocks: int, threads: int) -> bool:
    return -(-blocks // threads) * threads <= _WASTE * blocks


@dataclass(frozen=True)
class FormChoice:
    """The choice of forms for kernels of a module; `rewrite` computes one in a form, `has_blocks` or not."""

    context: Context
    cycles: KernelCycles
    rewrite: Callable[[KernelOp, ConvolutionForm], None]
    has_blocks: bool

    def of(self, kernels: Sequence[KernelOp], among: Sequence[KernelOp]) -> dict[KernelOp, ConvolutionForm]:
        """The kernels around a convolution that tiles make faster, with their forms. They run `among` others."""
        between = {tile: _constant_bytes(kernels, among, tile) for tile in (0, *TILES)}
        distinct = {_key(kernel): kernel for kernel in reversed(kernels)}
        distinct = dict(sorted(distinct.items(), key=lambda item: flops(item[1]), reverse=True))

        def chosen(kernel: KernelOp) -> list[str]:
            form = self._best(kernel, between)
            return [str(form.tile), str(form.block)]

        lines = self.cycles.loops.choices(chosen, list(distinct.values()))
        forms = {key: ConvolutionForm(*map(int, line)) for key, line in zip(distinct, lines, strict=True)}
        return {kernel: forms[_key(kernel)] for kernel in kernels if forms[_key(kernel)].tile}

    def _best(self, kernel: KernelOp, between: Mapping[int, int]) -> ConvolutionForm:
        """Large tiles multiply least, and come first; blocks are for tiles that all at once are faster already."""
        best, most = ConvolutionForm(), self._cycles(kernel, ConvolutionForm(), between[0]) / _GAIN
        for tile in sorted(TILES, reverse=True):
            whole = self._cycles(kernel, ConvolutionForm(tile), between[tile], most)
            if whole >= most:
                continue
            best, most = ConvolutionForm(tile), whole
            for block in self._blocks(kernel, tile):
                cycles = self._cycles(kernel, ConvolutionForm(tile, block), between[tile], most)
                if cycles < most:
                    best, most = ConvolutionForm(tile, block), cycles
        return best

    def _blocks(self, kernel: KernelOp, tile: int) -> Sequence[int]:
        convolution, _ = _operands(kernel)
        if not self.has_blocks or isinstance(convolution, Conv3dOp) or gradient_by_filter(kernel) is not None:
            return ()
        return Sizes.of(convolution).blocks(tile, self.cycles.target.machine)

    def _cycles(self, kernel: KernelOp, form: ConvolutionForm, between: int, most: float = inf) -> float:
        """Of its convolution, with a padding in front, alone in a module, up to `most`."""
        module = _module_of(kernel) if gradient_by_filter(kernel) is None else _gradient_module(kernel)
        if form.tile:
            self.rewrite(kernels_in(module)[-1], form)
        for after in LAYOUTS:
            after.apply(self.context, module)
        merge_asked(module)
        kernels = kernels_in(module)
        handed_on = {kernel.results[0] for kernel in kernels if reader_of(kernel) is not None}
        if self.cycles.of(kernels, between, most, handed_on) >= most:  # no merging of chains can gain as much
            return most
        merge_faster(module, self.cycles, between)
        return self.cycles.of(kernels_in(module), between, most)


def _constant_bytes(kernels: Sequence[KernelOp], among: Sequence[KernelOp], tile: int) -> int:
    """Of all constants that kernels read, where all convolutions that may have tiles of a size (0: none) have them.

    All of it passes between two calls of each: caches that are not larger have lost what one of them read.
    """
    taken = {weight for kernel in kernels for weight in _operands(kernel)[1]}
    constants = {value for kernel in among for value in kernel.inputs if is_constant(value)}
    places = (tile + TAPS - 1) ** 2 if tile else TAPS**2
    return sum(bytes_of(value) * (places if value in taken else TAPS**2) // TAPS**2 for value in constants)


def _operands(kernel: KernelOp) -> tuple[TiledConvolution, list[SSAValue]]:
    """Its convolution, and what that reads."""
    (convolution,) = (op for op in kernel.body.block.ops if isinstance(op, TiledConvolution))
    arguments = [value for value in convolution.operands if isinstance(value, BlockArgument)]
    return convolution, [kernel.inputs[argument.index] for argument in arguments]


def _padding(value: SSAValue) -> KernelOp | None:
    """The kernel that makes a value, if it only pads."""
    return value.owner if isinstance(value.owner, KernelOp) and only_pad(value.owner) is not None else None


def _key(kernel: KernelOp) -> object:
    """What a choice depends on."""
    convolution, (image, weight) = _operands(kernel)
    padding, shapes = _padding(image), (convolution.shape(0), convolution.shape(1), convolution.dtype(0))
    return shapes, is_constant(weight), None if padding is None else kernel_model(padding).structure


def _module_of(kernel: KernelOp) -> ModuleOp:
    """A module for one thread that runs the convolution of a kernel, and a padding in front."""
    convolution, (image, weight) = _operands(kernel)
    padding = _padding(image)
    block = Block(arg_types=[image.type if padding is None else padding.inputs[0].type])
    given: list[Operation] = [] if padding is None else [padding.clone({padding.inputs[0]: block.args[0]})]
    values = [given[0].results[0] if given else block.args[0]]
    if is_constant(weight):
        given.append(GetParameterOp("weight", tensor_type(weight)))
        values.append(given[-1].results[0])
    else:
        values.append(block.insert_arg(weight.type, 1))
    return module_of(block, [*given, _around(convolution, values, kernel)], kernel)


def _gradient_module(kernel: KernelOp) -> ModuleOp:
    """A module for one thread that runs the gradient by a filter, of images that lie channels last."""
    convolution, operands = _operands(kernel)
    shapes = [convolution.shape(k) for k in range(2)]
    stored = [
        TensorType(tensor_type(v).element_type, [s[1], *s[2:], s[0]]) for v, s in zip(operands, shapes, strict=True)
    ]
    block = Block(arg_types=stored)
    given = [transposition_kernel("transpose", argument, (3, 0, 1, 2)) for argument in block.args]
    made = _around(convolution, [k.results[0] for k in given], kernel)
    return module_of(block, [*given, made], kernel)


def _around(convolution: TiledConvolution, values: Sequence[SSAValue], like: KernelOp) -> KernelOp:
    """A kernel, called as another one, around a convolution alone, of values."""
    inside = Block(arg_types=[value.type for value in values])
    copy = convolution.clone(dict(zip(convolution.operands, inside.args, strict=True)))
    inside.add_ops([copy, KernelYieldOp(copy.results[0])])
    return KernelOp(like.label.data, values, [copy.results[0].type], Region(inside))
