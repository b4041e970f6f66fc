"""Recurrent layers as loops over the time steps: RNN, GRU and LSTM, forwards, backwards or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import numpy_dtype
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.loops import Collected, Iteration, iterate
from msc.importers.onnx.operators.movement import cut, transposed
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue, Slot

MAXIMUM_PARTS = 8
"""The biases of an LSTM: four gates, of the input and of the state."""

GATE_FUNCTIONS = 2
"""The activation functions of a direction that are applied to gates; the third is that of the new cell."""

Function = Callable[[OnnxValue], OnnxValue]
State = tuple[OnnxValue, ...]


@dataclass(frozen=True)
class Layer:
    """One direction: its weights (without the axis of directions) and activation functions."""

    node: Node
    w: OnnxValue
    r: OnnxValue
    b: OnnxValue | None
    peephole: OnnxValue | None
    functions: Sequence[Function]
    hidden: int
    inner: bool = False
    """Whether the last gate's function reads its state's product and bias through another gate."""

    def inputs(self, x: OnnxValue) -> OnnxValue:
        """What the input of every step adds to its gates, as one product: `[steps, batch, gates * hidden]`.

        The biases of the state are added here too, except one inside a function of the state.
        """
        node, (steps, batch, size) = self.node, self.node.shape_of(x)
        product = node(ms.MatmulOp, node.reshape(x, (steps * batch, size)), self.w, transpose_b=True)
        gates = product.shape[1]
        return node.reshape(_add(node, product, *self.biases()), (steps, batch, gates))

    def gates(self, x: OnnxValue, h: OnnxValue) -> OnnxValue:
        """The sums before all gates' functions: of a step's input, and of the state times the recurrent weight."""
        return _add(self.node, self.product(h, self.r), x)

    def product(self, h: OnnxValue, weight: OnnxValue) -> OnnxValue:
        """A state times rows of the recurrent weight."""
        return self.node(ms.MatmulOp, h, weight, transpose_b=True)

    def parts(self, x: OnnxValue) -> list[OnnxValue]:
        """Columns of the hidden size: slices, which fuse into what reads them."""
        size = self.hidden
        return [cut(self.node, x, {1: (k * size, (k + 1) * size, 1)}) for k in range(self._count(x, 1))]

    def split(self, x: OnnxValue, axis: int) -> list[OnnxValue]:
        """Parts of the hidden size."""
        return list(self.node.many(ms.SplitOp, x, axis=axis, sizes=[self.hidden] * self._count(x, axis)))

    def _count(self, x: OnnxValue, axis: int) -> int:
        """How many parts an axis has. Raises MSC0711 for more than any layer has gates."""
        count = x.shape[axis] // max(self.hidden, 1)
        if count > MAXIMUM_PARTS:
            raise self.node.failure("MSC0711", f"a weight of {x.type} does not fit the hidden size {self.hidden}")
        return count

    def biases(self) -> list[OnnxValue]:
        """The biases of W and R together, of all gates; without the one inside, and none if there are none."""
        if self.b is None:
            return []
        node, size = self.node, self.b.shape[0] // 2
        state = cut(node, self.b, {0: (size, 2 * size, 1)})
        if self.inner:
            node.check_table(self.hidden)
            outside = cut(node, state, {0: (0, size - self.hidden, 1)})
            state = node(ms.ConcatOp, outside, node.constant(np.zeros(self.hidden, numpy_dtype(outside.dtype))), axis=0)
        return [_add(node, cut(node, self.b, {0: (0, size, 1)}), state)]

    def inner_bias(self) -> list[OnnxValue]:
        """The bias of the last gate's state, where it stands inside a function."""
        if self.b is None:
            return []
        return [cut(self.node, self.b, {0: (self.b.shape[0] - self.hidden, self.b.shape[0], 1)})]


Cell = Callable[[Layer, OnnxValue, State], State]
"""From what a step's input adds to the gates `[batch, gates * hidden]`, and the states before, to those after."""


