"""Recurrent layers, unrolled over time; their states are zero when a call begins."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from msc.dialects import ms
from msc.dialects.element_types import element_type
from msc.importers.tflite.integers import Codes, has_codes, is_quantised, limited, rescaled, result_codes, zero_moved
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.operators.activations import interpolated
from msc.importers.tflite.registry import importer

_WEIGHTS, _RECURRENT, _BIASES = 1, 5, 12
"""Where four inputs begin, one a gate: input, forget, cell, output."""
_ABSENT = {"peepholes": range(9, 12), "a projection": range(16, 18), "layer normalisation": range(20, 24)}
_MOST_STEPS = 4096


@importer("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(node: TfliteNode) -> TfliteValue:
    options = node.options("UnidirectionalSequenceLSTMOptions")
    for what, inputs in _ABSENT.items():
        if any(node.get(k) is not None for k in inputs):
            raise node.failure("MSC0711", f"it has {what}, which msc does not import")
    if int(options.FusedActivationFunction()) != 4:
        raise node.failure("MSC0711", "its cell has another activation than tanh")
    x, time = node[0], 0 if bool(options.TimeMajor()) else 1
    if x.rank != 3 or not 0 < x.shape[time] <= _MOST_STEPS or node[_WEIGHTS + 1].rank != 2:
        raise node.failure("MSC0711", f"its input is a {x.type}: of a batch, up to {_MOST_STEPS} steps and numbers")
    for k in (18, 19):
        state = node[k].array
        if state is None or not state.size or (state != state.flat[0]).any():
            raise node.failure("MSC0711", "its states are not variables")
    units = node[_WEIGHTS + 1].shape[0]
    gates = (_Integers if is_quantised(x) else _Floats)(node, float(options.CellClip()))
    rows = (x.shape[0] * x.shape[1], x.shape[2])
    products = [gates.of_input(node.reshape(x, rows), k) for k in range(4)]
    products = [node.reshape(p, (*x.shape[:2], units)) for p in products]
    shape = x.shape[1 - time], units
    hidden, cell, results = gates.start(shape), gates.start_of_cell(shape), list[TfliteValue]()
    for step in range(x.shape[time]):
        begin = [step if axis == time else 0 for axis in range(3)]
        end = [step + 1 if axis == time else n for axis, n in enumerate((*x.shape[:2], units))]
        here = [node.reshape(node(ms.SliceOp, p, begin=begin, end=end), shape) for p in products]
        hidden, cell = gates.step(here, hidden, cell)
        results.append(hidden)
    return node(ms.StackOp, *results, axis=time)


class _Gates(ABC):
    """The arithmetic of a layer."""

    def __init__(self, node: TfliteNode, clip: float) -> None:
        self.node, self.clip = node, clip

    @abstractmethod
    def of_input(self, rows: TfliteValue, gate: int) -> TfliteValue:
        """What a gate adds up of the input, with its bias."""

    @abstractmethod
    def start(self, shape: tuple[int, int]) -> TfliteValue:
        """The hidden state in front of the first step."""

    @abstractmethod
    def start_of_cell(self, shape: tuple[int, int]) -> TfliteValue:
        """The state of the cell there."""

    @abstractmethod
    def step(self, of_input: list[TfliteValue], h: TfliteValue, c: TfliteValue) -> tuple[TfliteValue, TfliteValue]:
        """The hidden state and that of the cell after a step."""


class _Floats(_Gates):
    def of_input(self, rows: TfliteValue, gate: int) -> TfliteValue:
        return self.node(ms.DenseOp, rows, self.node[_WEIGHTS + gate], self.node[_BIASES + gate])

    def start(self, shape: tuple[int, int]) -> TfliteValue:
        return self.node.constant(np.zeros(shape, np.float32))

    def start_of_cell(self, shape: tuple[int, int]) -> TfliteValue:
        return self.start(shape)

    def step(self, of_input: list[TfliteValue], h: TfliteValue, c: TfliteValue) -> tuple[TfliteValue, TfliteValue]:
        node = self.node
        sums = [node(ms.AddOp, p, node(ms.DenseOp, h, node[_RECURRENT + k], None)) for k, p in enumerate(of_input)]
        i, f, o = (node(ms.SigmoidOp, sums[k]) for k in (0, 1, 3))
        c = node(ms.AddOp, node(ms.MulOp, f, c), node(ms.MulOp, i, node(ms.TanhOp, sums[2])))
        c = node(ms.ClipOp, c, min=-self.clip, max=self.clip) if self.clip > 0 else c
        return node(ms.MulOp, node(ms.TanhOp, c), o), c


class _Integers(_Gates):
    """Gates of 16 bits between -8 and 8, the cell on a power of 2; each product is scaled, each sum is cut."""

    def __init__(self, node: TfliteNode, clip: float) -> None:
        super().__init__(node, clip)
        if node[0].dtype != "i8" or node[19].dtype != "i16" or not has_codes(node[19]):
            raise node.failure("MSC0704", "of integers, its input has 8 bits and its cell 16")
        self.given, self.hidden = Codes(node, node[0], "input 0"), result_codes(node)
        self.cell = Codes(node, node[19], "cell")
        self.power = round(math.log2(float(self.cell.scale)))
        if self.cell.scale != np.float32(2.0**self.power) or self.cell.zero:
            raise node.failure("MSC0730", f"the scale of its cell, {self.cell.scale}, is no power of 2")

    def of_input(self, rows: TfliteValue, gate: int) -> TfliteValue:
        return self._product(rows, self.given, _WEIGHTS + gate, self.node[_BIASES + gate])

    def _product(self, x: TfliteValue, given: Codes, weight: int, bias: TfliteValue | None) -> TfliteValue:
        node, w = self.node, self.node[weight]
        codes = Codes(node, w, f"weight {weight}")
        if w.array is None or codes.zero or w.dtype != "i8" or (bias is not None and bias.array is None):
            raise node.failure("MSC0730", f"its weight {weight} has a zero point, or is computed")
        sums = node(ms.MatmulOp, x, w, transpose_b=True, dtype=element_type("i32"))
        sums = zero_moved(node, sums, w.array.astype(np.int64).sum(axis=1), given.zero, bias, (-1,))
        real = float(np.float32(given.scale * codes.scale)) / 2.0**-12
        return rescaled(node, sums, real, dtype="i16")

    def start(self, shape: tuple[int, int]) -> TfliteValue:
        return self.node.constant(np.full(shape, self.hidden.zero, np.int8))

    def start_of_cell(self, shape: tuple[int, int]) -> TfliteValue:
        return self.node.constant(np.zeros(shape, np.int16))

    def step(self, of_input: list[TfliteValue], h: TfliteValue, c: TfliteValue) -> tuple[TfliteValue, TfliteValue]:
        node, cell = self.node, float(self.cell.scale)
        sums = [self._sum(p, self._product(h, self.hidden, _RECURRENT + k, None)) for k, p in enumerate(of_input)]
        i, f, o = (interpolated(node, sums[k], 3, 0, is_tanh=False) for k in (0, 1, 3))
        new = interpolated(node, sums[2], 3, 0, is_tanh=True)
        c = self._sum(self._times(f, c, 2.0**-15 * cell / cell), self._times(i, new, 2.0**-30 / cell))
        if self.clip > 0:
            most = int(min(self.clip / cell, 32767.0))
            c = limited(node, c, -most, most)
        shift = 12 + self.power
        shown = interpolated(node, c, 3 << shift if shift >= 0 else 3, max(-shift, 0), is_tanh=True)
        real = 2.0**-30 / float(self.hidden.scale)
        return self._times(shown, o, real, self.hidden), c

    def _sum(self, a: TfliteValue, b: TfliteValue) -> TfliteValue:
        node = self.node
        total = node(ms.AddOp, node.cast(a, "i32"), node.cast(b, "i32"))
        return node.cast(node(ms.ClipOp, total, min=-32768.0, max=32767.0), "i16")

    def _times(self, a: TfliteValue, b: TfliteValue, real: float, result: Codes | None = None) -> TfliteValue:
        node = self.node
        product = node(ms.MulOp, node.cast(a, "i32"), node.cast(b, "i32"))
        if result is None:
            return rescaled(node, product, real, dtype="i16")
        return rescaled(node, product, real, zero=result.zero, dtype=result.dtype)
