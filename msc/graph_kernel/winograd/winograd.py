"""Pass `winograd`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.constancy import is_constant
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.analysis.valid_extents import ValidExtents
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import Conv2dOp, Conv3dOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph_kernel.winograd.filter_gradient import FilterGradientKernels, gradient_by_filter
from msc.graph_kernel.winograd.tiled_kernels import TiledConvolution, is_plain
from msc.graph_kernel.winograd.transforms import TAPS, TILES
from msc.graph_kernel.winograd.winograd_cost import ConvolutionForm, FormChoice, Sizes
from msc.graph_kernel.winograd.winograd_kernels import WinogradKernels
from msc.ir.contracts import Contract
from msc.ir.entry import find_entry
from msc.ir.typed import static_shape
from msc.poly.valid_extents import is_whole
from msc.schedule.kernel_cycles import KernelCycles
from msc.schedule.sums.partial_sums import LONG


@dataclass(frozen=True)
class Winograd(ModulePass):
    """Compute 3x3 convolutions by Winograd transforms, where that takes less time.

    Takes: kernels. Gives: in place of a kernel around a dense f32 `ms.conv2d` of 3x3 taps and stride 1, or `ms.conv3d`
    of any number of images by 3x3 taps, three kernels:
    overlapping tiles of the image are transformed, multiplied with the transformed weights (a product of matrices for
    each place in a tile), and transformed back, with what followed the convolution. Constant weights are transformed
    at compile time (`hoist-parameters` afterwards), others (of a training step, and of its gradients) by a kernel of
    their own. The gradient of such a convolution by its filter, a convolution of the image by the gradient of the
    results with 3x3 results, becomes four kernels: tiles of both are transformed, multiplied for each place in a tile,
    and the sums transformed to the filter's taps. Where tiles do not fill the image, it is padded, and the result cut;
    so are channels then, if few more fill whole vectors. Keeps: the meaning up to rounding, which docs/numerics.md
    bounds.
    Of an image it works on a block of rows of tiles at a time where these stay in L2 (`gk.compute_at`;
    `compute-at-consumers` makes one kernel of the three), unless calls decide sizes.
    A cost model of the target chooses tiles of 2x2 or 4x4 results or none, and blocks, as for one thread, so that
    results have the same bits for any number; blocks are smaller where threads share these evenly.
    Machines without an operating system have no memory for the transformed images and weights: they get none.
    Options: `tile` is one for all that can, `rows` of tiles (0: all) the block of all that they divide.
    Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
    """

    name = "winograd"
    contract = Contract(requires=(KERNELS, UNSCHEDULED), breaks=(WEIGHTS_HOISTED,))
    tile: int = 0
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.tile not in (0, *TILES):
            raise ValueError(f"tile is {self.tile}; it is 0 (by the cost model), {' or '.join(map(str, TILES))}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels, target = kernels_in(op), target_of(op)
        if target.machine.is_bare and not self.tile:
            return
        fitting = [k for k in kernels if _fitting_convolution(k) is not None or gradient_by_filter(k) is not None]
        fitting = _with_fixed_images(op, fitting)
        lanes, has_blocks = target.machine.lanes(BYTES["f32"]), self.rows is None and not has_open_sizes(op)
        cycles = KernelCycles.on_one_thread(op)
        choice = FormChoice(ctx, cycles, partial(_rewrite, lanes), has_blocks)
        forms = dict.fromkeys(fitting, ConvolutionForm(self.tile)) if self.tile else choice.of(fitting, kernels)
        cycles.loops.attach(op)
        for kernel, form in forms.items():
            _rewrite(lanes, kernel, self._shared(kernel, form, target.team))

    def _shared(self, kernel: KernelOp, form: ConvolutionForm, threads: int) -> ConvolutionForm:
        """The form with blocks for threads to share, but where the sums of channels are long: how these round depends
        on blocks.
        """
        conv = _fitting_convolution(kernel)
        if not isinstance(conv, Conv2dOp):
            return form
        sizes = Sizes.of(conv)
        if self.rows is None:
            return form if sizes.inputs > LONG else sizes.shared(form, threads)
        return replace(form, block=self.rows if self.rows and sizes.rows(form.tile) % self.rows == 0 else 0)


def _with_fixed_images(module: ModuleOp, kernels: Sequence[KernelOp]) -> Sequence[KernelOp]:
    """The kernels whose images have rows and columns that no call decides: other images are no number of tiles."""
    entry = find_entry(module) if has_open_sizes(module) else None
    if entry is None or not kernels:
        return kernels
    valid = ValidExtents(module, entry)
    return [k for k in kernels if all(is_whole(dim) for image in valid.inputs(k) for dim in image[2:])]


def _rewrite(lanes: int, kernel: KernelOp, form: ConvolutionForm) -> None:
    gradient, conv = gradient_by_filter(kernel), _fitting_convolution(kernel)
    if gradient is not None:
        FilterGradientKernels(kernel, gradient, form.tile).replace()
    elif isinstance(conv, Conv3dOp):
        VolumeKernels(kernel, conv, form.tile, 0, lanes).replace()
    elif conv is not None:
        WinogradKernels(kernel, conv, form.tile, form.block, lanes).replace()


def _fitting_convolution(kernel: KernelOp) -> TiledConvolution | None:
    """The one convolution of the kernel, if it is of the form that is taken and reads inputs of the kernel."""
    found = [op for op in kernel.body.block.ops if isinstance(op, TiledConvolution)]
    if len(found) != 1 or not _fits(found[0]):
        return None
    arguments = [v for v in found[0].operands if isinstance(v, BlockArgument) and v.uses.get_length() == 1]
    if len(arguments) != len(found[0].operands):
        return None
    if isinstance(found[0], Conv3dOp) and not _is_plain_volume(found[0], kernel.inputs[arguments[1].index]):
        return None
    return found[0]


def _is_plain_volume(conv: Conv3dOp, weight: SSAValue) -> bool:
    """Whether a weight is constant and calls decide no sizes: the images of all volumes are one axis of the tiles."""
    return is_constant(weight) and not has_open_sizes(conv)


def _fits(conv: TiledConvolution) -> bool:
    return is_plain(conv) and conv.shape(1)[-2:] == (TAPS, TAPS) and 0 not in conv.result_shape()


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
