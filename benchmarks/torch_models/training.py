"""The networks of the training benchmark in PyTorch, with the attribute names of the Cells that they stand beside."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


class LeNet5(nn.Module):
    """`msc.model_zoo.LeNet5`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, bias=False)
        self.conv2 = nn.Conv2d(6, 16, 5, bias=False)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x.flatten(1))))))


class Mlp(nn.Module):
    """784, 256, 128, 10."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.has_projection = stride != 1 or inputs != outputs
        if self.has_projection:
            self.down = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.down_bn = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (self.down_bn(self.down(x)) if self.has_projection else x))


class BasicResNet(nn.Module):
    """A ResNet of basic blocks: `pooled` begins with a 7x7 convolution and a pooling, as those for ImageNet do."""

    def __init__(self, widths: tuple[int, ...], blocks: int, pooled: bool) -> None:
        super().__init__()
        self.pooled = pooled
        first = (7, 2, 3) if pooled else (3, 1, 1)
        self.conv1 = nn.Conv2d(3, widths[0], *first, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        cells: list[nn.Module] = []
        inputs = widths[0]
        for stage, width in enumerate(widths):
            for k in range(blocks):
                cells.append(BasicBlock(inputs, width, 2 if stage and k == 0 else 1))
                inputs = width
        self.layers = nn.Sequential(*cells)
        self.fc = nn.Linear(inputs, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = functional.max_pool2d(x, 3, 2, 1) if self.pooled else x
        return self.fc(self.layers(x).mean((2, 3)))


class LstmClassifier(nn.Module):
    """`msc.model_zoo.LstmClassifier(1000, 128, 128, 4)`."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, 128)
        self.lstm = nn.LSTM(128, 128, batch_first=True)
        self.fc = nn.Linear(128, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.fc(self.lstm(self.tokens(tokens))[0].mean(1))


class FeedForward(nn.Module):
    """Two layers with a GELU between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(functional.gelu(self.inner(x)))


class SelfAttention(nn.Module):
    """Attention of several heads, causal or not."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.output(y.transpose(1, 2).reshape(batch, length, width))


class DecoderLayer(nn.Module):
    """A layer of `msc.model_zoo.GptDecoder`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, causal=True)
        self.feed_forward = FeedForward(width, 4 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Gpt(nn.Module):
    """`msc.model_zoo.GptDecoder`."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, positions: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList([DecoderLayer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).flatten(0, 1)


class BertLayer(nn.Module):
    """`msc.model_zoo.bert.EncoderLayer` with a classifier of the mean state."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads, causal=False)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.feed_forward = FeedForward(width, inner)
        self.output_norm = nn.LayerNorm(width, eps=1e-12)
        self.fc = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention_norm(x + self.attention(x))
        x = self.output_norm(x + self.feed_forward(x))
        return self.fc(x.mean(1))


MODULES: dict[str, Callable[[], nn.Module]] = {
    "lenet5-b32": LeNet5,
    "mlp-b64": Mlp,
    "resnet8-b16": lambda: BasicResNet((16, 32, 64), 1, pooled=False),
    "resnet18-b4": lambda: BasicResNet((64, 128, 256, 512), 2, pooled=True),
    "lstm-b16-s50": LstmClassifier,
    "gpt-b4-s64": lambda: Gpt(8192, 384, 6, 6, 64),
    "bert-layer-b4-s128": lambda: BertLayer(768, 12, 3072),
}
"""By the name of the row."""

_NAMES = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}
_NAMES |= {"moving_mean": "running_mean", "moving_variance": "running_var"}


def torch_name(name: str) -> str:
    """What PyTorch calls the parameter of a Cell; Cells around those of the zoo add the first part."""
    start, _, last = name.removeprefix("decoder.").removeprefix("layer.").rpartition(".")
    return f"{start}.{_NAMES.get(last, last)}".lstrip(".")
