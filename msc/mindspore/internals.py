"""MindSpore's internals that programs import although they are none of its interface: thin names for what is here.

They stand in this one place, under all paths that have them (`msc.mindspore.paths`). New programs need none of them.
"""

# pyright: reportUnusedFunction=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from msc import nn
from msc.frontend.errors import missing_name
from msc.frontend.tensor import Tensor
from msc.nn import normalisation
from msc.train.callback import base as callbacks

T = TypeVar("T")

__all__ = ["Tensor", "cell_attr_register", "from_dlpack", "to_dlpack"]

_Loss = nn.LossBase
_BatchNorm = normalisation.BatchNorm
_InternalCallbackParam = callbacks.Facts


def cell_attr_register(fn: Any = None, attrs: Any = None) -> Any:
    """The initialiser of a cell itself: a graph is compiled for all that a cell has, `attrs` among it."""

    def kept(function: T) -> T:
        return function

    return fn if callable(fn) or (attrs is not None and fn is not None) else kept


def _get_cache_prim(cls: Callable[..., T]) -> Callable[..., T]:
    """What makes operators of a class: the class."""
    return cls


def from_dlpack(dlpack: Any) -> Tensor:
    """A tensor of what another library exports by DLPack."""
    return Tensor(np.from_dlpack(dlpack))


def to_dlpack(tensor: Tensor) -> Any:
    """What another library imports by DLPack."""
    return tensor.__dlpack__()


def __getattr__(name: str) -> Any:
    known = [each for each in globals() if not each.startswith("__")]
    raise missing_name("MindSpore's internals in msc", name, known)
