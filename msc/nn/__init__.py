"""Cells: the layers that networks are made of, as MindSpore's `nn`."""

from msc.nn.activation import ReLU, get_activation
from msc.nn.basic import Dense, Flatten
from msc.nn.cell import Cell
from msc.nn.convolution import Conv2d
from msc.nn.pooling import MaxPool2d

__all__ = ["Cell", "Conv2d", "Dense", "Flatten", "MaxPool2d", "ReLU", "get_activation"]
