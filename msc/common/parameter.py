"""MindSpore's `common.parameter`."""

from typing import Any

from msc.frontend.boundary import elsewhere
from msc.frontend.parameter import Parameter, ParameterTuple

__all__ = ["Parameter", "ParameterTuple"]


def __getattr__(name: str) -> Any:
    return elsewhere("msc.common.parameter", name, __all__)
