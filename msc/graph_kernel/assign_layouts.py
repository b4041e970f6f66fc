"""Pass `assign-layouts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass

from msc.dialects.gk import KernelOp, YieldOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatmulOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.pooling import BasicPoolingOp
from msc.dialects.ms.structure import GetParameterOp
from msc.dialects.ms.views import ReshapeOp
from msc.ir.typed import static_shape


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Let images between kernels lie channels last, and the weights of convolutions output channels last.

    Takes: kernels on `[n, c, spatial...]` images. Gives: the same kernels, whose inputs and outputs are transposed at
    their borders (`msc.analysis.layout_views`: that costs nothing), so that what stands between convolutions, poolings and their
    neighbours lies as `[n, spatial..., c]`: vectors run along channels, whatever the stride. Where a value
    leaves the kernels (a view, a result of the function), one transposition brings it back. Weights are
    transposed at compile time: run `hoist-parameters` afterwards. Keeps: the meaning, bit by bit.
    """

    name = "assign-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in function.body.blocks:
                    _Layouts(block).assign()


@dataclass
class _Layouts:
    """One block: `last` has for each value that lies channels last the value that is so stored."""

    block: Block
    last: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    replaced: list[KernelOp] = field(default_factory=list[KernelOp])

    def assign(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, KernelOp):
                self._kernel(op)
            else:
                self._bring_back(op)
        for kernel in reversed(self.replaced):
            self.block.erase_op(kernel)

    def _kernel(self, kernel: KernelOp) -> None:
        inside = list(kernel.body.block.ops)
        images = any(isinstance(op, ConvolutionOp | BasicPoolingOp) for op in inside)
        follows = any(v in self.last for v in kernel.inputs) and not any(isinstance(op, MatmulOp) for op in inside)
        stored = [self.last.get(v, v) for v in kernel.inputs]
        moved = [i for i, v in enumerate(kernel.inputs) if v in self.last]
        weights = self._weights(kernel, stored)
        outputs = [i for i, v in enumerate(kernel.terminator.values) if (images or follows) and _can_move(kernel, v)]
        if moved or weights or outputs:
            self._rebuild(kernel, stored, moved, weights, outputs)

    def _weights(self, kernel: KernelOp, stored: list[SSAValue]) -> list[int]:
        """Replace weights of convolutions in `stored` by transposed ones; gives their positions."""
        found: list[int] = []
        for op in kernel.body.block.ops:
            weight = op.operands[1] if isinstance(op, ConvolutionOp) else None
            if not isinstance(weight, BlockArgument) or not isinstance(kernel.inputs[weight.index].owner, GetParameterOp):
                continue
            rank = len(static_shape(weight))
            transposed = TransposeOp(kernel.inputs[weight.index], perm=(*range(2, rank), 1, 0))
            transposed.location = op.location
            self.block.insert_op_before(transposed, kernel)
            stored[weight.index] = transposed.results[0]
            found.append(weight.index)
        return found

    def _rebuild(
        self, kernel: KernelOp, stored: Sequence[SSAValue], moved: Sequence[int], weights: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """The kernel on other inputs and with other outputs, transposed at its border."""
        body = kernel.body.block
        for i in (*moved, *weights):
            rank = len(static_shape(body.args[i]))
            _retype_argument(body, i, stored[i], channels_first(rank) if i in moved else (rank - 1, rank - 2, *range(rank - 2)))
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
        for index, value in enumerate(op.operands):
            if value in self.last:
                op.operands[index] = self._channels_first(value, op)

    def _channels_first(self, value: SSAValue, user: Operation) -> SSAValue:
        stored = self.last[value]
        shape = static_shape(stored)
        if shape[-1] == 1 or all(n == 1 for n in shape[1:-1]):
            view = ReshapeOp(stored, shape=static_shape(value))
            self.block.insert_op_before(view, user)
            return view.results[0]
        kernel = _transposition(stored, channels_first(len(shape)))
        self.block.insert_op_before(kernel, user)
        return kernel.results[0]


def channels_last(rank: int) -> tuple[int, ...]:
    """`[n, c, spatial...]` to `[n, spatial..., c]`, as a permutation of `ms.transpose`."""
    return (0, *range(2, rank), 1)


def channels_first(rank: int) -> tuple[int, ...]:
    """`[n, spatial..., c]` to `[n, c, spatial...]`."""
    return (0, rank - 1, *range(1, rank - 1))


def _can_move(kernel: KernelOp, value: SSAValue) -> bool:
    owner = value.owner
    computed = isinstance(value, OpResult) and not isinstance(owner, TransposeOp)
    return computed and len(static_shape(value)) > 2 and list(kernel.terminator.values).count(value) == 1


def _retype_argument(body: Block, index: int, stored: SSAValue, perm: tuple[int, ...]) -> None:
    """Give an argument the type of `stored`; inside, its transposition takes its place."""
    old = body.args[index]
    new = body.insert_arg(stored.type, index)
    new.name_hint = old.name_hint
    view = TransposeOp(new, perm=perm)
    first = body.first_op
    assert first is not None
    body.insert_op_before(view, first)
    old.replace_all_uses_with(view.results[0])
    body.erase_arg(old)


def _transposition(value: SSAValue, perm: tuple[int, ...]) -> KernelOp:
    body = Block(arg_types=[value.type])
    op = TransposeOp(body.args[0], perm=perm)
    body.add_ops([op, YieldOp(op.results[0])])
    return KernelOp("to_channels_first", [value], [op.results[0].type], Region(body))
