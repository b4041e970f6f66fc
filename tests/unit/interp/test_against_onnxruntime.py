"""Operations against ONNX Runtime's kernels: a second opinion that shares no code with PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

runtime: Any = importlib.import_module("onnxruntime")
helper: Any = importlib.import_module("onnx.helper")

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def data(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def reference(kind: str, *arrays: npt.NDArray[Any], **attributes: Any) -> npt.NDArray[Any]:
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(kind, names, ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    output = helper.make_empty_tensor_value_info("y")
    model = helper.make_model(helper.make_graph([node], "g", inputs, [output]), ir_version=9)
    model.opset_import[0].version = 20
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


IMAGE, WEIGHT = data(2, 4, 9, 8), data(6, 2, 3, 3, seed=1)
CASES: dict[str, tuple[str, dict[str, Any], str, dict[str, Any], tuple[npt.NDArray[Any], ...]]] = {
    "grouped conv": (
        "conv2d",
        {"group": 2, "stride": [2, 1], "pad_mode": "pad", "pad": [1, 0, 2, 1]},
        "Conv",
        {"group": 2, "strides": [2, 1], "pads": [1, 2, 0, 1]},
        (IMAGE, WEIGHT, data(6)),
    ),
    "same conv": (
        "conv2d",
        {"pad_mode": "same", "stride": [2, 2], "group": 2},
        "Conv",
        {"auto_pad": "SAME_UPPER", "strides": [2, 2], "group": 2},
        (IMAGE, WEIGHT),
    ),
    "ceil max pool": (
        "max_pool2d",
        {"kernel_size": [3, 3], "stride": [2, 2], "ceil_mode": True, "pad_mode": "pad", "pad": [1, 1, 1, 1]},
        "MaxPool",
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]},
        (IMAGE,),
    ),
    "average pool": (
        "avg_pool2d",
        {"kernel_size": [3, 2], "stride": [2, 2], "pad_mode": "pad", "pad": [1, 0, 0, 1]},
        "AveragePool",
        {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 0, 1]},
        (IMAGE,),
    ),
    "layer norm": (
        "layer_norm",
        {"epsilon": 1e-5},
        "LayerNormalization",
        {"axis": -1, "epsilon": 1e-5},
        (IMAGE, data(8), data(8, seed=1)),
    ),
    "batch norm": (
        "batch_norm",
        {"epsilon": 1e-5},
        "BatchNormalization",
        {"epsilon": 1e-5},
        (IMAGE, data(4), data(4, seed=1), data(4, seed=2), data(4, seed=3) ** 2),
    ),
    "instance norm": (
        "instance_norm",
        {"epsilon": 1e-5},
        "InstanceNormalization",
        {"epsilon": 1e-5},
        (IMAGE, data(4), data(4, seed=1)),
    ),
    "softmax": ("softmax", {"axis": 1}, "Softmax", {"axis": 1}, (IMAGE,)),
    "gelu": ("gelu", {}, "Gelu", {}, (IMAGE,)),
    "hard sigmoid": ("hard_sigmoid", {"alpha": 0.2}, "HardSigmoid", {}, (IMAGE,)),
    "matmul": ("batch_matmul", {}, "MatMul", {}, (data(2, 1, 3, 4), data(5, 4, 2))),
    "mod": ("mod", {}, "Mod", {}, (np.array([5, -5, 5, -5], np.int32), np.array([3, 3, -3, -3], np.int32))),
    "space to depth": ("space_to_depth", {"block_size": 2}, "SpaceToDepth", {"blocksize": 2}, (data(1, 2, 4, 6),)),
    "depth to space": ("depth_to_space", {"block_size": 2}, "DepthToSpace", {"blocksize": 2}, (data(1, 8, 2, 3),)),
    "argmax": (
        "argmax",
        {"select_last": True},
        "ArgMax",
        {"axis": -1, "keepdims": 0, "select_last_index": 1},
        (IMAGE,),
    ),
    "gather": ("gather", {"axis": 1}, "Gather", {"axis": 1}, (IMAGE, np.array([[-1, 0]], np.int64))),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_onnx_runtime(run: Run, case: str) -> None:
    name, properties, kind, attributes, arrays = CASES[case]
    expected = reference(kind, *arrays, **attributes)
    np.testing.assert_allclose(run(name, *arrays, **properties), expected, rtol=1e-4, atol=1e-5)
