"""The networks that are trained, as Cells, with their data: the size of a step is part of the name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from msc import nn, ops
from msc.dialects.arrays import Array
from msc.model_zoo import GptDecoder, LeNet5, LstmClassifier
from msc.model_zoo.bert import EncoderLayer
from msc.ops import Tensor


class Mlp(nn.Cell):
    """784, 256, 128, 10."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Dense(784, 256), nn.Dense(256, 128), nn.Dense(128, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


class BasicBlock(nn.Cell):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.has_projection = stride != 1 or inputs != outputs
        if self.has_projection:
            self.down = nn.Conv2d(inputs, outputs, 1, stride=stride, pad_mode="valid")
            self.down_bn = nn.BatchNorm2d(outputs)

    def construct(self, x: Tensor) -> Tensor:
        y = ops.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return ops.relu(y + (self.down_bn(self.down(x)) if self.has_projection else x))


class BasicResNet(nn.Cell):
    """A ResNet of basic blocks: `pooled` begins with a 7x7 convolution and a pooling, as those for ImageNet do."""

    def __init__(self, widths: Sequence[int], blocks: int, pooled: bool) -> None:
        super().__init__()
        self.pooled = pooled
        kernel, stride, padding = (7, 2, 3) if pooled else (3, 1, 1)
        self.conv1 = nn.Conv2d(3, widths[0], kernel, stride=stride, pad_mode="pad", padding=padding)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.max_pool = nn.MaxPool2d(3, stride=2, pad_mode="pad", padding=1)
        cells: list[nn.Cell] = []
        inputs = widths[0]
        for stage, width in enumerate(widths):
            for k in range(blocks):
                cells.append(BasicBlock(inputs, width, 2 if stage and k == 0 else 1))
                inputs = width
        self.layers = nn.SequentialCell(cells)
        self.fc = nn.Dense(inputs, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.relu(self.bn1(self.conv1(x)))
        x = self.max_pool(x) if self.pooled else x
        return self.fc(ops.mean(self.layers(x), (2, 3)))


class Gpt(nn.Cell):
    """The zoo's decoder, with a row of scores for each token."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, positions: int) -> None:
        super().__init__()
        self.decoder = GptDecoder(vocabulary, width, layers, heads, positions)

    def construct(self, tokens: Tensor) -> Tensor:
        scores = self.decoder(tokens)
        return ops.reshape(scores, (-1, scores.shape[2]))


class BertLayer(nn.Cell):
    """A layer of the zoo's encoder, without padding, with a classifier of the mean state."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.layer = EncoderLayer(width, heads, inner)
        self.fc = nn.Dense(width, 4)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc(ops.mean(self.layer(x, Tensor(np.float32(0))), 1))


@dataclass(frozen=True)
class Task:
    """A network, the shape of its input (floats, or tokens below `tokens`), and how many labels, below `classes`."""

    make: Callable[[], nn.Cell]
    shape: tuple[int, ...]
    labels: int
    classes: int
    tokens: int = 0

    def data(self, seed: int = 0) -> tuple[Array, Array]:
        """A batch: inputs and labels (Int32)."""
        rng = np.random.default_rng(seed)
        x = rng.integers(0, self.tokens, self.shape) if self.tokens else rng.standard_normal(self.shape)
        x = x.astype(np.int32 if self.tokens else np.float32)
        return x, rng.integers(0, self.classes, self.labels).astype(np.int32)


TASKS: dict[str, Task] = {
    "lenet5-b32": Task(LeNet5, (32, 1, 32, 32), 32, 10),
    "mlp-b64": Task(Mlp, (64, 784), 64, 10),
    "resnet8-b16": Task(lambda: BasicResNet((16, 32, 64), 1, pooled=False), (16, 3, 32, 32), 16, 10),
    "resnet18-b4": Task(lambda: BasicResNet((64, 128, 256, 512), 2, pooled=True), (4, 3, 64, 64), 4, 10),
    "lstm-b16-s50": Task(lambda: LstmClassifier(1000, 128, 128, 4), (16, 50), 16, 4, 1000),
    "gpt-b4-s64": Task(lambda: Gpt(8192, 384, 6, 6, 64), (4, 64), 256, 8192, 8192),
    "bert-layer-b4-s128": Task(lambda: BertLayer(768, 12, 3072), (4, 128, 768), 4, 4),
}
"""By the name of the row."""
