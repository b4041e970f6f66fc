"""Axes whose length data decide: a tensor has as many elements along them as can be, of which the first are meant.

`NonZero` and its kin say how many are meant (`Count`), and each operator says along which axes of its results that
holds (`followed`). A sum or an extreme along such an axis takes what is meant alone (`meant`). An operator without a
rule needs the values of the inputs, as a reshape to a computed shape does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import numpy_dtype
from msc.importers.failures import NeedsValues, shown
from msc.importers.onnx.node import Node
from msc.importers.onnx.values import Count, OnnxValue, Slot
from msc.support.diagnostics import Diagnostic

Counts = Mapping[int, Count]


def is_counted(slots: Iterable[Slot]) -> bool:
    """Whether data decide the length of an axis of one of these values."""
    return any(isinstance(slot, OnnxValue) and slot.counts for slot in slots)


def counted(value: OnnxValue, counts: Counts) -> OnnxValue:
    """The value with lengths that data decide along these axes."""
    return replace(value, counts={**value.counts, **counts})


def refused(node: Node, why: str) -> NeedsValues:
    """An error for a node that cannot do with axes of such lengths: the inputs' values have to be known."""
    values = [slot for slot in node.inputs if isinstance(slot, OnnxValue)]
    sources = dict.fromkeys(count.source for value in values for count in value.counts.values())
    inputs = sorted({name for value in values if value.counts for name in value.depends})
    message = f"{node.label}: {why}; the length is that of {' and '.join(sources)}, which data decide"
    given = " ".join(f"--input-value {shown(name)}=..." for name in inputs)
    return NeedsValues(Diagnostic("MSC0722", message, node.place, help=f"give it: {given}" if inputs else None), inputs)


# What is meant alone.

_REAL = ("f32", "f64", "f16", "bf16")
_NEUTRAL: Mapping[str, float] = {
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"), 0),
    **{"ReduceProd": 1, "ReduceMax": -math.inf, "ReduceMin": math.inf, "ReduceLogSumExp": -math.inf},
    **{"ArgMax": -math.inf, "ArgMin": math.inf, "Softmax": -math.inf},
}
"""What each operator that goes along an axis may find there in the place of nothing."""


def meant(node: Node) -> Node:
    """The node, its first input changed so that what is not meant changes no result."""
    x = node.inputs[0] if node.inputs else None
    neutral = _NEUTRAL.get(node.proto.op_type)
    if neutral is None or not isinstance(x, OnnxValue) or not x.counts:
        return node
    along = _along_axes(node)
    if not along & x.counts.keys():
        return node
    dtype = numpy_dtype(x.dtype)
    if math.isinf(neutral):
        ends = (-np.inf, np.inf) if x.dtype in _REAL else _ends(dtype)
        neutral = ends[neutral > 0]
    for axis in sorted(along & x.counts.keys()):
        count = x.counts[axis]
        numbers = np.arange(x.shape[axis]).reshape([-1 if a == axis else 1 for a in range(x.rank)])
        inside = node(ms.LessOp, node.constant(numbers), count.value)
        x = replace(node(ms.SelectOp, inside, x, node.constant(np.array(neutral, dtype))), counts=x.counts)
    node.inputs = [x, *node.inputs[1:]]
    return node


def _along_axes(node: Node) -> set[int]:
    """The axes along which a reduction, an extreme or a softmax goes."""
    if node.proto.op_type.startswith("Reduce"):
        return set(_reduced(node))
    return {node.axis(node.int_("axis", -1 if node.proto.op_type == "Softmax" else 0), node[0].rank)}


def _ends(dtype: np.dtype[np.generic]) -> tuple[float, float]:
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype.name)
    return int(limits.min), int(limits.max)


# What holds of results.


def followed(node: Node, results: Sequence[Slot]) -> Sequence[Slot]:
    """The results with the axes that what they are made from gives them. Raises NeedsValues."""
    if node.proto.op_type in _SELF or not is_counted(node.inputs):
        return results
    rule = _RULES.get(node.proto.op_type) if node.proto.domain in ("", "ai.onnx") else None
    if rule is None:
        raise refused(node, "it needs an axis whose length is known")
    found = [slot if not isinstance(slot, OnnxValue) else counted(slot, rule(node, slot)) for slot in results]
    return _mean(node, found) if node.proto.op_type == "ReduceMean" else found


