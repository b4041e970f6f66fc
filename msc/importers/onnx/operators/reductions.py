"""Reductions, and the places of extremes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from msc.dialects import ms
from msc.dialects.element_types import is_float
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue

Reduce = Callable[[OnnxValue], OnnxValue]
Formula = Callable[[Node, OnnxValue, "ReducedAxes"], OnnxValue]


class ReducedAxes:
    """The axes that a node reduces, and whether they stay with size 1."""

    def __init__(self, node: Node) -> None:
        given = node.known_ints(1, "axes") if node.has(1) else node.ints("axes")
        self.none = not given and node.flag("noop_with_empty_axes")
        self.axes = [node.axis(a, node[0].rank) for a in given]
        self.keep = node.flag("keepdims", True)
        self.node = node

    def __call__(self, operation: type[MsOp], x: OnnxValue, keep: bool | None = None) -> OnnxValue:
        if self.none:
            return x
        return self.node(operation, x, axis=self.axes, keep_dims=self.keep if keep is None else keep)


def _sum(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    return axes(ms.ReduceSumOp, x)


def _mean(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    if is_float(x.dtype):
        return axes(ms.ReduceMeanOp, x)
    return node.cast(axes(ms.ReduceMeanOp, node.cast(x, "f64")), x.dtype)


def _extreme(operation: type[MsOp], logical: type[MsOp], node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    return axes(logical if x.dtype == "i1" else operation, x)


def _product(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    return axes(ms.ReduceProdOp, x)


def _l1(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    return axes(ms.ReduceSumOp, node(ms.AbsOp, x))


def _sum_square(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    return axes(ms.ReduceSumOp, node(ms.SquareOp, x))


def _l2(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    total = _sum_square(node, x if is_float(x.dtype) else node.cast(x, "f64"), axes)
    return node.cast(node(ms.SqrtOp, total), x.dtype)


def _log_sum(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    total = axes(ms.ReduceSumOp, x if is_float(x.dtype) else node.cast(x, "f64"))
    return node.cast(node(ms.LogOp, total), x.dtype)


def _log_sum_exp(node: Node, x: OnnxValue, axes: ReducedAxes) -> OnnxValue:
    """Without overflow: the largest element is taken out, unless it is infinite."""
    wide = x if is_float(x.dtype) else node.cast(x, "f64")
    if axes.none:
        return x
    largest = axes(ms.ReduceMaxOp, wide, keep=True)
    finite = node(ms.SelectOp, node(ms.IsInfOp, largest), node.scalar(0, wide.dtype), largest)
    total = axes(ms.ReduceSumOp, node(ms.ExpOp, node(ms.SubOp, wide, finite)))
    taken = node.reshape(finite, node.shape_of(total))
    return node.cast(node(ms.AddOp, node(ms.LogOp, total), taken), x.dtype)


FORMULAS: dict[str, Formula] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceMax": partial(_extreme, ms.ReduceMaxOp, ms.ReduceAnyOp),
    "ReduceMin": partial(_extreme, ms.ReduceMinOp, ms.ReduceAllOp),
    "ReduceProd": _product,
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
}


def _importer(formula: Formula, node: Node) -> OnnxValue:
    return formula(node, node[0], ReducedAxes(node))


for _name, _formula in FORMULAS.items():
    importer(_name)(partial(_importer, _formula))


def _place(operation: type[MsOp], node: Node) -> OnnxValue:
    return node(
        operation,
        node[0],
        axis=node.int_("axis", 0),
        keep_dims=node.flag("keepdims", True),
        select_last=node.flag("select_last_index"),
    )


importer("ArgMax")(partial(_place, ms.ArgmaxOp))
importer("ArgMin")(partial(_place, ms.ArgminOp))


@importer("MeanVarianceNormalization")
def _mean_variance(node: Node) -> OnnxValue:
    axes = node.ints("axes", (0, 2, 3))
    x = node[0]
    centred = node(ms.SubOp, x, node(ms.ReduceMeanOp, x, axis=axes, keep_dims=True))
    variance = node(ms.ReduceMeanOp, node(ms.SquareOp, centred), axis=axes, keep_dims=True)
    return node(ms.DivOp, centred, node(ms.AddOp, node(ms.SqrtOp, variance), float(np.float32(1e-9))))
