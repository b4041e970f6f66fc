"""Tensors that the graph has computed get their elements."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from msc.frontend.reader.graph import GraphValue
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.structures import Flattening, children, fill
from msc.frontend.tensor import Tensor


def elements(value: Any) -> Any:
    """What a tensor refers to, once the graph has run."""
    if isinstance(value, Tensor):
        value = value.content
    return value.array if isinstance(value, GraphValue) else value


def settle(value: Any, depth: int = 0) -> None:
    """Give all tensors in a structure, which the graph has computed by now, their elements."""
    if isinstance(value, Tensor):
        if isinstance(value.content, GraphValue) and value.content.array is not None:
            value.content = value.content.array
        return
    parts = children(value)
    if parts is None and depth < 8 and hasattr(value, "__dict__") and not isinstance(value, type | ModuleType):
        parts = list(vars(value).values())
    for part in parts or () if depth < 8 else ():
        settle(part, depth + 1)


def real(value: Any) -> Any:
    """A structure with runtime numbers as the numbers that they are."""
    flat = Flattening(lambda v: (v, lambda x: x.known("a result")) if isinstance(v, RuntimeNumber) else None)
    template = flat.template(value)
    return fill(template, flat.leaves) if flat.leaves else value
