"""MindSpore's `mint.optim`: optimisers with PyTorch's arguments."""

from msc.experimental.optim import SGD as SGD
from msc.experimental.optim import Adam as Adam
from msc.experimental.optim import AdamW as AdamW

FusedAdamW = AdamW
__all__ = ["SGD", "Adam", "AdamW", "FusedAdamW"]
