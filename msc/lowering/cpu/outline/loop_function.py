"""One function of a loop of the entry function: the kernels that it calls, inlined between local arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.loop import ApplyOp, ForOp
from msc.dialects.ms.shapes import Shape
from msc.ir.typed import memref_type, static_shape
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.outline.independent_loops import trip_count
from msc.lowering.cpu.outline.inlined import BufferView, NotOutlined
from msc.lowering.cpu.outline.loop_body import BufferPart, LoopBody, Parameter


@dataclass
class LoopFunction(LoopBody):
    """Builds the function of `loops`, all of independent iterations.

    `leader` gives for an allocation the one whose memory it shares.
    """

    leader: Callable[[memref.AllocOp], memref.AllocOp]
    outputs: dict[Parameter, SSAValue] = field(init=False, default_factory=dict[Parameter, SSAValue])

    @property
    def loop(self) -> ForOp:
        """The loop over the iterations."""
        return next(op for op in self._block.ops if isinstance(op, ForOp))

    def build(self) -> func.FuncOp:
        """The function; `inputs` and `outputs` then tell what a call gives it. Raises NotOutlined."""
        body = self._block
        counts = [trip_count(loop) or 0 for loop in self.loops]
        total = 1
        for count in counts:
            total *= count
        loop = ForOp(AffineMap.constant_map(0), AffineMap.constant_map(total), (), label="block")
        self._find_parameters()
        body.add_op(loop)
        self._numbers(loop, counts)
        self._translate(self.loops[-1].body.block, loop.body.block)
        body.add_op(func.ReturnOp())
        return func.FuncOp("loops", (list(body.arg_types), []), Region(body))

    def _numbers(self, loop: ForOp, counts: Sequence[int]) -> None:
        """The numbers of the loops from that of the one loop that stands for all."""
        inner = 1
        for around, count in reversed(list(zip(self.loops, counts, strict=True))):
            number = AffineExpr.dimension(0) // inner if inner > 1 else AffineExpr.dimension(0)
            number = number % count if around is not self.loops[0] else number
            old = around.body.block.args[0]
            if len(counts) == 1:
                self.values[old] = loop.variable
                continue
            apply = ApplyOp(AffineMap(1, 0, (number,)), [loop.variable])
            apply.result.name_hint = old.name_hint or "i"
            loop.body.block.add_op(apply)
            self.values[old] = apply.result
            inner *= count

    # What stands where.

    def _outside(self, value: SSAValue) -> BufferPart:
        return BufferPart(value, False, static_shape(value))

    def _allocated(self, op: memref.AllocOp) -> BufferPart:
        return BufferPart(self.leader(op).memref, True, static_shape(op.memref))

    def _find_parameters(self) -> None:
        """An argument for every buffer from outside, in each shape in which a kernel takes it; outputs come last."""
        for op in self.loops[0].body.walk():
            for access, shape in self._used(op):
                place = self._place(access.buffer)
                if not place.is_local:
                    group = self.outputs if access.is_written else self.inputs
                    group.setdefault((place.root, place.counts, shape), place.root)
        if {root for root, _, _ in self.inputs} & {root for root, _, _ in self.outputs}:
            raise NotOutlined("a buffer is read and written")
        for group in (self.inputs, self.outputs):
            for root, counts, shape in list(group):
                argument = self._add_argument(root, (*counts, *shape))
                argument.name_hint = root_buffer(root).name_hint
                group[root, counts, shape] = argument

    def _view(self, value: SSAValue, shape: Shape) -> BufferView:
        """Where a parameter of a shape is, if a kernel is given `value` for it."""
        place = self._place(value)
        if place.is_local:
            return self._within(self.values[place.root], place, shape)
        key = (place.root, place.counts, shape)
        buffer = self.inputs[key] if key in self.inputs else self.outputs[key]
        return BufferView(buffer, self._numbers_of(place), tuple(range(len(shape))))

    def _allocate(self, op: memref.AllocOp, block: Block) -> None:
        if self.leader(op) is not op:
            return
        local = memref.AllocaOp.get(memref_type(op.memref).element_type, shape=list(static_shape(op.memref)))
        local.memref.name_hint = op.memref.name_hint or "local"
        block.add_op(local)
        self.values[op.memref] = local.memref
