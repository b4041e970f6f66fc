"""Data sets of text files: lines, and comma-separated values."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import csv
import enum
import io
import threading
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from msc.dataset import arguments
from msc.dataset.arguments import names, refuse
from msc.dataset.images import corrupt
from msc.dataset.sources import IndexedDataset
from msc.dataset.values import Array, Row
from msc.frontend.settings import unused
from msc.support.diagnostics import MscError
from msc.support.plain_files import content


class Shuffle(enum.StrEnum):
    """How data sets in files are shuffled. Here every kind is a random order of all rows."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"


def shuffles(value: Any) -> bool:
    """Whether a data set in files is shuffled: a boolean, or a kind of Shuffle."""
    return value if isinstance(value, bool) else bool(Shuffle(value))


def text(path: Path) -> str:
    """The text of a file of UTF-8, with line ends as they are. Raises MSC0870."""
    try:
        return content(path).decode("utf-8-sig")
    except OSError as error:
        raise corrupt(path, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise corrupt(path, f"byte {error.start} is not UTF-8") from None


def lines(path: Path) -> list[str]:
    """The lines of a file, which end at line feeds and nowhere else, as MindSpore's do: other marks belong to them."""
    return text(path).split("\n")


def string(value: str, path: Path, line: int) -> str:
    """The string. Raises MSC0870 for what no array of NumPy's keeps."""
    if value.endswith("\0"):
        raise corrupt(path, f"line {line}: a text ends with a NUL character, which arrays of strings do not keep")
    return value


_LARGEST_FIELD = 2**31 - 1
_CSV_LIMIT = threading.Lock()


def records(path: Path, delimiter: str, most: int | None = None) -> list[tuple[int, list[str]]]:
    """The first records of a CSV file that are not empty, with the numbers of their last lines. Raises MSC0870.

    Python's reader has one limit of the length of fields for all of the process: it is lifted while this reads.
    """
    with _CSV_LIMIT:
        limit = csv.field_size_limit(_LARGEST_FIELD)
        try:
            reader = csv.reader(io.StringIO(text(path), newline=""), delimiter=delimiter, strict=True)
            try:
                return list(islice(((reader.line_num, record) for record in reader if record), most))
            except csv.Error as error:
                raise corrupt(path, f"line {reader.line_num}: {error}") from None
        finally:
            csv.field_size_limit(limit)


class TextFileDataset(IndexedDataset):
    """The lines of files that are not empty, as strings in the column `text`. A line ends at a line feed only."""

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
        unused("TextFileDataset", cache=cache)
        super().__init__(("text",), None, shuffles(shuffle), num_samples, num_shards, shard_id, num_parallel_workers)
        self._files = arguments.files("dataset_files", dataset_files)

    @cached_property
    def _lines(self) -> list[str]:
        numbered = ((path, k, line) for path in self._files for k, line in enumerate(lines(path), 1))
        return [string(line, path, k) for path, k, line in numbered if line]

    def total(self) -> int:
        return len(self._lines)

    def arrays(self) -> Sequence[Array | list[str]] | None:
        return [self._lines]

    def row(self, index: int) -> Row:
        return (np.asarray(self._lines[index]),)


class CSVDataset(IndexedDataset):
    """Files of comma-separated values. The first record names the columns, unless `column_names` does.

    Fields in quotes keep their line breaks.

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
        unused("CSVDataset", cache=cache)
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
        found = records(self._files[0], self._delimiter, 1)
        if not found:
            raise corrupt(self._files[0], "it has no first line that names columns")
        first = found[0][1]
        return names(f"the first line of '{self._files[0]}'", [name.strip() for name in first])

    @cached_property
    def _values(self) -> list[Array | list[str]]:
        """The columns of all files: arrays of numbers, lists of strings."""
        parts = zip(*(self._read(path) for path in self._files), strict=True)
        return [
            np.concatenate(part) if isinstance(part[0], np.ndarray) else [text for texts in part for text in texts]
            for part in parts
        ]

    def _read(self, path: Path) -> list[Array | list[str]]:
        """The columns of a file; with a mistake field by field, so that the first one is told."""
        found = records(path, self._delimiter)[1 if self._has_header else 0 :]
        try:
            fields = zip(*(record for _, record in found), strict=True) if found else [()] * len(self.columns)
            return [self._column(k, values) for k, values in zip(range(len(self.columns)), fields, strict=True)]
        except (ValueError, OverflowError, MscError):
            return self._one_by_one(path, found)

    def _column(self, place: int, fields: Sequence[str]) -> Array | list[str]:
        default = "" if self._defaults is None else self._defaults[place]
        if isinstance(default, int):
            return np.array([int(field.strip() or default) for field in fields], np.int32)
        if isinstance(default, float):
            with np.errstate(over="ignore"):  # What is too large for Float32 is infinite.
                return np.array([float(field.strip() or default) for field in fields]).astype(np.float32)
        return [string(field or str(default), self._files[0], 0) for field in fields]

    def _one_by_one(self, path: Path, found: list[tuple[int, list[str]]]) -> list[Array | list[str]]:
        columns: list[list[Array]] = [[] for _ in self.columns]
        for line, record in found:
            if len(record) != len(self.columns):
                raise corrupt(path, f"line {line} has {len(record)} fields, not {len(self.columns)}")
            for k, (column, field) in enumerate(zip(columns, record, strict=True)):
                column.append(self._value(k, field, path, line))
        return [[v.item() for v in column] if column[0].dtype.kind == "U" else np.stack(column) for column in columns]

    def _value(self, place: int, field: str, path: Path, line: int) -> Array:
        default = "" if self._defaults is None else self._defaults[place]
        kind = np.int32 if isinstance(default, int) else np.float32 if isinstance(default, float) else np.str_
        if kind is np.str_:
            return np.asarray(string(field or str(default), path, line))
        try:
            return np.asarray(field.strip() or default, kind)
        except (ValueError, OverflowError):
            wanted = "an integer" if kind is np.int32 else "a number"
            raise corrupt(path, f"line {line}: {field!r} in column '{self.columns[place]}' is not {wanted}") from None

    def total(self) -> int:
        return len(self._values[0])

    def arrays(self) -> Sequence[Array | list[str]] | None:
        return self._values if self.total() else None

    def row(self, index: int) -> Row:
        return tuple(np.asarray(values[index]) for values in self._values)
