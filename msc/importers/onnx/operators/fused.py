"""Operators of `com.microsoft` in floating point, which ONNX Runtime's optimiser and exporters write.

Operators of the standard say each where these have the same meaning. Source: ContribOperators.md of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.convolution import convolution
from msc.importers.onnx.operators.linear import product, scaled
from msc.importers.onnx.operators.movement import cut, transposed
from msc.importers.onnx.operators.quantization import MICROSOFT
from msc.importers.onnx.registry import Importer, importer
from msc.importers.onnx.values import OnnxValue, Slot

fused = partial(importer, domain=MICROSOFT)

# Activations.


def _sum(node: Node, *indices: int) -> OnnxValue:
    """The sum of the inputs that are given."""
    first, *others = [value for value in map(node.get, indices) if value is not None]
    for value in others:
        first = node(ms.AddOp, first, value)
    return first


@fused("BiasGelu", "Gelu")
def _gelu(node: Node) -> OnnxValue:
    return node(ms.GeluOp, _sum(node, 0, 1), approximate="none")


@fused("FastGelu")
def _fast_gelu(node: Node) -> OnnxValue:
    return node(ms.GeluOp, _sum(node, 0, 1), approximate="tanh")


@fused("QuickGelu")
def _quick_gelu(node: Node) -> OnnxValue:
    return node(ms.MulOp, node[0], node(ms.SigmoidOp, node(ms.MulOp, node[0], node.real("alpha", 1.702))))


_ACTIVATIONS: dict[str, type[MsOp]] = {"Relu": ms.ReluOp, "Sigmoid": ms.SigmoidOp, "Tanh": ms.TanhOp}


def _activated(node: Node, x: OnnxValue, parameters: Sequence[float]) -> OnnxValue:
    """What the attribute `activation` names, with its parameters."""
    name = node.word("activation", "")
    first, second = (*parameters, 0.0, 0.0)[:2]
    if not name:
        return x
    if name in _ACTIVATIONS:
        return node(_ACTIVATIONS[name], x)
    if name == "LeakyRelu":
        return node(ms.LeakyReluOp, x, alpha=first if parameters else 0.01)
    if name == "Clip":
        return node.standard("Clip", x, node.scalar(first, x.dtype), node.scalar(second, x.dtype))[0]
    if name == "HardSigmoid":
        return node(ms.HardSigmoidOp, x, alpha=first, beta=second)
    raise node.failure("MSC0711", f"msc knows no activation '{name[:40]}' of it")


@fused("FusedConv")
def _fused_conv(node: Node) -> OnnxValue:
    """A convolution, plus Z where given, under an activation."""
    y = convolution(node, node[0], node[1], node.get(2))
    z = node.get(3)
    return _activated(node, y if z is None else node(ms.AddOp, y, z), node.reals("activation_params"))


@fused("FusedGemm")
def _fused_gemm(node: Node) -> OnnxValue:
    y = node.standard(
        "Gemm",
        node[0],
        node[1],
        node.get(2),
        alpha=node.real("alpha", 1.0),
        beta=node.real("beta", 1.0),
        transA=node.int_("transA", 0),
        transB=node.int_("transB", 0),
    )[0]
    names = [n for n in ("activation_alpha", "activation_beta") if node.given(n)]
    return _activated(node, y, [node.real(name, 0.0) for name in names])


@fused("FusedMatMul", "TransposeMatMul")
def _fused_matmul(node: Node) -> OnnxValue:
    """`alpha` times a product; `transBatch` moves the first axis of an operand behind its other batch axes."""
    a, b = (_operand(node, i, side) for i, side in enumerate("AB"))
    y, alpha = product(node, a, b), node.real("alpha", 1.0)
    return y if alpha == 1.0 else scaled(node, y, alpha)


def _operand(node: Node, index: int, side: str) -> OnnxValue:
    x = node[index]
    if x.rank < 2:
        return x
    perm = list(range(x.rank))
    if node.flag(f"transBatch{side}"):
        perm = [*perm[1:-1], 0, x.rank - 1]
    if node.flag(f"trans{side}"):
        perm[-2:] = perm[:-3:-1]
    return transposed(node, x, perm)


# Normalisations.


@importer("SimplifiedLayerNormalization")
@fused("SimplifiedLayerNormalization")
def _simplified_layer_norm(node: Node) -> list[Slot]:
    x = node[0]
    axis = node.axis(node.int_("axis", -1), x.rank)
    return [_rms_norm(node, x, node[1], axis), _inverse_norm(node, x, axis) if node.wants(1) else None]


def _rms_norm(node: Node, x: OnnxValue, scale: OnnxValue, axis: int) -> OnnxValue:
    return node.standard("RMSNormalization", x, scale, axis=axis, epsilon=node.real("epsilon", 1e-5))[0]


def _inverse_norm(node: Node, x: OnnxValue, axis: int) -> OnnxValue:
    """One over the root of the mean square along the axes from `axis` on, in f32."""
    square = node(
        ms.ReduceMeanOp, node(ms.SquareOp, node.cast(x, "f32")), axis=list(range(axis, x.rank)), keep_dims=True
    )
    return node(ms.ReciprocalOp, node(ms.SqrtOp, node(ms.AddOp, square, node.real("epsilon", 1e-5))))


@fused("SkipLayerNormalization")
def _skip_layer_norm(node: Node) -> list[Slot]:
    """Input, skip, gamma, beta, bias: the sum normalised along the last axis, its mean and deviation, and the sum."""
    x = _sum(node, 0, 1, 4)
    return [*_layer_norm(node, x, node[2], node.get(3), 1e-5), x]


def _layer_norm(node: Node, x: OnnxValue, scale: OnnxValue, bias: OnnxValue | None, default: float) -> list[Slot]:
    """The last axis normalised, its mean and its inverse deviation; `default` is the operator's own epsilon."""
    epsilon = node.real("epsilon", default)
    wanted = 3 if node.wants(1) or node.wants(2) else 1
    results: list[Slot] = [
        *node.standard("LayerNormalization", x, scale, bias, results=wanted, axis=-1, epsilon=epsilon)
    ]
    return [*results, None, None][:3]


