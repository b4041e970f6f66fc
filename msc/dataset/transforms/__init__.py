"""Transforms of any data, as MindSpore's `dataset.transforms`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from msc.dataset.transforms.general import (
    Compose, Concatenate, Duplicate, Fill, Mask, OneHot, PadEnd, RandomApply, RandomChoice, RandomOrder, Relational,
    Slice, Transform, TypeCast, Unique,
)
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name

__all__ = [
    "Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "RandomApply", "RandomChoice",
    "RandomOrder", "Relational", "Slice", "Transform", "TypeCast", "Unique",
]

publish(globals(), __all__, "dataset.transforms")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.dataset.transforms", name, __all__)
