"""Recurrent layers of one direction as operators."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from typing import Any

from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops import (
    arithmetic,
    joining,
    linear,
    shapes,
    unary,
)
from msc.ops.operands import cast
from msc.ops.primitive import operator

__all__ = ["DynamicGRUV2", "DynamicRNN"]


def _dynamic_rnn(
    x: Tensor,
    w: Tensor,
    b: Tensor,
    seq_length: Any,
    init_h: Tensor,
    init_c: Tensor,
    *,
    cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    use_peephole: bool = False,
    keep_prob: float = 1.0,
    cell_clip: float = -1.0,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    forget_bias: float = 0.0,
    is_training: bool = True,
) -> tuple[Tensor, ...]:
    """An LSTM along the first axis; w `[inputs + hidden, 4 hidden]` has the gates input, cell, forget, output.

    Gives outputs, hidden and cell states, the four gates and tanh of the cell states, a step each.
    """
    plain = (cell_type, direction, cell_depth, use_peephole, num_proj, time_major, activation)
    if (
        plain != ("LSTM", "UNIDIRECTIONAL", 1, False, 0, True, "tanh")
        or seq_length is not None
        or keep_prob != 1.0
        or cell_clip > 0
    ):
        raise ApiValueError(
            "MSC0203", "DynamicRNN is an LSTM of one layer and direction here", help="nn.LSTM has the others"
        )
    del is_training
    h, c = shapes.squeeze(init_h, 0), shapes.squeeze(init_c, 0)
    steps: list[tuple[Tensor, ...]] = []
    for t in joining.unbind(x, 0):
        gates = arithmetic.add(linear.matmul(joining.concat([t, h], 1), cast(w, x.dtype)), cast(b, x.dtype))
        i, j, f, o = joining.chunk(gates, 4, 1)
        i, j, o = unary.sigmoid(i), unary.tanh(j), unary.sigmoid(o)
        f = unary.sigmoid(arithmetic.add(f, forget_bias))
        c = arithmetic.add(arithmetic.mul(f, c), arithmetic.mul(i, j))
        wide = unary.tanh(c)
        h = arithmetic.mul(o, wide)
        steps.append((h, h, c, i, j, f, o, wide))
    return tuple(joining.stack(column, 0) for column in zip(*steps, strict=True))


def _dynamic_gru(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Any,
    bias_hidden: Any,
    seq_length: Any,
    init_h: Tensor,
    *,
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    keep_prob: float = 1.0,
    cell_clip: float = -1.0,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    gate_order: str = "rzh",
    reset_after: bool = True,
    is_training: bool = True,
) -> tuple[Tensor, ...]:
    """A GRU along the first axis: outputs, hidden states, update, reset, new gates and the hidden part of the new."""
    plain = (direction, cell_depth, num_proj, time_major, activation, reset_after)
    if (
        plain != ("UNIDIRECTIONAL", 1, 0, True, "tanh", True)
        or seq_length is not None
        or keep_prob != 1.0
        or cell_clip > 0
    ):
        raise ApiValueError(
            "MSC0203", "DynamicGRUV2 is a GRU of one layer and direction here", help="nn.GRU has the others"
        )
    del is_training
    order = [gate_order.index(letter) for letter in "rzh"]
    h = init_h if init_h.ndim == 2 else shapes.squeeze(init_h, 0)
    steps: list[tuple[Tensor, ...]] = []
    for t in joining.unbind(x, 0):
        outer, inner = linear.matmul(t, weight_input), linear.matmul(h, weight_hidden)
        outer = outer if bias_input is None else arithmetic.add(outer, bias_input)
        inner = inner if bias_hidden is None else arithmetic.add(inner, bias_hidden)
        first, second = joining.chunk(outer, 3, 1), joining.chunk(inner, 3, 1)
        r, z = (unary.sigmoid(arithmetic.add(first[k], second[k])) for k in order[:2])
        part = second[order[2]]
        n = unary.tanh(arithmetic.add(first[order[2]], arithmetic.mul(r, part)))
        h = arithmetic.add(arithmetic.mul(arithmetic.sub(1.0, z), n), arithmetic.mul(z, h))
        steps.append((h, h, z, r, n, part))
    return tuple(joining.stack(column, 0) for column in zip(*steps, strict=True))


DynamicGRUV2 = operator(
    "DynamicGRUV2",
    _dynamic_gru,
    "direction cell_depth keep_prob cell_clip num_proj time_major activation gate_order reset_after is_training",
)
DynamicRNN = operator(
    "DynamicRNN",
    _dynamic_rnn,
    "cell_type direction cell_depth use_peephole keep_prob cell_clip num_proj time_major activation forget_bias "
    "is_training",
)
