"""MindSpore's `common.api`: what compiles functions."""

from __future__ import annotations

from typing import Any, TypeVar

from msc.frontend.boundary import elsewhere
from msc.frontend.errors import ApiTypeError
from msc.frontend.jit import jit
from msc.ops.primitive import constexpr
from msc.support.wording import a

T = TypeVar("T")

__all__ = ["constexpr", "jit", "jit_class", "ms_class", "ms_function"]

ms_function = jit


def jit_class(cls: T) -> T:
    """The class itself: instances of any class may be made and used in compiled functions. Raises MSC0811."""
    if not isinstance(cls, type):
        raise ApiTypeError("MSC0811", f"jit_class decorates a class, not {a(type(cls).__name__)}")
    return cls


ms_class = jit_class


def __getattr__(name: str) -> Any:
    return elsewhere("msc.common.api", name, __all__)
