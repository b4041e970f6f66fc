"""What students do wrong in their first program, and the word that helps."""

from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn
from msc.dataset import NumpySlicesDataset, vision
from msc.train import Model

X = np.ones((8, 3), np.float32)
Y = np.zeros(8, np.int32)


def train(network: Any, data: Any, loss: Any = None) -> None:
    Model(network, loss, nn.SGD(network.trainable_params(), 0.1)).train(1, data)


def columns(*arrays: Any, batched: bool = True) -> Any:
    data = NumpySlicesDataset(arrays, [f"c{k}" for k in range(len(arrays))], shuffle=False)
    return data.batch(4) if batched else data


@pytest.mark.parametrize("mode", [msc.GRAPH_MODE, msc.PYNATIVE_MODE])
def test_mistakes(mode: int) -> None:
    msc.set_context(mode=mode)
    try:
        for use, told in (
            (lambda: train(nn.Dense(3, 3), columns(X, Y)), "MSC0876.*no loss_fn"),
            (lambda: train(nn.Dense(3, 3), columns(X, Y.astype(np.float32)), nn.CrossEntropyLoss()), "integers"),
            (lambda: train(nn.Dense(3, 3), columns(X, Y, batched=False), nn.CrossEntropyLoss()), r"batch\(32\)"),
        ):
            with pytest.raises(msc.MscError, match=rf"(?s){told}"):
                use()
    finally:
        msc.reset_context()


def test_a_network_that_gives_the_loss_takes_its_columns() -> None:
    train(nn.WithLossCell(nn.Dense(3, 3), nn.CrossEntropyLoss()), columns(X, Y))


def test_an_image_that_was_not_decoded() -> None:
    with pytest.raises(msc.MscError, match=r"(?s)MSC0874.*decode=True"):
        vision.HWC2CHW()(np.zeros(122, np.uint8))


def test_labels_of_a_class_each_and_probabilities_are_both_taken() -> None:
    loss = nn.CrossEntropyLoss()
    logits = Tensor(X)
    assert loss(logits, Tensor(Y)).shape == loss(logits, Tensor(np.eye(3, dtype=np.float32)[Y])).shape == ()
