"""The zoo's networks with PyTorch's operators and the same weights, in PyNative mode and compiled."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn
from tests.unit.model_zoo.pytorch.references import REFERENCES
from tests.unit.model_zoo.small_networks import NETWORKS, arrays, with_random_weights
from tests.zoo_gradients.compare import check

torch: Any = importlib.import_module("torch")


def reference(name: str, net: nn.Cell) -> list[Any]:
    values = {key: torch.from_numpy(p.asnumpy()) for key, p in net.parameters_dict().items()}
    inputs = [torch.from_numpy(array) for array in NETWORKS[name][1]()]
    with torch.no_grad():
        result: Any = REFERENCES[name](values.__getitem__, *inputs)
    several = name == "bert"
    return [item.numpy() for item in (result if several else [result])]


@pytest.mark.parametrize("name", REFERENCES)
def test_networks_agree_with_pytorch(name: str) -> None:
    make, inputs = NETWORKS[name]
    net = with_random_weights(make())
    given, expected = [Tensor(array) for array in inputs()], reference(name, net)
    for found in (arrays(net(*given)), arrays(msc.compile(net, *given)(*inputs()))):
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", ["lenet", "resnet", "lstm", "gpt"])
def test_gradients_agree_with_pytorch(name: str, training: bool) -> None:
    check(name, training=training, ways=("PyNative",))
