"""Steps of a sink: loops of the graph, with the bits of single calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc import Tensor, nn
from msc.train import Callback, Model
from msc.train.model import StepLoop, chunk
from tests.unit.train.linear_model import data, model


def test_sinks_are_compiled_loops_in_graph_mode() -> None:
    """The losses of a loop of 10 steps, an epoch, beside those of single calls in PyNative mode."""
    found: dict[int, list[float]] = {}
    for mode in (msc.PYNATIVE_MODE, msc.GRAPH_MODE):
        losses = found[mode] = list[float]()
        keep = Losses(losses)
        with msc.set_context(mode=mode):
            trained = model()
            trained.train(3, data(batch=2), callbacks=keep, dataset_sink_mode=True)
        assert int(trained.train_network.parameters_dict()["global_step"]) == 30
    np.testing.assert_allclose(found[msc.GRAPH_MODE], found[msc.PYNATIVE_MODE], rtol=1e-4)
    assert "compiled: for (int64[], float32[10x2x3], float32[10x2x1])" in msc.jit.explain(trained.sinks.loop)


def test_the_steps_of_a_sink_are_a_loop_of_the_graph(tmp_path: Path) -> None:
    loop = StepLoop(model().train_network)
    stacks = (Tensor(np.ones((10, 2, 3), np.float32)), Tensor(np.ones((10, 2, 1), np.float32)))
    msc.export(loop, Tensor(10, msc.int64), *stacks, file_name=str(tmp_path / "steps.mir"))
    text = (tmp_path / "steps.mir").read_text("utf-8")
    assert text.count("scf.while") == 1
    assert text.count("ms.extract_slice") == len(stacks)


class Recurrent(nn.Cell):
    """An LSTM over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 4, batch_first=True), nn.Dense(4, 3)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x.reshape(-1, 6, 6))[0][:, -1])


def convolutions() -> nn.Cell:
    """With states, moving averages, and random numbers."""
    head = (nn.Flatten(), nn.Dropout(p=0.3), nn.Dense(2 * 4 * 4, 3))
    return nn.SequentialCell(nn.Conv2d(1, 2, 3, pad_mode="valid"), nn.BatchNorm2d(2), nn.ReLU(), *head)


@pytest.mark.parametrize("make", [Recurrent, convolutions])
@pytest.mark.parametrize("options", [{}, {"amp_level": "O2", "loss_scale_manager": msc.amp.DynamicLossScaleManager()}])
def test_loops_of_sinks_have_the_bits_of_single_calls(make: Callable[[], nn.Cell], options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(32, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, 32).astype(np.int32)

    def trained(sink: bool) -> Model:
        msc.set_seed(3)
        net = make()
        rates = nn.cosine_decay_lr(0.01, 0.1, 16, 8, 2)
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        found = Model(net, loss, nn.Momentum(net.trainable_params(), rates, 0.9), **options)
        rows = ds.NumpySlicesDataset({"x": images, "y": labels}, shuffle=False).batch(4)
        with msc.set_context(mode=msc.GRAPH_MODE):
            found.train(2, rows, dataset_sink_mode=sink)
        return found

    looped, called = trained(True), trained(False)
    assert looped.sinks.loop is not None
    expected = called.train_network.parameters_dict()
    for name, parameter in looped.train_network.parameters_dict().items():
        np.testing.assert_array_equal(parameter.asnumpy(), expected[name].asnumpy(), err_msg=name)


class Losses(Callback):
    def __init__(self, losses: list[float]) -> None:
        self.losses = losses

    def step_end(self, run_context: Any) -> None:
        self.losses.append(float(run_context.original_args().net_outputs))


def test_chunks_of_sinks_divide_them() -> None:
    assert chunk(1875, 1000) == 25
    assert chunk(45, 1000) == 45
    assert chunk(1009, 1000) == 64
    assert chunk(3, 1000) == 1
    assert chunk(100, 32 << 20) == 8
    assert chunk(100, 1 << 30) == 1
