"""Pass `fuse-pads`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.kernels import kernels_in
from msc.analysis.layout_views import INPUT_VIEWS
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.kernel_results import add_reason, only_pad
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape


@dataclass(frozen=True)
class FusePads(ModulePass):
    """Let a kernel write its result into the middle of a padded one.

    Takes: kernels. Gives: the same kernels, but a constant padding that is a kernel of its own and alone reads the only
    result of the kernel before becomes the end of that kernel (`msc.analysis.layout_views`: it writes the border, and
    its result in place), so that the tensor is not copied. A view that merges spatial axes of an image, as the finer
    image of a sub-pixel convolution, goes with the kernel whose only result it shows. Keeps: the meaning, bit by bit.
    """

    name = "fuse-pads"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={
            "winograd": "its tiles may need a larger padding",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_in(op):
            _take_view(kernel)
        for kernel in kernels_in(op):
            pad = only_pad(kernel)
            producer = _only_producer(kernel) if pad is not None else None
            if pad is not None and producer is not None:
                _fuse(producer, kernel, pad)


def _take_view(kernel: KernelOp) -> None:
    """Let a kernel give the image that a view shows of its only result."""
    result, computed = kernel.results[0], kernel.terminator.values[0]
    if len(kernel.results) > 1 or not result.has_one_use():
        return
    view = next(iter(result.uses)).operation
    if not isinstance(view, ReshapeOp) or not _merges_spatial_axes(view):
        return
    if not isinstance(computed.owner, BasicOp) or isinstance(computed.owner, INPUT_VIEWS):
        return
    view.results[0].replace_all_uses_with(Rewriter.replace_value_with_new_type(result, view.results[0].type))
    view.detach()
    view.operands[0] = computed
    kernel.body.block.insert_op_before(view, kernel.terminator)
    kernel.terminator.operands[0] = view.results[0]


def _merges_spatial_axes(view: ReshapeOp) -> bool:
    """Whether an image stays one, with fewer axes: each is one or several of those before."""
    before, after = static_shape(view.operands[0]), static_shape(view.results[0])
    sizes = iter(before)
    return 2 < len(after) < len(before) and after[:2] == before[:2] and all(_taken(n, sizes) for n in after)


def _taken(size: int, parts: Iterator[int]) -> bool:
    """Whether the next parts multiply to a size."""
    product = next(parts, 0)
    while 0 < product < size:
        product *= next(parts, 0)
    return product == size


def _only_producer(kernel: KernelOp) -> KernelOp | None:
    """The kernel whose one result only `kernel` uses, if its result is computed by one statement."""
    value = kernel.inputs[0]
    producer = value.owner
    if not isinstance(producer, KernelOp) or len(producer.outputs) != 1 or value.uses.get_length() != 1:
        return None
    inner = producer.terminator.values[0]
    last = inner.owner
    if isinstance(last, ReshapeOp):
        last = last.operands[0].owner
    if not isinstance(last, BasicOp) or isinstance(last, TransposeOp) or inner.uses.get_length() != 1:
        return None
    return producer if len(last.compute()) == 1 else None


def _fuse(producer: KernelOp, kernel: KernelOp, pad: PadOp) -> None:
    """Move the padding to the end of the producer, whose place and name the padding's kernel takes over."""
    terminator = producer.terminator
    pad.detach()
    pad.operands[0] = terminator.values[0]
    producer.body.block.insert_op_before(pad, terminator)
    terminator.operands[0] = pad.results[0]
    padded = Rewriter.replace_value_with_new_type(producer.outputs[0], pad.results[0].type)
    kernel.outputs[0].replace_all_uses_with(padded)
    add_reason(producer, "fused ms.pad: the result is written inside its border")
    block = kernel.parent
    assert block is not None
    block.erase_op(kernel)
