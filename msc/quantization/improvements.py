"""Changes of a model in reals that make its integers better: the model computes the same.

Sources: Nagel et al. 2019 (arXiv:1906.04721) for equalisation; Xiao et al. 2022 (arXiv:2211.10438), SmoothQuant.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import OpResult, SSAValue

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.quantization.copies import BlockWriter, Compiler, Rows, StoredGraph, on_values
from msc.quantization.integers import constant_value
from msc.quantization.places import QuantisedLayer, find_places

_LEAST = 1e-5


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
