"""Pass `assign-layouts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.kernels import blocks_outside_kernels
from msc.analysis.layout_views import equal_groups
from msc.analysis.properties import KERNELS, UNSCHEDULED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.cost.register_tiles import many_channels
from msc.dialects.gk import KernelOp
from msc.dialects.ms.axis_transforms import TransformAxisOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.pooling import BasicPoolingOp
from msc.dialects.ms.subpixel_convolution import SubpixelConvOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.layout.pointwise import runs_along_image
from msc.graph_kernel.layout.stored_inputs import read_stored, transposition_kernel
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Let images between kernels lie channels last.

    Takes: kernels on `[n, c, spatial...]` images. Gives: the same kernels, whose inputs and outputs are transposed at
    their borders (`msc.analysis.layout_views`: that costs nothing), so that what stands between convolutions,
    poolings, their paddings and their
    neighbours lies as `[n, spatial..., c]`: vectors run along channels, whatever the stride. Where a value
    leaves the kernels (a view, a result of the function), one transposition brings it back, in the kernel itself if
    that computes element by element. A pointwise convolution between two such places stays as it is, and so does a
    pooling whose rows fill vectors, with its padding: their vectors run along the image. Keeps: the meaning, bit by
    bit.

    With `few_channels=true` images of any number of channels, as matrix units take them; else those whose channels fill
    vectors.
    """

    name = "assign-layouts"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        breaks=(WEIGHTS_HOISTED,),
        runs_after={
            "winograd": "its transforms are kernels that read and write images",
            "fuse-pads": "a kernel is given its layout with its padding",
        },
    )

    few_channels: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        many = 1 if self.few_channels else many_channels(target_of(op).machine)
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in blocks_outside_kernels(function):
                    _Layouts(block, many).assign()


