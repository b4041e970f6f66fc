"""The kernels of a block with the layouts of images that their forms say: transpositions at their borders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, Region, SSAValue

from msc.analysis.layout_views import equal_groups
from msc.dialects.gk import KernelOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.layout.image_forms import Form, images_of
from msc.graph_kernel.layout.stored_inputs import read_stored, transposition_kernel
from msc.ir.typed import static_shape


@dataclass
class BlockLayouts:
    """One block: `last` has for each value that lies channels last the value that is so stored.

    `first` has those that were brought back.
    """

    block: Block
    forms: Mapping[KernelOp, Form]
    last: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    first: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    replaced: list[KernelOp] = field(default_factory=list[KernelOp])

    def assign(self) -> None:
        """Rewrite the block."""
        for op in list(self.block.ops):
            if isinstance(op, KernelOp):
                self._kernel(op)
            elif isinstance(op, ReshapeOp) and op.x in self.last and splits_for_kernels(op):
                _sink(op)
            else:
                self._read_channels_first(op)
        for kernel in reversed(self.replaced):
            self.block.erase_op(kernel)

    def _kernel(self, kernel: KernelOp) -> None:
        form = self.forms[kernel]
        if form is Form.BACK:
            self._read_channels_first(kernel)
        moved = [i for i, v in enumerate(kernel.inputs) if v in self.last]
        outputs = given_last(kernel, form, self.last.keys())
        if moved or outputs:
            self._rebuild(kernel, moved, outputs)

    def _rebuild(self, kernel: KernelOp, moved: Sequence[int], outputs: Sequence[int]) -> None:
        """The kernel on other inputs and with other outputs, transposed at its border."""
        body, stored = kernel.body.block, [self.last.get(v, v) for v in kernel.inputs]
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

    def _read_channels_first(self, op: Operation) -> None:
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
        if lies_either_way(static_shape(value)):
            view = ReshapeOp(stored, shape=static_shape(value))
            self.block.insert_op_before(view, user)
            return view.results[0]
        kernel = transposition_kernel("to_channels_first", stored, channels_first(len(shape)))
        self.block.insert_op_before(kernel, user)
        return kernel.results[0]


def given_last(kernel: KernelOp, form: Form, last: Collection[SSAValue]) -> list[int]:
    """The outputs that a kernel of a form gives channels last, where values lie so."""
    follows = form is Form.FOLLOWS and any(v in last for v in kernel.inputs)
    return images_of(kernel) if form is Form.LAST or follows else []


def lying_last(block: Block, forms: Mapping[KernelOp, Form]) -> set[SSAValue]:
    """The values of a block that would lie channels last."""
    last = set[SSAValue]()
    for op in block.ops:
        if isinstance(op, KernelOp):
            last.update(op.results[i] for i in given_last(op, forms[op], last) if forms[op] is not Form.BACK)
        elif isinstance(op, ReshapeOp) and op.x in last and splits_for_kernels(op):
            last.add(op.result)
    return last


def lies_either_way(shape: Sequence[int]) -> bool:
    """Whether an image `[n, c, spatial...]` lies the same with its channels last: one channel, or one place."""
    return shape[1] == 1 or all(n == 1 for n in shape[2:])


def splits_for_kernels(op: ReshapeOp) -> bool:
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


def channels_last(rank: int) -> tuple[int, ...]:
    """`[n, c, spatial...]` to `[n, spatial..., c]`, as a permutation of `ms.transpose`."""
    return (0, *range(2, rank), 1)


def channels_first(rank: int) -> tuple[int, ...]:
    """`[n, spatial..., c]` to `[n, c, spatial...]`."""
    return (0, rank - 1, *range(1, rank - 1))
