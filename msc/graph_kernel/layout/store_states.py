"""Pass `store-states`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.analysis.target import target_of
from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_PATTERN
from msc.dialects.ms.attributes import MS_NAME
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.subpixel_convolution import SubpixelConvOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.kernel_results import add_reason
from msc.graph_kernel.layout.packings import images_pay, packing_pays, weight_packing
from msc.graph_kernel.layout.pointwise import runs_along_image
from msc.graph_kernel.layout.stored_inputs import only_moves, read_stored, transposition_kernel
from msc.graph_kernel.layout.transposed_updates import Order, Update, product_like, retyped
from msc.ir.contracts import Contract
from msc.ir.donation import updates
from msc.ir.entry import entries
from msc.ir.storage_order import LAYOUT, inverse, is_any, note_order
from msc.ir.typed import element_type, static_shape
from msc.targets.machine import Machine

_ANY_ORDER = ("elementwise", "reduce")
"""Patterns of kernels that read a tensor in any order."""


@dataclass(frozen=True)
class StoreStates(ModulePass):
    """Let weights under training lie in memory as the products of a step read them.

    Takes: kernels of entry functions, whose updated arguments may leave the order of their axes open
    (`ms.layout = "any"`). Gives: the same kernels, where such an argument that a product would transpose, and no other
    product reads as it is, lies in the order of that product (`ms.layout = [1, 0]`), from call to call: nothing packs
    it. Its update computes on transposed tensors, and the momenta of that update lie as the weight does. Other kernels
    read it through a view. Loops that carry such arguments from step to step carry them in that order.
    Arguments whose update would have to transpose a gradient for that stay as they are.
    Keeps: the meaning, on arguments and results in that order.
    """

    name = "store-states"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={"assign-layouts": "the layout of a gradient decides whether its update can be transposed"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op).machine
        for function in entries(op):
            for weight in open_states(function):
                order = _wanted_order(weight, target)
                states = _updated_with(weight)
                if order is not None and states and _update(states).can_transpose(order, target):
                    _store(weight, states, order)


def _wanted_order(weight: State, target: Machine) -> Order | None:
    """The order in which the products of a step read a weight; None where one reads it as it is."""
    orders = set[Order]()
    for use in weight.old.uses:
        kernel = use.operation
        if isinstance(kernel, ReshapeOp) or kernel is weight.new.owner:
            continue
        product = _product_of(kernel, use.index)
        if product is None:
            if not isinstance(kernel, KernelOp) or not _reads_in_any_order(kernel):
                return None
        else:
            assert isinstance(kernel, KernelOp)
            order = _order_of(kernel, product, use.index, target)
            if order is None:
                return None
            orders.add(order)
    return orders.pop() if len(orders) == 1 else None


def _product_of(user: Operation, index: int) -> Operation | None:
    """The product, or the first of them, in a kernel that reads its input `index`."""
    if not isinstance(user, KernelOp):
        return None
    readers = (use.operation for use in user.body.block.args[index].uses)
    return next((op for op in readers if isinstance(op, MatrixProductOp | ConvolutionOp | SubpixelConvOp)), None)


def _reads_in_any_order(kernel: KernelOp) -> bool:
    pattern = kernel.attributes.get(GK_PATTERN)
    return only_moves(kernel) or getattr(pattern, "data", None) in _ANY_ORDER


def _order_of(kernel: KernelOp, op: Operation, index: int, target: Machine) -> Order | None:
    """The order in which a product reads its right operand, if that is another one, and packing would pay."""
    right = kernel.body.block.args[index]
    if right.uses.get_length() != 1 or op.operands[1] is not right:
        return None
    if isinstance(op, MatrixProductOp):
        *_, columns, _ = op.shape(1)
        rank = len(op.shape(1))
        pays = op.flag("transpose_b") and packing_pays(op, columns, target)
        return (*range(rank - 2), rank - 1, rank - 2) if pays else None
    assert isinstance(op, ConvolutionOp | SubpixelConvOp)
    places = prod(op.shape(0)[2:]) if runs_along_image(kernel) else None
    packing = weight_packing(op, target, places)
    turns = packing.split == op.shape(1) and packing.perm != tuple(range(len(packing.perm)))
    return packing.perm if turns and images_pay(op, target) else None


def _updated_with(weight: State) -> list[State]:
    """All states that the kernel which updates a weight reads and updates, and nothing else reads; none without it."""
    kernel = weight.new.owner
    if not isinstance(kernel, KernelOp):
        return []
    return [
        state
        for state in open_states(weight.function)
        if state.new.owner is kernel
        and state.new.uses.get_length() == 1
        and state.old.type == weight.old.type
        and (state.argument == weight.argument or all(use.operation is kernel for use in state.old.uses))
    ]


def _update(states: Sequence[State]) -> Update:
    kernel = states[0].new.owner
    assert isinstance(kernel, KernelOp)
    return Update(kernel, [state.old for state in states], [state.new for state in states])


def _store(weight: State, states: Sequence[State], order: Order) -> None:
    """Let the weight, and the other states of its update, lie in another order."""
    for state in states:
        state.transpose(order)
    update = _update(states)
    _note_reasons(weight, order)
    _read_elsewhere(weight.old, update.kernel, inverse(order))
    update.transpose(order)
    weight.function.update_function_type()


def _note_reasons(weight: State, order: Order) -> None:
    """Record at each product that reads the weight the bytes that it need not pack."""
    assert weight.function.arg_attrs is not None
    name = weight.function.arg_attrs.data[weight.argument].data.get(MS_NAME)
    called = name.data if isinstance(name, StringAttr) else weight.old.name_hint or f"input {weight.argument}"
    size = prod(static_shape(weight.old)) * BYTES[dtype_name(element_type(weight.old)) or ""]
    stored = f"{called} is stored between calls in the order of its reads, axes {list(order)}"
    reason = f"{stored}: {size} bytes are not packed in each call"
    for use in weight.old.uses:
        kernel = use.operation
        if isinstance(kernel, KernelOp) and _product_of(kernel, use.index) is not None:
            add_reason(kernel, reason)


def _read_elsewhere(stored: SSAValue, update: KernelOp, back: Order) -> None:
    """Let all but the update see the weight in its own order."""
    for use in list(stored.uses):
        user = use.operation
        product = _product_of(user, use.index)
        if user is update:
            continue
        if isinstance(product, MatrixProductOp):
            assert isinstance(user, KernelOp)
            _read_in_order(user, use.index, product, stored)
        elif isinstance(user, KernelOp) and not only_moves(user):
            read_stored(user.body.block, use.index, stored, back)
        else:
            _give_transposed(user, use.index, stored, back)


def _read_in_order(kernel: KernelOp, index: int, product: MatrixProductOp, stored: SSAValue) -> None:
    """Let a product take the stored weight as its right operand, without a transposition."""
    right = Rewriter.replace_value_with_new_type(kernel.body.block.args[index], stored.type)
    Rewriter.replace_op(product, product_like(product, product.a, right, transpose_a=product.flag("transpose_a")))


def _give_transposed(user: Operation, index: int, stored: SSAValue, back: Order) -> None:
    """Give an operation that moves the weight a transposed one, which `pack-operands` makes one kernel with it."""
    transposed = transposition_kernel("unpack", stored, back)
    transposed.location = user.location
    block = user.parent
    assert block is not None
    block.insert_op_before(transposed, user)
    user.operands[index] = transposed.results[0]


# States of a model at their reads and updates: in an entry function, or in the loop of steps that carries them.
@dataclass(frozen=True)
class State:
    """An updated argument of a function whose order of axes is the compiler's to choose.

    `block` is the innermost one that carries it: its argument `index` is the old value, operand `position` of its
    terminator the new one. `outside` are the values that hold it around that block.
    """

    function: FuncOp
    argument: int
    block: Block
    index: int
    position: int
    outside: tuple[SSAValue, ...] = ()

    @property
    def old(self) -> BlockArgument:
        """What a step reads."""
        return self.block.args[self.index]

    @property
    def new(self) -> SSAValue:
        """What a step makes of it."""
        return _end_of(self.block).operands[self.position]

    def transpose(self, order: Order) -> None:
        """Let it lie in an order, wherever it is carried; what computes the new value is not changed."""
        note_order(self.function, self.argument, order)
        for value in (*self.outside, self.old):
            retyped(value, order)


def open_states(function: FuncOp) -> Iterator[State]:
    """The updated arguments whose order is open, and of which no size is."""
    given = function.arg_attrs.data if function.arg_attrs is not None else ()
    end = _end_of(function.body.block)
    assert isinstance(end, ReturnOp)
    for result, argument in updates(function).items():
        if is_any(function, argument) and set(given[argument].data) <= {MS_NAME, LAYOUT}:
            yield _innermost(State(function, argument, function.body.block, argument, result))


def _innermost(state: State) -> State:
    """The state in the loop that carries it, if nothing beside the loop reads it."""
    if state.old.uses.get_length() != 1 or state.new.uses.get_length() != 1:
        return state
    (use,) = state.old.uses
    match use.operation:
        case scf.WhileOp() as loop:
            inside = _in_while(state, loop, use.index)
        case scf.ForOp() as loop:
            inside = _in_for(state, loop, use.index)
        case _:
            inside = None
    return state if inside is None else _innermost(inside)


def _in_while(state: State, loop: scf.WhileOp, operand: int) -> State | None:
    tested = loop.before_region.block.args[operand]
    passed = [use for use in tested.uses if isinstance(use.operation, scf.ConditionOp)]
    if len(passed) != 1 or tested.uses.get_length() != 1:
        return None
    index = passed[0].index - 1
    if state.new is not loop.results[index]:
        return None
    outside = (*state.outside, state.old, tested, state.new)
    return State(state.function, state.argument, loop.after_region.block, index, operand, outside)


def _in_for(state: State, loop: scf.ForOp, operand: int) -> State | None:
    bounds = len(loop.operands) - len(loop.iter_args)
    index = operand - bounds
    if index < 0 or state.new is not loop.results[index]:
        return None
    outside = (*state.outside, state.old, state.new)
    return State(state.function, state.argument, loop.body.block, index + 1, index, outside)


def _end_of(block: Block) -> Operation:
    end = block.last_op
    assert end is not None
    return end
