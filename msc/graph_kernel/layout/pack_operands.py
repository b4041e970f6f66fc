"""Pass `pack-operands`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import constant_bytes
from msc.analysis.constancy import Constancy
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.cost.register_tiles import keeps_wide_panel, long_row, micro_panel_widths, rows_kept, rows_stream, wide_nr
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.elementwise import IdentityOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.subpixel_convolution import SubpixelConvOp
from msc.dialects.ms.views import ReshapeOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.layout.packing_choice import WASTE, PackingChoice, PackingPlace, is_compared, product_of
from msc.graph_kernel.layout.packings import (
    Packing,
    images_pay,
    matrix_packing,
    packing_pays,
    panel_width,
    transposes_left,
    weight_packing,
)
from msc.graph_kernel.layout.pointwise import runs_along_image
from msc.graph_kernel.layout.stored_inputs import (
    moves_before,
    moving_kernel,
    read_stored,
    repeated,
    transposition_kernel,
)
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape
from msc.schedule.kernel_cycles import KernelCycles
from msc.targets.machine import Machine


@dataclass(frozen=True)
class PackOperands(ModulePass):
    """Store the right operand of contractions as the micro-kernels read it: in panels of columns.

    Takes: kernels. Gives: the same kernels, in which the weights of convolutions lie output channels last and the
    right operands of matrix products rows first, both cut into panels of the width of a register tile, the last
    filled up with zeros; each is read through a view at the kernel's border. Weights are packed at compile time
    (`hoist-parameters` afterwards); others by a kernel in front, where enough rows or places of images use them, of
    one kernel or of all in a block that read the same weight. So is a left operand whose columns are the rows of
    the product, where L1 does not keep a line of each. An `ms.identity` in the kernel itself, which its schedule
    makes a panel at a time, takes the place of that where a panel finds room beside the rows in L2, or no operand
    does, where a transposed operand has whole panels for which there is room on the stack, where rows of the
    caller's lie so that L1 keeps few of them, and where calls decide sizes: views cannot cut what they leave open.
    Keeps: the meaning, bit by bit.
    The target's registers, caches and threads make a first guess. Of a variable right operand that L2 holds and one
    product alone reads, outside of loops, the cost model compares it with the other places on one thread
    (`packing_choice`), unless `compare=false`.
    """

    name = "pack-operands"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        breaks=(WEIGHTS_HOISTED,),
        runs_after={
            "winograd": "the transformed weights are operands of products",
            "store-states": "a weight stored in the order of its reads is not packed",
        },
    )

    compare: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target, constancy = target_of(op), Constancy()
        compare = self.compare and not has_open_sizes(op)
        cycles = KernelCycles.on_one_thread(op)
        between = constant_bytes(value for kernel in kernels_in(op) for value in kernel.inputs)
        for function in op.ops:
            if isinstance(function, FuncOp):
                kernels = kernels_in(function)
                packer = _Packer(target.machine, target.team, constancy, _Readers.of(kernels))
                if compare:
                    choice = PackingChoice(cycles, between, partial(_pack_alone, target.machine))
                    packer.places |= choice.places({k: place for k in kernels if (place := packer.guess_alone(k))})
                for kernel in kernels:
                    packer.pack(kernel)
        cycles.loops.attach(op)


@dataclass
class _Readers:
    """What the products of a function share: variable right operands, that one packing in front serves.

    `rows` counts the rows of all products of a block that read a value, as it is or transposed: those of a recurrence
    read one weight, few rows a step. `packed` has the values that are packed already.
    """

    rows: Counter[tuple[SSAValue, bool, Block | None]] = field(
        default_factory=Counter[tuple[SSAValue, bool, Block | None]]
    )
    packed: dict[tuple[SSAValue, Packing, Block | None], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Packing, Block | None], SSAValue]
    )

    @classmethod
    def of(cls, kernels: Sequence[KernelOp]) -> _Readers:
        """With the rows of all products of these kernels."""
        found = cls()
        for kernel in kernels:
            for op in kernel.body.block.ops:
                right = op.operands[1] if isinstance(op, MatrixProductOp) else None
                if isinstance(op, MatrixProductOp) and isinstance(right, BlockArgument):
                    value = kernel.inputs[right.index]
                    found.rows[value, op.flag("transpose_b"), kernel.parent] += op.result_shape()[-2]
        return found


@dataclass
class _Packer:
    """Packs operands of kernels, those of products in the `places` that are chosen, of others in the first guess."""

    target: Machine
    threads: int
    constancy: Constancy
    readers: _Readers
    places: dict[KernelOp, PackingPlace] = field(default_factory=dict[KernelOp, PackingPlace])

    def pack(self, kernel: KernelOp) -> None:
        """Pack the right operands of a kernel's contractions, and transpose left ones."""
        for op in list(kernel.body.block.ops):
            if isinstance(op, MatrixProductOp):
                _transpose_left(kernel, op, self.target, self.constancy)
            right = op.operands[1] if isinstance(op, ConvolutionOp | SubpixelConvOp | MatrixProductOp) else None
            if not isinstance(right, BlockArgument) or right.uses.get_length() != 1:
                continue
            constant = self.constancy.of(kernel.inputs[right.index])
            if isinstance(op, MatrixProductOp):
                self._pack_product(kernel, op, right, constant)
            elif isinstance(op, ConvolutionOp | SubpixelConvOp) and (constant or images_pay(op, self.target)):
                places = prod(op.shape(0)[2:]) if runs_along_image(kernel) else None
                self._store(kernel, op, right, weight_packing(op, self.target, places), constant)

    def _pack_product(self, kernel: KernelOp, op: MatrixProductOp, right: BlockArgument, constant: bool) -> None:
        place = PackingPlace.IN_FRONT
        if not constant:
            place = self.places.get(kernel) or self._guess(op, kernel.inputs[right.index], kernel.parent)
        if place is PackingPlace.INSIDE:
            _stage(op, right)
        elif place is PackingPlace.IN_FRONT:
            packing = matrix_packing(op, self.target, constant or not has_open_sizes(op))
            if packing is not None:
                self._store(kernel, op, right, packing, constant)

    def guess_alone(self, kernel: KernelOp) -> PackingPlace | None:
        """The first guess for a kernel in no loop, of one product that alone reads its right operand; else None."""
        op, block = product_of(kernel), kernel.parent
        right = None if op is None else op.operands[1]
        if op is None or block is None or not isinstance(block.parent_op(), FuncOp) or not is_compared(op, self.target):
            return None
        if not isinstance(right, BlockArgument) or right.uses.get_length() != 1:
            return None
        value = kernel.inputs[right.index]
        if self.constancy.of(value) or self._rows(op, value, block) != op.result_shape()[-2]:
            return None
        return self._guess(op, value, block)

    def _guess(self, op: MatrixProductOp, value: SSAValue, block: Block | None) -> PackingPlace:
        """Where a product's variable right operand is packed, by the sizes of its rows, panels and caches."""
        rows, cut = self._rows(op, value, block), not has_open_sizes(op)
        if _is_packed_inside(op, value, self.target, self.threads, cut, rows == op.result_shape()[-2]):
            return PackingPlace.INSIDE
        columns = op.shape(1)[-2 if op.flag("transpose_b") else -1]
        return PackingPlace.IN_FRONT if packing_pays(op, columns, self.target, rows) else PackingPlace.NOWHERE

    def _rows(self, op: MatrixProductOp, value: SSAValue, block: Block | None) -> int:
        return self.readers.rows[value, op.flag("transpose_b"), block]

    def _store(self, kernel: KernelOp, op: Operation, right: BlockArgument, packing: Packing, constant: bool) -> None:
        """Let a kernel read an operand in a packing."""
        index, value = right.index, kernel.inputs[right.index]
        place = value, packing, kernel.parent
        stored = None if constant else self.readers.packed.get(place)
        if stored is None:
            stored = self.readers.packed[place] = _stored(value, packing, kernel, op, constant)
        read_stored(kernel.body.block, index, stored, packing.inverse, packing.padded)
        kernel.operands[index] = stored
        _erase_unread(value)


