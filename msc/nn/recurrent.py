"""Recurrent layers: RNN, GRU and LSTM along a time axis, and their cells for one step.

The gates of an LSTM are in the order input, forget, cell, output; those of a GRU reset, update, new.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.control import scan
from msc.frontend.dtypes import DTypeLike
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.initializers import Init, Uniform
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.tensor import Tensor
from msc.nn.arguments import boolean, positive, word
from msc.nn.cell import Cell
from msc.nn.parameters import parameter

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]

State: TypeAlias = tuple[Tensor, ...]
StepFunction: TypeAlias = Callable[[Tensor, State, Tensor, Tensor | None], State]
"""From what a step's input adds to the gates, the state, the recurrent weight and its bias to the state after."""


def rnn_step(function: Callable[[Any], Tensor]) -> StepFunction:
    """H' = f(x + h W + b)."""

    def step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
        return (function(ops.add(x, ops.dense(state[0], weight, bias))),)

    return step


def lstm_step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """C' = f c + i g, h' = o tanh(c') (Hochreiter and Schmidhuber, 1997)."""
    h, c = state
    i, f, g, o = ops.chunk(ops.add(x, ops.dense(h, weight, bias)), 4, 1)
    new = ops.add(ops.mul(ops.sigmoid(f), c), ops.mul(ops.sigmoid(i), ops.tanh(g)))
    return ops.mul(ops.sigmoid(o), ops.tanh(new)), new


def gru_step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """N = tanh(x_n + r h_n), h' = (1 - z) n + z h (Cho et al., 2014)."""
    (h,) = state
    xr, xz, xn = ops.chunk(x, 3, 1)
    hr, hz, hn = ops.chunk(ops.dense(h, weight, bias), 3, 1)
    z = ops.sigmoid(ops.add(xz, hz))
    n = ops.tanh(ops.add(xn, ops.mul(ops.sigmoid(ops.add(xr, hr)), hn)))
    return (ops.add(ops.mul(ops.sub(1.0, z), n), ops.mul(z, h)),)


