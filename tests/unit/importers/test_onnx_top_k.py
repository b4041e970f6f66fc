"""TopK over axes of any length, against NumPy."""

import numpy as np
import pytest
from onnx import ModelProto
from xdsl.context import Context

from msc.dialects.arrays import Array, dtype_text
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.expand.expanders import ordering
from msc.importers.onnx import import_proto
from msc.importers.onnx.reading.tensors import DTYPES
from msc.interp import evaluate
from tests.unit.importers.agreement import compile_imported
from tests.unit.importers.models import model, node, tensor


def top_k(x: Array, k: int, axis: int, largest: bool) -> ModelProto:
    kind = next(number for number, name in DTYPES.items() if name == dtype_text(x.dtype))
    nodes = [node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=int(largest))]
    return model(nodes, [tensor("x", x.shape, kind)], [tensor("v", None), tensor("i", None, 7)], {"k": np.array([k])})


def wanted(x: Array, k: int, axis: int, largest: bool) -> Array:
    """The first k places of a stable order, in which NaN is infinite; found by places, since -x may overflow."""
    key = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
    _, order = np.unique(key, return_inverse=True)
    ranks = order.reshape(x.shape)
    return np.take(np.argsort(-ranks if largest else ranks, axis=axis, kind="stable"), np.arange(k), axis=axis)


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of few elements, so that several rounds are small."""
    monkeypatch.setattr(ordering, "MINIMUM_CHUNK", 8)
    monkeypatch.setattr(ordering, "MAXIMUM_CHUNK", 32)


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("size", "k"), [(31, 1), (64, 2), (333, 3), (257, 16), (40, 0)])
def test_rounds(size: int, k: int, largest: bool, dtype: str) -> None:
    """Many equal elements, the lowest and highest of the type, NaN."""
    random = np.random.default_rng(size + k)
    x = random.integers(0, 9, (2, size, 3)).astype(dtype)
    ends = (-np.inf, np.inf, np.nan) if dtype == "float32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for end in ends:
        x[random.random(x.shape) < 0.1] = end
    imported = import_proto(top_k(x, k, 1, largest))
    ExpandComposites().apply(Context(), imported.module)
    values, indices = evaluate(imported.module, (x,), imported.weights)
    expected = wanted(x, k, 1, largest)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))


def test_a_long_axis_in_c() -> None:
    x = np.random.default_rng(0).standard_normal(100_003).astype(np.float32)
    run = compile_imported(import_proto(top_k(x, 10, 0, True)))
    np.testing.assert_array_equal(run({"x": x})[1], wanted(x, 10, 0, True))
