"""The function of a loop that carries states: the kernels that it calls, inlined between its buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from msc.analysis.index_ranges import index_range, runs
from msc.dialects.loop import ApplyOp
from msc.dialects.ms.shapes import Shape
from msc.ir.typed import static_shape
from msc.lowering.cpu.affine_bounds import bound_of
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.memory.buffer_liveness import loops_around, users_through_views
from msc.lowering.cpu.outline.independent_loops import BufferAccess, accesses, trip_count
from msc.lowering.cpu.outline.inlined import BufferView, NotOutlined
from msc.lowering.cpu.outline.loop_body import BufferPart, LoopBody, Parameter, is_arithmetic
from msc.poly.affine import linear_form


@dataclass(frozen=True)
class _Use:
    """A place that an operation reads or writes, all of it."""

    operation: Operation
    place: BufferPart
    is_written: bool

    def is_ready_for(self, read: _Use) -> bool:
        """Whether what `read` reads is what this one wrote, or a part of it."""
        prefix = read.place.prefix[: len(self.place.prefix)]
        block = self.operation.parent
        same = self.is_written and self.place.root is read.place.root and self.place.prefix == prefix
        return same and block is not None and block.is_ancestor(read.operation)


@dataclass
class RecurrenceFunction(LoopBody):
    """Builds the function of a loop; `starts` are the copies in front of it that give states what they begin with.

    `written` tells in which order the function takes what is written: what anything else uses, the `outputs`, and then
    buffers that it alone uses, be they states or intermediates.
    """

    starts: Sequence[memref.CopyOp]
    written: dict[SSAValue, SSAValue] = field(init=False, default_factory=dict[SSAValue, SSAValue])
    outputs: int = field(init=False, default=0)
    _front: Block = field(init=False, default_factory=Block)

    @property
    def arguments(self) -> list[SSAValue]:
        """What a call gives, maybe in another shape than the function takes."""
        return [*(root for root, _, _ in self.inputs), *self.written]

    def build(self) -> func.FuncOp:
        """The function. Raises NotOutlined."""
        (loop,) = self.loops
        body = self._block
        self._find_parameters([use for op in (*self.starts, *loop.walk()) for use in self._uses(op)])
        for start in self.starts:
            self._copy(start, body)
        self._loop(loop, body)
        for op in reversed(list(self._front.ops)):
            op.detach()
            body.insert_op_before(op, next(iter(body.ops)))
        body.add_op(func.ReturnOp())
        function = func.FuncOp("recurrence", (list(body.arg_types), []), Region(body))
        _erase_unused(function)
        return function

    # What stands where.

    def _outside(self, value: SSAValue) -> BufferPart:
        if isinstance(value.owner, memref.ReinterpretCastOp):
            return replace(self._place(value.owner.source), shape=static_shape(value))
        return BufferPart(value, False, static_shape(value))

    def _found(self, value: SSAValue) -> BufferPart:
        return self._outside(value) if isinstance(value.owner, memref.GetGlobalOp) else super()._found(value)

    def _allocated(self, op: memref.AllocOp) -> BufferPart:
        return BufferPart(op.memref, True, static_shape(op.memref))

    def _uses(self, op: Operation) -> Iterator[_Use]:
        for access, shape in self._used(op):
            yield _Use(op, replace(self._place(access.buffer), shape=shape), access.is_written)

    def _used(self, op: Operation) -> list[tuple[BufferAccess, Shape]]:
        if not isinstance(op, memref.StoreOp):
            return super()._used(op)
        if prod(static_shape(op.memref)) != 1:
            raise NotOutlined("an element of a buffer is written")
        return [(BufferAccess(op.memref, True), static_shape(op.memref))]

    def _find_parameters(self, uses: Sequence[_Use]) -> None:
        """An argument for every buffer that is written, and for each shape in which one that is not is read."""
        written = {use.place.root: use.place for use in uses if use.is_written}
        shared = [root for root in written if self._is_used_elsewhere(root)]
        self._check(uses, written, shared)
        keys = [(use.place.root, use.place.counts, use.place.shape) for use in uses if use.place.root not in written]
        self.inputs |= {key: self._input(key) for key in dict.fromkeys(keys)}
        self.outputs = len(shared)
        for root in (*shared, *(root for root in written if root not in shared)):
            most = max((u.place for u in uses if u.place.root is root), key=lambda place: len(place.prefix))
            self.written[root] = self._add_argument(root, (*most.counts, *most.shape))

    def _input(self, key: Parameter) -> SSAValue:
        root, counts, shape = key
        return self._add_argument(root, (*counts, *shape))

    def _check(self, uses: Sequence[_Use], written: dict[SSAValue, BufferPart], shared: Sequence[SSAValue]) -> None:
        """Raise NotOutlined where the function would have to know what it is not given."""
        changed = {root_buffer(root): root for root in written}
        if any(changed.get(root_buffer(u.place.root), u.place.root) is not u.place.root for u in uses):
            raise NotOutlined("two slices of a buffer are used")
        for k, use in enumerate(uses):
            if use.place.root in written and not use.is_written and not any(w.is_ready_for(use) for w in uses[:k]):
                raise NotOutlined("a state is read that no copy before the loop initializes")
        if any(all(use.place.root is not root or not self._is_whole(use) for use in uses) for root in shared):
            raise NotOutlined("a buffer is not written completely")

    def _is_used_elsewhere(self, root: SSAValue) -> bool:
        if not isinstance(root.owner, memref.AllocOp):
            return True
        return any(op not in self.starts and not self._is_inside(op) for op in users_through_views(root))

    def _is_whole(self, use: _Use) -> bool:
        """Whether all of a buffer is written: at once, or an entry in every iteration of some loops that run."""
        counters = [_counter(i, n) for i, n in zip(use.place.prefix, use.place.counts, strict=True)]
        around = [op for op in loops_around(use.operation, self.loops[0].parent) if self._is_inside(op)]
        always = all(isinstance(op, scf.ForOp) and runs(op) for op in around)
        return use.is_written and always and None not in counters and len(set(counters)) == len(counters)

    def _view(self, value: SSAValue, shape: Shape) -> BufferView:
        place = self._place(value)
        if place.root in self.written:
            return self._within(self.written[place.root], place, shape)
        buffer = self.inputs[place.root, place.counts, shape]
        return BufferView(buffer, self._numbers_of(place), tuple(range(len(shape))))

    # The body.

    def _allocate(self, op: memref.AllocOp, block: Block) -> None:
        """The function is given it."""

    def _operation(self, op: Operation, block: Block) -> None:
        match op:
            case memref.StoreOp():
                view = self._view(op.memref, static_shape(op.memref))
                value, zero = self._scalar(op.value, block), arith.ConstantOp.from_int_and_width(0, IndexType())
                behind = [zero.result for _ in view.axes]
                block.add_ops([zero, memref.StoreOp.get(value, view.buffer, [*view.prefix, *behind])])
            case memref.GetGlobalOp():
                return
            case _ if op.results and op.results[0].uses and (isinstance(op, memref.LoadOp) or is_arithmetic(op)):
                self._scalar(op.results[0], block)
            case _:
                super()._operation(op, block)

    def _scalar(self, value: SSAValue, block: Block) -> SSAValue:
        """In its place where the loop computes it, as an affine index if it is one; else in front of the loop."""
        owner = value.owner
        if value in self.values or isinstance(owner, arith.ConstantOp) or not self._is_own(owner):
            return super()._scalar(value, self._front)
        bound = bound_of(value) if isinstance(value.type, IndexType) else None
        if bound is None or len(bound.exprs) != 1 or not bound.values:
            return super()._scalar(value, block)
        apply = ApplyOp(AffineMap(len(bound.values), 0, bound.exprs), [self._scalar(v, block) for v in bound.values])
        apply.result.name_hint = value.name_hint
        block.add_op(apply)
        self.values[value] = apply.result
        return apply.result

    def _is_own(self, owner: Operation | Block) -> bool:
        return isinstance(owner, Operation) and self._is_inside(owner)

    def _is_readable(self, op: memref.LoadOp) -> bool:
        """What the loop reads is read in its place; what was read before it, where nothing ever writes it."""
        root = root_buffer(op.memref)
        given = isinstance(root, BlockArgument) and all(
            self._only_reads(user, root) for user in users_through_views(root)
        )
        return self._is_inside(op) or given or isinstance(root.owner, memref.GetGlobalOp)

    def _only_reads(self, op: Operation, root: SSAValue) -> bool:
        found = accesses(op, self.signatures)
        return found is not None and not any(a.is_written for a in found if root_buffer(a.buffer) is root)

    def _numbers_of(self, place: BufferPart) -> tuple[SSAValue, ...]:
        return tuple(self._scalar(index, self._front) for index in place.prefix)


def _counter(index: SSAValue, count: int) -> SSAValue | None:
    """The counter of a loop of `count` iterations if an index takes each of as many values once."""
    bound = bound_of(index)
    if bound is None or len(bound.exprs) != 1 or len(bound.values) != 1 or index_range(index) != (0, count - 1):
        return None
    form, loop = linear_form(bound.exprs[0]), bound.values[0].owner.parent_op()
    steps = None if form is None else form.coefficients.get(0)
    runs_over = isinstance(loop, scf.ForOp) and trip_count(loop) == count and isinstance(bound.values[0], BlockArgument)
    return bound.values[0] if runs_over and steps in (1, -1) else None


def _erase_unused(function: func.FuncOp) -> None:
    """Erase numbers that nothing needs: those that only views were computed of."""
    for op in reversed(list(function.walk())):
        is_number = isinstance(op, ApplyOp) or is_arithmetic(op)
        if is_number and op.parent is not None and not op.results[0].uses:
            op.parent.erase_op(op)
