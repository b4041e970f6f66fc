"""Operators of `com.microsoft` in floating point: the interpreter and C give what ONNX Runtime gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.helper import make_opsetid, np_dtype_to_tensor_dtype

from msc.importers.onnx import import_proto
from msc.interp import evaluate
from tests.unit.importers.agreement import agreed, normal
from tests.unit.importers.models import model, node, tensor

Array = NDArray[Any]


def of(
    operator: str, inputs: Mapping[str, Array | None], outputs: int = 1, known: tuple[str, ...] = (), **attributes: Any
) -> tuple[ModelProto, dict[str, Array]]:
    """A model of one operator over inputs by name, None for one that is left out, and the arrays of its inputs."""
    given = {name: a for name, a in inputs.items() if a is not None}
    names = [name if inputs[name] is not None else "" for name in inputs]
    results = [f"y{i}" for i in range(outputs)]
    made = model(
        [node(operator, names, results, domain="com.microsoft", **attributes)],
        [tensor(n, a.shape, np_dtype_to_tensor_dtype(a.dtype)) for n, a in given.items() if n not in known],
        [tensor(n, None, np_dtype_to_tensor_dtype(next(iter(given.values())).dtype)) for n in results],
        {n: a for n, a in given.items() if n in known},
    )
    made.opset_import.append(make_opsetid("com.microsoft", 1))
    return made, {n: a for n, a in given.items() if n not in known}


X, BIAS = normal(2, 3, 8), normal(8, seed=1)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        ("Gelu", {"x": X}, {}),
        ("BiasGelu", {"x": X, "b": BIAS}, {}),
        ("FastGelu", {"x": X, "b": BIAS}, {}),
        ("FastGelu", {"x": X}, {}),
        ("QuickGelu", {"x": X}, {"alpha": 1.5}),
        ("QuickGelu", {"x": X}, {}),
        ("FusedMatMul", {"a": X, "b": normal(2, 3, 4, seed=3)}, {"transA": 1, "alpha": 0.5}),
        ("FusedMatMul", {"a": X, "b": normal(4, 8, seed=3)}, {"transB": 1}),
        ("FusedMatMul", {"a": normal(3, 2, 8), "b": normal(2, 8, 4)}, {"transBatchA": 1}),
        ("FusedGemm", {"a": normal(3, 8), "b": normal(8, 4), "c": normal(4)}, {"activation": "Relu", "beta": 0.5}),
        (
            "FusedConv",
            {"x": normal(1, 3, 6, 6), "w": normal(4, 3, 3, 3), "b": normal(4)},
            {"activation": "LeakyRelu", "activation_params": [0.2], "pads": [1, 1, 1, 1]},
        ),
        (
            "FusedConv",
            {"x": normal(1, 3, 6, 6), "w": normal(4, 3, 3, 3), "b": None, "z": normal(1, 4, 4, 4)},
            {"activation": "Relu"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_fused(operator: str, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any]) -> None:
    agreed(*of(operator, inputs, **attributes))


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("bias", [False, True])
def test_skip_layer_normalization(bias: bool, outputs: int) -> None:
    given = {"x": X, "skip": normal(2, 3, 8, seed=4), "gamma": BIAS, "beta": normal(8, seed=5)}
    made, arrays = of(
        "SkipLayerNormalization", given | ({"bias": normal(8, seed=6)} if bias else {}), outputs, epsilon=1e-3
    )
    if outputs == 4:
        del made.graph.output[1:3]  # ONNX Runtime's CPU does not write mean and deviation
        made.graph.node[0].output[1] = made.graph.node[0].output[2] = ""
    agreed(made, arrays)


def test_skip_simplified_layer_normalization() -> None:
    given = {"x": X, "skip": normal(2, 3, 8, seed=4), "gamma": BIAS}
    agreed(*of("SkipSimplifiedLayerNormalization", given, epsilon=1e-3))


def test_embed_layer_normalization() -> None:
    rng = np.random.default_rng(0)
    ids, segments = (rng.integers(0, n, (2, 5)).astype(np.int32) for n in (20, 2))
    mask = (rng.random((2, 5)) < 0.7).astype(np.int32)
    tables = {"w": normal(20, 8), "p": normal(6, 8, seed=1), "s": normal(2, 8, seed=2)}
    given = {"ids": ids, "segments": segments, **tables, "gamma": BIAS, "beta": BIAS * 0.5, "mask": mask}
    made, arrays = of("EmbedLayerNormalization", given, 2, epsilon=1e-3)
    made.graph.output[0].type.tensor_type.elem_type = 1
    agreed(made, arrays)


def _masks(batch: int, keys: int) -> list[Array | None]:
    rng = np.random.default_rng(1)
    raw = (rng.random((batch, keys)) < 0.6).astype(np.int32)
    lengths = np.array([keys, keys - 2], np.int32)[:batch]
    return [None, raw, lengths, np.concatenate([lengths, np.zeros_like(lengths)])]


@pytest.mark.parametrize("mask", _masks(2, 5), ids=["none", "raw", "lengths", "spans"])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(mask: Array | None, unidirectional: int) -> None:
    given = {"x": normal(2, 5, 6), "w": normal(6, 24, seed=1), "b": normal(24, seed=2), "m": mask}
    agreed(*of("Attention", given, num_heads=2, unidirectional=unidirectional))


def test_attention_with_past_or_bias() -> None:
    given = {"x": normal(2, 3, 6), "w": normal(6, 24, seed=1), "b": normal(24, seed=2), "m": None}
    past = {"past": normal(2, 2, 2, 4, 4, seed=3)}
    agreed(*of("Attention", given | past, 2, num_heads=2, unidirectional=1))
    agreed(*of("Attention", given | {"past": None, "bias": normal(1, 2, 3, 3, seed=4)}, num_heads=2))


@pytest.mark.parametrize("mask", _masks(2, 5)[:3], ids=["none", "raw", "lengths"])
def test_multi_head_attention(mask: Array | None) -> None:
    given = {"q": normal(2, 3, 8), "k": normal(2, 5, 8, seed=1), "v": normal(2, 5, 8, seed=2)}
    agreed(*of("MultiHeadAttention", given | {"b": normal(24, seed=3), "m": mask}, num_heads=2, scale=0.3))


def test_multi_head_attention_packed() -> None:
    """ONNX Runtime's CPU packs nothing: packed ones give what they give apart."""
    packed, queries = normal(2, 3, 2, 3, 4), normal(2, 3, 8, seed=1)
    q, k, v = (packed[:, :, :, i].reshape(2, 3, 8).copy() for i in range(3))
    for left, right in (
        ({"q": packed}, {"q": q, "k": k, "v": v}),
        ({"q": queries, "kv": packed[:, :, :, 1:].copy()}, {"q": queries, "k": k, "v": v}),
    ):
        results: list[Array] = []
        for given in (left, right):
            made, arrays = of("MultiHeadAttention", given, num_heads=2)
            imported = import_proto(made)
            results.append(evaluate(imported.module, arrays, imported.weights)[0])
        np.testing.assert_array_equal(results[0], results[1])


