"""Quantised models beside the models in reals, and beside ONNX Runtime."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import nn, ops
from msc.quantization import quantize
from msc.support.diagnostics import MscError


class Net(nn.Cell):
    """Convolutions with batch normalisation, a residual sum, pooling, two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        msc.set_seed(3)
        self.first = nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.second = nn.Conv2d(8, 8, 3, group=2, has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.dense = nn.Dense(8 * 16, 24, activation="relu")
        self.head = nn.Dense(24, 5, has_bias=False)

    def construct(self, x: Any) -> Any:
        x = self.first(x)
        x = self.pool(ops.relu(self.second(x) + x))
        return self.head(self.dense(x.reshape(x.shape[0], -1)))


class Dense(nn.Cell):
    """Three dense layers: quick to compile."""

    def __init__(self) -> None:
        super().__init__()
        msc.set_seed(4)
        self.layers = nn.SequentialCell(nn.Dense(16, 12, activation="relu"), nn.Dense(12, 9), nn.Dense(9, 5))

    def construct(self, x: Any) -> Any:
        return self.layers(x)


IMAGES = np.random.default_rng(0).normal(size=(12, 3, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def net() -> Net:
    made = Net()
    made.set_train(False)
    return made


ROWS = np.random.default_rng(0).normal(size=(12, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def dense() -> Dense:
    return Dense()


def distance(net: nn.Cell, made: Any, samples: Any = IMAGES) -> float:
    """The largest error beside the largest result."""
    wanted = np.concatenate([net(msc.Tensor(sample[None])).asnumpy() for sample in samples])
    model = made.compile()
    got = np.concatenate([np.asarray(model(sample[None])) for sample in samples])
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"activations": "int8", "symmetric": True, "per_channel": False, "equalise": True},
        {"operators": "products", "smoothing": 0.5, "method": "percentile", "keep_f32": ["head.weight"], "worst": 1},
        {"dynamic": True},
    ],
    ids=["default", "symmetric", "products", "dynamic"],
)
def test_near_the_reals_and_as_onnx_runtime_computes_it(tmp_path: Path, net: Net, wishes: Mapping[str, Any]) -> None:
    made = quantize(net, IMAGES, **wishes)
    assert distance(net, made) < 0.08
    made.save(tmp_path / "net.onnx")
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(str(tmp_path / "net.onnx"), options)
    model = msc.compile(str(tmp_path / "net.onnx"))
    (name,) = (each.name for each in session.get_inputs())
    for image in IMAGES[:3]:
        (wanted,) = session.run(None, {name: image[None]})
        step = np.abs(wanted).max() / 100
        np.testing.assert_allclose(np.asarray(model(image[None])), wanted, atol=step)


def test_bias_correction_takes_the_mean_error_away() -> None:
    msc.set_seed(5)
    net = nn.Dense(16, 6)
    wanted = net(msc.Tensor(ROWS)).asnumpy()

    def mean_error(**wishes: bool) -> float:
        made = quantize(net, ROWS, weight_bits=3, per_channel=False, **wishes)
        model = made.compile()
        got = np.concatenate([np.asarray(model(row[None])) for row in ROWS])
        before, after = made.result.bytes
        assert after < 0.5 * before
        return float(np.abs((got - wanted).mean(axis=0)).max())

    assert mean_error() < 1e-3 < mean_error(bias_correction=False)


def test_a_metric_keeps_layers_in_f32(dense: Dense) -> None:
    wanted = [dense(msc.Tensor(row[None])).asnumpy() for row in ROWS]

    def metric(run: Any) -> float:
        errors = [np.abs(run({"x": row[None]})[0] - want).max() for row, want in zip(ROWS, wanted, strict=True)]
        return -float(np.mean(errors))

    rough = quantize(dense, ROWS, weight_bits=2, metric=metric)
    assert rough.result.after is not None
    kept = quantize(dense, ROWS, weight_bits=2, metric=metric, max_drop=-rough.result.after * 0.9)
    assert kept.kept
    assert kept.result.after is not None
    assert kept.result.after > rough.result.after
    with pytest.raises(MscError, match="MSC1213"):
        quantize(dense, ROWS, weight_bits=2, metric=metric, max_drop=0)


def _unable(run: object) -> float:
    raise KeyError(type(run).__name__)


def _not_a_number(run: object) -> float:
    del run
    return np.nan


def test_pruning_removes_the_channels_that_are_nothing() -> None:
    """Half of the channels of a dense layer are zeros: without them the results stay."""
    net = Net()
    net.set_train(False)
    assert net.dense.bias is not None
    for parameter in (net.dense.weight, net.dense.bias):
        values = parameter.asnumpy().copy()
        values[::2] = 0
        parameter.set_data(msc.Tensor(values))
    pruned = quantize(net, None, IMAGES[:1], weights="8bit", block=16, prune=0.5)
    before, after = pruned.result.bytes
    assert after < 0.4 * before  # half, if nothing was removed
    wanted = net(msc.Tensor(IMAGES[:1])).asnumpy()
    np.testing.assert_allclose(np.asarray(pruned.compile()(IMAGES[:1])), wanted, atol=0.01 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("data", "wishes", "code"),
    [
        (np.zeros((4, 3, 7, 8), np.float32), {}, "MSC1211"),
        (np.full((2, 3, 8, 8), np.nan, np.float32), {}, "MSC1212"),
        ({"y": IMAGES}, {}, "MSC1211"),
        (IMAGES[:0], {}, "MSC1211"),
        (IMAGES, {"method": "minmax"}, "MSC1214"),
        (IMAGES, {"bits": 9}, "MSC1214"),
        (IMAGES, {"prune": 1.0}, "MSC1214"),
        (IMAGES, {"methods": "mse"}, "MSC1214"),
        (7, {}, "MSC1211"),
        (IMAGES, {"keep_f32": ["nosuch"]}, "MSC1214"),
        (IMAGES, {"metric": _unable}, "MSC1214"),
        (IMAGES, {"metric": _not_a_number, "max_drop": 1}, "MSC1214"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, net: Net, data: Any, wishes: Mapping[str, Any], code: str) -> None:
    msc.export(net, IMAGES[:1], file_name=str(tmp_path / "net.mir"))
    with pytest.raises(MscError, match=code):
        quantize(tmp_path / "net.mir", data, **wishes)


def test_a_quantised_file_is_written_again(tmp_path: Path, net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = quantize(net, IMAGES)
    for _ in range(2):
        made.save("net.mir")
        made.save("net.onnx")


def test_nothing_to_quantise() -> None:
    with pytest.raises(MscError, match="MSC1210"):
        quantize(ops.exp, IMAGES)
