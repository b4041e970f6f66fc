"""Moving elements: transposing, joining, cutting, padding, repeating."""

from __future__ import annotations

import math
from typing import Literal, cast

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


@importer("Transpose")
def _transpose(node: Node) -> OnnxValue:
    return transposed(node, node[0], node.ints("perm") or list(reversed(range(node[0].rank))))


def transposed(node: Node, x: OnnxValue, perm: list[int]) -> OnnxValue:
    """Axes in another order; `x` itself if the order is the one it has."""
    return x if perm == list(range(x.rank)) else node(ms.TransposeOp, x, perm=perm)


@importer("Concat")
def _concat(node: Node) -> OnnxValue:
    values = node.tensors()
    return values[0] if len(values) == 1 else node(ms.ConcatOp, *values, axis=node.int_("axis", 1))


@importer("Split")
def _split(node: Node) -> tuple[OnnxValue, ...]:
    x, axis = node[0], node.axis(node.int_("axis", 0), node[0].rank)
    size = node.size_of(x, axis)
    if node.has(1):
        sizes = node.known_ints(1, "split")
    else:
        parts = node.int_("num_outputs", len(node.proto.output))
        if parts != len(node.proto.output):
            raise node.failure("MSC0711", f"num_outputs is {parts}, but it has {len(node.proto.output)} outputs")
        sizes = node.ints("split") or _even(size, parts)
    return node.many(ms.SplitOp, x, axis=axis, sizes=sizes)


