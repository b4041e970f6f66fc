"""From areas to `gk.kernel` operations: inputs, copies of constants, results, and a topological order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import groupby

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from msc.analysis.patterns import Pattern
from msc.dialects.gk import KernelOp, KernelYieldOp
from msc.dialects.gk.attributes import GK_PATTERN, GK_REASONS
from msc.dialects.ms.attributes import MS_ORIGIN
from msc.dialects.ms.structure import ConstantOp
from msc.graph_kernel.fusion.areas import Area, AreaGraph
from msc.ir.locations import fused_location


def build_kernels(graph: AreaGraph) -> None:
    """Put each fusible area into a kernel, and the block into an order in which values stand before their uses."""
    block, order = graph.block, _topological(graph)
    constants = [op for op in block.ops if isinstance(op, ConstantOp)]
    terminator = block.last_op
    for op in [*constants, *(_as_operation(area) for area in order)]:
        if op is not terminator:
            _move_to_end(block, op, terminator)
    for constant in constants:
        if not constant.result.uses:
            block.erase_op(constant)


def _move_to_end(block: Block, op: Operation, terminator: Operation | None) -> None:
    if op.parent is not None:
        op.detach()
    if terminator is None:
        block.add_op(op)
    else:
        block.insert_op_before(op, terminator)


def _topological(graph: AreaGraph) -> list[Area]:
    """Kahn's order; among those that are ready, the one whose first operation stood first."""
    areas = {area.first: area for area in graph.areas()}
    waiting = {area: len(graph.producers(area)) for area in areas.values()}
    ready = [area.first for area, count in waiting.items() if count == 0]
    heapify(ready)
    order: list[Area] = []
    while ready:
        area = areas[heappop(ready)]
        order.append(area)
        for user in graph.users(area):
            waiting[user] -= 1
            if waiting[user] == 0:
                heappush(ready, user.first)
    return order


def _as_operation(area: Area) -> Operation:
    if area.fusible:
        return _kernel(area)
    area.anchor.attributes.pop(MS_ORIGIN, None)
    return area.anchor


def _kernel(area: Area) -> KernelOp:
    outputs = _outputs(area)
    inputs = _inputs(area)
    body = Block(arg_types=[value.type for value in inputs])
    kernel = KernelOp(_label(area), inputs, [value.type for value in outputs], Region(body))
    kernel.location = fused_location(op.location for op in area.ops)
    kernel.attributes |= _record(area)
    for op in area.ops:
        op.detach()
        op.attributes.pop(MS_ORIGIN, None)
        body.add_op(op)
    _connect(kernel, inputs, outputs)
    return kernel


def _label(area: Area) -> str:
    """What expanders add to move data around a composite operation shows in the label: `conv2d_pad`."""
    origin, name = label_of(area.ops), area.anchor.name.removeprefix("ms.")
    moves = len(area.ops) == 1 and area.kind in (Pattern.MOVEMENT, Pattern.OPAQUE)
    return f"{origin}_{name}" if moves and origin != name else origin


def _record(area: Area) -> dict[str, StringAttr | ArrayAttr[StringAttr]]:
    reasons = ArrayAttr([StringAttr(reason) for reason in area.reasons])
    return {GK_PATTERN: StringAttr(area.kind.name.lower())} | ({GK_REASONS: reasons} if area.reasons else {})


def _inputs(area: Area) -> list[SSAValue]:
    """What comes from outside, except constants, in the order of use."""
    members = set(area.ops)
    used = dict.fromkeys(value for op in area.ops for value in op.operands)
    return [v for v in used if not (isinstance(v, OpResult) and (v.op in members or isinstance(v.op, ConstantOp)))]


def _outputs(area: Area) -> list[OpResult]:
    """The results that are used outside; those of an area that nobody uses are all kept."""
    members = set(area.ops)
    results = [result for op in area.ops for result in op.results]
    used = [r for r in results if any(use.operation not in members for use in r.uses)]
    return used or list(area.ops[-1].results)


def _connect(kernel: KernelOp, inputs: list[SSAValue], outputs: list[OpResult]) -> None:
    """Make the inside use the arguments and copies of constants, and the outside use the results."""
    body = kernel.body.block
    inside = set(body.ops)
    for value, argument in zip(inputs, body.args, strict=True):
        argument.name_hint = value.name_hint
    _replace_operands(body, dict(zip(inputs, body.args, strict=True)))
    for value, result in zip(outputs, kernel.outputs, strict=True):
        result.name_hint = value.name_hint
        value.replace_uses_with_if(result, lambda use: use.operation not in inside)
    _copy_constants(body)
    body.add_op(KernelYieldOp(*outputs))


def _copy_constants(body: Block) -> None:
    """Before the first use of each constant in the text: a copy of it."""
    inside = set(body.ops)
    copies: dict[SSAValue, SSAValue] = {}
    for op in body.ops:
        for value in op.operands:
            if isinstance(value, OpResult) and value.op not in inside and value not in copies:
                copy = value.op.clone()
                copy.results[0].name_hint = value.name_hint
                body.insert_op_before(copy, op)
                copies[value] = copy.results[0]
    _replace_operands(body, copies)


def _replace_operands(body: Block, replacements: Mapping[SSAValue, SSAValue]) -> None:
    """In a block alone: what is used in many kernels has too many uses to look through in each."""
    for op in body.ops:
        for k, value in enumerate(op.operands):
            if value in replacements:
                op.operands[k] = replacements[value]


LABEL_LENGTH = 48
"""Longer labels are cut; they become parts of C names."""


def origin_of(op: Operation) -> str:
    """The short name of the operation that the user wrote."""
    attribute = op.attributes.get(MS_ORIGIN)
    return attribute.data if isinstance(attribute, StringAttr) else op.name.removeprefix("ms.")


def label_of(ops: Iterable[Operation]) -> str:
    """The origins of a kernel's operations in order, without repetitions: `conv2d_add_relu`."""
    names = [name for name, _ in groupby(map(origin_of, ops))]
    label = names[0]
    for name in names[1:]:
        if len(label) + len(name) + 1 > LABEL_LENGTH - 4:
            return f"{label}_etc"
        label = f"{label}_{name}"
    return label
