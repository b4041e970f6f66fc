"""How kernels read and give images, channels first or last, and the first guess of that, which takes no prediction."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from xdsl.ir import OpResult, SSAValue

from msc.dialects.gk import KernelOp
from msc.dialects.ms.axis_transforms import TransformAxisOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.pooling import BasicPoolingOp
from msc.dialects.ms.subpixel_convolution import SubpixelConvOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.layout.packings import convolves_bytes
from msc.graph_kernel.layout.pointwise import runs_along_image
from msc.ir.typed import static_shape


class Form(Enum):
    """How a kernel reads and gives images. All but `BACK` read each image as it lies."""

    LAST = "gives images channels last"
    FIRST = "gives images channels first"
    BACK = "reads and gives images channels first"
    FOLLOWS = "gives images channels last if it reads some that lie so"


def first_guess(kernel: KernelOp, many: int) -> Form:
    """The form of a kernel where `many` channels and more are worth running vectors along."""
    if lies_in_words(kernel):
        return Form.LAST
    ops = list(kernel.body.block.ops)
    if any(isinstance(op, ConvolutionOp) and _is_wide(op.result_shape(), many) for op in ops):
        return Form.BACK
    images = [shape for value in kernel.terminator.values if len(shape := static_shape(value)) > 2]
    if images and all(_is_wide(shape, many) for shape in images):
        return Form.FIRST
    if computes_on_images(kernel) or _pads_image(kernel, many):
        return Form.FOLLOWS if stays(kernel) else Form.LAST
    contracts = any(isinstance(op, MatrixProductOp) for op in ops)
    return Form.FOLLOWS if _is_read_by_kernels(kernel) and not contracts else Form.FIRST


def lies_in_words(kernel: KernelOp) -> bool:
    """Whether instructions that take several channels of a place read or write a kernel's images."""
    readers = (use.operation for result in kernel.results for use in result.uses)
    return any(isinstance(each, KernelOp) and convolves_bytes(each) for each in (kernel, *readers))


def images_of(kernel: KernelOp) -> list[int]:
    """Which outputs are images that are computed here; what is transposed already lies as it should."""
    return [i for i, value in enumerate(kernel.terminator.values) if _is_image(kernel, value)]


def _is_image(kernel: KernelOp, value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, ReshapeOp):
        owner = owner.operands[0].owner
    computed = isinstance(value, OpResult) and not isinstance(owner, TransposeOp)
    return computed and len(static_shape(value)) > 2 and list(kernel.terminator.values).count(value) == 1


def computes_on_images(kernel: KernelOp) -> bool:
    """Whether a kernel convolves, pools or transforms images."""
    return any(
        isinstance(op, ConvolutionOp | SubpixelConvOp | BasicPoolingOp | TransformAxisOp)
        for op in kernel.body.block.ops
    )


def pads_only(kernel: KernelOp) -> bool:
    """Whether a kernel only pads an image."""
    pad = kernel.body.block.first_op
    return isinstance(pad, PadOp) and pad.next_op is kernel.terminator and len(pad.result_shape()) > 2


def _pads_image(kernel: KernelOp, many: int) -> bool:
    """Whether a kernel only pads what kernels on images read, of many channels: it moves all of it anyway.

    What kernels read that stay as they are is padded as it is.
    """
    if not pads_only(kernel) or static_shape(kernel.results[0])[1] < many:
        return False
    readers = [use.operation for use in kernel.results[0].uses]
    return all(isinstance(r, KernelOp) and computes_on_images(r) and not stays(r) for r in readers)


def stays(kernel: KernelOp) -> bool:
    """Whether a kernel on an image channels first gives a result of the model that lies so too, and is as good so."""
    return runs_along_image(kernel) and not _is_read_by_kernels(kernel)


def _is_read_by_kernels(kernel: KernelOp) -> bool:
    return any(isinstance(use.operation, KernelOp) for result in kernel.results for use in result.uses)


def _is_wide(shape: Sequence[int], many: int) -> bool:
    """Whether vectors fill better along the last axis of an image than along its channels."""
    return shape[1] < many <= shape[-1]