def shape_with_counts(node: Node, shape: Sequence[int], counts: Counts, axes: Iterable[int]) -> OnnxValue:
    """The sizes of these axes of a tensor, those that data decide among them."""
    parts = [counts[a].value if a in counts else node.constant(np.array(shape[a], np.int64)) for a in axes]
    return node(ms.StackOp, *(node.reshape(part, ()) for part in parts), axis=0)


def _mean(node: Node, results: Sequence[Slot]) -> Sequence[Slot]:
    """Means of as many elements as there are."""
    x = node[0]
    for axis, count in x.counts.items():
        if axis in _reduced(node):
            if x.dtype not in _REAL:
                raise refused(node, "it takes a mean of integers")
            share = node(ms.DivOp, node.scalar(x.shape[axis], x.dtype), node.cast(count.value, x.dtype))
            results = [
                replace(node(ms.MulOp, slot, share), counts=slot.counts) if isinstance(slot, OnnxValue) else slot
                for slot in results
            ]
    return results


def _agreed(node: Node, found: Iterable[tuple[int, Count]]) -> dict[int, Count]:
    """The axes of several operands together. Raises NeedsValues where two lengths meet."""
    counts = dict[int, Count]()
    for axis, count in found:
        if counts.setdefault(axis, count) is not count:
            raise refused(node, "it takes two lengths along one axis")
    return counts


def _elementwise(node: Node, result: OnnxValue) -> Counts:
    values = [slot for slot in node.inputs if isinstance(slot, OnnxValue)]
    found = [(axis + result.rank - v.rank, count) for v in values for axis, count in v.counts.items()]
    counts = _agreed(node, found)
    for axis in counts:
        for v in values:
            own = axis - result.rank + v.rank
            if own >= 0 and v.shape[own] != 1 and own not in v.counts:
                raise refused(node, "it takes a length along an axis that has another one")
    return counts


def _first(node: Node, result: OnnxValue, reduced: Sequence[int] = (), keeps: bool = True) -> Counts:
    """The axes of the first operand, but for the `reduced`, which are gone unless the result `keeps` them."""
    counts = node[0].counts
    gone = () if keeps else reduced
    return {a - sum(g < a for g in gone): count for a, count in counts.items() if a not in reduced}


def _reduced(node: Node) -> list[int]:
    given = node.known_ints(1, "axes") if node.has(1) else node.ints("axes")
    axes = [node.axis(a, node[0].rank) for a in given]
    return axes or ([] if node.flag("noop_with_empty_axes") else list(range(node[0].rank)))


def _reduction(node: Node, result: OnnxValue) -> Counts:
    return _first(node, result, _reduced(node), node.flag("keepdims", True))


def _arg_extreme(node: Node, result: OnnxValue) -> Counts:
    axis = node.axis(node.int_("axis", 0), node[0].rank)
    if axis in node[0].counts and node.flag("select_last_index"):
        raise refused(node, "it counts from the end of an axis")
    return _first(node, result, [axis], node.flag("keepdims", True))


def _softmax(node: Node, result: OnnxValue) -> Counts:
    if node.opset < 13 and node[0].rank > 1:
        raise refused(node, "it joins axes")
    return node[0].counts


def _along(default: int) -> Callable[[Node, OnnxValue], Counts]:
    def rule(node: Node, result: OnnxValue) -> Counts:
        if node.axis(node.int_("axis", default), node[0].rank) in node[0].counts:
            raise refused(node, "it takes a whole axis")
        return node[0].counts

    return rule


def _cumulated(node: Node, result: OnnxValue) -> Counts:
    if node.flag("reverse"):
        raise refused(node, "it begins at the end of an axis")
    return node[0].counts


def _gather(node: Node, result: OnnxValue) -> Counts:
    x, indices, axis = node[0], node[1], node.axis(node.int_("axis", 0), node[0].rank)
    known = indices.array
    if axis in x.counts and (known is None or (known < 0).any()):
        raise refused(node, "its indices may count from the end of an axis")
    if axis in x.counts:
        raise refused(node, "it takes an element that may not be there")
    kept = ((a if a < axis else a - 1 + indices.rank, c) for a, c in x.counts.items())
    return _agreed(node, [*kept, *((axis + a, c) for a, c in indices.counts.items())])


