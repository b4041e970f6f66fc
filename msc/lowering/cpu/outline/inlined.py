"""Bodies of kernel functions, copied into another function with other buffers as their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.utils.hints import isa

from msc.analysis.kernel_signature import calls_of
from msc.dialects.loop import CallRowsOp, ForOp, PrefetchOp
from msc.dialects.loop.accesses import AccessOp, access_properties
from msc.dialects.loop.attributes import LOOP_CALLS, LOOP_ORIGIN
from msc.poly.affine import simplified


class NotOutlined(Exception):
    """What should become one function stays as it is; the message says why."""


@dataclass(frozen=True)
class BufferView:
    """A kernel's parameter as a part of a buffer of the function: the buffer, indices in front, the axes behind them.

    `axes` says for each axis of the buffer behind the prefix which axis of the parameter it is; None for one of size 1.
    `blocks` are axes of the parameter of which the buffer has one block only, with its number and size.
    """

    buffer: SSAValue
    prefix: tuple[SSAValue, ...]
    axes: tuple[int | None, ...]
    blocks: Mapping[int, tuple[SSAValue, int]] = field(default_factory=dict[int, tuple[SSAValue, int]])


@dataclass
class Inlined:
    """Copies the body of a kernel, whose parameters are the `views`."""

    views: dict[SSAValue, BufferView]
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def block(self, source: Block, block: Block) -> None:
        """Copy all of `source` to the end of `block`."""
        self.operations(source.ops, block)

    def operations(self, source: Iterable[Operation], block: Block) -> None:
        """Copy some operations to the end of `block`."""
        for op in source:
            if isinstance(op, func.ReturnOp):
                continue
            new = self._operation(op)
            new.attributes |= op.attributes
            new.location = op.location
            for old, result in zip(op.results, new.results, strict=True):
                result.name_hint = old.name_hint
                self.values[old] = result
            block.add_op(new)

    def _operation(self, op: Operation) -> Operation:
        match op:
            case ForOp():
                return self._loop(op)
            case AccessOp() if op.buffer in self.views:
                return self._access(op, self.views[op.buffer])
            case memref.LoadOp() if op.memref in self.views:
                view = self.views[op.memref]
                return memref.LoadOp.get(view.buffer, self._indices(op, view, op.indices))
            case memref.StoreOp() if op.memref in self.views:
                view = self.views[op.memref]
                return memref.StoreOp.get(self._value(op.value), view.buffer, self._indices(op, view, op.indices))
            case _ if op.regions or isinstance(op, CallRowsOp):
                raise NotOutlined(f"{op.name} is in a kernel")
            case _:
                return op.clone(value_mapper=self.values)

    def _value(self, value: SSAValue) -> SSAValue:
        return self.values.get(value, value)

    def _loop(self, op: ForOp) -> Operation:
        values = [self._value(v) for v in op.values]
        label = op.label.data if op.label is not None else None
        least = op.least.value.data if op.least is not None else 0
        kind, unit = op.kind.data, op.unit.data if op.unit is not None else ""
        new = ForOp(op.lower.data, op.upper.data, values, op.step.value.data, kind, label, least=least, unit=unit)
        new.variable.name_hint = op.variable.name_hint
        self.values[op.variable] = new.variable
        self.block(op.body.block, new.body.block)
        return new

    def _access(self, op: AccessOp, view: BufferView) -> Operation:
        map_, indices = index_into(view, op.map, [self._value(v) for v in op.indices])
        steps = op.lane_steps
        lanes = [*(0 for _ in view.prefix), *(0 if axis is None else steps[axis] for axis in view.axes)]
        kept = {name: a for name, a in op.properties.items() if name not in ("index", "lanes")}
        if isinstance(op, PrefetchOp):
            ahead = _over(op.ahead, [self._value(v) for v in op.indices], indices)
            kept["ahead"] = AffineMapAttr(AffineMap(len(indices), 0, (ahead,)))
        before = [self._value(v) for v in op.operands[: len(op.operands) - len(op.indices) - 1]]
        return type(op).create(
            operands=[*before, view.buffer, *indices],
            properties={**kept, **access_properties(map_, lanes, None)},
            result_types=[result.type for result in op.results],
        )

    def _indices(self, op: Operation, view: BufferView, given: Sequence[SSAValue]) -> list[SSAValue]:
        if None in view.axes or not view.blocks.keys().isdisjoint(view.axes):
            raise NotOutlined(f"{op.name} reads a local array in another shape")
        return [*view.prefix, *(self._value(given[axis]) for axis in view.axes if axis is not None)]


def index_into(view: BufferView, map_: AffineMap, indices: Sequence[SSAValue]) -> tuple[AffineMap, list[SSAValue]]:
    """An index into a parameter as one into what stands for it."""
    values = list(dict.fromkeys((*view.prefix, *(number for number, _ in view.blocks.values()), *indices)))
    inner = [_over(expr, indices, values) for expr in map_.results]
    for axis, (number, size) in view.blocks.items():
        inner[axis] = simplified(inner[axis] - AffineExpr.dimension(values.index(number)) * size)
    behind = (AffineExpr.constant(0) if axis is None else inner[axis] for axis in view.axes)
    front = (AffineExpr.dimension(values.index(v)) for v in view.prefix)
    return AffineMap(len(values), 0, (*front, *behind)), values


def _over(expr: AffineExpr, given: Sequence[SSAValue], values: Sequence[SSAValue]) -> AffineExpr:
    """An expression over some values as one over others among which they are."""
    return expr.replace_dims_and_symbols([AffineExpr.dimension(values.index(v)) for v in given], [])


def note_kernels(function: func.FuncOp, kernels: Sequence[func.FuncOp]) -> None:
    """Write on a function how many calls of kernels' functions it stands for, and where their operations come from."""
    function.attributes[LOOP_CALLS] = IntegerAttr(sum(map(calls_of, kernels)), i64)
    origins = dict.fromkeys(origin for kernel in kernels for origin in _strings(kernel, LOOP_ORIGIN))
    function.attributes[LOOP_ORIGIN] = ArrayAttr([StringAttr(origin) for origin in origins])


def _strings(op: Operation, name: str) -> list[str]:
    attribute = op.attributes.get(name)
    return [item.data for item in attribute] if isa(attribute, ArrayAttr[StringAttr]) else []