@dataclass
class _Layouts:
    """One block: `last` has for each value that lies channels last the value that is so stored.

    `first` has those that were brought back.
    """

    block: Block
    many: int
    """Channels of an image that are worth running vectors along."""
    last: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    first: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    replaced: list[KernelOp] = field(default_factory=list[KernelOp])

    def assign(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, KernelOp):
                self._kernel(op)
            elif isinstance(op, ReshapeOp) and op.x in self.last and _splits_for_kernels(op):
                _sink(op)
            else:
                self._bring_back(op)
        for kernel in reversed(self.replaced):
            self.block.erase_op(kernel)

    def _kernel(self, kernel: KernelOp) -> None:
        if _convolves_to_few_channels(kernel, self.many):
            self._bring_back(kernel)
            return
        inside = list(kernel.body.block.ops)
        images = _computes_on_images(kernel) or _is_padding_of_image(kernel, self.many)
        follows = any(v in self.last for v in kernel.inputs) and not any(
            isinstance(op, MatrixProductOp) for op in inside
        )
        stored = [self.last.get(v, v) for v in kernel.inputs]
        moved = [i for i, v in enumerate(kernel.inputs) if v in self.last]
        moves = images or (follows and _is_read_by_kernels(kernel))
        outputs = [i for i, v in enumerate(kernel.terminator.values) if moves and _can_move(kernel, v, self.many)]
        if not moved and _stays(kernel):
            return
        if moved or outputs:
            self._rebuild(kernel, stored, moved, outputs)

    def _rebuild(
        self, kernel: KernelOp, stored: Sequence[SSAValue], moved: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """The kernel on other inputs and with other outputs, transposed at its border."""
        body = kernel.body.block
        for i in moved:
            read_stored(body, i, stored[i], channels_first(len(static_shape(body.args[i]))))
        terminator = kernel.terminator
        for i in outputs:
            transposed = TransposeOp(terminator.values[i], perm=channels_last(len(static_shape(terminator.values[i]))))
            transposed.location = kernel.location
            body.insert_op_before(transposed, terminator)
            terminator.operands[i] = transposed.results[0]
        region = Region()
        kernel.body.move_blocks(region)
        new = KernelOp(kernel.label.data, stored, [v.type for v in terminator.operands], region)
        new.attributes, new.location = dict(kernel.attributes), kernel.location
        self.block.insert_op_before(new, kernel)
        self.replaced.append(kernel)
        for i, (before, after) in enumerate(zip(kernel.results, new.results, strict=True)):
            after.name_hint = before.name_hint
            if i in outputs:
                self.last[before] = after
            else:
                before.replace_all_uses_with(after)

    def _bring_back(self, op: Operation) -> None:
        """Let an operation, and what stands in its regions, read images as they were."""
        for inner in op.walk():
            for index, value in enumerate(inner.operands):
                if value in self.last:
                    if value not in self.first:
                        self.first[value] = self._channels_first(value, op)
                    inner.operands[index] = self.first[value]

    def _channels_first(self, value: SSAValue, user: Operation) -> SSAValue:
        stored = self.last[value]
        shape = static_shape(stored)
        if shape[-1] == 1 or all(n == 1 for n in shape[1:-1]):
            view = ReshapeOp(stored, shape=static_shape(value))
            self.block.insert_op_before(view, user)
            return view.results[0]
        kernel = transposition_kernel("to_channels_first", stored, channels_first(len(shape)))
        self.block.insert_op_before(kernel, user)
        return kernel.results[0]


def _splits_for_kernels(op: ReshapeOp) -> bool:
    """Whether a reshape only splits axes, and kernels read that which contract nothing: in them it is a view."""
    groups = equal_groups(static_shape(op.x), static_shape(op.result))
    readers = [use.operation for use in op.result.uses]
    inside = [inner for reader in readers if isinstance(reader, KernelOp) for inner in reader.body.block.ops]
    return (
        groups is not None
        and all(len(before) == 1 for before, _ in groups)
        and all(isinstance(reader, KernelOp) and reader.parent is op.parent for reader in readers)
        and not any(isinstance(inner, MatrixProductOp) for inner in inside)
    )


def _sink(op: ReshapeOp) -> None:
    """Let the kernels that read a reshape do it."""
    for use in list(op.result.uses):
        kernel = use.operation
        assert isinstance(kernel, KernelOp)
        body, old = kernel.body.block, kernel.body.block.args[use.index]
        new = body.insert_arg(op.x.type, use.index)
        view = ReshapeOp(new, shape=static_shape(old))
        view.location = op.location
        if body.first_op is not None:
            body.insert_op_before(view, body.first_op)
        old.replace_all_uses_with(view.results[0])
        body.erase_arg(old)
        kernel.operands[use.index] = op.x
    op.detach()
    op.erase()


def _computes_on_images(kernel: KernelOp) -> bool:
    return any(
        isinstance(op, ConvolutionOp | SubpixelConvOp | BasicPoolingOp | TransformAxisOp)
        for op in kernel.body.block.ops
    )


def _is_padding_of_image(kernel: KernelOp, many: int) -> bool:
    """Whether a kernel only pads what kernels on images read, of many channels: it moves all of it anyway.

    What kernels read that stay as they are is padded as it is.
    """
    pad = kernel.body.block.first_op
    if not isinstance(pad, PadOp) or pad.next_op is not kernel.terminator:
        return False
    shape = pad.result_shape()
    if len(shape) < 3 or shape[1] < many:
        return False
    readers = [use.operation for use in kernel.results[0].uses]
    return all(isinstance(r, KernelOp) and _computes_on_images(r) and not _stays(r) for r in readers)


def _stays(kernel: KernelOp) -> bool:
    """Whether a kernel on an image channels first gives a result of the model that lies so too, and is as good so."""
    return runs_along_image(kernel) and not _is_read_by_kernels(kernel)


def _is_read_by_kernels(kernel: KernelOp) -> bool:
    return any(isinstance(use.operation, KernelOp) for result in kernel.results for use in result.uses)


def channels_last(rank: int) -> tuple[int, ...]:
    """`[n, c, spatial...]` to `[n, spatial..., c]`, as a permutation of `ms.transpose`."""
    return (0, *range(2, rank), 1)


def channels_first(rank: int) -> tuple[int, ...]:
    """`[n, spatial..., c]` to `[n, c, spatial...]`."""
    return (0, rank - 1, *range(1, rank - 1))


def _can_move(kernel: KernelOp, value: SSAValue, many: int) -> bool:
    """Whether an output is an image that is computed here; what is transposed already lies as it should."""
    owner = value.owner
    if isinstance(owner, ReshapeOp):
        owner = owner.operands[0].owner
    computed = isinstance(value, OpResult) and not isinstance(owner, TransposeOp)
    shape = static_shape(value)
    return (
        computed and len(shape) > 2 and not _is_wide(shape, many) and list(kernel.terminator.values).count(value) == 1
    )


def _is_wide(shape: Sequence[int], many: int) -> bool:
    """Whether vectors fill better along the last axis of an image than along its channels."""
    return shape[1] < many <= shape[-1]


def _convolves_to_few_channels(kernel: KernelOp, many: int) -> bool:
    return any(isinstance(op, ConvolutionOp) and _is_wide(op.result_shape(), many) for op in kernel.body.block.ops)
