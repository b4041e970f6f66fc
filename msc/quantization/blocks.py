"""Weights of products in few bits, in blocks along their inputs that share a scale: `ms.packed_matmul`.

A weight is rounded to nearest, or by what its inputs are: GPTQ (Frantar et al. 2022, arXiv:2210.17323) moves the error
of a column into those that come after it, AWQ (Lin et al. 2023, arXiv:2306.00978) scales the inputs that matter and
cuts ranges. Both judge by H, the sum of `x x^T` over calibration inputs: an error E of a weight costs trace(E H E^T).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from xdsl.ir import SSAValue

from msc import nn
from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.packed_weights import in_panels, values_in_panels
from msc.ir.typed import tensor_type
from msc.nn.packed import PackedDense
from msc.quantization.calibration import LayerError, expect_finite
from msc.quantization.copies import BlockWriter, Compiler, Rows, StoredGraph, on_values
from msc.quantization.integers import constant_value
from msc.quantization.places import QuantisedLayer, find_places

Algorithm = Literal["rtn", "gptq", "awq"]
_DAMPING = 0.01
"""Of the mean of H's diagonal, added to it: GPTQ's."""
_AT_ONCE = 128
"""Columns whose errors GPTQ gathers before it moves them to all others."""
_STRENGTHS = np.linspace(0, 1, 21)
_CUTS = np.linspace(1, 0.5, 11)


@dataclass(frozen=True)
class BlockScheme:
    """Weights of `bits` (2, 4, 8) in blocks of so many inputs; without `symmetric` blocks have zero points."""

    bits: int = 4
    block: int = 32
    symmetric: bool = True
    algorithm: Algorithm = "rtn"
    rounds: bool = False
    """Whether inputs are rounded to 8 bits by blocks, for products of integers."""

    @property
    def most(self) -> int:
        """The greatest code."""
        return (1 << self.bits) - 1

    def rounded(self, weight: Array, cut: Array | float = 1.0) -> Blocks:
        """The nearest codes of a weight `[out, in]`; `cut` makes ranges narrower, all or by block `[out, blocks]`.

        Symmetric, the number of the greatest magnitude in a block is the lowest code: exact, as in llama.cpp's Q4_0.
        """
        apart = weight.astype(np.float32).reshape(len(weight), -1, self.block)
        if self.symmetric:
            places = np.abs(apart).argmax(2)[:, :, None]
            scale = np.take_along_axis(apart, places, 2)[:, :, 0] / np.float32(-(1 << (self.bits - 1)))
            zero = None
        else:
            low, high = np.minimum(apart.min(2), 0), np.maximum(apart.max(2), 0)
            scale = (high - low) / np.float32(self.most)
            zero = np.rint(np.divide(-low, scale, out=np.zeros_like(low), where=scale != 0)).astype(np.uint8)
        grid = Blocks(self, np.zeros(0), (scale * np.float32(cut)).astype(np.float32), zero)
        return replace(grid, codes=grid.nearest(weight))


@dataclass(frozen=True)
class Blocks:
    """A weight in few bits: codes `[out, in]`, scales `[out, blocks]`, zero points of uint8 or the middle of codes."""

    scheme: BlockScheme
    codes: Array
    scale: Array
    zero: Array | None

    def nearest(self, weight: Array, columns: Array | None = None) -> Array:
        """The codes of `columns` of a weight on this grid."""
        scale, zero = self._spread(columns)
        ratio = np.divide(weight, scale, out=np.zeros(weight.shape, np.float32), where=scale != 0, casting="unsafe")
        return np.clip(np.rint(ratio) + zero, 0, self.scheme.most).astype(np.uint8)

    def values(self, codes: Array | None = None, columns: Array | None = None) -> Array:
        """The weight `[out, in]` that the codes are, or other codes of `columns` would be."""
        scale, zero = self._spread(columns)
        return ((self.codes if codes is None else codes) - zero) * scale

    def _spread(self, columns: Array | None) -> tuple[Array, Array]:
        size = self.scheme.block
        every = np.arange(int(self.scale.shape[1] * size))
        block = (every if columns is None else columns) // size
        middle = np.full((1, 1), 1 << (self.scheme.bits - 1), np.float32)
        return self.scale[:, block], middle if self.zero is None else self.zero[:, block].astype(np.float32)


def loss(error: Array, hessian: Array) -> float:
    """What an error of a weight costs on the inputs that gave H."""
    return float(np.sum((error.astype(np.float64) @ hessian) * error))


def gptq(weight: Array, hessian: Array, scheme: BlockScheme) -> Blocks:
    """A weight `[out, in]` column after column, the greatest inputs first; what rounding errs, later columns mend.

    The grid of each block is that of the weight before, so that the order needs no place in the result.
    """
    damped = hessian.astype(np.float64).copy()
    k, diagonal = len(damped), np.arange(len(damped))
    damped[diagonal, diagonal] += max(_DAMPING * float(np.mean(np.diag(hessian))), 1e-12)
    order = np.argsort(-np.diag(damped), kind="stable")
    inverse = np.linalg.inv(damped[order][:, order])
    upper = np.linalg.cholesky((inverse + inverse.T) / 2).T
    grid = _cut(weight, hessian, scheme)
    left, codes = weight[:, order].astype(np.float64), np.zeros(weight.shape, np.uint8)
    for start in range(0, k, _AT_ONCE):
        stop = min(start + _AT_ONCE, k)
        errors = np.zeros((len(weight), stop - start))
        for i in range(start, stop):
            column = order[i : i + 1]
            code = grid.nearest(left[:, i : i + 1], column)
            codes[:, column] = code
            errors[:, i - start] = (left[:, i] - grid.values(code, column)[:, 0]) / upper[i, i]
            left[:, i + 1 : stop] -= errors[:, i - start : i - start + 1] * upper[i, i + 1 : stop]
        left[:, stop:] -= errors @ upper[start:stop, stop:]
    return replace(grid, codes=codes)


def awq(weights: Sequence[Array], hessian: Array, magnitude: Array, scheme: BlockScheme) -> tuple[list[Blocks], Array]:
    """Weights of the same inputs, of which `magnitude` is the mean: codes, and the factors that inputs are divided by.

    The factors are `magnitude^a` with the a that costs least; then ranges of blocks are cut where that costs less.
    """
    found, least = np.ones(len(magnitude), np.float32), np.inf
    for strength in _STRENGTHS:
        factor = np.maximum(magnitude, 1e-4).astype(np.float64) ** strength
        factor = (factor / np.sqrt(factor.max() * factor.min())).astype(np.float32)
        cost = sum(loss(scheme.rounded(w * factor).values() / factor - w, hessian) for w in weights)
        if cost < least:
            found, least = factor, cost
    turned = hessian / np.outer(found, found)
    return [_cut(w * found, turned, scheme) for w in weights], found


def _cut(weight: Array, hessian: Array, scheme: BlockScheme) -> Blocks:
    """Rounded to nearest, each block of each row with the range that costs least within it."""
    out, size = len(weight), scheme.block
    blocks = weight.shape[1] // size
    own = np.stack([hessian[k * size : (k + 1) * size, k * size : (k + 1) * size] for k in range(blocks)])
    cut, least = np.ones((out, blocks), np.float32), np.full((out, blocks), np.inf)
    for each in _CUTS:
        error = (scheme.rounded(weight, each).values() - weight).reshape(out, blocks, size).transpose(1, 0, 2)
        cost = np.sum((error @ own) * error, axis=2).T
        cut, least = np.where(cost < least, np.float32(each), cut), np.minimum(cost, least)
    return scheme.rounded(weight, cut)


@dataclass
class PackedWriter:
    """Puts `ms.packed_matmul` in the place of products with a constant weight `[in, out]` or `[out, in]`.

    `inputs` has H and the mean magnitude of what each layer reads; without, weights are rounded to nearest.
    """

    model: StoredGraph
    scheme: BlockScheme
    inputs: Mapping[str, tuple[Array, Array]] = field(default_factory=dict[str, tuple[Array, Array]])
    errors: list[LayerError] = field(default_factory=list[LayerError])

    def write(self, keep: Collection[str] = ()) -> None:
        """Change the model but for the layers in `keep`."""
        readers: dict[SSAValue, list[QuantisedLayer]] = {}
        for layer in packable(self.model, keep):
            readers.setdefault(layer.op.operands[0], []).append(layer)
        for layers in readers.values():
            weights = [self._rows(layer) for layer in layers]
            k = weights[0].shape[1]
            hessian, magnitude = np.eye(k), np.ones(k)
            if layers[0].name in self.inputs:
                hessian, magnitude = (_filled(each, k) for each in self.inputs[layers[0].name])
            factor = None
            if self.scheme.algorithm == "awq":
                found, factor = awq(weights, hessian, magnitude, self.scheme)
            elif self.scheme.algorithm == "gptq":
                found = [gptq(w, hessian, self.scheme) for w in weights]
            else:
                found = [self.scheme.rounded(w) for w in weights]
            for layer, weight, blocks in zip(layers, weights, found, strict=True):
                made = blocks.values() if factor is None else blocks.values() / factor
                ratio = loss(weight, hessian) / max(loss(made - weight, hessian), 1e-30)
                snr, kind = float(10 * np.log10(max(ratio, 1e-30))), layer.op.name.removeprefix("ms.")
                self.errors.append(LayerError(layer.name, kind, snr, np.zeros(0)))
                self._pack(layer, blocks, factor)
        self.model.drop_unread()

    def _rows(self, layer: QuantisedLayer) -> Array:
        """The weight as `[out, in]`, with zeros up to a whole number of blocks."""
        weight = constant_value(self.model, layer.op.operands[1])
        rows = weight if isinstance(layer.op, ms.DenseOp) or layer.op.flag("transpose_b") else weight.T
        return np.pad(rows, ((0, 0), (0, -rows.shape[1] % self.scheme.block)))

    def _pack(self, layer: QuantisedLayer, blocks: Blocks, factor: Array | None) -> None:
        op, x = layer.op, layer.op.operands[0]
        block = op.parent_block()
        assert block is not None
        write, (n, k) = BlockWriter(block, before=op), blocks.codes.shape
        shape, inputs = op.shape(0), op.shape(0)[-1]

        def stored(name: str, array: Array) -> SSAValue:
            return write.insert(self.model.store(f"{layer.name}.{name}", array)).results[0]

        if factor is not None:
            x = write.insert(ms.MulOp(x, stored("divided", (1 / factor[:inputs]).astype(np.float32)))).results[0]
        if len(shape) > 2:
            x = write.insert(ms.ReshapeOp(x, shape=(-1, inputs))).results[0]
        if k > inputs:
            x = write.insert(ms.PadOp(x, pad=(0, 0, 0, k - inputs))).results[0]
        bits = self.scheme.bits
        packed = [stored("codes", in_panels(blocks.codes, bits, self.scheme.block))]
        packed.append(stored("scale", values_in_panels(blocks.scale)))
        if blocks.zero is not None:
            packed.append(stored("zero", values_in_panels(blocks.zero)))
        made = write.insert(ms.PackedMatmulOp(x, *packed, bits=bits, rounds=self.scheme.rounds))
        y = made.results[0]
        if made.result_shape()[1] > n:
            y = write.insert(ms.SliceOp(y, begin=(0, 0), end=(made.result_shape()[0], n))).results[0]
        if len(shape) > 2:
            y = write.insert(ms.ReshapeOp(y, shape=(*shape[:-1], n))).results[0]
        if len(op.operands) > 2:
            y = write.insert(ms.AddOp(y, op.operands[2])).results[0]
        y.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(y)


def packable(model: StoredGraph, keep: Collection[str] = ()) -> list[QuantisedLayer]:
    """The products of values and a constant matrix, whose rows are the values' last axis."""
    return [
        layer
        for layer in find_places(model.module, keep, between=False).layers
        if layer.weight is not None
        and isinstance(layer.op, MatrixProductOp | ms.DenseOp)
        and not (isinstance(layer.op, MatrixProductOp) and layer.op.flag("transpose_a"))
        and len(layer.op.shape(1)) == 2 <= len(layer.op.shape(0))
        and layer.op.shape(0)[1:].count(-1) == 0
    ]


