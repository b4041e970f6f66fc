"""The discardable attributes of the `gk` dialect, by name, and their types."""

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from msc.dialects.gk.schedule import ScheduleAttr

GK_PATTERN = "gk.pattern"
"""Of a kernel: the dominant area pattern of its operations."""

GK_REASONS = "gk.reasons"
"""Of a kernel: each fusion that clustering made or refused, with the reason."""

GK_SCHEDULE = "gk.schedule"
"""Of a kernel: its schedule."""

GK_SCHEDULE_REASONS = "gk.schedule_reasons"
"""Of a kernel: the reasons of its schedule."""

GK_FUNCTION = "gk.function"
"""Of a kernel: the function of loops that `convert-gk-to-loop` made of it."""

COMPUTE_AT = "gk.compute_at"
"""Of a kernel: the axes of its result, loops over which in its one reader it is to be computed at, outermost first."""

LOOP_LABEL = "gk.label"
"""Of a loop: what its function is named after, if it becomes one."""

_TYPES: Mapping[str, tuple[Any, str]] = {
    GK_PATTERN: (StringAttr, "a string"),
    GK_REASONS: (ArrayAttr[StringAttr], "a list of strings"),
    GK_SCHEDULE: (ScheduleAttr, "a schedule: #gk.schedule<[LINE, ...]>"),
    GK_SCHEDULE_REASONS: (ArrayAttr[StringAttr], "a list of strings"),
    GK_FUNCTION: (SymbolRefAttr, "a symbol, the name of a function"),
    COMPUTE_AT: (DenseArrayBase[I64], "a list of axes: array<i64: ...>"),
}


_RENAMED: Mapping[str, str] = {"gk.live": "gk.valid"}
"""Attributes of kernels by their former names."""


def verify_kernel_attributes(attributes: Mapping[str, Attribute]) -> None:
    """Raises VerifyException for an attribute of a kernel that is not of its type or has its former name."""
    for name in _RENAMED.keys() & attributes.keys():
        raise VerifyException(f"gk.kernel: '{name}' is called '{_RENAMED[name]}' now")
    for name, (type_, text) in _TYPES.items():
        if name in attributes and not isa(attributes[name], type_):
            raise VerifyException(f"gk.kernel: '{name}' is {text}")
