"""Every kind of layer as one graph, without a split, gives what it gives in PyNative mode, moving averages included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn

RNG = np.random.default_rng(0)


def data(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(np.float32))


LAYERS: dict[str, tuple[Callable[[], nn.Cell], tuple[Any, ...]]] = {
    "dense": (lambda: nn.Dense(5, 3, activation="gelu"), (data(2, 5),)),
    "conv2d of images with channels last": (lambda: nn.Conv2d(4, 6, 3, data_format="NHWC"), (data(2, 8, 8, 4),)),
    "transposed convolution": (lambda: nn.Conv2dTranspose(4, 6, 3, 2, "pad", 1, 1), (data(2, 4, 5, 5),)),
    "layer norm over two axes": (lambda: nn.LayerNorm((3, 5), 1, 1), (data(2, 3, 5),)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (data(2, 4, 3, 3),)),
    "batch norm": (lambda: nn.BatchNorm2d(4), (data(2, 4, 3, 3),)),
    "batch norm while trained": (lambda: nn.BatchNorm1d(4).set_train(), (data(5, 4),)),
    "gru": (lambda: nn.GRU(5, 4, bidirectional=True), (data(3, 2, 5),)),
    "lstm": (lambda: nn.LSTM(5, 4, 2, batch_first=True), (data(2, 3, 5),)),
    "lstm with lengths": (lambda: nn.LSTM(5, 4), (data(3, 2, 5), None, Tensor([3, 1]))),
    "lstm cell": (lambda: nn.LSTMCell(5, 4), (data(2, 5), (data(2, 4), data(2, 4)))),
    "attention": (lambda: nn.MultiheadAttention(8, 2), (data(3, 2, 8), data(4, 2, 8), data(4, 2, 8))),
    "transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16), (data(3, 2, 8), data(4, 2, 8))),
    "pooling": (lambda: nn.AvgPool2d(3, 2, "same"), (data(1, 2, 7, 7),)),
    "pooling to a size": (lambda: nn.AdaptiveAvgPool2d((3, 5)), (data(1, 2, 7, 10),)),
    "embedding": (lambda: nn.Embedding(10, 4), (Tensor([[1, 2], [3, 4]]),)),
    "dropout": (lambda: nn.Dropout(p=0.5), (data(3),)),
    "upsampling": (lambda: nn.Upsample((5, 5), mode="bilinear"), (data(1, 2, 3, 3),)),
    "cells in a row": (lambda: nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2)), (data(2, 3),)),
    "cross entropy": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), (data(4, 3), Tensor([0, 1, 2, 1]))),
}


def tensors(result: Any) -> Iterator[Any]:
    if isinstance(result, Tensor):
        yield result.asnumpy()
    elif result is not None:
        for part in result:
            yield from tensors(part)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str) -> None:
    make, inputs = LAYERS[name]
    cell = make()
    before = {parameter.name: parameter.asnumpy() for parameter in cell.get_parameters()}
    expected = list(tensors(cell(*inputs)))
    moved = {parameter.name: parameter.asnumpy() for parameter in cell.get_parameters()}
    for parameter in cell.get_parameters():
        parameter.set_data(Tensor(before[parameter.name]))
    captured: Any = msc.jit(cell, fullgraph=True, backend="interpreter")
    for ours, theirs in zip(tensors(captured(*inputs)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    for parameter in cell.get_parameters():
        np.testing.assert_allclose(parameter.asnumpy(), moved[parameter.name], rtol=1e-5)