def measured(model: StoredGraph, rows: Rows, compiled: Compiler) -> dict[str, tuple[Array, Array]]:
    """H and the mean magnitude of what each packable layer reads, over rows of data. Raises MSC1212."""
    layers = packable(model)
    values = list(dict.fromkeys(layer.op.operands[0] for layer in layers))

    def compute(write: BlockWriter, value: SSAValue) -> Sequence[SSAValue]:
        shape = tensor_type(value).get_shape()
        x = write.insert(ms.ReshapeOp(value, shape=(-1, shape[-1]))).results[0]
        gram = write.insert(ms.MatmulOp(x, x, transpose_a=True)).results[0]
        size = write.insert(ms.AbsOp(x)).results[0]
        return gram, write.insert(ms.ReduceMeanOp(size, axis=[0])).results[0]

    totals: list[Array] = []
    for number, found in enumerate(on_values(model, values, compute, rows, compiled)):
        now = [expect_finite(each, number).astype(np.float64) for each in found]
        totals = [a + b for a, b in zip(totals, now, strict=True)] if totals else now
    places = {layer.name: 2 * values.index(layer.op.operands[0]) for layer in layers}
    return {name: (totals[k], totals[k + 1] / len(rows)) for name, k in places.items()}


def _filled(array: Array, size: int) -> Array:
    """With zeros up to a size in each dimension."""
    return np.pad(array, [(0, size - each) for each in array.shape])


def pack_dense_layers(net: nn.Cell, bits: int = 4, block: int = 32, rounds: bool = False) -> int:
    """Put a `PackedDense` in the place of each dense layer whose inputs are whole blocks; how many there were.

    Layers with an activation stay what they are. With `rounds` inputs are rounded to 8 bits by blocks, too.
    """
    count, scheme = 0, BlockScheme(bits, block)
    for name, cell in list(net.name_cells().items()):
        if type(cell) is nn.Dense and cell.activation is None and cell.in_channels % block == 0:
            made = scheme.rounded(cell.weight.asnumpy())
            bias = None if cell.bias is None else cell.bias.asnumpy()
            setattr(net, name, PackedDense(made.codes, made.scale, None, bits, block, bias, rounds=rounds))
            count += 1
        else:
            count += pack_dense_layers(cell, bits, block, rounds)
    return count
