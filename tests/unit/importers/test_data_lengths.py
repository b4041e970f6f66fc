"""Tensors whose length data decide: as long in Python as ONNX Runtime's, and what follows them is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

import msc
from msc.importers.onnx import import_model
from msc.interp import evaluate
from msc.interp.inputs import named_results
from msc.ir.entry import find_entry
from msc.support.diagnostics import MscError

F, INT, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node: Any = helper.make_node


def _model(nodes: list[Any], inputs: dict[str, Any], outputs: str, **constants: Any) -> onnx.ModelProto:
    kinds = {np.dtype("float32"): F, np.dtype("int64"): INT, np.dtype("bool"): B}
    taken = [helper.make_tensor_value_info(n, kinds[a.dtype], a.shape) for n, a in inputs.items()]
    given = [helper.make_tensor_value_info(n, F, None) for n in outputs.split()]
    fixed = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", taken, given, fixed)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_RANDOM = np.random.default_rng(5)
_X = _RANDOM.standard_normal((4, 6)).astype(np.float32)
_NUMBERS = _RANDOM.integers(0, 4, (3, 5)).astype(np.float32)
_BOXES, _SCORES = _RANDOM.random((2, 20, 4)).astype(np.float32), _RANDOM.random((2, 3, 20)).astype(np.float32)
_BOXES[..., 2:] = _BOXES[..., :2] + 0.3 * _BOXES[..., 2:]
_MASKED = [
    node("NonZero", ["m"], ["i"]),
    node("Transpose", ["i"], ["t"]),
    node("GatherND", ["x", "t"], ["g"]),
    node("Exp", ["g"], ["y"]),
    node("ReduceMean", ["g"], ["mean"], keepdims=0),
    node("ReduceMin", ["g"], ["least"]),
    node("ReduceSum", ["g"], ["sum"]),
    node("Softmax", ["g"], ["shares"]),
    node("Shape", ["g"], ["shape"]),
]
_REPEATED = helper.make_graph(
    [
        node("Mul", ["v", "half"], ["w"]),
        node("ReduceMax", ["w"], ["largest"], keepdims=0),
        node("Greater", ["largest", "one"], ["again"]),
        node("Identity", ["w"], ["kept"]),
    ],
    "body",
    [helper.make_tensor_value_info(n, k, s) for n, k, s in (("n", INT, []), ("c", B, []), ("v", F, [4, 6]))],
    [helper.make_tensor_value_info(n, k, s) for n, k, s in (("again", B, []), ("w", F, [4, 6]), ("kept", F, [4, 6]))],
    [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("half", 0.5), ("one", 1))],
)


def _unique(x: Any, **how: Any) -> onnx.ModelProto:
    found = ["y", "first", "which", "count"]
    return _model([node("Unique", ["x"], found, **how)], {"x": x}, " ".join(found))


_CASES: dict[str, tuple[onnx.ModelProto, list[Any]]] = {
    "mask": (_model(_MASKED, {"x": _X, "m": _X > 0}, "y mean least sum shares shape"), [_X, _X > 0.3]),
    "nothing": (_model([node("NonZero", ["x"], ["y"])], {"x": _X}, "y"), [np.zeros_like(_X)]),
    "compress": (
        _model([node("Compress", ["x", "m"], ["y"], axis=1)], {"x": _X, "m": np.zeros(4, bool)}, "y"),
        [_X, np.array([True, False, False, True])],
    ),
    "unique": (_unique(_NUMBERS), [_NUMBERS]),
    "unsorted": (_unique(_NUMBERS[0], sorted=0), [_NUMBERS[0]]),
    "boxes": (
        _model(
            [
                node("NonMaxSuppression", ["b", "s", "most", "overlap", "least"], ["chosen"]),
                node("Slice", ["chosen", "two", "three", "one"], ["numbers"]),
                node("Squeeze", ["numbers", "one"], ["flat"]),
                node("GatherND", ["s", "chosen"], ["scores"]),
                node("Unsqueeze", ["scores", "one"], ["column"]),
                node("Cast", ["numbers"], ["real"], to=F),
                node("Concat", ["real", "column"], ["y"], axis=1),
            ],
            {"b": _BOXES, "s": _SCORES},
            "chosen y",
            most=np.array([5]), overlap=np.array([0.3], np.float32), least=np.array([0.5], np.float32),
            one=np.array([1]), two=np.array([2]), three=np.array([3]),
        ),
        [_BOXES, _SCORES],
    ),
    "loop": (
        _model(
            [node("Loop", ["most", "true", "x"], ["last", "y"], body=_REPEATED)], {"x": _X}, "last y",
            most=np.int64(20), true=True,
        ),
        [9 * _X],
    ),
}  # fmt: skip


def _evaluated(path: Path, inputs: list[Any]) -> list[Any]:
    """What the interpreter gives, as long as the model says."""
    imported = import_model(path)
    entry: Any = find_entry(imported.module)
    return list(named_results(entry, evaluate(imported.module, inputs, imported.weights)).values())


@pytest.mark.parametrize("name", _CASES)
def test_results_have_the_length_that_data_decide(name: str, tmp_path: Path) -> None:
    model, inputs = _CASES[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    found = msc.compile(str(path)).results(*inputs) if name == "mask" else _evaluated(path, inputs)
    names = [value.name for value in model.graph.input]
    reference: Any = onnx.reference.ReferenceEvaluator(model)
    wanted = reference.run(None, dict(zip(names, inputs, strict=True)))
    for got, right in zip(found, wanted, strict=True):
        stacked = np.reshape(right, got.shape) if name == "loop" else right  # ONNX's reference joins what it collects
        np.testing.assert_allclose(got, stacked, rtol=1e-5, atol=1e-6)


def test_a_length_that_meets_another_needs_the_inputs_values(tmp_path: Path) -> None:
    nodes = [node("Compress", ["x", "m"], ["a"]), node("Concat", ["a", "a"], ["y"], axis=0)]
    (tmp_path / "m.onnx").write_bytes(_model(nodes, {"x": _X, "m": np.zeros(24, bool)}, "y").SerializeToString())
    with pytest.raises(MscError) as caught:
        import_model(tmp_path / "m.onnx")
    first = caught.value.diagnostics[0]
    assert first.code == "MSC0722"
    assert "Compress 'a'" in first.message
    assert "--input-value m=" in str(first.help)
