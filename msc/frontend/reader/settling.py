"""Tensors that the graph has computed get their elements."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from msc.frontend.reader.graph import GraphValue
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.structures import children
from msc.frontend.tensor import Tensor


def elements(value: Any) -> Any:
    """What a tensor refers to, once the graph has run."""
    if isinstance(value, Tensor):
        value = value.content
    return value.array if isinstance(value, GraphValue) else value


def settle(value: Any, depth: int = 0) -> None:
    """Give the tensors in a structure, which the graph has computed by now, their elements; numbers their values."""
    if isinstance(value, Tensor):
        if isinstance(value.content, GraphValue) and value.content.array is not None:
            value.content = value.content.array
        return
    if depth == _DEEPEST or isinstance(value, _NOT_LOOKED_INTO):
        return
    for key, part in _parts(value):
        settle(part, depth + 1)
        if isinstance(part, RuntimeNumber) and key is not None:
            (vars(value) if hasattr(value, "__dict__") else value)[key] = part.known("a result")


_DEEPEST = 8
_NOT_LOOKED_INTO = (type, ModuleType, str, bytes, np.ndarray, FunctionType)


def _parts(value: Any) -> list[tuple[Any, Any]]:
    """What a structure or an object holds, with the places where that can be replaced."""
    if type(value) is dict:
        return list(value.items())
    if type(value) is list:
        return list(enumerate(value))
    if hasattr(value, "__dict__"):
        return list(vars(value).items())
    return [(None, part) for part in children(value) or ()]
