"""The body of a loop of the entry function inside a function of its own: the kernels that it calls, inlined.

The classes that build a function decide which buffers it takes, and where the others are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from msc.analysis.kernel_signature import KernelSignature
from msc.dialects.loop import BufferSliceOp, ForOp, LoadOp, StoreOp
from msc.dialects.ms.shapes import Shape
from msc.ir.typed import memref_type, static_shape
from msc.lowering.cpu.affine_bounds import bound_of, whole
from msc.lowering.cpu.outline.independent_loops import BufferAccess, accesses
from msc.lowering.cpu.outline.inlined import BufferView, Inlined, NotOutlined, index_into


@dataclass(frozen=True)
class BufferPart:
    """A part of a buffer from outside or of one of the loop; `prefix` are the entries taken so far, outermost first.

    `counts` are the sizes of the axes that the prefix runs over, `shape` is what is left.
    """

    root: SSAValue
    is_local: bool
    shape: Shape
    prefix: tuple[SSAValue, ...] = ()
    counts: tuple[int, ...] = ()


Parameter = tuple[SSAValue, tuple[int, ...], Shape]
"""A buffer from outside as the function takes it: entries in front, then the shape in which a kernel takes one."""


@dataclass
class LoopBody(ABC):
    """Translates what stands in `loops`, one directly in the other, into the body of a kernel's function."""

    loops: Sequence[scf.ForOp]
    kernels: Mapping[str, func.FuncOp]
    signatures: Mapping[str, KernelSignature]
    places: dict[SSAValue, BufferPart] = field(init=False, default_factory=dict[SSAValue, BufferPart])
    values: dict[SSAValue, SSAValue] = field(init=False, default_factory=dict[SSAValue, SSAValue])
    inputs: dict[Parameter, SSAValue] = field(init=False, default_factory=dict[Parameter, SSAValue])
    callees: dict[str, None] = field(init=False, default_factory=dict[str, None])
    _block: Block = field(init=False, default_factory=Block)

    # What stands where.

    @abstractmethod
    def _outside(self, value: SSAValue) -> BufferPart:
        """The place of a buffer from outside."""

    @abstractmethod
    def _allocated(self, op: memref.AllocOp) -> BufferPart:
        """The place of a buffer that the loop allocates."""

    @abstractmethod
    def _allocate(self, op: memref.AllocOp, block: Block) -> None:
        """Make the place of a buffer that the loop allocates."""

    @abstractmethod
    def _view(self, value: SSAValue, shape: Shape) -> BufferView:
        """Where a parameter of a shape is, if a kernel is given `value` for it."""

    def _place(self, value: SSAValue) -> BufferPart:
        """The place of a buffer of the loop."""
        if value not in self.places:
            self.places[value] = self._found(value)
        return self.places[value]

    def _found(self, value: SSAValue) -> BufferPart:
        owner = value.owner
        if not isinstance(owner, Operation) or not self._is_inside(owner):
            return self._outside(value)
        match owner:
            case memref.AllocOp():
                return self._allocated(owner)
            case memref.ReinterpretCastOp():
                return replace(self._place(owner.source), shape=static_shape(value))
            case BufferSliceOp():
                source = self._place(owner.source)
                prefix, counts = (*source.prefix, owner.index), (*source.counts, source.shape[0])
                return replace(source, shape=source.shape[1:], prefix=prefix, counts=counts)
            case _:
                raise NotOutlined(f"{owner.name} gives a buffer")

    def _is_inside(self, op: Operation) -> bool:
        return self.loops[0].is_ancestor(op)

    def _used(self, op: Operation) -> list[tuple[BufferAccess, Shape]]:
        """What an operation touches, with the shape in which it does; of a loop, what its bounds are read from."""
        if isinstance(op, scf.ForOp):
            return [(BufferAccess(load.memref, False), static_shape(load.memref)) for load in _loads(op.lb, op.ub)]
        found = accesses(op, self.signatures)
        if found is None:
            if isinstance(op, func.CallOp | memref.StoreOp | scf.IfOp | scf.WhileOp):
                raise NotOutlined(f"{op.name} is in the loop")
            return []
        if not isinstance(op, func.CallOp):
            return [(a, static_shape(a.buffer)) for a in found]
        types = self.signatures[op.callee.string_value()].types
        return [(a, static_shape(t)) for a, t in zip(found, types, strict=True)]

    def _within(self, buffer: SSAValue, place: BufferPart, shape: Shape) -> BufferView:
        """A part of a buffer of the function as a kernel takes it, which may have other axes of size 1."""
        prefix = self._numbers_of(place)
        counts, behind = static_shape(buffer)[: len(prefix)], static_shape(buffer)[len(prefix) :]
        if counts != place.counts or [n for n in behind if n > 1] != [n for n in shape if n > 1]:
            raise NotOutlined("a buffer of the function is taken in another shape")
        wide = iter([axis for axis, n in enumerate(shape) if n > 1])
        return BufferView(buffer, prefix, tuple(next(wide) if n > 1 else None for n in behind))

    def _numbers_of(self, place: BufferPart) -> tuple[SSAValue, ...]:
        """The numbers of a place's entries in the function."""
        if any(index not in self.values for index in place.prefix):
            raise NotOutlined("the index of a slice is computed")
        return tuple(self.values[index] for index in place.prefix)

    def _add_argument(self, root: SSAValue, shape: Shape) -> SSAValue:
        type_ = MemRefType(memref_type(root).element_type, shape)
        return self._block.insert_arg(type_, len(self._block.args))

    # The body.

    def _translate(self, source: Block, block: Block) -> None:
        for op in source.ops:
            self._operation(op, block)

    def _operation(self, op: Operation, block: Block) -> None:
        match op:
            case memref.AllocOp():
                self._allocate(op, block)
            case scf.ForOp():
                self._loop(op, block)
            case func.CallOp():
                self._call(op, block)
            case memref.CopyOp():
                self._copy(op, block)
            case scf.YieldOp() | BufferSliceOp() | memref.ReinterpretCastOp() | memref.LoadOp():
                return
            case _ if is_arithmetic(op):
                return
            case _:
                raise NotOutlined(f"{op.name} is in the loop")

    def _loop(self, op: scf.ForOp, block: Block) -> None:
        lower, upper, step = (bound_of(v) or whole(v) for v in (op.lb, op.ub, op.step))
        if op.iter_args or not step.is_one:
            raise NotOutlined("a loop carries values, or takes other steps than 1")
        given = list(dict.fromkeys((*lower.values, *upper.values)))
        first, end = (AffineMap(len(given), 0, bound.over(given)) for bound in (lower, upper))
        numbers = [self._scalar(v, block) for v in given]
        loop = ForOp(first, end, numbers, label=op.body.block.args[0].name_hint or "i")
        loop.location = op.location
        block.add_op(loop)
        self.values[op.body.block.args[0]] = loop.variable
        self._translate(op.body.block, loop.body.block)

    def _scalar(self, value: SSAValue, block: Block) -> SSAValue:
        """A number of the entry function in this one: computed again from what a buffer from outside holds."""
        if value in self.values:
            return self.values[value]
        match value.owner:
            case memref.LoadOp() as op if self._is_readable(op):
                view = self._view(op.memref, static_shape(op.memref))
                new = memref.LoadOp.get(view.buffer, [*view.prefix, *(self._scalar(v, block) for v in op.indices)])
            case Operation() as op if is_arithmetic(op):
                new = op.clone({v: self._scalar(v, block) for v in op.operands})
            case _:
                raise NotOutlined("the bounds of a loop are not computed by arithmetic")
        block.add_op(new)
        self.values[value] = new.results[0]
        return new.results[0]

    def _is_readable(self, op: memref.LoadOp) -> bool:
        """Whether a kernel may read what an operation read, in the loop or in front of it: no loop changes it."""
        place = self._place(op.memref)
        return not place.is_local and (self._is_inside(op) or isinstance(place.root.owner, memref.GetGlobalOp))

    def _call(self, op: func.CallOp, block: Block) -> None:
        name = op.callee.string_value()
        self.callees[name] = None
        kernel = self.kernels[name]
        types = self.signatures[name].types
        views: dict[SSAValue, BufferView] = {
            parameter: self._view(argument, static_shape(type_))
            for parameter, argument, type_ in zip(kernel.body.block.args, op.arguments, types, strict=True)
        }
        Inlined(views).block(kernel.body.block, block)

    def _copy(self, op: memref.CopyOp, block: Block) -> None:
        """Element by element."""
        shape = static_shape(op.source)
        source, view = self._view(op.source, shape), self._view(op.destination, shape)
        variables: list[SSAValue] = []
        for count in shape:
            loop = ForOp(AffineMap.constant_map(0), AffineMap.constant_map(count), label="copy")
            block.add_op(loop)
            variables.append(loop.variable)
            block = loop.body.block
        whole = AffineMap.identity(len(shape))
        load = LoadOp(source.buffer, *index_into(source, whole, variables), memref_type(op.source).element_type)
        block.add_ops([load, StoreOp(load.result, view.buffer, *index_into(view, whole, variables))])


def is_arithmetic(op: Operation) -> bool:
    """Whether an operation computes numbers from numbers."""
    return op.name.startswith("arith.") and not op.regions


def _loads(*values: SSAValue) -> Iterator[memref.LoadOp]:
    """The operations that read what numbers are computed of."""
    for owner in (value.owner for value in values):
        if isinstance(owner, memref.LoadOp):
            yield owner
        elif isinstance(owner, Operation) and is_arithmetic(owner):
            yield from _loads(*owner.operands)