def _pack_alone(target: Machine, kernel: KernelOp, place: PackingPlace) -> None:
    """Pack the operands of a kernel alone in a module for one thread."""
    _Packer(target, 1, Constancy(), _Readers.of([kernel]), {kernel: place}).pack(kernel)


def _transpose_left(kernel: KernelOp, op: MatrixProductOp, target: Machine, constancy: Constancy) -> None:
    """Let a kernel in front transpose a variable left operand whose columns are the rows of the product."""
    left = op.operands[0]
    if not op.flag("transpose_a") or not isinstance(left, BlockArgument) or left.uses.get_length() != 1:
        return
    index, shape = left.index, op.shape(0)
    value = kernel.inputs[index]
    pays = not has_open_sizes(op) and transposes_left(shape, op.result_shape()[-1], op.dtype(0), target)
    if not pays or constancy.of(value):
        return
    rank = len(shape)
    perm = (*range(rank - 2), rank - 1, rank - 2)
    transposed = transposition_kernel("pack", value, perm)
    transposed.location = op.location
    block = kernel.parent
    assert block is not None
    block.insert_op_before(transposed, kernel)
    read_stored(kernel.body.block, index, transposed.results[0], perm)
    kernel.operands[index] = transposed.results[0]


def _stage(op: MatrixProductOp, right: SSAValue) -> None:
    """Let the product read a copy inside the kernel, of which the schedule makes a panel at a time."""
    copy = IdentityOp(right)
    copy.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(copy, op)
    op.operands[1] = copy.results[0]


