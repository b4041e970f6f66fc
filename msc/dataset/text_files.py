"""Data sets of text files: lines, and comma-separated values."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import csv
import enum
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from msc.dataset import arguments
from msc.dataset.arguments import names, refuse
from msc.dataset.images import corrupt
from msc.dataset.sources import IndexedDataset
from msc.dataset.values import Array, Row


class Shuffle(enum.StrEnum):
    """How data sets in files are shuffled. Here every kind is a random order of all rows."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"


def shuffles(value: Any) -> bool:
    """Whether a data set in files is shuffled: a boolean, or a kind of Shuffle."""
    return value if isinstance(value, bool) else bool(Shuffle(value))


def lines(path: Path) -> list[str]:
    """The lines of a file of UTF-8. Raises MSC0870."""
    try:
        return path.read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise corrupt(path, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise corrupt(path, f"byte {error.start} is not UTF-8") from None


class TextFileDataset(IndexedDataset):
    """The lines of files that are not empty, as strings in the column `text`."""

    def __init__(
        self,
        dataset_files: Any,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        del cache
        super().__init__(("text",), None, shuffles(shuffle), num_samples, num_shards, shard_id, num_parallel_workers)
        self._files = arguments.files("dataset_files", dataset_files)

    @cached_property
    def _lines(self) -> list[str]:
        return [line for path in self._files for line in lines(path) if line.strip()]

    def total(self) -> int:
        return len(self._lines)

    def row(self, index: int) -> Row:
        return (np.asarray(self._lines[index]),)


class CSVDataset(IndexedDataset):
    """Files of comma-separated values. The first line names the columns, unless `column_names` does.

    `column_defaults` has a value for each column: what an empty field means, and whose type (int, float or str) the
    column has, Int32, Float32 or strings. Without it all columns are strings.
    """

    def __init__(
        self,
        dataset_files: Any,
        field_delim: str = ",",
        column_defaults: Sequence[Any] | None = None,
        column_names: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        del cache
        if not isinstance(field_delim, str) or len(field_delim) != 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("field_delim", field_delim, "one character")
        self._files = arguments.files("dataset_files", dataset_files)
        self._delimiter, self._has_header = field_delim, column_names is None
        columns = self._header() if column_names is None else names("column_names", column_names)
        super().__init__(columns, None, shuffles(shuffle), num_samples, num_shards, shard_id, num_parallel_workers)
        self._defaults = None if column_defaults is None else list(column_defaults)
        if self._defaults is not None and len(self._defaults) != len(columns):
            refuse("column_defaults", f"{len(self._defaults)} values", f"one for each column, {len(columns)}")

    def _header(self) -> tuple[str, ...]:
        first = next(csv.reader(lines(self._files[0]), delimiter=self._delimiter), None)
        if not first:
            raise corrupt(self._files[0], "it has no first line that names columns")
        return names(f"the first line of '{self._files[0]}'", [name.strip() for name in first])

    @cached_property
    def _records(self) -> list[tuple[Array, ...]]:
        return [record for path in self._files for record in self._read(path)]

    def _read(self, path: Path) -> list[tuple[Array, ...]]:
        reader = csv.reader(lines(path), delimiter=self._delimiter)
        found: list[tuple[Array, ...]] = []
        for record in reader:
            if not record or (self._has_header and reader.line_num == 1):
                continue
            if len(record) != len(self.columns):
                raise corrupt(path, f"line {reader.line_num} has {len(record)} fields, not {len(self.columns)}")
            found.append(tuple(self._value(k, text, path, reader.line_num) for k, text in enumerate(record)))
        return found

    def _value(self, place: int, text: str, path: Path, line: int) -> Array:
        if self._defaults is None:
            return np.asarray(text)
        default = self._defaults[place]
        kind = np.int32 if isinstance(default, int) else np.float32 if isinstance(default, float) else np.str_
        try:
            return np.asarray(text.strip() or default if kind is not np.str_ else text or default, kind)
        except (ValueError, OverflowError):
            wanted = "an integer" if kind is np.int32 else "a number"
            raise corrupt(path, f"line {line}: {text!r} in column '{self.columns[place]}' is not {wanted}") from None

    def total(self) -> int:
        return len(self._records)

    def row(self, index: int) -> Row:
        return self._records[index]
