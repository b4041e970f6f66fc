"""LeNet-5 (LeCun et al., 1998), with the ReLUs and largest elements of MindSpore's."""

from __future__ import annotations

from msc import nn
from msc.ops import Tensor


class LeNet5(nn.Cell):
    """Images `[n, channels, 32, 32]` to scores `[n, classes]`."""

    def __init__(self, classes: int = 10, channels: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, classes)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x: Tensor) -> Tensor:
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))
