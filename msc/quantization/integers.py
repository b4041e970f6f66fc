"""A graph whose layers compute in integers: `ms.quantize` and `ms.dequantize` around them, weights as bytes.

This is QDQ, the form in which quantised models are exchanged: it is exact in reals, and a compiler makes integer
kernels of it. Weights have the zero point 0 and one scale an output channel; biases are i32 in the scale of the sums.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.convolution import WeightedWindowOp
from msc.interp import evaluate_op
from msc.ir.typed import tensor_type
from msc.quantization.copies import BlockWriter, StoredGraph
from msc.quantization.places import Places, QuantisedLayer, find_places
from msc.quantization.ranges import Grid, along, weight_scales

NAMES = {"int8": "i8", "uint8": "ui8", "int16": "i16", "uint16": "ui16"}
Position = tuple[int, int]


@dataclass(frozen=True)
class Scheme:
    """How a model is quantised: the grids of activations and weights, which layers, and what stays in f32.

    With `dynamic`, every row of an activation has the scale of its largest element, found in each call.
    """

    activations: Grid = field(default_factory=lambda: Grid("uint8"))
    weights: Grid = field(default_factory=lambda: Grid("int8", symmetric=True, narrow=True))
    per_channel: bool = True
    between: bool | None = None
    dynamic: bool = False
    keep: frozenset[str] = frozenset()

    def without(self, names: Collection[str]) -> Scheme:
        """The same with more layers in f32."""
        return replace(self, keep=self.keep | frozenset(names))

    def places(self, model: StoredGraph) -> Places:
        """Where a model is quantised by it."""
        return find_places(model.module, self.keep, between=False if self.dynamic else self.between)


@dataclass
class Weight:
    """A quantised weight: its integers, the scales that broadcast to it, and one scale for each output."""

    integers: Array
    scale: Array
    by_output: Array


@dataclass
class IntegerWriter:
    """Writes a scheme into a model. `ranges` has the ends of the reals at a position; `shifts` are added to biases."""

    model: StoredGraph
    scheme: Scheme
    ranges: Mapping[Position, tuple[float, float]]
    shifts: Mapping[str, Array] = field(default_factory=dict[str, Array])
    too_wide: list[str] = field(default_factory=list[str])
    """Layers whose bias is beyond i32 in the scale of their sums: it stays a real."""

    def write(self) -> Places:
        """Change the model. The places are those before."""
        places = self.scheme.places(self.model)
        fitted = self._fitted(places, {value: places.position(value) for value in places.values})
        inputs = {layer.name: places.values.get(layer.op.operands[0]) for layer in places.layers}
        for value, number in places.values.items():
            readers = [use for use in value.uses if places.reads_integers(use.operation)]
            real = self._by_rows(places, value) if self.scheme.dynamic else self._by_tensor(value, *fitted[number])
            for use in readers:
                use.operation.operands[use.index] = real
        for layer in places.layers:
            number = inputs[layer.name]
            if layer.weight is not None and number is not None:
                self._weight(layer, None if self.scheme.dynamic else fitted[number][0])
        self.model.drop_unread()
        return places

    def _fitted(self, places: Places, positions: Mapping[SSAValue, Position]) -> dict[int, tuple[Array, Array]]:
        """Scale and zero point by number: values of one number have the union of their ranges."""
        ends: dict[int, tuple[float, float]] = {}
        for value, number in places.values.items():
            low, high = self.ranges.get(positions[value], (0.0, 0.0))
            before = ends.get(number, (low, high))
            ends[number] = (min(low, before[0]), max(high, before[1]))
        return {number: self.scheme.activations.fit(*both) for number, both in ends.items()}

    def _by_tensor(self, value: SSAValue, scale: Array, zero: Array) -> SSAValue:
        return round_trip(_behind(value), value, self.scheme.activations, scale, zero)

    def _by_rows(self, places: Places, value: SSAValue) -> SSAValue:
        """Quantised and back, every row of the last axis by its largest magnitude."""
        write, grid = _behind(value), replace(self.scheme.activations, dtype="int8", symmetric=True)
        rank = len(_shape(value))
        axes = [rank - 1]
        if any(isinstance(layer.op, WeightedWindowOp) and layer.op.operands[0] is value for layer in places.layers):
            axes = list(range(1, rank))
        (size,) = write.emit(ms.AbsOp, value)
        (most,) = write.emit(ms.ReduceMaxOp, size, axis=axes, keep_dims=True)
        (scale,) = write.emit(ms.DivOp, most, float(grid.high))
        (scale,) = write.emit(ms.MaximumOp, scale, float(np.finfo(np.float32).tiny))
        assert scale.ssa is not None
        integers = write.insert(ms.QuantizeOp(value, scale.ssa, dtype=element_type("i8"))).results[0]
        return write.insert(ms.DequantizeOp(integers, scale.ssa)).results[0]

    def _weight(self, layer: QuantisedLayer, scale: Array | None) -> None:
        """Put bytes in the place of a layer's weight, and of its bias."""
        assert layer.weight is not None
        values = constant_value(self.model, layer.weight)
        weight = quantized_weight(values, self.scheme, layer.channel)
        name = f"{layer.name}.quantised"
        write = BlockWriter(_block(layer.op), before=layer.op)
        read = write.insert(self.model.store(name, weight.integers))
        real = write.insert(
            ms.DequantizeOp(read.results[0], write.constant(np.asarray(weight.scale, np.float32)))
        ).results[0]
        layer.op.operands[1] = real
        shift = self.shifts.get(layer.name)
        if len(layer.op.operands) > 2:
            bias = constant_value(self.model, layer.op.operands[2])
            layer.op.operands[2] = self._bias(write, layer, bias if shift is None else bias - shift, weight, scale)
        elif shift is not None:
            self._shift_behind(layer, -shift)

    def _bias(
        self, write: BlockWriter, layer: QuantisedLayer, bias: Array, weight: Weight, scale: Array | None
    ) -> SSAValue:
        name = f"{layer.name}.bias"
        if scale is None:
            return write.insert(self.model.store(name, bias.astype(np.float32))).results[0]
        factor = np.float32(np.float32(scale) * weight.by_output)
        whole = np.rint(np.float64(bias) / np.float64(factor))
        if np.abs(whole).max(initial=0) >= 2**31:
            self.too_wide.append(layer.name)
            return write.insert(self.model.store(name, bias.astype(np.float32))).results[0]
        read = write.insert(self.model.store(f"{name}.quantised", whole.astype(np.int32)))
        factors = np.broadcast_to(factor, bias.shape) if factor.ndim else factor
        return write.insert(ms.DequantizeOp(read.results[0], write.constant(np.ascontiguousarray(factors)))).results[0]

    def _shift_behind(self, layer: QuantisedLayer, shift: Array) -> None:
        """Add a constant to what a layer without a bias gives, or to the constant that is added there."""
        result = layer.op.results[0]
        spatial = len(_shape(result)) - 2 if isinstance(layer.op, WeightedWindowOp) else 0
        values = shift.astype(np.float32).reshape(-1, *(1 for _ in range(spatial)))
        user = result.get_user_of_unique_use()
        if isinstance(user, ms.AddOp):
            for index, operand in enumerate(user.operands):
                if is_constant(operand):
                    bias = self.model.store(f"{layer.name}.bias", constant_value(self.model, operand) + values)
                    user.operands[index] = BlockWriter(_block(user), before=user).insert(bias).results[0]
                    return
        write, uses = BlockWriter(_block(layer.op), after=layer.op), list(result.uses)
        read = write.insert(self.model.store(f"{layer.name}.bias", values))
        added = write.insert(ms.AddOp(result, read.results[0])).results[0]
        for use in uses:
            use.operation.operands[use.index] = added


