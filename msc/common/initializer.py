"""MindSpore's `common.initializer`."""

from collections.abc import Sequence
from typing import Any

from msc.frontend.boundary import elsewhere
from msc.frontend.initializers import (
    Constant,
    HeNormal,
    HeUniform,
    Identity,
    Initializer,
    Normal,
    One,
    Orthogonal,
    TruncatedNormal,
    Uniform,
    VarianceScaling,
    XavierNormal,
    XavierUniform,
    Zero,
    fans,
    initializer,
)

__all__ = [
    "Constant", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal",
    "TruncatedNormal", "Uniform", "VarianceScaling", "XavierNormal", "XavierUniform", "Zero", "initializer",
]  # fmt: skip


_calculate_fan_in_and_fan_out = fans  # which programs import


def _calculate_correct_fan(shape: Sequence[int], mode: str) -> float:  # pyright: ignore[reportUnusedFunction]
    """The number of inputs or outputs of an element, as `mode` says."""
    return fans(tuple(shape))[mode.lower() == "fan_out"]


def __getattr__(name: str) -> Any:
    return elsewhere("msc.common.initializer", name, __all__)
