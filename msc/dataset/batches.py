"""Rows in batches."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np

from msc.dataset import arguments
from msc.dataset.arguments import known, names, refuse
from msc.dataset.base import Dataset, skipping
from msc.dataset.runs import EpochRun, at_row, drawing
from msc.dataset.stages import ColumnChange, DerivedDataset
from msc.dataset.values import Array, Ragged, Row, Values, as_array, own, room, stacked
from msc.frontend.errors import ApiTypeError, ApiValueError


@dataclass(frozen=True)
class BatchInfo:
    """Which batch is made: its number in the epoch, and that of the epoch, both from 0 on."""

    batch: int
    epoch: int

    def get_batch_num(self) -> int:
        """The number of the batch in its epoch."""
        return self.batch

    def get_epoch_num(self) -> int:
        """The number of the epoch."""
        return self.epoch


class BatchDataset(DerivedDataset):
    """See `Dataset.batch`."""

    def __init__(
        self,
        source: Dataset,
        batch_size: Any,
        drop_remainder: Any,
        per_batch_map: Any = None,
        inputs: Any = None,
        outputs: Any = None,
    ) -> None:
        super().__init__(source)
        self._batch_size: int | Callable[[BatchInfo], Any] = (
            batch_size if callable(batch_size) else arguments.count("batch_size", batch_size)
        )
        if not isinstance(drop_remainder, bool):
            refuse("drop_remainder", drop_remainder, "True or False", is_type=True)
        if per_batch_map is not None and not callable(per_batch_map):
            refuse("per_batch_map", per_batch_map, "a function", is_type=True)
        self._drops, self._map = drop_remainder, per_batch_map
        own = source.columns
        given = own if inputs is None else names("input_columns", inputs)
        self._change = ColumnChange(own, given, outputs)

    @property
    def columns(self) -> tuple[str, ...]:
        own = self.source.columns
        return own if self._map is None else self._change.names(own)

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        if callable(self._batch_size):
            return skipping(self._made(run, 0), start)
        return self._whole(run, start, self._batch_size) if self._map is None else self._made(run, start)

    def _whole(self, run: EpochRun, first: int, size: int) -> Iterator[Row]:
        """Batches of the same number of rows, whose columns are joined and nothing else."""
        names = self.columns
        for group in self.source.batches(run.inside(0), first * size, size):
            if self._drops and len(group[0]) < size:
                return
            yield tuple(map(self.joined, group, names))

    def _made(self, run: EpochRun, first: int) -> Iterator[Row]:
        size = self._batch_size
        rows = self.source.rows(run.inside(0), 0 if callable(size) else first * size)
        number = first
        while True:
            info = BatchInfo(number, run.epoch)
            wanted = self._size(size, info)
            group = list(islice(rows, wanted))
            if not group or (self._drops and len(group) < wanted):
                return
            with drawing(run):
                at_row(number)
                batch = self._joined(group, info)
            yield batch
            number += 1

    def _size(self, size: int | Callable[[BatchInfo], Any], info: BatchInfo) -> int:
        return arguments.count("what batch_size gives", size(info)) if callable(size) else size

    def _joined(self, group: Sequence[Row], info: BatchInfo) -> Row:
        columns: list[list[Array]] = [list(values) for values in zip(*group, strict=True)]
        if self._map is None:
            return tuple(map(self.joined, columns, self.columns))
        change = self._change
        found = self._map(*(columns[k] for k in change.taken), info)
        parts: tuple[Any, ...] = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
        if len(parts) != len(change.outputs):
            raise ApiValueError(
                "MSC0872",
                f"per_batch_map gives {len(parts)} columns for {arguments.listed(change.outputs)}",
                help="output_columns names the columns that it gives",
            )
        made = [_column(part, name) for part, name in zip(parts, change.outputs, strict=True)]
        own = self.source.columns
        return change.placed([self.joined(columns[k], own[k]) for k in change.kept], made)

    def joined(self, values: Values, column: str) -> Array:
        """The values of a column in one array."""
        return stacked(values, column)

    def size(self) -> int:
        if callable(self._batch_size):
            return Dataset.size(self)
        rows = self.source.size()
        return rows // self._batch_size if self._drops else -(-rows // self._batch_size)

    def get_batch_size(self) -> int:
        return -1 if callable(self._batch_size) else self._batch_size


def _column(part: Any, name: str) -> Array:
    """What per_batch_map gives for a column: a list of values, or the whole array."""
    what = f"what per_batch_map gives for column '{name}'"
    if isinstance(part, list):
        return stacked([as_array(value, what) for value in cast("list[Any]", part)], name)
    return own(part, what)


class PaddedBatchDataset(BatchDataset):
    """See `Dataset.padded_batch`."""

    def __init__(self, source: Dataset, batch_size: Any, drop_remainder: Any, pad_info: Any) -> None:
        super().__init__(source, batch_size, drop_remainder)
        self._pads: dict[str, tuple[Any, Any]] | None = None
        if pad_info is None:
            return
        if not isinstance(pad_info, Mapping):
            refuse("pad_info", pad_info, 'a dictionary, as {"x": ([None, 8], 0)}', is_type=True)
        given = cast("Mapping[str, Any]", pad_info)
        known("pad_info", tuple(given), source.columns)
        self._pads = {}
        for name, entry in given.items():
            if not isinstance(entry, tuple) or len(cast("tuple[Any, ...]", entry)) != 2:
                refuse(f"pad_info of '{name}'", entry, "a pair: a shape or None, and what to pad with")
            self._pads[name] = cast("tuple[Any, Any]", entry)

    def joined(self, values: Values, column: str) -> Array:
        if self._pads is not None and column not in self._pads:
            return stacked(values, column)
        shape, fill = (None, 0) if self._pads is None else self._pads[column]
        if isinstance(values, Ragged) and values.lengths is not None and (shape is None or len(shape) == 1):
            size = None if shape is None else shape[0]
            return values.padded(values.largest if size in (None, -1) else int(size), fill)
        values = list(values)
        if len({value.ndim for value in values}) != 1:
            raise ApiTypeError("MSC0872", f"column '{column}' has values of different ranks in one batch")
        largest = np.max([value.shape for value in values], axis=0) if values[0].ndim else ()
        wanted = list(largest) if shape is None else list(shape)
        if len(wanted) != values[0].ndim:
            refuse(f"pad_info of '{column}'", str(wanted), f"a shape of rank {values[0].ndim}")
        sizes = [int(own) if n in (None, -1) else int(n) for n, own in zip(wanted, largest, strict=True)]
        return _padded(values, sizes, fill)


def _padded(values: list[Array], sizes: list[int], fill: Any) -> Array:
    """Values in one larger array; what is longer is cut, as MindSpore does."""
    dtype = np.result_type(*{value.dtype for value in values})
    made = room((len(values), *sizes), fill, dtype)
    for row, value in enumerate(values):
        inside = tuple(slice(min(n, m)) for n, m in zip(value.shape, sizes, strict=True))
        made[(row, *inside)] = value[inside]
    return made


class BucketBatchDataset(PaddedBatchDataset):
    """Batches of rows of similar length. See `Dataset.bucket_batch_by_length`."""

    def __init__(
        self,
        source: Dataset,
        columns: Any,
        boundaries: Any,
        sizes: Any,
        length: Callable[..., Any] | None,
        pad_info: Any,
        to_boundary: Any,
        drop_remainder: Any,
    ) -> None:
        super().__init__(source, 1, drop_remainder, pad_info)
        self._lengths_of = known("column_names", names("column_names", columns), source.columns)
        ends = [arguments.count("bucket_boundaries", n) for n in cast("Sequence[Any]", boundaries)]
        if not ends or sorted(set(ends)) != ends:
            refuse("bucket_boundaries", str(boundaries), "integers that grow")
        self._ends = ends
        self._sizes = [arguments.count("bucket_batch_sizes", n) for n in cast("Sequence[Any]", sizes)]
        if len(self._sizes) != len(ends) + 1:
            refuse("bucket_batch_sizes", str(sizes), f"one size more than boundaries, {len(ends) + 1}")
        if length is not None and not callable(length):
            refuse("element_length_function", length, "a function", is_type=True)
        if length is None and len(self._lengths_of) != 1:
            refuse("column_names", str(columns), "one column, unless element_length_function says lengths")
        self._length, self._to_boundary = length, bool(to_boundary)

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        return skipping(self._batched(run), start)

    def _batched(self, run: EpochRun) -> Iterator[Row]:
        groups: list[list[Row]] = [[] for _ in self._sizes]
        for row in self.source.rows(run.inside(0)):
            bucket = int(np.searchsorted(self._ends, self._length_of(row), "right"))
            groups[bucket].append(row)
            if len(groups[bucket]) == self._sizes[bucket]:
                yield self._padded(groups[bucket], bucket)
                groups[bucket] = []
        for bucket, group in enumerate(groups):
            if group and not self._drops:
                yield self._padded(group, bucket)

    def _length_of(self, row: Row) -> int:
        taken = [row[k] for k in self._lengths_of]
        if self._length is not None:
            return arguments.count("what element_length_function gives", self._length(*taken), 0)
        return len(taken[0]) if taken[0].ndim else 1

    def _padded(self, group: list[Row], bucket: int) -> Row:
        if self._to_boundary and bucket == len(self._ends):
            raise ApiValueError("MSC0872", "a row is longer than the last of bucket_boundaries, to which it is padded")
        columns = zip(zip(*group, strict=True), self.columns, strict=True)
        most = self._ends[bucket] - 1 if self._to_boundary else None
        return tuple(self._fitted(list(values), name, most) for values, name in columns)

    def _fitted(self, values: list[Array], name: str, most: int | None) -> Array:
        if most is None or (self._pads is not None and name not in self._pads):
            return self.joined(values, name)
        shape, fill = (None, 0) if self._pads is None else self._pads[name]
        wanted = [most if n in (None, -1) else int(n) for n in (shape or [None] * values[0].ndim)]
        return _padded(values, wanted, fill)

    def size(self) -> int:
        return Dataset.size(self)

    def get_batch_size(self) -> int:
        return -1
