"""What a model's values are on data: their histograms, and how far each layer in integers is from itself in reals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.convolution import WeightedWindowOp
from msc.quantization.copies import BlockWriter, Compiler, Rows, StoredGraph, give
from msc.quantization.integers import Position, Scheme, constant_value, quantized_weight, round_trip
from msc.quantization.places import BETWEEN, QuantisedLayer
from msc.quantization.ranges import METHODS, Histogram
from msc.support.diagnostics import Diagnostic, MscError


@dataclass
class Observed:
    """The histogram of every value that is quantised, by its position, and the greatest magnitude by input channel."""

    histograms: dict[Position, Histogram] = field(default_factory=dict[Position, Histogram])

    def ranges(self, scheme: Scheme, method: str) -> dict[Position, tuple[float, float]]:
        """The ends of each value by a method of `METHODS`."""
        find = METHODS[method]
        return {position: find(seen, scheme.activations) for position, seen in self.histograms.items()}


def observe(model: StoredGraph, scheme: Scheme, rows: Rows, compiled: Compiler) -> Observed:
    """Run the model on data and look at every value that the scheme quantises. Raises MSC1212 for NaN and infinity."""
    copy = model.copy()
    places = scheme.places(copy)
    watched = {places.position(value): value for value in places.values}
    give(places.function, watched.values())
    run = compiled(copy.module, copy.weights)
    found = Observed({position: Histogram() for position in watched})
    for number, row in enumerate(rows):
        for seen, array in zip(found.histograms.values(), run(row), strict=True):
            seen.show(expect_finite(array, number))
    return found


def expect_finite(array: Array, number: int) -> Array:
    """What row `number` of the data gives. Raises MSC1212 for NaN and infinity."""
    if not np.isfinite(array).all():
        message = f"row {number} of the calibration data gives values that are not finite"
        raise MscError(Diagnostic("MSC1212", message, help="remove it, or mend the model: f32 fails there, too"))
    return array


@dataclass(frozen=True)
class LayerError:
    """How far a layer in integers is from itself in reals, on the same inputs.

    `snr` is the ratio of signal to noise in dB; `shift` is the mean error of each output channel.
    """

    name: str
    kind: str
    snr: float
    shift: Array


def layer_errors(
    model: StoredGraph, scheme: Scheme, ranges: Mapping[Position, tuple[float, float]], rows: Rows, compiled: Compiler
) -> list[LayerError]:
    """Run each layer with a twin in integers beside it, both on the values of the model in reals."""
    copy = model.copy()
    places = scheme.places(copy)
    ends = {value: ranges.get(places.position(value), (0.0, 0.0)) for value in places.values}
    fitted = {value: scheme.activations.fit(*both) for value, both in ends.items()}
    sums, layers = list[SSAValue](), list[QuantisedLayer]()
    for layer in places.layers:
        if not isinstance(layer.op, BETWEEN):
            layers.append(layer)
            sums += _Twin(copy, scheme, layer, fitted).sums()
    give(places.function, sums)
    if not layers:
        return []
    run = compiled(copy.module, copy.weights)
    totals: list[Array] = []
    for row in rows:
        results = [np.asarray(each, np.float64) for each in run(row)]
        totals = [a + b for a, b in zip(totals, results, strict=True)] if totals else results
    found = list[LayerError]()
    for layer, noise, signal, shift in zip(layers, totals[0::3], totals[1::3], totals[2::3], strict=True):
        ratio = float(signal) / max(float(noise), 1e-30)
        kind = layer.op.name.removeprefix("ms.")
        found.append(LayerError(layer.name, kind, float(10 * np.log10(max(ratio, 1e-30))), shift / len(rows)))
    return found


class _Twin:
    """A layer in integers beside the one in reals."""

    def __init__(
        self, model: StoredGraph, scheme: Scheme, layer: QuantisedLayer, fitted: Mapping[SSAValue, tuple[Array, Array]]
    ) -> None:
        self._model, self._scheme, self._layer, self._fitted = model, scheme, layer, fitted
        block = layer.op.parent_block()
        assert block is not None
        self._write = BlockWriter(block, after=layer.op)

    def sums(self) -> list[SSAValue]:
        """The sums of squares of the error and of the reals, and the mean error by channel."""
        op, write = self._layer.op, self._write
        twin = write.insert(op.clone(dict(zip(op.operands, self._operands(), strict=True))))
        real = op.results[0]
        (error,) = write.emit(ms.SubOp, twin.results[0], real)
        (noise,) = write.emit(ms.MulOp, error, error)
        (signal,) = write.emit(ms.MulOp, real, real)
        rank = error.rank
        channel = 1 if isinstance(op, WeightedWindowOp) else rank - 1
        axes = [axis for axis in range(rank) if axis != channel]
        results = [
            *(write.emit(ms.ReduceSumOp, noise)[0], write.emit(ms.ReduceSumOp, signal)[0]),
            write.emit(ms.ReduceMeanOp, error, axis=axes)[0] if axes else error,
        ]
        return [value.ssa for value in results if value.ssa is not None]

    def _operands(self) -> list[SSAValue]:
        op, layer, write = self._layer.op, self._layer, self._write
        operands = list(op.operands)
        for index, value in enumerate(op.operands[:2]):
            if value in self._fitted:
                operands[index] = self._round_trip(value)
        if layer.weight is not None:
            weight = quantized_weight(constant_value(self._model, layer.weight), self._scheme, layer.channel)
            read = write.insert(self._model.store(f"{layer.name}.twin", weight.integers))
            scale = write.constant(np.asarray(weight.scale, np.float32))
            operands[1] = write.insert(ms.DequantizeOp(read.results[0], scale)).results[0]
        return operands

    def _round_trip(self, value: SSAValue) -> SSAValue:
        scale, zero = self._fitted[value]
        return round_trip(self._write, value, self._scheme.activations, scale, zero)
