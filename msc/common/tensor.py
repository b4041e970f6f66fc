"""MindSpore's `common.tensor`."""

from msc.ops import Tensor

__all__ = ["Tensor"]
