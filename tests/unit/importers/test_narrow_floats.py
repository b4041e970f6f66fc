"""f16 and bf16: an operator computes in f32 and rounds once, whatever it is written as."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.numpy_helper import from_array

from msc.importers.onnx import import_proto
from msc.interp import evaluate
from tests.unit.importers.agreement import IR_VERSION, compile_imported

Array = NDArray[Any]

DTYPES = {
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
    "f64": (TensorProto.DOUBLE, np.dtype(np.float64)),
}


@dataclass(frozen=True)
class Case:
    """A node on inputs of some shapes, and how large their elements are next to those of the other cases."""

    operator: str
    shapes: Sequence[tuple[int, ...]]
    attributes: Mapping[str, Any]
    magnitude: float = 1.0


def case(operator: str, *shapes: tuple[int, ...], magnitude: float = 1.0, **attributes: Any) -> Case:
    return Case(operator, shapes, attributes, magnitude)


IMAGE = (1, 4, 24, 24)
ROWS = (3, 1500)
CHANNELS = (4,)
SMALL = 1 / 64
"""Of the magnitude: where a power stands in the result."""

CASES = (
    case("GlobalAveragePool", IMAGE),
    case("AveragePool", IMAGE, kernel_shape=[7, 7]),
    case("AveragePool", IMAGE, kernel_shape=[5, 5], pads=[2, 2, 2, 2], strides=[3, 3]),
    case("ReduceMean", ROWS),
    case("ReduceL2", (3, 90), magnitude=SMALL * 8, axes=[1]),
    case("ReduceLogSum", (3, 90), axes=[1]),
    case("ReduceLogSumExp", (3, 90), magnitude=SMALL, axes=[1]),
    case("ReduceSumSquare", (3, 90), magnitude=SMALL, axes=[1]),
    case("MeanVarianceNormalization", IMAGE),
    case("InstanceNormalization", IMAGE, CHANNELS, CHANNELS),
    case("GroupNormalization", IMAGE, CHANNELS, CHANNELS, num_groups=2),
    case("BatchNormalization", IMAGE, CHANNELS, CHANNELS, CHANNELS, CHANNELS),
    case("LayerNormalization", ROWS, (1500,), (1500,)),
    case("RMSNormalization", ROWS, (1500,)),
    case("LpNormalization", ROWS, axis=1),
    case("LpNormalization", ROWS, axis=1, p=1),
    case("LpPool", IMAGE, magnitude=SMALL, kernel_shape=[4, 4]),
    case("GlobalLpPool", (1, 4, 9, 9), magnitude=SMALL),
    case("LRN", IMAGE, size=5),
    case("Mean", ROWS, ROWS, ROWS),
    case("Softmax", (2, 3000), magnitude=1e-3),
    case("LogSoftmax", (2, 3000), magnitude=1e-3),
    case("Gelu", ROWS, magnitude=1e-3),
    case("Gelu", ROWS, magnitude=1e-3, approximate="tanh"),
    case("HardSwish", ROWS),
    case("HardSigmoid", ROWS, magnitude=1e-4),
    case("Swish", ROWS, magnitude=1e-3, alpha=1.5),
    case("Mish", ROWS, magnitude=1e-3),
    case("Selu", ROWS, magnitude=1e-3),
    case("Elu", ROWS, magnitude=1e-3, alpha=0.7),
    case("Celu", ROWS, magnitude=1e-3, alpha=0.7),
    case("Softsign", ROWS),
    case("Gemm", (5, 300), (300, 6), (6,), magnitude=SMALL, alpha=1 / 512, beta=0.3),
    case("Conv", (1, 8, 9, 9), (4, 8, 3, 3), (4,), magnitude=SMALL / 2),
    case("ConvTranspose", (1, 8, 5, 5), (8, 4, 3, 3), (4,), magnitude=SMALL / 2, strides=[2, 2]),
    case("Einsum", (4, 30), (30, 5), magnitude=SMALL, equation="ij,jk->ik"),
    case("CumSum", (3, 40), magnitude=1 / 40),
    case("SoftmaxCrossEntropyLoss", (90, 50), magnitude=1 / 40, labels=90),
    case("NegativeLogLikelihoodLoss", (900, 5), (5,), labels=900),
)


def made(dtype: str, cases: Sequence[Case]) -> ModelProto:
    """One model of all cases, with an input for each operand."""
    number, _ = DTYPES[dtype]
    inputs, outputs, nodes = list[ValueInfoProto](), list[ValueInfoProto](), list[NodeProto]()
    for index, one in enumerate(cases):
        names = [f"x{index}_{i}" for i in range(len(one.shapes))]
        inputs += [helper.make_tensor_value_info(n, number, s) for n, s in zip(names, one.shapes, strict=True)]
        outputs.append(helper.make_tensor_value_info(f"y{index}", number, None))
        attributes = dict(one.attributes)
        if "axes" in attributes:
            nodes.append(helper.make_node("Constant", [], [f"axes{index}"], value_ints=attributes.pop("axes")))
            names = [*names, f"axes{index}"]
        elif "labels" in attributes:
            labels: Array = np.arange(attributes.pop("labels"), dtype=np.int64) * 7 % 5
            nodes.append(helper.make_node("Constant", [], [f"labels{index}"], value=from_array(labels)))
            names = [names[0], f"labels{index}", *names[1:]]
        elif one.operator == "CumSum":
            nodes.append(helper.make_node("Constant", [], [f"axes{index}"], value_int=1))
            names = [*names, f"axes{index}"]
        nodes.append(helper.make_node(one.operator, names, [f"y{index}"], **attributes))
    graph = helper.make_graph(nodes, "narrow", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=IR_VERSION)


def arrays(dtype: str, magnitude: float, spread: float, seed: int) -> list[Array]:
    """Elements around the magnitude of each case, positive where an operator takes roots or logarithms of them."""
    rng, (_, kind) = np.random.default_rng(seed), DTYPES[dtype]
    drawn = [
        (one, one.magnitude * magnitude * (1 + spread * rng.standard_normal(shape)))
        for one in CASES
        for shape in one.shapes
    ]
    return [(np.abs(x) if one.operator in POSITIVE else x).astype(kind) for one, x in drawn]


POSITIVE = ("ReduceLogSum", "BatchNormalization")


def operand_names() -> list[str]:
    return [f"x{i}_{k}" for i, one in enumerate(CASES) for k in range(len(one.shapes))]


@cache
def compiled(dtype: str) -> Any:
    imported = import_proto(made(dtype, CASES))
    return compile_imported(imported)


@cache
def exact() -> Any:
    return import_proto(made("f64", CASES))


def assert_rounded_once(one: Case, got: Array, wanted: Array) -> None:
    """One unit of the result's type: f32 errors inside may turn a rounding; `wanted` is f64."""
    with np.errstate(over="ignore"):
        rounded = wanted.astype(got.dtype)
    infinite = ~np.isfinite(rounded.astype(np.float64))
    np.testing.assert_array_equal(got[infinite], rounded[infinite], str(one))
    epsilon, smallest = (2.0**-10, 2.0**-14) if got.dtype == np.float16 else (2.0**-7, 2.0**-126)
    got, wanted = got[~infinite].astype(np.float64), wanted[~infinite]
    unit = epsilon * np.maximum(np.abs(wanted), smallest)
    inside = 2.0**-20 * np.abs(wanted).max(initial=0)
    wrong = np.abs(got - wanted) > unit + inside
    assert not wrong.any(), f"{one}: {got[wrong][:4]} for {wanted[wrong][:4]}"


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@settings(max_examples=2, deadline=None)
@given(magnitude=st.floats(100, 1000), spread=st.sampled_from([0.1, 1.0]), seed=st.integers(0, 9999))
def test_an_operator_rounds_once(dtype: str, magnitude: float, spread: float, seed: int) -> None:
    """Where sums inside overflow f16, by the interpreter and as C; beside the same model in f64."""
    given_ = arrays(dtype, magnitude, spread, seed)
    names = operand_names()
    wide = dict(zip(names, (x.astype(np.float64) for x in given_), strict=True))
    wanted = evaluate(exact().module, wide, exact().weights)
    inputs = dict(zip(names, given_, strict=True))
    narrow = import_proto(made(dtype, CASES))
    for results in (evaluate(narrow.module, inputs, narrow.weights), compiled(dtype)(inputs)):
        for one, got, truth in zip(CASES, results, wanted, strict=True):
            assert_rounded_once(one, got, truth)


UNSUPPORTED = ("GlobalLpPool", "Celu", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
"""ONNX Runtime has none for f16."""


def test_f16_is_what_onnx_runtime_gives() -> None:
    runtime: Any = importlib.import_module("onnxruntime")
    inputs = arrays("f16", 500.0, 0.5, 1)
    results = compiled("f16")(dict(zip(operand_names(), inputs, strict=True)))
    for one, got in zip(CASES, results, strict=True):
        mine, inputs = inputs[: len(one.shapes)], inputs[len(one.shapes) :]
        if one.operator in UNSUPPORTED:
            continue
        text = made("f16", [one]).SerializeToString()
        session = runtime.InferenceSession(text, providers=["CPUExecutionProvider"])
        (wanted,) = session.run(None, {f"x0_{k}": x for k, x in enumerate(mine)})
        np.testing.assert_allclose(got, wanted, rtol=2.0**-10, atol=2.0**-24, err_msg=str(one))
