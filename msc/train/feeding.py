"""Batches for steps of training: data set after data set from any step on, read ahead in a thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from msc.dataset import config
from msc.dataset.base import Dataset
from msc.dataset.iterators import Prefetched, as_tensor
from msc.dataset.runs import EpochRun
from msc.dataset.values import Row
from msc.frontend.errors import ApiTypeError
from msc.frontend.tensor import Tensor


def batches(dataset: Dataset, seed: int, done: int, size: int) -> Prefetched[Row]:
    """The batches after the first `done` ones, epoch after epoch without end; an epoch has `size` of them."""

    def rows() -> Iterator[Row]:
        epoch, start = divmod(done, size)
        while True:
            yield from dataset.rows(EpochRun(seed, epoch), start)
            epoch, start = epoch + 1, 0

    return Prefetched(rows, config.get_prefetch_size())


def one_epoch(dataset: Dataset, seed: int) -> Prefetched[Row]:
    """The batches of an epoch."""
    return Prefetched(lambda: dataset.rows(EpochRun(seed)), config.get_prefetch_size())


def tensors(row: Row, columns: tuple[str, ...]) -> tuple[Tensor, ...]:
    """A batch as tensors. Raises MSC0876 for a column of strings."""
    for value, name in zip(row, columns, strict=True):
        if value.dtype.kind in "US":
            raise ApiTypeError(
                "MSC0876",
                f"column '{name}' of the data set holds strings, which no network takes",
                help="map turns them into numbers, and project leaves columns out",
            )
    return tuple(as_tensor(np.ascontiguousarray(value)) for value in row)