def _even(size: int, parts: int) -> list[int]:
    """Equal sizes, a smaller one last if they do not divide."""
    part = -(-size // parts)
    return [max(min(part, size - start * part), 0) for start in range(parts)]


@importer("Slice")
def _slice(node: Node) -> OnnxValue:
    """Starts and ends of some axes, as attributes before opset 10."""
    x = node[0]
    shape = node.shape_of(x)
    if node.opset < 10:
        starts, ends, axes, steps = (
            node.ints("starts"),
            node.ints("ends"),
            node.ints("axes"),
            [1] * len(node.ints("ends")),
        )
    else:
        starts, ends = node.known_ints(1, "starts"), node.known_ints(2, "ends")
        axes = node.known_ints(3, "axes") if node.has(3) else []
        steps = node.known_ints(4, "steps") if node.has(4) else [1] * len(starts)
    axes = [node.axis(a, x.rank) for a in axes] or list(range(len(starts)))
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.failure("MSC0711", "its starts, ends, axes and steps must be of one length, and no step 0")
    cuts = {a: places_of(shape[a], s, e, t) for a, s, e, t in zip(axes, starts, ends, steps, strict=True)}
    return cut(node, x, cuts)


def places_of(size: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    """Start, end and step as in `range`. Unlike Python's, a start before the first place is that backwards, too."""
    return slice(max(start, -size) if step < 0 else start, end, step).indices(size)


def cut(node: Node, x: OnnxValue, cuts: dict[int, tuple[int, int, int]]) -> OnnxValue:
    """Some axes cut to `range(begin, end, step)`, whose places lie inside; the others whole."""
    shape = node.shape_of(x)
    bounds = [cuts.get(axis, (0, n, 1)) for axis, n in enumerate(shape)]
    if all(b == (0, n, 1) for b, n in zip(bounds, shape, strict=True)):
        return x
    # An end of -1 stands for "before the first", but Python would count it from the back.
    ends = [e if e >= 0 else -n - 1 for (_, e, _), n in zip(bounds, shape, strict=True)]
    return node(ms.SliceOp, x, begin=[b for b, _, _ in bounds], end=ends, strides=[s for *_, s in bounds])


@importer("Tile")
def _tile(node: Node) -> OnnxValue:
    repeats = node.known_ints(1, "repeats")
    return node(ms.TileOp, node[0], multiples=repeats)


@importer("Pad")
def _pad(node: Node) -> OnnxValue:
    x = node[0]
    if node.opset < 11:
        pads, value = node.ints("pads") or node.ints("paddings"), node.scalar(node.real("value", 0.0), x.dtype)
        axes = list(range(x.rank))
    else:
        pads, given = node.known_ints(1, "pads"), node.get(2)
        value = node.scalar(0, x.dtype) if given is None else given
        axes = [node.axis(a, x.rank) for a in node.known_ints(3, "axes")] if node.has(3) else list(range(x.rank))
    if len(pads) != 2 * len(axes):
        raise node.failure("MSC0711", f"its pads have {len(pads)} entries, for {len(axes)} axes")
    amounts = [0] * (2 * x.rank)
    for i, axis in enumerate(axes):
        amounts[axis], amounts[x.rank + axis] = pads[i], pads[len(axes) + i]
    return padded(node, x, amounts, node.choice("mode", "constant", ("constant", "reflect", "edge", "wrap")), value)


def padded(node: Node, x: OnnxValue, amounts: list[int], mode: str, value: OnnxValue) -> OnnxValue:
    """Padding before each axis, then after each; negative amounts cut."""
    shape, rank = node.shape_of(x), x.rank
    cuts = {a: (max(-amounts[a], 0), n + min(amounts[rank + a], 0), 1) for a, n in enumerate(shape)}
    x, amounts = cut(node, x, cuts), [max(a, 0) for a in amounts]
    if not any(amounts):
        return x
    if mode == "constant":
        return _pad_constant(node, x, amounts, value)
    return _pad_by_index(node, x, amounts, mode)


def _pad_constant(node: Node, x: OnnxValue, amounts: list[int], value: OnnxValue) -> OnnxValue:
    if value.array is not None and value.array.size == 1:
        number = value.array.reshape(-1)[0]
        real = float(number)
        if np.array(real).astype(value.array.dtype) == number or math.isnan(real):
            return node(ms.PadOp, x, pad=amounts, value=real)
    inside = node(ms.PadOp, node(ms.BroadcastToOp, node.scalar(True, "i1"), shape=x.shape), pad=amounts, value=0.0)
    return node(ms.SelectOp, inside, node(ms.PadOp, x, pad=amounts, value=0.0), node.reshape(value, ()))


def _pad_by_index(node: Node, x: OnnxValue, amounts: list[int], mode: str) -> OnnxValue:
    """As the operation can, or axis by axis through indices where the padding is larger than the axis."""
    shape, rank = x.shape, x.rank
    less = {"edge": -(1 << 40), "reflect": 1, "wrap": 0}[mode]
    if all(max(amounts[a], amounts[rank + a]) <= n - less for a, n in enumerate(shape)):
        return node(ms.PadOp, x, pad=amounts, mode=mode)
    for axis, n in enumerate(shape):
        before, after = amounts[axis], amounts[rank + axis]
        if before or after:
            node.check_table(max(before, 0) + n + max(after, 0))
            places: Array = np.pad(node.arange(n), (before, after), mode=cast(Literal["edge", "reflect", "wrap"], mode))
            x = node(ms.GatherOp, x, node.constant(places), axis=axis)
    return x


@importer("ReverseSequence")
def _reverse_sequence(node: Node) -> OnnxValue:
    """Places counted back from each length, and the rest in place, gathered along the time axis."""
    x, lengths = node[0], node[1]
    time, batch = node.int_("time_axis", 0), node.int_("batch_axis", 1)
    size, rank = node.size_of(x, time), x.rank
    place = node.constant(node.arange(size).reshape([-1 if a == time else 1 for a in range(rank)]))
    length = node.reshape(node.cast(lengths, "i64"), [lengths.shape[0] if a == batch else 1 for a in range(rank)])
    mirrored = node(ms.SubOp, node(ms.SubOp, length, place), 1)
    chosen = node(ms.SelectOp, node(ms.LessOp, place, length), mirrored, place)
    return node(ms.GatherElementsOp, x, node(ms.BroadcastToOp, chosen, shape=x.shape), axis=time)


@importer("DepthToSpace")
def _depth_to_space(node: Node) -> OnnxValue:
    mode = node.choice("mode", "DCR", ("DCR", "CRD"))
    return node(ms.DepthToSpaceOp, node[0], block_size=node.int_("blocksize", 1), mode=mode)


@importer("SpaceToDepth")
def _space_to_depth(node: Node) -> OnnxValue:
    mode = node.choice("mode", "DCR", ("DCR", "CRD"))
    return node(ms.SpaceToDepthOp, node[0], block_size=node.int_("blocksize", 1), mode=mode)


@importer("Trilu")
def _trilu(node: Node) -> OnnxValue:
    diagonal = node.known_int(1, "k") if node.has(1) else 0
    return node(ms.TriuOp if node.flag("upper", True) else ms.TrilOp, node[0], diagonal=diagonal)
