"""Data sets of what is in memory: arrays, and what users' objects give."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, cast

import numpy as np

from msc.dataset import arguments, config
from msc.dataset.arguments import names, optional_count, refuse
from msc.dataset.base import Dataset, skipping
from msc.dataset.blocks import RowReader
from msc.dataset.config import ErrorSamplesMode
from msc.dataset.mapping import forgiving, in_order
from msc.dataset.runs import EpochRun
from msc.dataset.samplers import Sampler, sampler_of
from msc.dataset.values import Array, Ragged, Row, Values, as_array, converted, gathered, own_row
from msc.frontend.errors import ApiIndexError, ApiTypeError, ApiValueError
from msc.frontend.settings import unused


class IndexedDataset(Dataset):
    """Base of data sets whose rows are read by number, in the order of a sampler."""

    READS_FILES: ClassVar[bool] = False
    """Whether a row is read from a file of its own: then `num_parallel_workers` threads read them."""

    def __init__(
        self,
        columns: tuple[str, ...],
        sampler: Any = None,
        shuffle: Any = None,
        num_samples: int | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        num_parallel_workers: int | None = None,
        *,
        shuffled: bool = True,
    ) -> None:
        self._workers = arguments.workers(num_parallel_workers)
        if shuffle is not None and not isinstance(shuffle, bool):
            refuse("shuffle", shuffle, "True or False", is_type=True)
        limit = optional_count("num_samples", num_samples)
        self._columns = columns
        self._shuffle = shuffled if shuffle is None else shuffle
        self._sampler = sampler_of(sampler, shuffle, limit, arguments.shards(num_shards, shard_id), shuffled)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def total(self) -> int:
        """How many rows there are, whatever the sampler takes."""
        raise NotImplementedError

    def row(self, index: int) -> Row:
        """A row by its number: it may be part of what the data set holds, and is copied before anybody gets it."""
        raise NotImplementedError

    def arrays(self) -> Sequence[Array | list[Any]] | None:
        """The columns of all rows, of those that lie in memory; None if rows must be made."""
        return None

    @property
    def in_blocks(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.arrays() is not None

    def reader(self, run: EpochRun) -> RowReader | None:
        arrays = self.arrays()
        if arrays is None:
            return None
        order = self._order(run)
        return RowReader(len(order), lambda numbers, _: tuple(_at(column, order[numbers]) for column in arrays))

    def labels(self, column: str | None) -> Array:
        """The values of a column of all rows, for samplers of classes."""
        place = arguments.known("class_column", (column or self.columns[-1],), self.columns)[0]
        return np.asarray([self.row(k)[place] for k in range(self.total())])

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        order = self._order(run)
        if config.get_error_samples_mode() is ErrorSamplesMode.SKIP:
            return skipping(forgiving(map(int, order), lambda k: own_row(self.row(k)), self._named), start)
        numbers = map(int, order[start:])
        if self.READS_FILES and self._workers > 1 and config.get_error_samples_mode() is ErrorSamplesMode.RETURN:
            return in_order(numbers, lambda k: own_row(self.row(k)), self._workers)
        return forgiving(numbers, lambda k: own_row(self.row(k)), self._named)

    @property
    def _named(self) -> str:
        return f"row of {type(self).__name__} with number"

    def _order(self, run: EpochRun) -> Any:
        total = self.total()
        order = self._sampler.chosen(total, run.generator(), self.labels)
        if order.size and not (order.min() >= 0 and order.max() < total):
            raise ApiIndexError(
                "MSC0871", f"a sampler asks for row {order.max()}, and there are {total}: 0 to {total - 1}"
            )
        return order

    def size(self) -> int:
        return len(self._order(EpochRun(0)))

    def add_sampler(self, new_sampler: Any) -> None:
        """Sample what the present sampler gives."""
        if not isinstance(new_sampler, Sampler):
            refuse("new_sampler", new_sampler, "a sampler", is_type=True)
        new_sampler.add_child(self._sampler)
        self._sampler = new_sampler

    def use_sampler(self, new_sampler: Any) -> None:
        """Take another sampler in place of the present one."""
        self._sampler = sampler_of(new_sampler, None, None, None, self._shuffle)


def _at(column: Array | list[Any], places: Array) -> Values:
    """Rows of a column by their numbers."""
    if isinstance(column, np.ndarray):
        return column[places]
    rows = [column[k] for k in places.tolist()]
    return Ragged(rows) if isinstance(rows[0], str) else gathered(rows)


class NumpySlicesDataset(IndexedDataset):
    """The rows of arrays: a dictionary or a tuple gives several columns, a list or an array one."""

    def __init__(
        self,
        data: Any,
        column_names: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        columns, arrays = _arrays(data, column_names)
        super().__init__(columns, sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers)
        self._arrays = arrays

    def total(self) -> int:
        return len(self._arrays[0])

    def row(self, index: int) -> Row:
        return tuple(np.asarray(array[index]) for array in self._arrays)

    def arrays(self) -> Sequence[Array] | None:
        is_text = any(array.dtype.kind in "US" for array in self._arrays)
        return None if is_text else self._arrays  # A batch of strings is as wide as its own longest.

    def labels(self, column: str | None) -> Array:
        return self._arrays[arguments.known("class_column", (column or self.columns[-1],), self.columns)[0]]


def _arrays(data: Any, column_names: Any) -> tuple[tuple[str, ...], list[Array]]:
    if isinstance(data, Mapping):
        given = cast("Mapping[str, Any]", data)
        values, found = list(given.values()), tuple(given)
    else:
        values = list(cast("tuple[Any, ...]", data)) if isinstance(data, tuple) else [data]
        found = tuple(f"column_{k}" for k in range(len(values)))
    columns = found if column_names is None else names("column_names", column_names)
    if len(columns) != len(values) or not values:
        refuse("column_names", f"{len(columns)} names", f"as many as data has columns, {len(values)}")
    arrays = [as_array(value, f"column '{name}' of data") for name, value in zip(columns, values, strict=True)]
    for name, array in zip(columns, arrays, strict=True):
        if array.ndim == 0:
            refuse(f"column '{name}' of data", "one value", "an array or a list with a value for each row")
        if len(array) != len(arrays[0]):
            raise ApiValueError(
                "MSC0872", f"column '{columns[0]}' has {len(arrays[0])} rows, column '{name}' {len(array)}"
            )
    return columns, arrays


def _row_of(value: Any, columns: tuple[str, ...]) -> Row:
    """What a user's object gives for a row: a value for each column, in a tuple or a list, or that of the only one."""
    is_row = isinstance(value, tuple) or (isinstance(value, list) and len(columns) > 1)
    parts: tuple[Any, ...] = tuple(cast("Sequence[Any]", value)) if is_row else (value,)
    if len(parts) != len(columns):
        raise ApiTypeError(
            "MSC0872",
            f"the source of a GeneratorDataset gives {len(parts)} values for the columns {arguments.listed(columns)}",
            help="give a tuple with one value for each column",
        )
    return tuple(
        as_array(part, f"what the source gives for column '{name}'") for part, name in zip(parts, columns, strict=True)
    )


