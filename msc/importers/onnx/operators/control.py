"""Control flow: what is known at import is decided there, all else becomes `scf.if`, `scf.for` and `scf.while`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block

from msc.dialects import ms
from msc.importers.failures import NeedsValues
from msc.importers.onnx.counted import counted, refused
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.loops import (
    SHORT,
    ChangingValue,
    Collected,
    Iteration,
    WrittenLoop,
    iterate,
    scalar_of,
)
from msc.importers.onnx.operators.movement import cut, transposed
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import Count, OnnxValue, Slot, TensorSequence
from msc.support.diagnostics import DecidedByCall, MscError

MAXIMUM_UNROLLED = 4096
"""Copies of a body that cannot be a loop."""

MAXIMUM_COLLECTED = 1 << 16
"""Values that a loop collects for which there is memory, where data decide how many there are."""


@importer("If")
def _if(node: Node) -> Sequence[Slot]:
    """The branch that a known condition chooses, or both as branches; a choice between values where both are empty."""
    condition = node[0]
    if condition.array is not None:
        return node.run_graph(node.graph("then_branch" if condition.array.item() else "else_branch"), [])
    blocks: list[Block] = []
    branches = [_branch(node, condition, name, blocks) for name in ("then_branch", "else_branch")]
    pairs = [(a, b) for a, b in zip(*branches, strict=True) if isinstance(a, OnnxValue) and isinstance(b, OnnxValue)]
    if len(pairs) < len(branches[0]) or any(a.type != b.type or a.narrow != b.narrow for a, b in pairs):
        _erase(blocks)
        node.known_value(condition, "condition, since the branches give results of different types,")
    if all(not block.ops for block in blocks):
        chosen = node.reshape(condition, ())
        return [node(ms.SelectOp, chosen, a, b) for a, b in pairs]
    for block, values in zip(blocks, zip(*pairs, strict=True), strict=True):
        block.add_op(scf.YieldOp(*map(node.builder.ssa, values)))
    op = node.builder.insert(scf.IfOp(scalar_of(node, condition), [a.type for a, _ in pairs], [blocks[0]], [blocks[1]]))
    return [
        OnnxValue(a.type, ssa=r, depends=condition.depends | a.depends | b.depends, narrow=a.narrow)
        for (a, b), r in zip(pairs, op.results, strict=True)
    ]


def _branch(node: Node, condition: OnnxValue, name: str, blocks: list[Block]) -> Sequence[Slot]:
    """The values of a branch; its block is added to `blocks`, all of which go if it cannot be written.

    A branch that no call takes may be wrong for the sizes of the others: the condition decides then, if inputs give
    it. Raises NeedsValues.
    """
    block = Block()
    try:
        with node.builder.inside(block):
            values = node.run_graph(node.graph(name), [])
    except MscError as error:
        _erase(blocks)
        if condition.depends and not isinstance(error, DecidedByCall):
            reason = error.diagnostics[0].message
            node.known_value(condition, f"condition, since its {name} cannot be imported ({reason}),")
        raise
    blocks.append(block)
    return values


def _erase(blocks: Sequence[Block]) -> None:
    for block in blocks:
        block.erase(safe_erase=False)


@importer("Loop")
def _loop(node: Node) -> Sequence[Slot]:
    """A loop, or copies of its body: these if there are few, or if the body needs values that only they know."""
    limit = node.get(0)
    short = limit is not None and limit.array is not None and int(limit.array.item()) <= SHORT
    unrolls = short and not node.builder.has_open_sizes
    return _first_possible([_unrolled, _written] if unrolls else [_written, _unrolled], node)


def _first_possible(forms: Sequence[Callable[[Node], Sequence[Slot]]], node: Node) -> Sequence[Slot]:
    """The first form of a loop that can be imported.

    Raises NeedsValues for inputs whose values would make one possible, with the reasons against the other; else the
    error of the first.
    """
    errors: list[NeedsValues | ChangingValue] = []
    for form in forms:
        try:
            return form(node)
        except (NeedsValues, ChangingValue) as error:
            errors.append(error)
    helpful = next((e for e in errors if isinstance(e, NeedsValues) and e.inputs), None)
    if helpful is None:
        raise errors[0]
    notes = [e.diagnostics[0].message for e in errors if e is not helpful]
    raise NeedsValues(replace(helpful.diagnostics[0], notes=tuple(notes)), helpful.inputs)


def _written(node: Node) -> Sequence[Slot]:
    """The loop: counted if its condition always holds, else while it holds."""
    limit, first = node.get(0), node.get(1) or node.scalar(True, "i1")
    carried = [_tensor(node, slot) for slot in node.inputs[2:]]
    count = int(limit.array.item()) if limit is not None and limit.array is not None else None
    conditions: list[OnnxValue] = []

    def body(step: Iteration, values: Sequence[OnnxValue]) -> tuple[Sequence[OnnxValue], Sequence[Collected]]:
        again, *results = node.run_graph(node.graph("body"), [step.number(), node.scalar(True, "i1"), *values])
        tensors = [_tensor(node, slot) for slot in results]
        conditions.append(_tensor(node, again))
        if len(tensors) > len(values):
            _check_collecting(node, limit)
        return tensors[: len(values)], [Collected(v) for v in tensors[len(values) :]]

    if (first.array is not None and not first.array.all()) or count == 0:
        return _unrolled(node)
    loop = WrittenLoop(node, carried, body, count)
    if _holds(first) and _holds(conditions[0]) and limit is not None:
        finals, stacks = loop.repeat(limit if count is None else count)
        return [*finals, *stacks]
    (finals, stacks), ran = loop.repeat_while(first, conditions[0], limit)
    return [*finals, *(counted(stack, {0: Count(ran, node.label)}) for stack in stacks)]


def _check_collecting(node: Node, limit: OnnxValue | None) -> None:
    """What a loop collects has a size that is known: that of its iterations at most. Raises NeedsValues."""
    most = None if limit is None else node.known_value(limit, "trip count, which is how many values are collected,")
    if most is None or int(most.item()) > MAXIMUM_COLLECTED:
        raise refused(node, f"it collects more than {MAXIMUM_COLLECTED} values, or nothing says how many at most")


def _holds(condition: OnnxValue) -> bool:
    return condition.array is not None and bool(condition.array.all())


def _tensor(node: Node, slot: Slot) -> OnnxValue:
    """A value that a loop may carry. Raises ChangingValue for a sequence, whose length is known at import only."""
    if isinstance(slot, OnnxValue):
        return slot
    kind = "a sequence" if isinstance(slot, TensorSequence) else "an absent optional"
    raise ChangingValue(node.failure("MSC0719", f"it carries {kind}, not a tensor").diagnostics[0])


def _unrolled(node: Node) -> Sequence[Slot]:
    """Copies of the body while the condition is known to hold. Raises NeedsValues where it is computed."""
    limit = node.known_int(0, "trip count") if node.has(0) else None
    condition = node.get(1) or node.scalar(True, "i1")
    body, carried = node.graph("body"), list(node.inputs[2:])
    count = len(carried)
    scanned: list[list[Slot]] = [[] for _ in range(len(body.output) - 1 - count)]
    step = 0
    while limit is None or step < limit:
        if not node.known_value(condition, "condition").all():
            break
        if step == MAXIMUM_UNROLLED:
            message = f"the loop runs more than {MAXIMUM_UNROLLED} times, and needs values that only copies of it know"
            raise node.failure("MSC0714", message)
        number = node.constant(np.array(step, np.int64))
        again, *results = node.run_graph(body, [number, condition, *carried])
        condition = again if isinstance(again, OnnxValue) else condition
        carried = results[:count]
        for column, value in zip(scanned, results[count:], strict=True):
            column.append(value)
        step += 1
    return [*carried, *(_stacked(node, column) for column in scanned)]


def _stacked(node: Node, values: Sequence[Slot]) -> Slot:
    tensors = [value for value in values if isinstance(value, OnnxValue)]
    if not tensors:
        raise node.failure("MSC0711", "a loop that never runs gives a result whose shape is not known")
    return node(ms.StackOp, *tensors, axis=0)


@importer("Scan")
def _scan_with_batch(node: Node) -> Sequence[Slot]:
    """Before opset 9: every input has a batch axis in front, and the lengths stand first."""
    if node.has(0):
        raise node.failure("MSC0711", "lengths of sequences in Scan of opset 8 are not read")
    inputs = [node[i] for i in range(1, len(node))]
    states = _states(node, len(inputs))
    batch = node.size_of(inputs[0], 0)
    entries = [_scan(node, [_entry(node, v, b) for v in inputs], states) for b in range(batch)]
    return [_stacked(node, [entry[i] for entry in entries]) for i in range(len(entries[0]))]


@importer("Scan", since=9)
def _scan_(node: Node) -> Sequence[Slot]:
    states = _states(node, len(node))
    return _scan(node, [node[i] for i in range(len(node))], states)


def _states(node: Node, inputs: int) -> int:
    """How many of the inputs are states. Raises MSC0711."""
    scanned = node.int_("num_scan_inputs", 1)
    if not 1 <= scanned <= inputs:
        raise node.failure("MSC0711", f"num_scan_inputs is {scanned}, but it has {inputs} inputs")
    return inputs - scanned


def _entry(node: Node, x: OnnxValue, index: int) -> OnnxValue:
    part = cut(node, x, {0: (index, index + 1, 1)})
    return node.reshape(part, part.shape[1:])


def _scan(node: Node, inputs: Sequence[OnnxValue], states: int) -> Sequence[Slot]:
    """A loop over the first axes of the scanned inputs, which are brought in front."""
    body, scanned = node.graph("body"), [_in_front(node, v, axis) for v, axis in _scan_axes(node, inputs[states:])]
    back = [bool(d) for d in node.ints("scan_input_directions", [0] * len(scanned))]
    outputs = len(body.output) - states
    stacked_back = [bool(d) for d in node.ints("scan_output_directions", [0] * outputs)]
    steps = node.size_of(scanned[0], 0)
    if steps == 0:
        raise node.failure("MSC0711", "a scan that never runs gives results whose shapes are not known")

    def iteration(step: Iteration, values: Sequence[OnnxValue]) -> tuple[Sequence[OnnxValue], Sequence[Collected]]:
        entries = [step.entry(v, d) for v, d in zip(scanned, back, strict=True)]
        results = [_tensor(node, slot) for slot in node.run_graph(body, [*values, *entries])]
        return results[:states], [Collected(v, d) for v, d in zip(results[states:], stacked_back, strict=True)]

    finals, stacks = iterate(node, steps, inputs[:states], iteration)
    axes = node.ints("scan_output_axes", [0] * outputs)
    return [*finals, *(_to_axis(node, v, a) for v, a in zip(stacks, axes, strict=True))]


def _scan_axes(node: Node, scanned: Sequence[OnnxValue]) -> list[tuple[OnnxValue, int]]:
    axes = node.ints("scan_input_axes", [0] * len(scanned))
    return [(v, node.axis(a, v.rank)) for v, a in zip(scanned, axes, strict=True)]


def _in_front(node: Node, x: OnnxValue, axis: int) -> OnnxValue:
    return transposed(node, x, [axis, *(a for a in range(x.rank) if a != axis)])


def _to_axis(node: Node, x: OnnxValue, axis: int) -> OnnxValue:
    """The first axis brought to place `axis`."""
    perm = list(range(1, x.rank))
    perm.insert(node.axis(axis, x.rank), 0)
    return transposed(node, x, perm)
