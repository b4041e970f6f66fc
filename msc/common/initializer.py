"""MindSpore's `common.initializer`."""

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
    initializer,
)

__all__ = [
    "Constant", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal", "TruncatedNormal",
    "Uniform", "VarianceScaling", "XavierNormal", "XavierUniform", "Zero", "initializer",
]  # fmt: skip
