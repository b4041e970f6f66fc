"""MindSpore's `common.tensor`."""

from typing import Any

from msc.frontend.boundary import elsewhere
from msc.ops import Tensor

__all__ = ["Tensor"]


def __getattr__(name: str) -> Any:
    return elsewhere("msc.common.tensor", name, __all__)