def _activation(node: Node, name: str, alpha: float | None, beta: float | None) -> Function:
    a, b = alpha, beta
    table: dict[str, Function] = {
        "relu": lambda x: node(ms.ReluOp, x),
        "tanh": lambda x: node(ms.TanhOp, x),
        "sigmoid": lambda x: node(ms.SigmoidOp, x),
        "softsign": lambda x: node(ms.SoftsignOp, x),
        "softplus": lambda x: node(ms.SoftplusOp, x),
        "elu": lambda x: node(ms.EluOp, x, alpha=1.0 if a is None else a),
        "leakyrelu": lambda x: node(ms.LeakyReluOp, x, alpha=0.01 if a is None else a),
        "affine": lambda x: node(ms.AddOp, node(ms.MulOp, x, 1.0 if a is None else a), 0.0 if b is None else b),
        "scaledtanh": lambda x: node(ms.MulOp, node(ms.TanhOp, node(ms.MulOp, x, b or 1.0)), a or 1.0),
        "hardsigmoid": lambda x: node(ms.HardSigmoidOp, x, alpha=0.2 if a is None else a, beta=0.5 if b is None else b),
        "thresholdedrelu": lambda x: node(
            ms.SelectOp, node(ms.GreaterOp, x, 1.0 if a is None else a), x, node.scalar(0, x.dtype)
        ),
    }
    if name.lower() not in table:
        raise node.failure("MSC0711", f"activation '{name[:40]}' is not one of {', '.join(table)}")
    return table[name.lower()]


def _functions(node: Node, defaults: Sequence[str], directions: int) -> list[list[Function]]:
    """The activation functions of each direction; what gates put into them is clipped if the node says so.

    The function of an LSTM's new cell is no gate's: as ONNX Runtime has it, the cell is not clipped.
    """
    names = node.words("activations") or [*defaults] * directions
    alphas, betas = node.reals("activation_alpha"), node.reals("activation_beta")
    if len(names) != len(defaults) * directions:
        raise node.failure("MSC0711", f"{len(names)} activations, for {directions} directions of {len(defaults)}")
    made = [
        _activation(node, n, *(values[i] if i < len(values) else None for values in (alphas, betas)))
        for i, n in enumerate(names)
    ]
    gates = [_clipped(node, f) if i % len(defaults) < GATE_FUNCTIONS else f for i, f in enumerate(made)]
    return [gates[d * len(defaults) : (d + 1) * len(defaults)] for d in range(directions)]


def _clipped(node: Node, function: Function) -> Function:
    limit = node.real("clip", 0.0)
    if not limit:
        return function
    return lambda x: function(node(ms.ClipOp, x, min=-limit, max=limit))


def _first(node: Node, x: OnnxValue, index: int, axis: int = 0) -> OnnxValue:
    """Entry `index` of an axis, without that axis."""
    part = cut(node, x, {axis: (index, index + 1, 1)})
    return node.reshape(part, [n for a, n in enumerate(part.shape) if a != axis])


def _recurrent(node: Node, cell: Cell, defaults: Sequence[str], states: int) -> list[Slot]:
    """All directions of a layer; `states` is the number of states that a cell carries."""
    batch_first = node.flag("layout")
    x = transposed(node, node[0], [1, 0, 2]) if batch_first else node[0]
    direction = node.choice("direction", "forward", ("forward", "reverse", "bidirectional"))
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    functions = _functions(node, defaults, len(backwards))
    outputs: list[OnnxValue | None] = []
    finals: list[State] = []
    for index, back in enumerate(backwards):
        layer = _layer(node, index, functions[index])
        ys, final = _run(layer, cell, x, _initial(layer, x, index, states, batch_first), back)
        outputs.append(ys)
        finals.append(final)
    y = _joined(node, outputs)
    lasts = [node(ms.StackOp, *(final[i] for final in finals), axis=0) for i in range(states)]
    if batch_first:
        y = None if y is None else transposed(node, y, [2, 0, 1, 3])
        lasts = [transposed(node, last, [1, 0, 2]) for last in lasts]
    return [y, *lasts]


def _joined(node: Node, outputs: Sequence[OnnxValue | None]) -> OnnxValue | None:
    """The outputs of all directions; None if they are not used."""
    used = [y for y in outputs if y is not None]
    return used[0] if len(used) == 1 else node(ms.ConcatOp, *used, axis=1) if used else None


def _layer(node: Node, index: int, functions: Sequence[Function]) -> Layer:
    b = _first(node, node[3], index) if node.has(3) else None
    p = _first(node, node[7], index) if node.has(7) else None
    r = _first(node, node[2], index)
    inner = node.flag("linear_before_reset")
    return Layer(node, _first(node, node[1], index), r, b, p, functions, node.size_of(r, 1), inner)


def _initial(layer: Layer, x: OnnxValue, index: int, states: int, batch_first: bool) -> State:
    node, batch = layer.node, layer.node.size_of(x, 1)
    result: list[OnnxValue] = []
    for place in range(5, 5 + states):
        if node.has(place):
            given = node[place]
            result.append(_first(node, given, index, 1 if batch_first else 0))
        else:
            result.append(node(ms.BroadcastToOp, node.scalar(0, x.dtype), shape=[batch, layer.hidden]))
    return tuple(result)


