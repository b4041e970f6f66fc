"""Each network of the zoo in a small size, with random weights and inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msc import Tensor, nn
from msc.dialects.arrays import Array
from msc.model_zoo import BertModel, GptDecoder, LeNet5, Llama, LlamaConfig, LstmClassifier, MobileNetV2, ResNet, UNet


def floats(*shape: int) -> Array:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def tokens(*shape: int) -> Array:
    return np.random.default_rng(6).integers(0, 30, shape).astype(np.int32)


NETWORKS: dict[str, tuple[Callable[[], nn.Cell], Callable[[], tuple[Array, ...]]]] = {
    "lenet": (LeNet5, lambda: (floats(2, 1, 32, 32),)),
    "resnet": (lambda: ResNet((1, 2), classes=5, width=4), lambda: (floats(1, 3, 32, 32),)),
    "mobilenet": (
        lambda: MobileNetV2(5, ((1, 8, 1, 1), (6, 12, 2, 2)), first=8, last=16),
        lambda: (floats(1, 3, 32, 32),),
    ),
    "bert": (
        lambda: BertModel(30, 16, 2, 2, 32, 16),
        lambda: (tokens(2, 7), tokens(2, 7) % 2, (np.arange(14).reshape(2, 7) % 7 < [[7], [5]]).astype(np.int32)),
    ),
    "gpt": (lambda: GptDecoder(30, 16, 2, 2, 16), lambda: (tokens(2, 6),)),
    "llama": (lambda: Llama(LlamaConfig(30, 16, 24, 2, 4, 2)), lambda: (tokens(1, 6),)),
    "lstm": (lambda: LstmClassifier(30, 8, 6, 4, bidirectional=True), lambda: (tokens(2, 5),)),
    "unet": (lambda: UNet(3, 2, 4, 2), lambda: (floats(1, 3, 16, 16),)),
}


def with_random_weights(net: nn.Cell) -> nn.Cell:
    """The network with weights that tell each place from all others; variances are positive."""
    rng = np.random.default_rng(9)
    for name, parameter in net.parameters_dict().items():
        values = rng.standard_normal(parameter.shape) * 0.3
        positive = name.endswith(("variance", "gamma"))
        parameter.set_data(Tensor((np.abs(values) + 0.5 if positive else values).astype(np.float32)))
    return net


def arrays(result: Any) -> list[Array]:
    """The results of a network as arrays."""
    items: list[Any] = [*result] if isinstance(result, tuple) else [result]
    return [item.asnumpy() if isinstance(item, Tensor) else np.asarray(item) for item in items]
