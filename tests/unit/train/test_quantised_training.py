"""Quantisation-aware training: the arithmetic, its gradient, where fake quantisations go, and the integers after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import nn, ops
from msc.nn.quantised import ActQuant, FakeQuantWithLearnedStep, FakeQuantWithMinMaxObserver
from msc.support.diagnostics import MscError
from msc.train.quant import LearnedStepSizeQuantizationAwareTraining, SimulatedQuantizationAwareTraining, quant


def test_the_worked_example(mode: int) -> None:
    """[-1, 2] in unsigned bytes: scale .0117647, zero point 85."""
    cell = FakeQuantWithMinMaxObserver(-1, 2)
    cell.set_train(False)
    x = np.array([-1, 0, 0.31, 2, 5], np.float32)
    wanted = (np.array([0, 85, 111, 255, 255]) - 85) * 3 / 255
    np.testing.assert_allclose(cell(msc.Tensor(x)).asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"symmetric": True}, {"num_bits": 3, "symmetric": True, "narrow_range": True}])
def test_the_gradient_passes_what_is_not_cut(mode: int, options: dict[str, Any]) -> None:
    cell = FakeQuantWithMinMaxObserver(-1, 2, **options)
    cell.set_train(False)
    x = np.array([-3, -0.9, 0.2, 1.9, 2.5], np.float32)
    gradient = msc.grad(lambda t: ops.sum(cell(t) * 2))(msc.Tensor(x)).asnumpy()
    assert gradient.tolist()[1:4] == [2, 2, 2]
    assert gradient[4] == 0
    assert gradient[0] == 0


def test_the_range_is_observed(mode: int) -> None:
    cell = FakeQuantWithMinMaxObserver(ema=True, ema_decay=0.75)
    cell.set_train()
    for end in (4.0, 8.0):
        cell(msc.Tensor(np.array([-end, end / 2], np.float32)))
    assert (cell.minq.asnumpy(), cell.maxq.asnumpy()) == (-5, 2.5)


def test_a_step_is_learned(mode: int) -> None:
    """It starts at 2 mean|x| / sqrt(most); its gradient is that of the paper, over the root of elements times most."""
    cell = FakeQuantWithLearnedStep(num_bits=3, symmetric=True)
    x = np.array([-3, -0.9, 0.2, 1.9, 2.5, 0.1], np.float32)
    cell.set_train()
    cell(msc.Tensor(x))
    np.testing.assert_allclose(cell.scale.asnumpy(), 2 * np.abs(x).mean() / np.sqrt(3), rtol=1e-6)
    cell.set_train(False)
    cell.scale.set_data(msc.Tensor(np.array([0.5], np.float32)))
    v = x / 0.5
    wanted = np.clip(np.rint(v), -4, 3)
    np.testing.assert_allclose(cell(msc.Tensor(x)).asnumpy(), wanted * 0.5)
    weights = np.arange(1, 7).astype(np.float32)
    by_x, (by_scale,) = msc.value_and_grad(lambda t: ops.sum(cell(t) * msc.Tensor(weights)), 0, [cell.scale])(
        msc.Tensor(x)
    )[1]
    inside = (v >= -4) & (v <= 3)
    np.testing.assert_allclose(by_x.asnumpy(), inside * weights)
    share = np.where(inside, wanted - v, wanted) / np.sqrt(6 * 3)
    np.testing.assert_allclose(by_scale.asnumpy(), (share * weights).sum(), rtol=1e-5)


def test_x_stays_for_the_delay(mode: int) -> None:
    cell = FakeQuantWithMinMaxObserver(num_bits=2, quant_delay=1)
    cell.set_train()
    x = msc.Tensor(np.array([-1, 0.3, 2], np.float32))
    assert cell(x).asnumpy().tolist() == x.asnumpy().tolist()
    assert cell(x).asnumpy().tolist() != x.asnumpy().tolist()


class Net(nn.Cell):
    """A folded convolution, pooling and dense layers."""

    def __init__(self) -> None:
        super().__init__()
        msc.set_seed(1)
        self.conv = nn.Conv2dBnAct(2, 4, 3, has_bn=True, momentum=0.5, activation="relu")
        self.pool = nn.MaxPool2d(2, 2)
        self.dense = nn.DenseBnAct(36, 8, activation="relu")
        self.head = nn.Dense(8, 3)

    def construct(self, x: Any) -> Any:
        x = self.pool(self.conv(x))
        return self.head(self.dense(x.reshape(x.shape[0], -1)))


IMAGES = np.random.default_rng(0).normal(size=(8, 2, 6, 6)).astype(np.float32)
CONVERSIONS = {
    "early": lambda net: quant.convert_quant_network(net, quant_delay=0, bn_fold=False, weight_bits=8, act_bits=8),
    "pairs": lambda net: quant.convert_quant_network(
        net, bn_fold=True, num_bits=(8, 8), per_channel=(True, False), symmetric=(True, False)
    ),
    "learned": lambda net: quant.convert_quant_network(
        net, num_bits=(4, 8), per_channel=(True, False), symmetric=(True, False), learned_step=True
    ),
    "golden stick": lambda net: LearnedStepSizeQuantizationAwareTraining({"num_bits": (8, 8)}).apply(net),
    "golden stick, observed": lambda net: SimulatedQuantizationAwareTraining({"bn_fold": True}).apply(net),
}


def test_a_fake_quantisation_follows_each_activation() -> None:
    net = CONVERSIONS["early"](Net())
    acts = [cell for _, cell in net.cells_and_names() if isinstance(cell, nn.ReLU)]
    owners = [cell for _, cell in net.cells_and_names() if isinstance(cell, ActQuant) and cell.act is not None]
    assert {id(owner.act) for owner in owners} == {id(act) for act in acts}
    assert len(acts) == 2
    names = {name for name, _ in net.parameters_and_names()}
    assert len(names) == len({p.name for p in net.get_parameters()})


def train(net: nn.Cell) -> None:
    """Some steps in graph mode, which make the loss smaller."""
    with msc.set_context(mode=msc.GRAPH_MODE):
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.05, 0.9))
        step.set_train()
        labels = msc.Tensor(np.arange(8, dtype=np.int32) % 3)
        losses = [float(step(msc.Tensor(IMAGES), labels).asnumpy()) for _ in range(12)]
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", CONVERSIONS)
def test_the_exported_integers_are_a_step_away_at_most(tmp_path: Any, name: str) -> None:
    net = CONVERSIONS[name](Net())
    if name in ("pairs", "learned"):
        train(net)
    else:
        net.set_train()
        net(msc.Tensor(IMAGES))
    net.set_train(False)
    wanted = net(msc.Tensor(IMAGES)).asnumpy()
    path = quant.export(net, IMAGES, file_name=str(tmp_path / "net"), file_format="MIR")
    got = np.asarray(msc.compile(path)(IMAGES))
    assert np.abs(got - wanted).max() <= np.abs(wanted).max() / 50
    assert "ms.quantize" in (tmp_path / "net.mir").read_text("utf-8")


def test_inputs_may_take_the_values_of_bytes(tmp_path: Any) -> None:
    """Zero is byte 64 here, and 191 the most: the range is -2 .. 5.97."""
    net = nn.ReLU()
    path = quant.export(net, IMAGES, file_name=str(tmp_path / "net"), mean=64, std_dev=32, file_format="MIR")
    got = np.asarray(msc.compile(path)(IMAGES * 4))
    np.testing.assert_array_equal(got, np.clip(np.rint(IMAGES * 4 * 32), 0, 191) / 32)


def test_mistakes_are_told() -> None:
    with pytest.raises(MscError, match="MSC0823"):
        quant.convert_quant_network(ops.relu)  # pyright: ignore
    for wrong in ({"num_bits": (8, 8, 8)}, {"per_channel": True}, {"weight_bits": 9}):
        with pytest.raises(MscError, match="MSC0824"):
            quant.convert_quant_network(Net(), **wrong)
    with pytest.raises(MscError, match="MSC0824"):
        quant.export_geir(Net(), file_name="x")
