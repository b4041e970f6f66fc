"""Products with weights of few bits: how weights are rounded, what they compute, and the models that have them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from msc.dialects.arrays import Array
from msc.model_zoo import Llama, LlamaConfig
from msc.nn.packed import PackedDense
from msc.quantization import quantize
from msc.quantization.blocks import BlockScheme, awq, gptq, loss, pack_dense_layers
from msc.support.diagnostics import MscError
from tests.unit.model_zoo.small_networks import tokens, with_random_weights


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_number_is_off_by_a_step_at_most(bits: int, symmetric: bool) -> None:
    weight = np.random.default_rng(bits).normal(size=(5, 96)).astype(np.float32)
    weight[0, :32] = 0
    made = BlockScheme(bits, 32, symmetric).rounded(weight)
    error = np.abs((made.values() - weight).reshape(5, 3, 32))
    assert (error <= np.abs(made.scale)[:, :, None] * (1 + 1e-5)).all()
    assert error.mean() <= 0.3 * np.abs(made.scale).mean()


def inputs(seed: int, rows: int = 400) -> Array:
    """Rows of 64 numbers that depend on each other, some of them large: as activations are."""
    mix = np.random.default_rng(1).normal(size=(12, 64)) * np.exp(np.random.default_rng(2).normal(size=64))
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 12)) @ mix + 0.1 * rng.normal(size=(rows, 64))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [2, 4])
def test_inputs_show_how_to_round(bits: int, symmetric: bool) -> None:
    """On rows that were not seen, GPTQ and AWQ lose at most .7 of what rounding to nearest loses."""
    seen, others = (x.T @ x for x in (inputs(3), inputs(4)))
    weights = [np.random.default_rng(5 + k).normal(size=(24, 64)).astype(np.float32) for k in range(2)]
    scheme = BlockScheme(bits, 16, symmetric)
    scaled, factor = awq(weights, seen, np.abs(inputs(3)).mean(0), scheme)
    for weight, blocks in zip(weights, scaled, strict=True):
        nearest = loss(scheme.rounded(weight).values() - weight, others)
        assert loss(gptq(weight, seen, scheme).values() - weight, others) < 0.7 * nearest
        assert loss(blocks.values() / factor - weight, others) < 0.7 * nearest


def test_inputs_that_are_never_there_cost_nothing() -> None:
    weight, scheme = np.random.default_rng(0).normal(size=(3, 32)).astype(np.float32), BlockScheme()
    for hessian in (np.zeros((32, 32)), np.diag(np.arange(32) % 2.0)):
        assert np.isfinite(gptq(weight, hessian, scheme).values()).all()
        (made,), factor = awq([weight], hessian, np.diag(hessian), scheme)
        assert np.isfinite(made.values() / factor).all()


class Net(nn.Cell):
    """Dense layers of a batch of rows, the inputs of the second no whole number of blocks; a product of two values."""

    def __init__(self) -> None:
        super().__init__()
        msc.set_seed(7)
        self.wide, self.inner, self.head = nn.Dense(32, 40), nn.Dense(40, 37, has_bias=False), nn.Dense(37, 5)

    def construct(self, x: Any) -> Any:
        y = ops.tanh(self.inner(ops.relu(self.wide(x))))
        return self.head(y) + ops.matmul(x, x.swapaxes(1, 2)).sum(2, keepdims=True)


DATA = np.random.default_rng(0).normal(size=(6, 3, 32)).astype(np.float32)


@pytest.mark.parametrize(
    ("wishes", "most"),
    [
        ({"weights": "4bit", "asymmetric": True}, 0.2),
        ({"weights": "4bit", "algorithm": "gptq", "round_inputs": True}, 0.1),
        ({"weights": "8bit", "algorithm": "awq", "block": 16, "keep_f32": "head.weight"}, 0.01),
    ],
)
def test_a_model_has_packed_weights(tmp_path: Path, wishes: dict[str, Any], most: float) -> None:
    """Near the model in reals; written as MatMulNBits, it computes in ONNX Runtime what it computes here."""
    net = Net()
    made = quantize(net, DATA, **wishes)
    wanted, model = net(Tensor(DATA[:1])).asnumpy(), made.compile()
    got = np.asarray(model(DATA[:1]))
    assert 0 < np.abs(got - wanted).max() < most * np.abs(wanted).max()
    assert made.result.bytes[1] < 0.55 * made.result.bytes[0]
    made.save(tmp_path / "net.onnx")
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(str(tmp_path / "net.onnx"))
    (name,) = (each.name for each in session.get_inputs())
    np.testing.assert_allclose(session.run(None, {name: DATA[:1]})[0], got, rtol=1e-4, atol=1e-4)
    onnx: Any = importlib.import_module("onnx")
    kinds = [node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node]
    assert kinds.count("MatMulNBits") == 3 - len(made.kept)


@pytest.mark.parametrize("march", ["x86-64-v4", "generic"])
def test_inputs_are_rounded_by_blocks(march: str) -> None:
    """Products of bytes where the machine sums these, else of the rounded reals: what the interpreter computes."""
    rng = np.random.default_rng(3)
    x, weight = rng.normal(size=(3, 96)).astype(np.float32), rng.normal(size=(21, 96)).astype(np.float32)
    x[1, 32:64] = 0
    layers = list[nn.Cell]()
    for scheme in (BlockScheme(2), BlockScheme(4, 16, symmetric=False), BlockScheme(8)):
        made = scheme.rounded(weight)
        layers.append(PackedDense(made.codes, made.scale, made.zero, scheme.bits, scheme.block, rounds=True))

    class Three(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.CellList(layers)

        def construct(self, x: Any) -> Any:
            return ops.stack([layer(x) for layer in self.layers])

    net = Three()
    wanted = net(Tensor(x)).asnumpy()
    apart = x.reshape(3, 3, 32)
    step = np.maximum(np.abs(apart).max(2, keepdims=True), 1e-9) / 127
    rounded = (np.rint(apart / step) * step).reshape(3, 96)
    np.testing.assert_allclose(wanted[2], rounded @ BlockScheme(8).rounded(weight).values().T, rtol=1e-3, atol=1e-4)
    got = np.asarray(msc.compile(net, Tensor(x), march=march)(x))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        ({"weights": "3bit"}, "MSC1214"),
        ({"weights": "4bit", "algorithm": "best"}, "MSC1214"),
        ({"weights": "4bit", "block": 24}, "MSC1214"),
        ({"algorithm": "gptq"}, "MSC1214"),
        ({"weights": "4bit", "algorithm": "awq"}, "MSC1211"),
    ],
)
def test_mistakes_are_told(wishes: dict[str, Any], code: str) -> None:
    with pytest.raises(MscError, match=code):
        quantize(Net(), None, DATA[:1], **wishes)


def test_a_packed_llama_is_near_and_compiles() -> None:
    net = Llama(LlamaConfig(30, 32, 64, 1, 4, 2))
    with_random_weights(net)
    row = tokens(1, 5)
    exact = net(Tensor(row)).asnumpy()
    assert pack_dense_layers(net, 8) == 8
    found = net(Tensor(row)).asnumpy()
    assert 0 < np.abs(found - exact).max() < 0.05 * np.abs(exact).max()
    np.testing.assert_allclose(np.asarray(msc.compile(net, Tensor(row))(row)), found, rtol=2e-3, atol=2e-3)
