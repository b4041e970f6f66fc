"""Sequences, whose lengths are known at import, so that nothing of them is left; and optional values."""

from __future__ import annotations

import numpy as np

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.movement import cut
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue, Slot, TensorSequence

MAXIMUM_ITEMS = 1 << 12
"""Of a sequence, whose tensors are values of their own."""


@importer("SequenceEmpty")
def _empty(node: Node) -> Slot:
    return TensorSequence()


@importer("SequenceConstruct")
def _construct(node: Node) -> Slot:
    return TensorSequence(tuple(node.tensors()))


def _place(node: Node, index: int, length: int, default: int) -> int:
    place = node.known_int(index, "position") if node.has(index) else default
    if not -length <= place <= length:
        raise node.failure("MSC0711", f"position {place} is outside a sequence of {length}")
    return place + length if place < 0 else place


@importer("SequenceInsert")
def _insert(node: Node) -> Slot:
    items = node.sequence(0)
    place = _place(node, 2, len(items), len(items))
    return TensorSequence((*items[:place], node[1], *items[place:]))


@importer("SequenceErase")
def _erase(node: Node) -> Slot:
    items = node.sequence(0)
    place = _place(node, 1, len(items), len(items) - 1)
    return TensorSequence((*items[:place], *items[place + 1 :]))


@importer("SequenceAt")
def _at(node: Node) -> Slot:
    items = node.sequence(0)
    place = _place(node, 1, len(items), 0)
    if place >= len(items):
        raise node.failure("MSC0711", f"position {place} is outside a sequence of {len(items)}")
    return items[place]


@importer("SequenceLength")
def _length(node: Node) -> OnnxValue:
    return node.constant(np.array(len(node.sequence(0)), np.int64))


@importer("ConcatFromSequence")
def _concat(node: Node) -> OnnxValue:
    operation = ms.StackOp if node.flag("new_axis") else ms.ConcatOp
    return node(operation, *node.sequence(0), axis=node.int_("axis", 0))


@importer("SplitToSequence")
def _split(node: Node) -> Slot:
    """Parts of given sizes, of one size, or single elements, whose axis may go."""
    x = node[0]
    axis = node.axis(node.int_("axis", 0), x.rank)
    size = node.size_of(x, axis)
    split = node.known(1, "split") if node.has(1) else np.array(1)
    if split.ndim:
        sizes = [int(n) for n in split]
    else:
        starts = range(0, size, int(split))
        if len(starts) > MAXIMUM_ITEMS:
            raise node.failure("MSC0714", f"it makes a sequence of {len(starts)} tensors, more than {MAXIMUM_ITEMS}")
        sizes = [min(int(split), size - start) for start in starts]
    ends = np.cumsum(sizes)
    parts = [cut(node, x, {axis: (int(e) - n, int(e), 1)}) for e, n in zip(ends, sizes, strict=True)]
    if not node.has(1) and not node.flag("keepdims", True):
        parts = [node(ms.SqueezeOp, part, axis=[axis]) for part in parts]
    return TensorSequence(tuple(parts))


@importer("Optional")
def _optional(node: Node) -> Slot:
    return node.inputs[0] if node.inputs else None


@importer("OptionalGetElement")
def _get_element(node: Node) -> Slot:
    return node.inputs[0] if node.inputs else None


@importer("OptionalHasElement")
def _has_element(node: Node) -> OnnxValue:
    return node.constant(np.array(bool(node.inputs) and node.inputs[0] is not None))
