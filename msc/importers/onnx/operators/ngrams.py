"""Counting n-grams of integer tokens."""

from __future__ import annotations

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


@importer("TfIdfVectorizer")
def _tf_idf(node: Node) -> OnnxValue:
    """How often each n-gram of a pool occurs in each row, gaps of up to `max_skip_count` between tokens allowed.

    Every place of a row is compared with every n-gram of the pool. ONNX TfIdfVectorizer, of integers.
    """
    if node.given("pool_strings"):
        raise node.failure("MSC0704", "its pool is of strings")
    x = node[0]
    rows = node.reshape(x, (1, *node.shape_of(x))) if x.rank == 1 else x
    shortest, longest = node.int_("min_gram_length", 1), node.int_("max_gram_length", 1)
    indexes = node.ints("ngram_indexes")
    totals = [_occurrences(node, rows, grams, shortest <= n <= longest) for n, grams in _pool(node)]
    counts = totals[0] if len(totals) == 1 else node(ms.ConcatOp, *totals, axis=1)
    node.check_table(max(indexes, default=0) + 1)
    order = np.full(max(indexes) + 1, len(indexes))
    order[indexes] = np.arange(len(indexes))
    padded = node(ms.PadOp, counts, pad=[0, 0, 0, 1])
    y = _weighted(node, node(ms.GatherOp, padded, node.constant(order), axis=1), indexes)
    return node.reshape(y, y.shape[1:]) if x.rank == 1 else y


def _pool(node: Node) -> list[tuple[int, Array]]:
    """The pool by length: n and the n-grams `[count, n]`."""
    tokens, starts = node.ints("pool_int64s"), node.ints("ngram_counts")
    pools: list[tuple[int, Array]] = []
    for n, (begin, end) in enumerate(zip(starts, [*starts[1:], len(tokens)], strict=True), 1):
        if end > begin:
            pools.append((n, np.array(tokens[begin:end], np.int64).reshape((end - begin) // n, n)))
    return pools


def _occurrences(node: Node, rows: OnnxValue, grams: Array, counted: bool) -> OnnxValue:
    """`[rows, n-grams]` as f32: the sum over gaps and places of "all tokens agree"."""
    count, length = node.shape_of(rows)
    n = grams.shape[1]
    total = node(ms.BroadcastToOp, node.scalar(0.0, "f32"), shape=[count, len(grams)])
    skips = node.int_("max_skip_count", 0) if n > 1 else 0
    for step in range(1, min(skips, length) + 2) if counted else ():
        places = length - (n - 1) * step
        if places > 0:
            at = node.arange(places)[:, None] + step * node.arange(n)
            windows = node(ms.GatherOp, rows, node.constant(at), axis=1)
            windows = node.cast(node.reshape(windows, (count, places, 1, n)), "i64")
            same = node(ms.ReduceAllOp, node(ms.EqualOp, windows, node.constant(grams)), axis=[3])
            total = node(ms.AddOp, total, node(ms.ReduceSumOp, node.cast(same, "f32"), axis=[1]))
    return total


def _weighted(node: Node, counts: OnnxValue, indexes: list[int]) -> OnnxValue:
    """TF counts, IDF the weight of what occurs at all, TFIDF their product."""
    mode = node.choice("mode", "TF", ("TF", "IDF", "TFIDF"))
    if mode == "TF":
        return counts
    weights = np.ones(counts.shape[1], np.float32)
    given = node.reals("weights")
    weights[indexes] = given or [1.0] * len(indexes)
    occurs = counts if mode == "TFIDF" else node.cast(node(ms.GreaterOp, counts, 0.0), "f32")
    return node(ms.MulOp, occurs, node.constant(weights))