@fused("SkipSimplifiedLayerNormalization")
def _skip_simplified_layer_norm(node: Node) -> list[Slot]:
    x = _sum(node, 0, 1, 3)
    last = x.rank - 1
    inverse = _inverse_norm(node, x, last) if node.wants(2) else None
    return [_rms_norm(node, x, node[2], last), None, inverse, x]


@fused("EmbedLayerNormalization")
def _embed_layer_norm(node: Node) -> list[Slot]:
    """Words, positions and segments by their tables, added and normalised; how many words each row has; the sum."""
    words = node[0]
    batch, length = node.shape_of(words)
    rows = node(ms.GatherOp, node[2], words, axis=0)
    positions = node.get(8) or node.constant(node.arange(length).astype(np.int32).reshape(1, length))
    x = node(ms.AddOp, rows, node(ms.GatherOp, node[3], positions, axis=0))
    segments, table = node.get(1), node.get(4)
    if segments is not None and table is not None:
        x = node(ms.AddOp, x, node(ms.GatherOp, table, segments, axis=0))
    mask = node.get(7)
    counts = node.constant(np.zeros(batch, np.int32)) if mask is None else node(ms.ReduceSumOp, mask, axis=[1])
    return [_layer_norm(node, x, node[5], node.get(6), 1e-12)[0], counts, x]


# Attention.


@fused("RotaryEmbedding")
def _rotary_embedding(node: Node) -> OnnxValue:
    """The standard's, with positions in front of the tables; one position is that of the first row of each batch."""
    x, width = node[0], node.int_("rotary_embedding_dim", 0)
    heads = node.int_("num_heads", 0)
    if x.rank == 3 and not heads:
        size = width or 2 * node.size_of(node[2], 1)
        heads = node.size_of(x, 2) // size
    length = node.size_of(x, x.rank - 2)
    positions = node[1]
    if positions.rank == 1:
        steps = node.constant(node.arange(length).reshape(1, length))
        rows = node(ms.AddOp, node.reshape(positions, (1, 1)), steps)
        positions = node(ms.BroadcastToOp, rows, shape=[node.size_of(x, 0), length])
    return rotated(node, x, positions, node[2], node[3], node.flag("interleaved"), heads, width)


def rotated(
    node: Node,
    x: OnnxValue,
    positions: OnnxValue,
    cosines: OnnxValue,
    sines: OnnxValue,
    interleaved: bool,
    heads: int,
    width: int = 0,
) -> OnnxValue:
    """X under a rotary embedding: positions [batch, length], tables [positions, half of the width]."""
    told: dict[str, int] = {"interleaved": int(interleaved)}
    if x.rank == 3:
        told["num_heads"] = heads
    if width:
        told["rotary_embedding_dim"] = width
    return node.standard("RotaryEmbedding", x, cosines, sines, positions, **told)[0]