class _Recurrent(Cell):
    """Base of layers: x `[steps, batch, input]` -> output `[steps, batch, directions * hidden]` and the last state.

    With `batch_first` x and output are `[batch, steps, ...]`. The state is `[layers * directions, batch, hidden]`.
    `seq_length` `[batch]` is how many steps of each example count. Parameters begin uniform within 1 / sqrt(hidden).
    """

    GATES: ClassVar[int] = 1
    STATES: ClassVar[int] = 1
    step_function: StepFunction

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        order = "input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional"
        positive(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        for argument, value in (("has_bias", has_bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            boolean(name, argument, value, order)
        if not 0 <= dropout < 1:
            raise ApiValueError("MSC0824", f"{name}: dropout is {dropout}; it must be 0 or more and less than 1")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.has_bias = has_bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.directions = 2 if bidirectional else 1
        inputs = [input_size] + [hidden_size * self.directions] * (num_layers - 1)
        self.w_ih_list = self._parameters("weight_ih", lambda layer: (inputs[layer],), dtype)
        self.w_hh_list = self._parameters("weight_hh", lambda layer: (hidden_size,), dtype)
        if has_bias:
            self.b_ih_list = self._parameters("bias_ih", lambda layer: (), dtype)
            self.b_hh_list = self._parameters("bias_hh", lambda layer: (), dtype)

    def _parameters(self, name: str, columns: Callable[[int], tuple[int, ...]], dtype: DTypeLike) -> ParameterTuple:
        """One a layer and direction: `weight_ih_l0`, `weight_ih_l0_reverse`, ..."""
        rows, limit = self.GATES * self.hidden_size, Uniform(1 / math.sqrt(self.hidden_size))
        made: list[Parameter] = []
        for layer in range(self.num_layers):
            for direction in range(self.directions):
                full = f"{name}_l{layer}{'_reverse' if direction else ''}"
                made.append(parameter(limit, (rows, *columns(layer)), full, dtype))
        return ParameterTuple(made)

    def construct(self, x: Tensor, hx: Any = None, seq_length: Tensor | None = None) -> Any:
        if x.ndim != 3 or x.shape[2] != self.input_size:
            raise ApiValueError(
                "MSC0201",
                f"{type(self).__name__}: x has shape {x.shape}; it must be of rank 3 and end with {self.input_size}",
            )
        sequence = ops.swapaxes(x, 0, 1) if self.batch_first else x
        states = self._initial(hx, sequence)
        ends: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                sequence = ops.dropout(sequence, self.dropout, self.training)
            outputs: list[Tensor] = []
            for direction in range(self.directions):
                place = layer * self.directions + direction
                output, end = self._run(sequence, place, bool(direction), [s[place] for s in states], seq_length)
                outputs.append(output)
                ends.append(end)
            sequence = ops.concat(outputs, 2) if len(outputs) > 1 else outputs[0]
        last = tuple(ops.stack([end[k] for end in ends]) for k in range(self.STATES))
        result = ops.swapaxes(sequence, 0, 1) if self.batch_first else sequence
        return result, last if self.STATES > 1 else last[0]

    def _initial(self, hx: Any, sequence: Tensor) -> State:
        shape = (self.num_layers * self.directions, sequence.shape[1], self.hidden_size)
        if hx is None:
            return tuple(Tensor.of(np.zeros(shape, sequence.dtype.numpy)) for _ in range(self.STATES))
        states: State = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        if len(states) != self.STATES or any(tuple(s.shape) != shape for s in states):
            raise ApiValueError(
                "MSC0201",
                f"{type(self).__name__}: the state has shapes {[s.shape for s in states]}; "
                f"it must be {self.STATES} of {shape}",
            )
        return states

    def _run(
        self, x: Tensor, place: int, backwards: bool, state: Sequence[Tensor], lengths: Tensor | None
    ) -> tuple[Tensor, State]:
        """One layer in one direction: the input's part of all gates at once, then step by step."""
        order = None if lengths is None or not backwards else _reversed_places(x, lengths)
        if backwards:
            x = ops.flip(x, 0) if order is None else ops.gather_elements(x, 0, ops.broadcast_to(order, x.shape))
        bias = self.b_ih_list[place] if self.has_bias else None
        recurrent, recurrent_bias = self.w_hh_list[place], self.b_hh_list[place] if self.has_bias else None
        gates = ops.dense(x, self.w_ih_list[place], bias)

        def step(before: State, entries: State) -> tuple[State, State]:
            after = self.step_function(entries[0], before, recurrent, recurrent_bias)
            if lengths is None:
                return after, (after[0],)
            counts = entries[1]
            kept = tuple(ops.where(counts, new, old) for new, old in zip(after, before, strict=True))
            return kept, (ops.where(counts, after[0], ops.zeros_like(after[0])),)

        inputs = [gates] if lengths is None else [gates, _counting(x, lengths)]
        end, (output,) = scan(step, state, inputs)
        if backwards:
            output = (
                ops.flip(output, 0)
                if order is None
                else ops.gather_elements(output, 0, ops.broadcast_to(order, output.shape))
            )
        return output, end


def _times(x: Tensor) -> Tensor:
    return Tensor.of(np.arange(x.shape[0], dtype=np.int64).reshape(-1, 1, 1))


def _counting(x: Tensor, lengths: Tensor) -> Tensor:
    """Whether a step of an example counts: `[steps, batch, 1]`."""
    return ops.less(_times(x), ops.reshape(ops.cast(lengths, dtypes.int64), (1, -1, 1)))


def _reversed_places(x: Tensor, lengths: Tensor) -> Tensor:
    """Where each step comes from when the first `length` steps of an example are turned round: `[steps, batch, 1]`."""
    ends = ops.reshape(ops.cast(lengths, dtypes.int64), (1, -1, 1))
    return ops.where(_counting(x, lengths), ops.sub(ops.sub(ends, 1), _times(x)), _times(x))


class RNN(_Recurrent):
    """The Elman layer: h' = f(W x + U h + b); `nonlinearity` is "tanh" or "relu"."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype)
        kind = word("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"), "input_size, hidden_size, num_layers, ...")
        self.step_function = rnn_step({"tanh": ops.tanh, "relu": ops.relu}[kind])


class GRU(_Recurrent):
    """The gated recurrent unit (Cho et al., 2014)."""

    GATES: ClassVar[int] = 3
    step_function = staticmethod(gru_step)


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); the state is (h, c)."""

    GATES: ClassVar[int] = 4
    STATES: ClassVar[int] = 2
    step_function = staticmethod(lstm_step)


class _StepCell(Cell):
    """Base of cells for one step: x `[batch, input]` and a state of `[batch, hidden]` to the state after it."""

    GATES: ClassVar[int] = 1

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: DTypeLike = dtypes.float32
    ) -> None:
        super().__init__()
        positive(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        boolean(type(self).__name__, "has_bias", has_bias, "input_size, hidden_size, has_bias")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.has_bias = has_bias
        init: Init = Uniform(1 / math.sqrt(hidden_size))
        rows = self.GATES * hidden_size
        self.weight_ih = parameter(init, (rows, input_size), "weight_ih", dtype)
        self.weight_hh = parameter(init, (rows, hidden_size), "weight_hh", dtype)
        self.bias_ih = parameter(init, (rows,), "bias_ih", dtype) if has_bias else None
        self.bias_hh = parameter(init, (rows,), "bias_hh", dtype) if has_bias else None

    def _after(self, step: StepFunction, x: Tensor, state: State) -> State:
        return step(ops.dense(x, self.weight_ih, self.bias_ih), state, self.weight_hh, self.bias_hh)


class RNNCell(_StepCell):
    """One step of an Elman layer."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.nonlinearity = word("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"), "input_size, hidden_size")

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        return self._after(rnn_step(ops.tanh if self.nonlinearity == "tanh" else ops.relu), x, (hx,))[0]


class GRUCell(_StepCell):
    """One step of a gated recurrent unit."""

    GATES: ClassVar[int] = 3

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        return self._after(gru_step, x, (hx,))[0]


class LSTMCell(_StepCell):
    """One step of long short-term memory; the state is (h, c)."""

    GATES: ClassVar[int] = 4

    def construct(self, x: Tensor, hx: Sequence[Tensor]) -> State:
        if isinstance(hx, Tensor) or len(hx) != 2:
            raise ApiTypeError("MSC0824", "LSTMCell: the state is a pair of tensors, (h, c)")
        return self._after(lstm_step, x, tuple(hx))
