"""What `Dataset.explain` says."""

from __future__ import annotations

from collections.abc import Iterator

from msc.dataset.base import Dataset
from msc.dataset.stages import DerivedDataset, MapDataset


def explained(dataset: Dataset) -> str:
    """The stages from the sources on, and what their transforms are done by."""
    return "\n".join(_lines(dataset))


def _lines(dataset: Dataset) -> Iterator[str]:
    if isinstance(dataset, DerivedDataset) and dataset.is_chained:
        yield from _lines(dataset.chain.source)
        yield from dataset.chain.explained()
        return
    for source in dataset.inputs:
        yield from _lines(source)
    if isinstance(dataset, MapDataset):
        names = ", ".join(getattr(f, "__name__", type(f).__name__) for f in dataset.functions)
        yield f"map: {names}: row by row (functions of Python)"
    elif not dataset.inputs:
        yield f"{type(dataset).__name__}: read {'in blocks' if dataset.in_blocks else 'row by row'}"
