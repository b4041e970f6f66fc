"""Bounds of the elements of arguments that a call looks at: `ms.indices = [low, high]`."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr

INDICES = "ms.indices"


def index_bounds(attributes: DictionaryAttr) -> tuple[int, int] | None:
    """The bounds that are marked on an argument."""
    marks = attributes.data.get(INDICES)
    if not isinstance(marks, ArrayAttr):
        return None
    low, high = (mark.value.data for mark in cast("ArrayAttr[IntegerAttr[Any]]", marks).data)
    return low, high