def _run(layer: Layer, cell: Cell, x: OnnxValue, state: State, back: bool) -> tuple[OnnxValue | None, State]:
    """The first state after each step `[steps, 1, batch, hidden]` if it is used, and the last states.

    Beyond a sequence's own length states stay and outputs are zero.
    """
    node, (steps, batch, _) = layer.node, layer.node.shape_of(x)
    if steps == 0:
        raise node.failure("MSC0711", "it has no time steps")
    inputs, lengths = layer.inputs(x), _lengths(node, steps, batch)

    def iteration(step: Iteration, states: Sequence[OnnxValue]) -> tuple[Sequence[OnnxValue], Sequence[Collected]]:
        new = cell(layer, step.entry(inputs, back), tuple(states))
        output = new[0]
        if lengths is not None:
            active = node(ms.GreaterOp, lengths, step.number(back))
            output = node(ms.SelectOp, active, output, node.scalar(0, x.dtype))
            new = tuple(node(ms.SelectOp, active, n, o) for n, o in zip(new, states, strict=True))
        return new, [Collected(output, back)] if node.wants(0) else []

    finals, stacks = iterate(node, steps, state, iteration)
    return (node.reshape(stacks[0], (steps, 1, batch, layer.hidden)) if stacks else None), tuple(finals)


def _lengths(node: Node, steps: int, batch: int) -> OnnxValue | None:
    """The lengths of the sequences as a column; None if all are whole."""
    if not node.has(4):
        return None
    lengths = node.reshape(node.cast(node[4], "i64"), (batch, 1))
    return None if lengths.array is not None and bool((lengths.array == steps).all()) else lengths


def _add(node: Node, *values: OnnxValue) -> OnnxValue:
    total = values[0]
    for value in values[1:]:
        total = node(ms.AddOp, total, value)
    return total


def _rnn_cell(layer: Layer, x: OnnxValue, state: State) -> State:
    return (layer.functions[0](layer.gates(x, state[0])),)


def _gru_cell(layer: Layer, x: OnnxValue, state: State) -> State:
    """Gates z (update), r (reset), h (new); the products of those that read the same state are one."""
    node, (h,), size = layer.node, state, layer.hidden
    f, g = layer.functions
    wz, wr, wh = layer.parts(x)
    if layer.inner:
        rz, rr, rh = layer.parts(layer.product(h, layer.r))
        z, r = f(_add(node, rz, wz)), f(_add(node, rr, wr))
        new = g(_add(node, wh, node(ms.MulOp, r, _add(node, rh, *layer.inner_bias()))))
    else:
        rz, rr = layer.parts(layer.product(h, cut(node, layer.r, {0: (0, 2 * size, 1)})))
        z, r = f(_add(node, rz, wz)), f(_add(node, rr, wr))
        inner = layer.product(node(ms.MulOp, r, h), cut(node, layer.r, {0: (2 * size, 3 * size, 1)}))
        new = g(_add(node, inner, wh))
    kept = node(ms.MulOp, z, h)
    return (_add(node, node(ms.MulOp, node(ms.SubOp, node.scalar(1, z.dtype), z), new), kept),)


def _lstm_cell(layer: Layer, x: OnnxValue, state: State) -> State:
    """Gates i (input), o (output), f (forget), c (cell); peepholes look at the cell."""
    node, (h, c) = layer.node, state
    f, g, out = layer.functions
    i, o, forget, cell = layer.parts(layer.gates(x, h))
    looks = layer.split(layer.peephole, 0) if layer.peephole is not None else None
    if looks is not None:
        i = _add(node, i, node(ms.MulOp, looks[0], c))
        forget = _add(node, forget, node(ms.MulOp, looks[2], c))
    input_gate = f(i)
    kept = node(ms.SubOp, node.scalar(1, h.dtype), input_gate) if node.flag("input_forget") else f(forget)
    new = _add(node, node(ms.MulOp, kept, c), node(ms.MulOp, input_gate, g(cell)))
    if looks is not None:
        o = _add(node, o, node(ms.MulOp, looks[1], new))
    return node(ms.MulOp, f(o), out(new)), new


@importer("RNN")
def _rnn(node: Node) -> list[Slot]:
    return _recurrent(node, _rnn_cell, ("Tanh",), 1)


@importer("GRU")
def _gru(node: Node) -> list[Slot]:
    return _recurrent(node, _gru_cell, ("Sigmoid", "Tanh"), 1)


@importer("LSTM")
def _lstm(node: Node) -> list[Slot]:
    return _recurrent(node, _lstm_cell, ("Sigmoid", "Tanh", "Tanh"), 2)
