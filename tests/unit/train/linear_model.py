"""A linear model and its data, which tests of training share."""

from __future__ import annotations

from typing import Any

import numpy as np

import msc
import msc.dataset as ds
from msc import nn
from msc.train import Model

ROWS = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
TARGETS = (ROWS @ np.array([[1.0], [-2.0], [0.5]], np.float32)).astype(np.float32)


def data(shuffle: bool = False, batch: int = 5) -> ds.Dataset:
    return ds.NumpySlicesDataset({"x": ROWS, "y": TARGETS}, shuffle=shuffle).batch(batch)


def model(rate: Any = 0.05, metrics: Any = None, net: Any = None) -> Model:
    msc.set_seed(1)
    made = nn.Dense(3, 1) if net is None else net()
    return Model(made, nn.MSELoss(), nn.Momentum(made.trainable_params(), rate, 0.9), metrics or {"mse", "loss"})
