"""Control flow whose conditions and trip counts are known at import: branches are chosen, loops unrolled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.movement import cut
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import Slot, Value

MAXIMUM_ITERATIONS = 4096


@importer("If")
def _if(node: Node) -> Sequence[Slot]:
    """The branch that a known condition chooses, or both and an element-wise choice between their results."""
    condition = node[0]
    if condition.array is not None:
        return node.run_graph(node.graph("then_branch" if condition.array.item() else "else_branch"), [])
    then, other = (node.run_graph(node.graph(name), []) for name in ("then_branch", "else_branch"))
    if not all(_alike(a, b) for a, b in zip(then, other, strict=True)):
        node.known_value(condition, "condition, since the branches give results of different types,")
    chosen = node.reshape(condition, ())
    return [_chosen(node, chosen, a, b) for a, b in zip(then, other, strict=True)]


def _alike(a: Slot, b: Slot) -> bool:
    return isinstance(a, Value) and isinstance(b, Value) and a.type == b.type


def _chosen(node: Node, condition: Value, a: Slot, b: Slot) -> Value:
    assert isinstance(a, Value)
    assert isinstance(b, Value)
    return node(ms.SelectOp, condition, a, b)


@importer("Loop")
def _loop(node: Node) -> Sequence[Slot]:
    """Unrolled while the condition is known; once it is computed, values change only where it holds."""
    limit = node.known_int(0, "trip count") if node.has(0) else None
    condition = node.get(1) or node.scalar(True, "i1")
    body, carried = node.graph("body"), list(node.inputs[2:])
    count = len(carried)
    scanned: list[list[Slot]] = [[] for _ in range(len(body.output) - 1 - count)]
    step = 0
    while limit is None or step < limit:
        if not node.known_value(condition, "condition").all():
            break
        if step == MAXIMUM_ITERATIONS:
            raise node.failure("MSC0714", f"the loop runs more than {MAXIMUM_ITERATIONS} times; msc unrolls it")
        number = node.constant(np.array(step, np.int64))
        again, *results = node.run_graph(body, [number, condition, *carried])
        condition = again if isinstance(again, Value) else condition
        carried = results[:count]
        for column, value in zip(scanned, results[count:], strict=True):
            column.append(value)
        step += 1
    return [*carried, *(_stacked(node, column) for column in scanned)]


def _stacked(node: Node, values: Sequence[Slot], axis: int = 0) -> Slot:
    tensors = [value for value in values if isinstance(value, Value)]
    if not tensors:
        raise node.failure("MSC0711", "a loop that never runs gives a result whose shape is not known")
    return node(ms.StackOp, *tensors, axis=axis)


@importer("Scan")
def _scan_with_batch(node: Node) -> Sequence[Slot]:
    """Before opset 9: every input has a batch axis in front, and the lengths stand first."""
    if node.has(0):
        raise node.failure("MSC0711", "lengths of sequences in Scan of opset 8 are not read")
    inputs = [node[i] for i in range(1, len(node))]
    states = _states(node, len(inputs))
    batch = node.shape_of(inputs[0])[0]
    entries = [_scan(node, [_entry(node, v, 0, b) for v in inputs], states) for b in range(batch)]
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


def _entry(node: Node, x: Value, axis: int, index: int) -> Value:
    part = cut(node, x, {axis: (index, index + 1, 1)})
    return node.reshape(part, [n for a, n in enumerate(part.shape) if a != axis])


def _scan(node: Node, inputs: Sequence[Value], states: int) -> Sequence[Slot]:
    body, scanned = node.graph("body"), inputs[states:]
    axes = [
        node.axis(a, v.rank) for a, v in zip(node.ints("scan_input_axes", [0] * len(scanned)), scanned, strict=True)
    ]
    back = node.ints("scan_input_directions", [0] * len(scanned))
    steps = node.shape_of(scanned[0])[axes[0]]
    if steps > MAXIMUM_ITERATIONS:
        raise node.failure("MSC0714", f"the scan runs {steps} times; msc unrolls up to {MAXIMUM_ITERATIONS}")
    carried: list[Slot] = list(inputs[:states])
    columns: list[list[Slot]] = [[] for _ in range(len(body.output) - states)]
    for step in range(steps):
        entries = [
            _entry(node, v, a, steps - 1 - step if d else step) for v, a, d in zip(scanned, axes, back, strict=True)
        ]
        results = list(node.run_graph(body, [*carried, *entries]))
        carried = results[:states]
        for column, value in zip(columns, results[states:], strict=True):
            column.append(value)
    return [*carried, *_scan_outputs(node, columns)]


def _scan_outputs(node: Node, columns: list[list[Slot]]) -> list[Slot]:
    axes = node.ints("scan_output_axes", [0] * len(columns))
    back = node.ints("scan_output_directions", [0] * len(columns))
    ordered = [list(reversed(c)) if d else c for c, d in zip(columns, back, strict=True)]
    return [_stacked(node, c, a) for c, a in zip(ordered, axes, strict=True)]