def _is_packed_inside(
    op: MatrixProductOp, value: SSAValue, target: Machine, threads: int, cut: bool, alone: bool
) -> bool:
    """Whether a panel at a time is as good as all at once, which takes memory for all, or `value` lies badly.

    Or whether copies pay, and views cannot `cut` the operand into panels. `alone`: no other product reads it so.
    """
    *_, rows, columns = op.shape(1)
    if op.flag("transpose_b"):
        return cut and alone and _is_turned_in_panels(op, target, threads)
    if not cut:
        return packing_pays(op, columns, target)
    size, m = BYTES[op.dtype(1)], op.result_shape()[-2]
    far = rows * columns * size > target.l2 // 2 and rows_stream(target, m, rows * size, size)
    return far or _passes_by_again(op, target, threads) or _shares_sets(op, value, target)


def _is_turned_in_panels(op: MatrixProductOp, target: Machine, threads: int) -> bool:
    """Whether panels of a transposed operand find room on the stack, and in L2 while rows pass by, without a tail.

    Threads share the panels evenly.
    """
    *batch, n, k = op.shape(1)
    panel = panel_width(n, op.dtype(1), target, op.result_shape()[-2], k)
    if panel is None or n % panel or not packing_pays(op, n, target):
        return False
    size, panels = panel * k * BYTES[op.dtype(1)], prod(batch) * n // panel
    return size <= min(target.stack_of_places, target.l2 // 2) and _is_even(panels, threads)


def _is_even(panels: int, threads: int) -> bool:
    return -(-panels // threads) * threads <= WASTE * panels


def _passes_by_again(op: MatrixProductOp, target: Machine, threads: int) -> bool:
    """Whether all rows, which are read again for each panel, stay in L2, beside a wide one.

    Threads share the panels evenly.
    """
    *batch, rows, columns = op.shape(1)
    size, m = BYTES[op.dtype(1)], op.result_shape()[-2]
    stays = m * rows * size <= target.l2 // 2 and keeps_wide_panel(target, rows * size, size)
    panels = prod(batch) * -(-columns // (wide_nr(target) * target.lanes(size)))
    return stays and packing_pays(op, columns, target) and _is_even(panels, threads)


def _shares_sets(op: MatrixProductOp, value: SSAValue, target: Machine) -> bool:
    """Whether rows of a panel share sets of L1, and may begin within a line, as the caller's arrays may.

    Then each tile of rows reads all vectors anew from L2, each from two lines, of which prefetches ask
    for one. Rows that are further apart are packed in any case.
    """
    *_, rows, columns = op.shape(1)
    size = BYTES[op.dtype(1)]
    callers = isinstance(value, BlockArgument) and isinstance(value.owner.parent_op(), FuncOp)
    again = op.result_shape()[-2] >= 4 * target.code.packed_rows and columns > micro_panel_widths(target, size)[0]
    return callers and again and columns * size < long_row(target) and rows > rows_kept(target, columns * size)


def _stored(value: SSAValue, packing: Packing, kernel: KernelOp, op: Operation, constant: bool) -> SSAValue:
    """The packed value: operations on a weight, which will be hoisted, else a kernel, of a view where that suffices."""
    block = kernel.parent
    assert block is not None
    source, before = (value, []) if constant else moves_before(value)
    if constant:
        moves: list[Operation] = [*packing.moves(value)]
    elif before:
        moves = [moving_kernel("pack", source, lambda argument: _packed_after(before, packing, argument))]
    elif packing.padded == static_shape(value):
        views = packing.before(value)
        moves = [*views, transposition_kernel("pack", views[-1].results[0] if views else value, packing.perm)]
    else:
        moves = [moving_kernel("pack", value, packing.moves)]
    for moved in moves:
        moved.location = op.location
        block.insert_op_before(moved, kernel)
    return moves[-1].results[0]


def _packed_after(before: Sequence[Operation], packing: Packing, value: SSAValue) -> list[Operation]:
    moves = repeated(before, value)
    return [*moves, *packing.moves(moves[-1].results[0])]


def _erase_unread(value: SSAValue) -> None:
    """Erase what made a value that nothing reads any more, as far back as nothing else reads it."""
    while isinstance(value, OpResult) and isinstance(value.op, KernelOp | ReshapeOp) and value.op.operands:
        op, value = value.op, value.op.operands[0]
        if any(result.uses.get_length() for result in op.results):
            break
        op.detach()
        op.erase()