class GeneratorDataset(IndexedDataset):
    """Rows that a Python object gives: one with `__getitem__` and `__len__`, an iterable, or a generator function.

    Of the first kind rows are read by number, in a random order unless `shuffle=False`. Those of the others come in
    their own order, and are asked for anew in each epoch. `column_types` converts, and checks the number of values.
    """

    def __init__(
        self,
        source: Any,
        column_names: Any = None,
        column_types: Sequence[Any] | None = None,
        schema: object = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: object = None,
        batch_sampler: object = None,
        collate_fn: object = None,
    ) -> None:
        unused(
            "GeneratorDataset", schema=schema, python_multiprocessing=python_multiprocessing, max_rowsize=max_rowsize
        )
        if batch_sampler is not None or collate_fn is not None:
            refuse("batch_sampler", "given", "None: write .batch(..., per_batch_map=...)")
        columns = names("column_names", column_names)
        self._source = source
        self._indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self._indexed and not callable(source) and not isinstance(source, Iterable):
            refuse("source", source, "an object with __getitem__ and __len__, an iterable, or a function", is_type=True)
        if not self._indexed and (sampler is not None or shuffle):
            refuse(
                "shuffle" if shuffle else "sampler",
                True if shuffle else sampler,
                "None for a source that is read in order",
                advice="give the source __getitem__ and __len__, or write .shuffle(buffer_size)",
            )
        super().__init__(
            columns,
            sampler,
            shuffle,
            num_samples,
            num_shards,
            shard_id,
            num_parallel_workers,
            shuffled=self._indexed,
        )
        self._types = None if column_types is None else [_numpy_type(kind) for kind in column_types]
        if self._types is not None and len(self._types) != len(columns):
            refuse("column_types", f"{len(self._types)} types", f"as many as there are columns, {len(columns)}")
        self._limit, self._shards = num_samples, arguments.shards(num_shards, shard_id)

    def total(self) -> int:
        try:
            return len(self._source)
        except (ValueError, OverflowError, TypeError) as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # out of the user's method
            raise ApiValueError("MSC0871", f"source: its __len__ gives no number of rows: {error}") from None

    def row(self, index: int) -> Row:
        return self._typed(self._source[index])

    def _typed(self, value: Any) -> Row:
        row = _row_of(value, self._columns)
        if self._types is None:
            return row
        return tuple(
            converted(part, kind, f"what the source gives for column '{name}'")
            for part, kind, name in zip(row, self._types, self._columns, strict=True)
        )

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        if self._indexed:
            return super().rows(run, start)
        return skipping((own_row(self._typed(value)) for value in self._read()), start)

    def _read(self) -> Iterator[Any]:
        made: Any = self._source if isinstance(self._source, Iterable) else cast("Callable[[], Any]", self._source)()
        if not isinstance(made, Iterable):
            refuse("what the source gives", made, "an iterator", is_type=True)
        items = iter(cast("Iterable[Any]", made))
        if self._shards is not None:
            items = islice(items, self._shards[1], None, self._shards[0])
        return items if self._limit is None else islice(items, self._limit)

    def size(self) -> int:
        return super().size() if self._indexed else self._counted

    @cached_property
    def _counted(self) -> int:
        return sum(1 for _ in self._read())


