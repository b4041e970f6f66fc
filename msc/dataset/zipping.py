"""MindSpore's `zip` of data sets, in a module of its own: the name is that of a function of Python's."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msc.dataset.arguments import refuse
from msc.dataset.base import Dataset
from msc.dataset.stages import ZipDataset


def zip(datasets: Any) -> Dataset:
    """Rows with the columns of several data sets, as many as the shortest has."""
    if not isinstance(datasets, tuple | list) or len(cast("Sequence[Any]", datasets)) < 2:
        refuse("datasets", datasets, "a tuple of two data sets or more", is_type=True)
    return ZipDataset(cast("Sequence[Any]", datasets))
