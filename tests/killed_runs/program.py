"""`python -m tests.killed_runs.program KIND FOLDER`: a run of training that begins or goes on in a folder.

It appends to FOLDER/order a line for each step (in sink mode for each sink), with the rows of its last batch, and has
checkpoints in FOLDER/saved.
"""

# Users' functions are of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import msc
import msc.dataset as ds
from msc import nn
from msc.dataset.runs import draws
from msc.train import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    LearningRateScheduler,
    Model,
    ModelCheckpoint,
    ReduceLROnPlateau,
)

ROWS = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
ROWS[:, 0] = np.arange(len(ROWS)) / len(ROWS)
TARGETS = (ROWS @ np.array([[1.0], [-2.0], [0.5]], np.float32)).astype(np.float32)


class Net(nn.Cell):
    """Two layers with dropout, so that the state of random numbers matters."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.last = nn.Dense(3, 8), nn.Dropout(p=0.3), nn.Dense(8, 1)

    def construct(self, x: Any) -> Any:
        return self.last(self.drop(self.first(x)))


class Order(Callback):
    """Writes which rows a step has, by their first column."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_train_step_end(self, run_context: Any) -> None:
        facts = run_context.original_args()
        rows = np.rint(facts.train_dataset_element[0].asnumpy()[:, 0] * len(ROWS)).astype(int)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{facts.cur_step_num}: {' '.join(map(str, rows))}\n")


def noisy(x: Any) -> Any:
    """All columns but the first with random numbers of the data set's."""
    noise = np.asarray(draws().uniform(-1, 1, x.size), np.float32).reshape(x.shape)
    noise[..., 0] = 0
    return x + noise / 10


def _slices(shuffle: bool = True) -> ds.Dataset:
    return ds.NumpySlicesDataset({"x": ROWS, "y": TARGETS}, shuffle=shuffle)


def _workers() -> ds.Dataset:
    return _slices().map(noisy, "x", num_parallel_workers=3).shuffle(7).repeat(2).batch(4)


def _stages() -> ds.Dataset:
    rows = ds.GeneratorDataset(lambda: zip(ROWS, TARGETS, strict=True), ["x", "y"])
    kept = (rows + _slices()).filter(lambda x: x[1] > -1, "x").skip(2)
    return kept.shuffle(11).batch(
        5, drop_remainder=True, per_batch_map=lambda x, info: [noisy(b) for b in x], input_columns="x"
    )


def _model(optimizer: Callable[..., Any] = nn.Momentum, **options: Any) -> Model:
    net = Net()
    arguments = (0.05, 0.9) if optimizer is nn.Momentum else (0.05,)
    return Model(net, nn.MSELoss(), optimizer(net.trainable_params(), *arguments), {"loss"}, **options)


def _shuffled(common: dict[str, Any]) -> None:
    """The callback that changes the rate stands behind the one that saves it."""
    common["callbacks"].append(LearningRateScheduler(lambda rate, step: rate * 0.95))
    _model().train(8, _slices().batch(4), **common)


def _in_sinks(common: dict[str, Any]) -> None:
    with msc.set_context(mode=msc.GRAPH_MODE):
        _model(nn.Adam).train(5, _workers(), dataset_sink_mode=True, sink_size=9, **common)


def _fitted(common: dict[str, Any]) -> None:
    """The rate depends on evaluations that were made before the run ended."""
    common["callbacks"] += [ReduceLROnPlateau(patience=1, min_delta=0.05, factor=0.7), EarlyStopping(patience=5)]
    _model().fit(12, _slices().batch(6), _slices(False).batch(8), **common)


KINDS: dict[str, Callable[[dict[str, Any]], None]] = {
    "shuffled": _shuffled,
    "workers": lambda common: _model(nn.Adam).train(4, _workers(), **common),
    "stages": lambda common: _model(nn.Adagrad).train(6, _stages(), **common),
    "sinks": _in_sinks,
    "scaled": lambda common: _model(amp_level="O2").train(6, _slices().batch(4), **common),
    "fitted": _fitted,
}
"""By name: what differs in data, optimiser and callbacks."""


def main() -> None:
    """Begin or go on."""
    kind, folder = sys.argv[1], Path(sys.argv[2])
    msc.set_seed(3)
    saved = folder / "saved"
    saved.mkdir(exist_ok=True)
    checkpoints = ModelCheckpoint("run", saved, CheckpointConfig(1, keep_checkpoint_max=3))
    KINDS[kind]({"callbacks": [Order(folder / "order"), checkpoints], "resume": saved})


if __name__ == "__main__":
    main()
