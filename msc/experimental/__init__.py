"""MindSpore's `experimental`: optimisers with PyTorch's arguments, and schedules that change their rates."""

from msc.experimental import optim as optim