def _gather_nd(node: Node, result: OnnxValue) -> Counts:
    if node[0].counts or node[1].rank - 1 in node[1].counts or node.int_("batch_dims", 0):
        raise refused(node, "it needs an axis whose length is known")
    return node[1].counts


def _gather_elements(node: Node, result: OnnxValue) -> Counts:
    if node[0].counts:
        raise refused(node, "its indices may count from the end of an axis")
    return node[1].counts


def _transpose(node: Node, result: OnnxValue) -> Counts:
    order = node.ints("perm") or list(reversed(range(result.rank)))
    return {k: node[0].counts[a] for k, a in enumerate(order) if a in node[0].counts}


def _reshape(node: Node, result: OnnxValue) -> Counts:
    """An axis stays one if as many elements lie before it, and it has its size; else it may not be found again."""
    x, found = node[0], dict[int, Count]()
    for axis, count in x.counts.items():
        before, size = math.prod(x.shape[:axis]), x.shape[axis]
        fits = [a for a, n in enumerate(result.shape) if n == size and math.prod(result.shape[:a]) == before]
        if not fits or size == 1:
            raise refused(node, "it joins or splits an axis")
        found[fits[0]] = count
    return found


def _concat(node: Node, result: OnnxValue) -> Counts:
    axis = node.axis(node.int_("axis", 0), result.rank)
    values = node.tensors()
    if any(axis in v.counts for v in values):
        raise refused(node, "what follows an axis of such a length has no place that is known")
    if any(v.counts.keys() != values[0].counts.keys() for v in values):
        raise refused(node, "it takes a length along an axis that has another one")
    return _agreed(node, (pair for v in values for pair in v.counts.items()))


def _split(node: Node, result: OnnxValue) -> Counts:
    if node.axis(node.int_("axis", 0), result.rank) in node[0].counts:
        raise refused(node, "it splits an axis")
    return node[0].counts


def _slice(node: Node, result: OnnxValue) -> Counts:
    x = node[0]
    starts = node.known_ints(1, "starts") if node.has(1) else node.ints("starts")
    given = node.known_ints(3, "axes") if node.has(3) else node.ints("axes")
    axes = {node.axis(a, x.rank) for a in (given or range(len(starts)))}
    if any(axis in axes and result.shape[axis] != x.shape[axis] for axis in x.counts):
        raise refused(node, "it cuts an axis")
    return x.counts


def _product(node: Node, result: OnnxValue) -> Counts:
    """Rows of the first factor stay rows, columns of the second columns."""
    a, b = node[0], node[1]
    if a.rank < 2 or b.rank < 2 or a.rank - 1 in a.counts or b.rank - 2 in b.counts:
        raise refused(node, "it sums along an axis")
    if any(axis < b.rank - 2 for axis in b.counts) or any(axis < a.rank - 2 for axis in a.counts):
        raise refused(node, "it multiplies batches of such a length")
    rows = [(result.rank - 2, count) for count in a.counts.values()]
    return dict([*rows, *((result.rank - 1, count) for count in b.counts.values())])


def _gemm(node: Node, result: OnnxValue) -> Counts:
    if node[1].counts or 1 in node[0].counts or node.flag("transA") or (node.has(2) and node[2].counts):
        raise refused(node, "it sums along an axis")
    return node[0].counts


_ELEMENTWISE = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Celu "
    "Clip Cos Cosh Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity "
    "IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or Pow PRelu Reciprocal Relu Round "
    "Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Tan Tanh ThresholdedRelu Where Xor"
).split()
_REDUCING = (
    "ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()
)
_RULES: Mapping[str, Callable[[Node, OnnxValue], Counts]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(_REDUCING, _reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg_extreme),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _reshape),
    **{"Softmax": _softmax, "LogSoftmax": _along(-1), "TopK": _along(-1), "LayerNormalization": _along(-1)},
    **{"CumSum": _cumulated, "Gather": _gather, "GatherND": _gather_nd, "GatherElements": _gather_elements},
    **{"Transpose": _transpose, "Concat": _concat, "Split": _split, "Slice": _slice},
    **{"MatMul": _product, "Gemm": _gemm},
}
_SELF = frozenset({"Shape", "Size", "If", "Loop", "Scan", "NonZero"})
"""Operators that see to lengths themselves, or whose parts do."""