def round_trip(write: BlockWriter, value: SSAValue, grid: Grid, scale: Array, zero: Array) -> SSAValue:
    """A value quantised and back: cut where the grid has fewer integers than its type."""
    given = [write.constant(np.asarray(scale, np.float32)), write.constant(np.asarray(zero))]
    integers = write.insert(ms.QuantizeOp(value, *given, dtype=element_type(NAMES[grid.dtype]))).results[0]
    whole = np.iinfo(grid.dtype)
    if grid.low > whole.min:
        integers = write.insert(ms.MaximumOp(integers, write.constant(np.asarray(grid.low, grid.dtype)))).results[0]
    if grid.high < whole.max:
        integers = write.insert(ms.MinimumOp(integers, write.constant(np.asarray(grid.high, grid.dtype)))).results[0]
    return write.insert(ms.DequantizeOp(integers, *given)).results[0]


def quantized_weight(values: Array, scheme: Scheme, channel: int | None) -> Weight:
    """A weight by the scheme: a scale a channel where the layer has an axis of outputs."""
    channel = channel if scheme.per_channel else None
    scale, _ = weight_scales(values, scheme.weights, channel)
    spread = along(scale, channel, values.ndim)
    integers = scheme.weights.quantized(values, spread, 0)
    return Weight(integers, _trimmed(spread), scale)


def _trimmed(scale: Array) -> Array:
    """Without leading axes of size 1, which broadcasting adds."""
    while scale.ndim and scale.shape[0] == 1:
        scale = scale[0]
    return scale


def constant_value(model: StoredGraph, value: SSAValue) -> Array:
    """The array of a constant or a parameter."""
    assert isinstance(value, OpResult)
    if isinstance(value.op, ms.GetParameterOp):
        return model.weights[value.op.symbol]
    assert isinstance(value.op, MsOp)
    return evaluate_op(value.op, *(constant_value(model, operand) for operand in value.op.operands))[0]


def _block(op: Operation) -> Block:
    block = op.parent_block()
    assert block is not None
    return block


def _behind(value: SSAValue) -> BlockWriter:
    """Writes behind what gives a value."""
    if isinstance(value, OpResult):
        return BlockWriter(_block(value.op), after=value.op)
    assert isinstance(value, BlockArgument)
    return BlockWriter(value.block)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()
