"""Changes of a model in reals before it is quantised: those for better integers compute the same, pruning does not.

Sources: Nagel et al. 2019 (arXiv:1906.04721) for equalisation; Xiao et al. 2022 (arXiv:2211.10438), SmoothQuant;
Li et al. 2016 (arXiv:1608.08710) for channels of least magnitude.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import OpResult, SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.pooling import AvgPoolOp, GlobalAvgPoolOp, GlobalMaxPoolOp, MaxPoolOp
from msc.quantization.copies import BlockWriter, Compiler, Rows, StoredGraph, on_values
from msc.quantization.integers import constant_value
from msc.quantization.places import LIMITS, QuantisedLayer, find_places

_LEAST = 1e-5
_CARRIES = (*LIMITS, MaxPoolOp, AvgPoolOp, GlobalAvgPoolOp, GlobalMaxPoolOp, ms.ReshapeOp, ms.FlattenOp)
"""Operations of one channel after the other."""


def equalise(model: StoredGraph) -> int:
    """Scale the channels between two convolutions so that both weights use their range; how many pairs there were.

    What stands between may be ReLU alone, and nothing else may read it. The channels of the first layer are divided by
    `sqrt(r1 r2) / r2`, those of the second multiplied, where r1 and r2 are the largest magnitudes of a channel.
    """
    found = 0
    layers = {layer.op: layer for layer in find_places(model.module).layers}
    for second in layers.values():
        first = _layer_before(second, layers)
        if first is None:
            continue
        w1, w2 = constant_value(model, first.op.operands[1]), constant_value(model, second.op.operands[1])
        r1 = np.abs(w1).reshape(w1.shape[0], -1).max(axis=1)
        groups = second.op.int_("group") if isinstance(second.op, ConvolutionOp) else 1
        by_input = np.abs(w2).reshape(groups, w2.shape[0] // groups, w2.shape[1], -1).max(axis=(1, 3)).reshape(-1)
        if by_input.shape != r1.shape:
            continue
        factor = np.sqrt(np.maximum(r1, _LEAST) * np.maximum(by_input, _LEAST)) / np.maximum(by_input, _LEAST)
        factor = np.where((r1 > _LEAST) & (by_input > _LEAST), factor, 1).astype(np.float32)
        _multiply(model, first, w1 / factor.reshape(-1, *(1 for _ in w1.shape[1:])), (1 / factor).astype(np.float32))
        spread = factor.reshape(groups, 1, -1, *(1 for _ in w2.shape[2:]))
        scaled = w2.reshape(groups, w2.shape[0] // groups, *w2.shape[1:]) * spread
        _multiply(model, second, scaled.reshape(w2.shape), None)
        found += 1
    model.drop_unread()
    return found


def _layer_before(second: QuantisedLayer, layers: Mapping[MsOp, QuantisedLayer]) -> QuantisedLayer | None:
    """The convolution whose channels a convolution reads, through ReLU at most."""
    if not isinstance(second.op, ConvolutionOp) or second.weight is None:
        return None
    value = second.op.operands[0]
    while isinstance(value, OpResult) and isinstance(value.op, ms.ReluOp) and value.has_one_use():
        value = value.op.operands[0]
    if not isinstance(value, OpResult) or not value.has_one_use():
        return None
    first = layers.get(value.op) if isinstance(value.op, ConvolutionOp) else None
    return first if first is not None and first.weight is not None else None


def _multiply(model: StoredGraph, layer: QuantisedLayer, weight: Array, bias: Array | None) -> None:
    """Give a layer another weight, and a bias times a factor."""
    if bias is not None and len(layer.op.operands) > 2:
        values = constant_value(model, layer.op.operands[2]) * bias
        model.replace(layer.op, 2, f"{layer.name}.bias", values.astype(np.float32))
    model.replace(layer.op, 1, layer.name, weight.astype(np.float32))


def smooth(model: StoredGraph, rows: Rows, compiled: Compiler, strength: float = 0.5) -> int:
    """Move outliers of activations into the weights of products; how many products were changed.

    Input channel j is divided by `max|x_j|^a / max|w_j|^(1 - a)`, and its weights multiplied: a is the strength.
    Products that read the same value share one division.
    """
    places = find_places(model.module, between=False)
    readers: dict[SSAValue, list[QuantisedLayer]] = {}
    for layer in places.layers:
        if layer.weight is not None and isinstance(layer.op, MatrixProductOp | ms.DenseOp) and not _is_turned(layer):
            readers.setdefault(layer.op.operands[0], []).append(layer)
    largest = _largest(model, list(readers), rows, compiled)
    for (value, layers), x in zip(readers.items(), largest, strict=True):
        weights = [constant_value(model, layer.op.operands[1]) for layer in layers]
        axes = [_input_axis(layer, w) for layer, w in zip(layers, weights, strict=True)]
        w = np.max([_by_axis(w, axis) for w, axis in zip(weights, axes, strict=True)], axis=0)
        factor = np.maximum(x, _LEAST) ** strength / np.maximum(w, _LEAST) ** (1 - strength)
        factor = np.where((x > _LEAST) & (w > _LEAST), factor, 1).astype(np.float32)
        block = layers[0].op.parent_block()
        assert block is not None
        write = BlockWriter(block, before=layers[0].op)
        name = f"{layers[0].name}.smooth"
        inverse = write.insert(model.store(name, (1 / factor).astype(np.float32)))
        divided = write.insert(ms.MulOp(value, inverse.results[0])).results[0]
        for layer, weight, axis in zip(layers, weights, axes, strict=True):
            layer.op.operands[0] = divided
            spread = factor.reshape([-1 if k == axis else 1 for k in range(weight.ndim)])
            _multiply(model, layer, weight * spread, None)
    model.drop_unread()
    return sum(map(len, readers.values()))


def _is_turned(layer: QuantisedLayer) -> bool:
    return isinstance(layer.op, MatrixProductOp) and layer.op.flag("transpose_a")


def _input_axis(layer: QuantisedLayer, weight: Array) -> int:
    """The axis of a weight that the last axis of x meets."""
    last = isinstance(layer.op, ms.DenseOp) or (isinstance(layer.op, MatrixProductOp) and layer.op.flag("transpose_b"))
    return weight.ndim - (1 if last else 2)


def _by_axis(weight: Array, axis: int) -> Array:
    return np.abs(weight).max(axis=tuple(k for k in range(weight.ndim) if k != axis))


def _largest(model: StoredGraph, values: list[SSAValue], rows: Rows, compiled: Compiler) -> list[Array]:
    """The largest magnitude of each channel of values, over rows of data."""

    def compute(write: BlockWriter, value: SSAValue) -> list[SSAValue]:
        (size,) = write.emit(ms.AbsOp, value)
        if size.rank > 1:
            (size,) = write.emit(ms.ReduceMaxOp, size, axis=list(range(size.rank - 1)))
        assert size.ssa is not None
        return [size.ssa]

    found: list[Array] = []
    for row in on_values(model, values, compute, rows, compiled):
        found = [np.maximum(a, b) for a, b in zip(found, row, strict=True)] if found else [np.asarray(a) for a in row]
    return found


def prune(model: StoredGraph, share: float) -> int:
    """Remove a share of the channels between layers, those of the least sum of magnitudes; how many went.

    Between the two layers may be limits, pooling, a constant addend and a flattening, and nothing else may read it.
    """
    removed = 0
    for second in find_places(model.module, between=False).layers:
        found = _chain_before(second)
        if second.weight is None or found is None:
            continue
        first, between = found
        w1, w2 = constant_value(model, first.operands[1]), constant_value(model, second.op.operands[1])
        axis = 0 if not isinstance(first, MatrixProductOp) or first.flag("transpose_b") else 1
        n = w1.shape[axis]
        inputs = 1 if isinstance(second.op, ConvolutionOp) else _input_axis(second, w2)
        size, gone = w2.shape[inputs] // n, int(n * share)
        if gone == 0 or w2.shape[inputs] % n:
            continue
        kept = np.sort(np.argsort(-_by_axis_sum(w1, axis), kind="stable")[: n - gone])
        model.replace(first, 1, "pruned.weight", np.take(w1, kept, axis))
        if len(first.operands) > 2:
            model.replace(first, 2, "pruned.bias", constant_value(model, first.operands[2])[kept])
        columns = [int(channel) * size + place for channel in kept for place in range(size)]
        model.replace(second.op, 1, "pruned.weight", np.take(w2, columns, inputs))
        first.set_result_types(first.infer())
        for op in between:
            _narrow(model, op, n, kept, size)
        removed += gone
    model.drop_unread()
    return removed


def _by_axis_sum(weight: Array, axis: int) -> Array:
    return np.abs(weight).sum(axis=tuple(k for k in range(weight.ndim) if k != axis))


def _chain_before(second: QuantisedLayer) -> tuple[MsOp, list[MsOp]] | None:
    """The layer whose channels a layer reads alone, and the operations between them in order."""
    if isinstance(second.op, ConvolutionOp) and second.op.int_("group") != 1:
        return None
    between, value = list[MsOp](), second.op.operands[0]
    while isinstance(value, OpResult) and value.has_one_use() and isinstance(value.op, MsOp):
        op = value.op
        if isinstance(op, ConvolutionOp | MatrixProductOp | ms.DenseOp):
            whole = is_constant(op.operands[1]) and len(op.shape(1)) > 1
            grouped = isinstance(op, ConvolutionOp) and op.int_("group") != 1
            return (op, between[::-1]) if whole and not grouped else None
        if not isinstance(op, _CARRIES) and not (isinstance(op, ms.AddOp) and any(map(is_constant, op.operands))):
            return None
        if isinstance(op, ms.ReshapeOp) and (len(op.result_shape()) != 2 or op.shape(0)[0] != op.result_shape()[0]):
            return None
        between.append(op)
        value = next(operand for operand in op.operands if not is_constant(operand))
    return None


def _narrow(model: StoredGraph, op: MsOp, n: int, kept: Array, size: int) -> None:
    """The operation on fewer channels, of which it takes the types of its operands."""
    if isinstance(op, ms.ReshapeOp):
        op.properties["shape"] = ms.ReshapeOp(op.x, shape=(op.result_shape()[0], len(kept) * size)).properties["shape"]
    for index, operand in enumerate(op.operands):
        if is_constant(operand):
            values = constant_value(model, operand)
            axes = [axis for axis, extent in enumerate(values.shape) if extent == n]
            if axes:
                model.replace(op, index, "pruned.addend", np.take(values, kept, axes[0]))
    op.set_result_types(op.infer())