class Attending:
    """One attention: heads of queries, keys and values [batch, heads, length, size], and what is added to scores."""

    def __init__(self, node: Node, queries: OnnxValue, keys: OnnxValue, values: OnnxValue) -> None:
        self.node = node
        self.queries, self.keys, self.values = queries, keys, values
        self.bias: OnnxValue | None = None

    def extend(self, past_keys: OnnxValue | None, past_values: OnnxValue | None) -> None:
        """Put keys and values of earlier calls in front."""
        if past_keys is not None and past_values is not None:
            self.keys = self.node(ms.ConcatOp, past_keys, self.keys, axis=2)
            self.values = self.node(ms.ConcatOp, past_values, self.values, axis=2)

    def add(self, bias: OnnxValue | None) -> None:
        """Add what broadcasts to [batch, heads, queries, keys] to the scores."""
        if bias is not None:
            bias = self.node.cast(bias, self.queries.dtype)
            self.bias = bias if self.bias is None else self.node(ms.AddOp, self.bias, bias)

    def mask(self, visible: OnnxValue, low: float) -> None:
        """Add `low` to scores of keys that are not visible."""
        node, dtype = self.node, self.queries.dtype
        self.add(node(ms.SelectOp, visible, node.scalar(0, dtype), node.scalar(low, dtype)))

    def is_causal(self) -> None:
        """Hide the keys behind each query: the last query sees all."""
        queries, keys = self.node.size_of(self.queries, 2), self.node.size_of(self.keys, 2)
        places = self.node.arange(keys)[None, :] <= self.node.arange(queries)[:, None] + (keys - queries)
        self.mask(self.node.constant(places.reshape(1, 1, queries, keys)), self.lowest)

    @property
    def lowest(self) -> float:
        """The least number of the element type: such a score has weight 0 beside any other."""
        return {"f16": -65504.0, "f64": float(np.finfo(np.float64).min)}.get(
            self.queries.dtype, float(np.finfo(np.float32).min)
        )

    def result(self, scale: float, softcap: float = 0.0) -> OnnxValue:
        """The weighted values, [batch, length, heads x size]."""
        told: dict[str, Any] = {"softcap": softcap} if softcap else {}
        if scale:
            told["scale"] = scale
        y = self.node.standard("Attention", self.queries, self.keys, self.values, self.bias, **told)[0]
        batch, heads, length, size = self.node.shape_of(y)
        return self.node.reshape(transposed(self.node, y, [0, 2, 1, 3]), (batch, length, heads * size))