class PaddedDataset(GeneratorDataset):
    """Rows that are given as dictionaries: behind others, `data + PaddedDataset(rows)` fills up what shards lack."""

    def __init__(self, padded_samples: Any) -> None:
        rows: list[Any] = list(padded_samples) if isinstance(padded_samples, list | tuple) else []
        if not rows or not all(isinstance(row, Mapping) and row.keys() == rows[0].keys() for row in rows):
            refuse("padded_samples", padded_samples, "a list of dictionaries with the same columns", is_type=True)
        super().__init__([tuple(row.values()) for row in rows], list(rows[0]), shuffle=False)


class DatasetCache:
    """For programs that make a cache of rows: sources hold what they read, and rows are read where they lie."""

    def __init__(
        self,
        session_id: int,
        size: int = 0,
        spilling: bool = False,
        hostname: str | None = None,
        port: int | None = None,
        num_connections: int | None = None,
        prefetch_size: int | None = None,
    ) -> None:
        arguments.count("session_id", session_id, 0)
        unused(
            "DatasetCache",
            size=size,
            spilling=spilling,
            hostname=hostname,
            port=port,
            num_connections=num_connections,
            prefetch_size=prefetch_size,
        )

    def get_stat(self) -> dict[str, int]:
        """How many rows it holds: none."""
        return {"avg_cache_sz": 0, "num_mem_cached": 0, "num_disk_cached": 0}


def _numpy_type(kind: Any) -> np.dtype[Any]:
    from msc.frontend.dtypes import DType

    return kind.numpy if isinstance(kind, DType) else np.dtype(kind)