def test_multi_head_attention_with_past() -> None:
    given = {"q": normal(2, 3, 8), "k": normal(2, 3, 8, seed=1), "v": normal(2, 3, 8, seed=2)}
    given |= {"b": None, "m": None, "bias": normal(1, 2, 3, 7), "pk": normal(2, 2, 4, 4), "pv": normal(2, 2, 4, 4)}
    agreed(*of("MultiHeadAttention", given, 3, num_heads=2, unidirectional=1))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    ("shape", "positions"), [((2, 3, 16), np.array([[0, 1, 2], [3, 4, 5]])), ((2, 2, 3, 8), np.array([2]))]
)
def test_rotary_embedding(interleaved: int, shape: tuple[int, ...], positions: Array) -> None:
    given = {"x": normal(*shape), "p": positions, "c": normal(10, 4), "s": normal(10, 4, seed=1)}
    agreed(*of("RotaryEmbedding", given, interleaved=interleaved))


@pytest.mark.parametrize(("length", "past", "last", "total"), [(4, 0, [3, 3], 4), (1, 6, [3, 5], 6), (1, 3, [3, 3], 4)])
@pytest.mark.parametrize(("rotary", "window"), [(0, 2), (1, -1)])
def test_group_query_attention(length: int, past: int, last: list[int], total: int, rotary: int, window: int) -> None:
    """A first call, and one more word after: the cache has room, or grows."""
    given: dict[str, Array | None] = {
        "q": normal(2, length, 64),
        "k": normal(2, length, 32, seed=1),
        "v": normal(2, length, 32, seed=2),
        "pk": normal(2, 2, past, 16) if past else None,
        "pv": normal(2, 2, past, 16, seed=3) if past else None,
        "last": np.array(last, np.int32),
        "total": np.array(total, np.int32),
    }
    if rotary:
        given |= {"c": normal(10, 8), "s": normal(10, 8, seed=1)}
    made, arrays = of(
        *("GroupQueryAttention", given, 3, ("total",)),
        **{"num_heads": 4, "kv_num_heads": 2, "do_rotary": rotary, "local_window_size": window},
    )
    del made.graph.output[1:]
    agreed(made, arrays)