def heads_of(node: Node, x: OnnxValue, heads: int) -> OnnxValue:
    """[batch, length, heads x size] as [batch, heads, length, size]."""
    batch, length, width = node.shape_of(x)
    if heads < 1 or width % heads:
        raise node.failure("MSC0711", f"{width} columns are no whole heads: it says {heads}")
    return transposed(node, node.reshape(x, (batch, length, heads, width // heads)), [0, 2, 1, 3])


def _padding(node: Node, mask: OnnxValue, batch: int, keys: int) -> OnnxValue:
    """Which keys a padding mask shows, to broadcast to [batch, heads, queries, keys].

    A mask is of keys [batch, keys], of pairs [batch, queries, keys] or [batch, 1, most queries, most keys]; or lengths
    [batch], lengths then starts [2 batch], or lengths then running sums [3 batch + 2].
    """
    if mask.rank == 2:
        return node(ms.NotEqualOp, node.reshape(mask, (batch, 1, 1, keys)), 0)
    if mask.rank == 3:
        return node(ms.NotEqualOp, node.reshape(mask, (batch, 1, *mask.shape[1:])), 0)
    if mask.rank != 1:
        raise node.failure("MSC0711", f"msc reads masks of 1 to 3 axes here, not {mask.type}")
    places = node.constant(node.arange(keys).astype(np.int32).reshape(1, 1, 1, keys))
    lengths = node.reshape(cut(node, mask, {0: (0, batch, 1)}), (batch, 1, 1, 1))
    seen = node(ms.LessOp, places, lengths)
    if mask.shape[0] == 2 * batch:
        starts = node.reshape(cut(node, mask, {0: (batch, 2 * batch, 1)}), (batch, 1, 1, 1))
        seen = node(ms.LogicalAndOp, seen, node(ms.GreaterEqualOp, places, starts))
    return seen


@fused("Attention")
def _attention(node: Node) -> list[Slot]:
    """Self-attention: queries, keys and values are products of one input; `past` has those of earlier calls."""
    x, weights, bias = node[0], node[1], node.get(2)
    if node.flag("do_rotary"):
        raise node.failure("MSC0711", "msc does not read do_rotary here: RotaryEmbedding and MultiHeadAttention say it")
    heads = node.int_("num_heads", 0)
    y = product(node, x, weights)
    y = y if bias is None else node(ms.AddOp, y, bias)
    width = node.size_of(y, 2)
    sizes = node.ints("qkv_hidden_sizes") or [width // 3] * 3
    parts = [heads_of(node, part, heads) for part in node.many(ms.SplitOp, y, axis=2, sizes=sizes)]
    attending = Attending(node, *parts)
    past = node.get(4)
    if past is not None:
        shape = node.shape_of(past)[1:]
        halves = [node.reshape(cut(node, past, {0: (i, i + 1, 1)}), shape) for i in range(2)]
        attending.extend(*halves)
    _hide(node, attending, node.get(3), node.get(5))
    present = node(ms.StackOp, attending.keys, attending.values, axis=0) if node.wants(1) else None
    return [attending.result(node.real("scale", 0.0)), present]


def _hide(node: Node, attending: Attending, mask: OnnxValue | None, bias: OnnxValue | None) -> None:
    """Add the bias of scores, hide what the padding mask hides, and what is behind a query if told."""
    batch, keys = node.size_of(attending.queries, 0), node.size_of(attending.keys, 2)
    attending.add(bias)
    if mask is not None:
        attending.mask(_padding(node, mask, batch, keys), node.real("mask_filter_value", -10000.0))
    if node.flag("unidirectional"):
        attending.is_causal()


@fused("MultiHeadAttention")
def _multi_head_attention(node: Node) -> list[Slot]:
    """Attention of given queries, keys and values: apart, or packed as [batch, length, heads, 2 or 3, size]."""
    heads = node.int_("num_heads", 0)
    queries, keys, values = _projections(node, heads)
    attending = Attending(node, queries, keys, values)
    attending.extend(node.get(6), node.get(7))
    _hide(node, attending, node.get(4), node.get(5))
    return [attending.result(node.real("scale", 0.0)), attending.keys, attending.values]


def _projections(node: Node, heads: int) -> tuple[OnnxValue, OnnxValue, OnnxValue]:
    """Heads of queries, keys and values, each with its part of the bias."""
    query, key, value, bias = node[0], node.get(1), node.get(2), node.get(3)
    if query.rank == 5:
        q, k, v = _unpacked(node, query, 3)
    elif key is not None and key.rank == 5:
        q, (k, v) = query, _unpacked(node, key, 2)
    elif key is not None and value is not None:
        q, k, v = query, key, value
    else:
        raise node.failure("MSC0711", "it has neither keys and values nor packed ones")
    if bias is not None:
        sizes = [node.size_of(q, 2), *(_width(node, x) for x in (k, v))]
        parts = node.many(ms.SplitOp, bias, axis=0, sizes=sizes)
        q, k, v = (x if x.rank == 4 else node(ms.AddOp, x, part) for x, part in zip((q, k, v), parts, strict=True))
    return tuple[OnnxValue, OnnxValue, OnnxValue](x if x.rank == 4 else heads_of(node, x, heads) for x in (q, k, v))


def _width(node: Node, x: OnnxValue) -> int:
    """Columns of all heads, of [batch, length, columns] or [batch, heads, length, size]."""
    return node.size_of(x, 2) if x.rank == 3 else node.size_of(x, 1) * node.size_of(x, 3)


def _unpacked(node: Node, x: OnnxValue, count: int) -> list[OnnxValue]:
    """The parts of [batch, length, heads, count, size], each [batch, length, heads x size]."""
    batch, length, heads, _, size = node.shape_of(x)
    cuts = (cut(node, x, {3: (i, i + 1, 1)}) for i in range(count))
    return [node.reshape(part, (batch, length, heads * size)) for part in cuts]


@fused("GroupQueryAttention")
def _group_query_attention(node: Node) -> list[Slot]:
    """Causal attention with fewer heads of keys than of queries, over a cache that new keys and values go into.

    The cache has room for more positions than are used: input 5 says of each row the last position that is.
    """
    heads, groups = node.int_("num_heads", 0), node.int_("kv_num_heads", 0)
    queries, keys, values = _grouped_projections(node, heads, groups)
    batch, length = node.size_of(queries, 0), node.size_of(queries, 2)
    past_keys, past_values = node.get(3), node.get(4)
    last = node.cast(node.reshape(node[5], (batch, 1)), "i64")
    total = node.known_int(6, "total sequence length")
    room = max(total, node.size_of(past_keys, 2) if past_keys is not None else 0)
    # Of a first call (as many queries as positions) rows may be padded at their end: they start at 0 all the same.
    start = node(ms.SubOp, last, length - 1)
    start = node.constant(np.zeros((batch, 1), np.int64)) if total == length else start
    places = node(ms.AddOp, start, node.constant(node.arange(length).reshape(1, length)))
    if node.flag("do_rotary"):
        positions = node.get(9) or places
        interleaved, positions = node.flag("rotary_interleaved"), node.cast(positions, "i64")
        queries = rotated(node, queries, positions, node[7], node[8], interleaved, heads)
        keys = rotated(node, keys, positions, node[7], node[8], interleaved, groups)
    attending = Attending(
        node,
        queries,
        _written(node, past_keys, keys, start, room),
        _written(node, past_values, values, start, room),
    )
    key_places = node.constant(node.arange(room).reshape(1, 1, 1, room))
    rows = node.reshape(places, (batch, 1, length, 1))
    seen = node(ms.LessEqualOp, key_places, rows)
    window = node.int_("local_window_size", -1)
    if window > 0:
        seen = node(ms.LogicalAndOp, seen, node(ms.GreaterOp, key_places, node(ms.SubOp, rows, window)))
    attending.mask(seen, attending.lowest)
    bias = node.get(10)
    if bias is not None:
        missing = room - node.size_of(bias, 3)
        attending.add(node(ms.PadOp, bias, pad=[0] * 7 + [missing]) if missing > 0 else bias)
    for what, given in (("head_sink", node.has(11)), ("smooth_softmax", node.int_("smooth_softmax", 0) > 0)):
        if given:
            raise node.failure("MSC0711", f"msc does not read {what} of it")
    y = attending.result(node.real("scale", 0.0), node.real("softcap", 0.0))
    return [y, attending.keys, attending.values]


def _grouped_projections(node: Node, heads: int, groups: int) -> list[OnnxValue]:
    """Heads of queries, keys and values, which may stand side by side in one input."""
    query, key, value = node[0], node.get(1), node.get(2)
    if key is None or value is None:
        size = node.size_of(query, 2) // max(heads + 2 * groups, 1)
        query, key, value = node.many(ms.SplitOp, query, axis=2, sizes=[heads * size, groups * size, groups * size])
    return [heads_of(node, x, n) for x, n in ((query, heads), (key, groups), (value, groups))]


def _written(node: Node, cache: OnnxValue | None, new: OnnxValue, start: OnnxValue, room: int) -> OnnxValue:
    """A cache [batch, heads, room, size] with new rows from `start` on; one that is shorter grows."""
    batch, heads, length, size = node.shape_of(new)
    if cache is None and room == length:
        return new
    if cache is None:
        cache = node(ms.BroadcastToOp, node.scalar(0, new.dtype), shape=[batch, heads, room, size])
    elif (have := node.size_of(cache, 2)) < room:
        more = node(ms.BroadcastToOp, node.scalar(0, new.dtype), shape=[batch, heads, room - have, size])
        cache = node(ms.ConcatOp, cache, more, axis=2)
    places: Array = node.arange(room).reshape(1, room)
    rows = node(ms.SubOp, node.constant(places), start)
    is_new = node(ms.LogicalAndOp, node(ms.GreaterEqualOp, rows, 0), node(ms.LessOp, rows, length))
    inside = node(ms.MinimumOp, node(ms.MaximumOp, rows, 0), length - 1)
    shape = [batch, heads, room, size]
    chosen = node(
        ms.GatherElementsOp, new, node(ms.BroadcastToOp, node.reshape(inside, (batch, 1, room, 1)), shape=shape), axis=2
    )
    return node(ms.SelectOp, node.reshape(is_new, (batch, 1, room, 1)), chosen, cache)


# Others.


def _as_standard(operator: str) -> Importer:
    """An importer of an operator that the standard took over as it was."""

    def import_(node: Node) -> Sequence[Slot]:
        given = [node.get(i) for i in range(len(node))]
        return node.standard(operator, *given, results=len(node.proto.output))

    return import_


fused("Range")(_as_standard("Range"))
fused("GatherND")(_as_standard("GatherND"))


@fused("ExpandDims")
def _expand_dims(node: Node) -> OnnxValue:
    return node(ms.ExpandDimsOp, node[0], axis=[node.known_int(1, "axis")])


@fused("Trilu")
def _trilu(node: Node) -> Slot:
    return node.standard("Trilu", node[0], node.get(1), upper=node.int_("upper", 1))[0]
