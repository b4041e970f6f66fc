"""Data sets of tables in columns: Parquet and Arrow files, by `pyarrow`, which is loaded when a file is read."""

# pyarrow has no types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from msc.dataset import arguments
from msc.dataset.images import corrupt
from msc.dataset.sources import IndexedDataset
from msc.dataset.text_files import Shuffle, shuffles, string
from msc.dataset.values import Array, Row
from msc.frontend.errors import ApiError
from msc.support.plain_files import opened


def _pyarrow(part: str = "") -> Any:
    try:
        return import_module(f"pyarrow{part}")
    except ImportError:
        raise ApiError("MSC0875", "Parquet and Arrow files need pyarrow", help="pip install pyarrow") from None


class ParquetDataset(IndexedDataset):
    """The rows of Parquet or Arrow (Feather) files, which are held in memory.

    Columns hold numbers, strings, bytes as UInt8, or lists of numbers. Raises MSC0870 for others and for missing
    values, and MSC0875 without `pyarrow`.
    """

    def __init__(
        self,
        dataset_files: Any,
        columns_list: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        self._files = arguments.files("dataset_files", dataset_files)
        own = self._own_columns(self._files[0])
        wanted = own if columns_list is None else arguments.names("columns_list", columns_list)
        arguments.known("columns_list", wanted, own)
        super().__init__(wanted, None, shuffles(shuffle), num_samples, num_shards, shard_id, num_parallel_workers)

    def _own_columns(self, path: Path) -> tuple[str, ...]:
        return tuple(self._opened(path, lambda parquet, file: parquet.read_schema(file), _schema).names)

    def _opened(self, path: Path, of_parquet: Any, of_arrow: Any) -> Any:
        """What one of two functions reads of a file, by how it begins. Raises MSC0870 and MSC0875."""
        arrow = _pyarrow()
        try:
            with opened(path) as file:
                is_parquet = file.peek(4)[:4] == b"PAR1"
                return of_parquet(_pyarrow(".parquet"), file) if is_parquet else of_arrow(arrow.ipc, file)
        except (OSError, arrow.ArrowException) as error:
            raise corrupt(path, str(error).splitlines()[0] if str(error) else type(error).__name__) from None

    @cached_property
    def _values(self) -> list[Array | list[Any]]:
        parts = zip(*(self._read(path) for path in self._files), strict=True)
        return [
            np.concatenate(part)
            if all(isinstance(p, np.ndarray) and p.shape[1:] == part[0].shape[1:] for p in part)
            else [value for values in part for value in values]
            for part in parts
        ]

    def _read(self, path: Path) -> list[Array | list[Any]]:
        columns = list(self.columns)
        table = self._opened(
            path,
            lambda parquet, file: parquet.read_table(file, columns=columns),
            lambda ipc, file: ipc.open_file(file).read_all(),
        )
        for name in columns:
            if name not in table.column_names:
                raise corrupt(path, f"it has no column '{name}', as '{self._files[0]}' has")
        return [_column(table[name].combine_chunks(), name, path) for name in columns]

    def total(self) -> int:
        return len(self._values[0])

    def arrays(self) -> Sequence[Array | list[Any]] | None:
        return self._values if self.total() else None

    def row(self, index: int) -> Row:
        return tuple(np.asarray(values[index]) for values in self._values)


def _schema(ipc: Any, file: Any) -> Any:
    return ipc.open_file(file).schema


def _column(values: Any, name: str, path: Path) -> Array | list[Any]:
    """The values of a column."""
    kinds = _pyarrow(".types")
    values = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise corrupt(path, f"column '{name}' has no value in row {row}")
    if kinds.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind):
        return np.array(values.to_numpy(zero_copy_only=False))
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return [string(text, path, k) for k, text in enumerate(values.to_pylist(), 1)]
    if kinds.is_binary(kind) or kinds.is_large_binary(kind):
        return [np.frombuffer(data, np.uint8) for data in values.to_pylist()]
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        items = _column(values.flatten(), name, path)
        lengths = np.asarray(values.value_lengths())
        if isinstance(items, np.ndarray):
            is_even = len(lengths) > 0 and (lengths == lengths[0]).all()
            ends = np.cumsum(lengths)[:-1]
            return items.reshape(len(lengths), -1, *items.shape[1:]) if is_even else np.split(items, ends)
    raise corrupt(path, f"column '{name}' holds {kind}; numbers, strings, bytes and lists of numbers are read")
