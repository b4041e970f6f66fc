"""MindRecord: MindSpore's files of rows, read and written; MindSpore 2.10 reads what is written here, and the reverse.

A file has a header of JSON in its first `header_size` bytes, then pages of `page_size` bytes, of which each holds raw
fields (numbers and strings, as MessagePack) or blobs (bytes and arrays). Beside it lies `NAME.db`, an SQLite table of
where each row is. With n shards there are n such pairs, NAME0 and so on; each header names them all.

    raw row    u64 length, then a map of fields
    blob row   u64 length, then blobs in the order of their names, each behind its length in big-endian u64 if there are
               several; integers of arrays are packed: u32 count (big-endian), two bits each for the width, the values
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from msc.dataset import arguments, config
from msc.dataset.arguments import names, refuse
from msc.dataset.base import Dataset
from msc.dataset.record_values import NUMBERS, MindRecordSchema, packed, wrong
from msc.dataset.runs import EpochRun
from msc.dataset.sources import IndexedDataset
from msc.dataset.text_files import shuffles
from msc.dataset.values import Array, Row
from msc.frontend.errors import ApiError, ApiValueError
from msc.frontend.settings import unused
from msc.support import plain_files
from msc.support.argument_values import described, file_path

_SQL = {"int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL", "string": "TEXT"}
_MOST_SHARDS = 1000
_INDEX = (
    "ROW_ID PAGE_ID_RAW PAGE_OFFSET_RAW PAGE_OFFSET_RAW_END ROW_GROUP_ID PAGE_ID_BLOB PAGE_OFFSET_BLOB "
    "PAGE_OFFSET_BLOB_END"
).split()


def _broken(path: Path, reason: str, advice: str | None = None) -> ApiError:
    return ApiValueError("MSC1310", f"'{path}' cannot be read: {reason}", help=advice)


# Reading.


class _Shard:
    """A file and its index, checked: what the header, the index and the length of the file say fits together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._data: Any = plain_files.mapped(path)
            (size,) = struct.unpack_from("<Q", self._data)
            self.header: dict[str, Any] = json.loads(bytes(self._data[8 : 8 + min(size, 1 << 26)]))
            self.schema = MindRecordSchema(self.header["schema"][0]["schema"])
            self.addresses = [str(Path(name).name) for name in self.header["shard_addresses"]]
            pages = self.header["page"]
            self.count = sum(p["end_row_id"] - p["start_row_id"] for p in pages if p["page_type"] == "BLOB_DATA")
            self._sizes = int(self.header["header_size"]), int(self.header["page_size"])
        except OSError as error:
            raise _broken(path, error.strerror or str(error)) from None
        except (ValueError, KeyError, TypeError, IndexError, struct.error, UnicodeDecodeError, ApiError):
            raise _broken(path, "it does not begin with the header of a MindRecord file") from None
        self.rows = self._index()

    def _index(self) -> Array:
        index = self.path.with_name(self.path.name + ".db")
        advice = "a MindRecord file and its .db are written together, and go together"
        if not index.is_file():
            raise _broken(index, "there is no such index", advice)
        try:
            with closing(sqlite3.connect(f"file:{_quoted(index)}?mode=ro&immutable=1", uri=True)) as base:
                (named,) = base.execute("SELECT NAME FROM SHARD_NAME").fetchone()
                found = base.execute(f"SELECT {', '.join(_INDEX)} FROM INDEXES ORDER BY ROW_ID").fetchall()
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise _broken(index, f"it is no index of MindRecord ({error})", advice) from None
        try:
            rows = np.asarray(found, np.int64).reshape(-1, len(_INDEX))
        except (ValueError, TypeError, OverflowError):
            raise _broken(index, "it holds what is no number", advice) from None
        if named not in (self.path.name, *self.addresses):
            raise _broken(index, f"it is the index of '{named}'", advice)
        if len(rows) != self.count or not np.array_equal(rows[:, 0], np.arange(len(rows))):
            raise _broken(index, f"it has {len(rows)} rows, the file {self.count}", advice)
        header, page = self._sizes
        first = header + rows[:, (1, 5)] * page + rows[:, (2, 6)]
        last = first + rows[:, (3, 7)] - rows[:, (2, 6)]
        if rows.size and ((rows < 0).any() or (last < first).any() or last.max() > len(self._data)):
            raise _broken(index, "it names places outside of the file", advice)
        return np.stack([first, last], -1)

    def row(self, number: int) -> dict[str, Any]:
        """The values of a row. Raises MSC1310."""
        parts: list[bytes] = []
        try:
            for first, last in self.rows[number]:
                data = bytes(self._data[int(first) : int(last)])
                if len(data) >= 8 and struct.unpack_from("<Q", data)[0] != len(data) - 8:
                    raise ValueError("its length is another one than the index says")
                parts.append(data[8:])
            return self.schema.decoded(parts[0], parts[1])
        except (ValueError, KeyError, IndexError, struct.error, TypeError) as error:
            raise _broken(self.path, f"row {number} is damaged ({error})") from None


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))


def _shards(dataset_files: Any) -> list[_Shard]:
    """The shards of one name, all that its header names, or those of a list."""
    paths = arguments.files("dataset_files", dataset_files)
    shards = [_Shard(path) for path in paths]
    if not isinstance(dataset_files, list | tuple):
        path = paths[0]
        shards = (
            [_Shard(path.with_name(name)) for name in shards[0].addresses] if len(shards[0].addresses) > 1 else shards
        )
    for shard in shards:
        if shard.schema.fields != shards[0].schema.fields:
            raise _broken(shard.path, f"it has other fields than '{shards[0].path}'")
    return shards


class MindDataset(IndexedDataset):
    """The rows of MindRecord files: a name stands for all shards that its header names, a list for its files.

    Numbers have their types, `bytes` are arrays of UInt8. `padded_sample` is a row that comes `num_padded` times behind
    the others. Raises MSC1310.
    """

    def __init__(
        self,
        dataset_files: Any,
        columns_list: Any = None,
        num_parallel_workers: int | None = None,
        shuffle: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sampler: Any = None,
        padded_sample: Mapping[str, Any] | None = None,
        num_padded: int | None = None,
        num_samples: int | None = None,
        cache: object = None,
    ) -> None:
        unused("MindDataset", cache=cache)
        self._shards_read = _shards(dataset_files)
        schema = self._shards_read[0].schema
        columns = tuple(schema.fields) if columns_list is None else names("columns_list", columns_list)
        arguments.known("columns_list", columns, tuple(schema.fields))
        mode = None if shuffle is None else shuffles(shuffle)
        super().__init__(columns, sampler, mode, num_samples, num_shards, shard_id, num_parallel_workers)
        self._ends = np.cumsum([shard.count for shard in self._shards_read])
        if (padded_sample is None) != (num_padded is None):
            refuse("num_padded", num_padded, "an integer beside padded_sample: they are given together")
        self._padding = None if padded_sample is None else dict(padded_sample)
        self._padded = arguments.count("num_padded", num_padded, 0) if num_padded is not None else 0

    def total(self) -> int:
        return int(self._ends[-1]) + self._padded

    def row(self, index: int) -> Row:
        if index >= self._ends[-1]:
            assert self._padding is not None
            values = self._padding
        else:
            number = int(np.searchsorted(self._ends, index, "right"))
            values = self._shards_read[number].row(index - (int(self._ends[number - 1]) if number else 0))
        return tuple(self._value(name, values[name]) for name in self._columns)

    def _value(self, name: str, value: Any) -> Array:
        entry = self._shards_read[0].schema.fields[name]
        if entry["type"] == "bytes":
            return np.frombuffer(bytes(value), np.uint8)
        return np.asarray(value, None if entry["type"] == "string" else entry["type"])


class FileReader:
    """Rows of MindRecord files as dictionaries, one after the other: `for row in reader.get_next()`."""

    def __init__(self, file_name: Any, num_consumer: int = 4, columns: Any = None, operator: object = None) -> None:
        unused("FileReader", operator=operator)
        arguments.count("num_consumer", num_consumer)
        self._shards = _shards(file_name)
        fields = tuple(self._shards[0].schema.fields)
        self._columns = fields if columns is None else names("columns", columns)
        arguments.known("columns", self._columns, fields)

    def get_next(self) -> Iterator[dict[str, Any]]:
        """The rows."""
        for shard in self._shards:
            for number in range(shard.count):
                row = shard.row(number)
                yield {name: row[name] for name in self._columns}

    def schema(self) -> dict[str, Any]:
        """The fields with their types."""
        return dict(self._shards[0].schema.fields)

    def len(self) -> int:
        """The number of rows."""
        return sum(shard.count for shard in self._shards)

    def close(self) -> None:
        """Give up the files."""
        self._shards = []


# Writing.


class _ShardWriter:
    """Rows of one shard, written as they come to `NAME.part`, which `finish` makes the file, with header and index."""

    def __init__(self, path: Path, header_size: int, page_size: int) -> None:
        self.path, self._header_size, self._page_size = path, header_size, page_size
        self.index: list[tuple[Any, ...]] = []
        self._pages: list[dict[str, Any]] = []
        self._part = path.with_name(path.name + ".part")
        self._part_of_index = path.with_name(path.name + ".db.part")
        self._file: IO[bytes] = self._part.open("wb")
        self._open: dict[str, int] = {}

    def add(self, raw: bytes, blob: bytes, keys: tuple[Any, ...]) -> None:
        """A row."""
        number = len(self.index)
        blob_page, blob_start = self._put("BLOB_DATA", blob, number)
        raw_page, raw_start = self._put("RAW_DATA", raw, number)
        places = raw_page, raw_start, raw_start + len(raw) + 8, self._pages[blob_page]["page_type_id"], blob_page
        self.index.append((number, *places, blob_start, blob_start + len(blob) + 8, *keys))

    def _put(self, kind: str, data: bytes, number: int) -> tuple[int, int]:
        size = len(data) + 8
        if size > self._page_size:
            raise wrong(
                f"a row has {size:,} bytes", f"at most a page, {self._page_size:,}: set_page_size makes it larger"
            )
        page = self._open.get(kind)
        if page is None or self._pages[page]["page_size"] + size > self._page_size:
            earlier = sum(p["page_type"] == kind for p in self._pages)
            page = self._open[kind] = len(self._pages)
            self._pages.append(
                {
                    "start_row_id": number if kind == "BLOB_DATA" else 0,
                    "end_row_id": number if kind == "BLOB_DATA" else 0,
                    "page_id": page,
                    "page_size": 0,
                    "page_type": kind,
                    "page_type_id": earlier,
                    "row_group_ids": [{"id": earlier if kind == "BLOB_DATA" else 0, "offset": 0}],
                    "shard_id": 0,
                }
            )
        entry = self._pages[page]
        start = entry["page_size"]
        self._file.seek(self._header_size + page * self._page_size + start)
        self._file.write(struct.pack("<Q", len(data)) + data)
        entry["page_size"] += size
        if kind == "BLOB_DATA":
            entry["end_row_id"] = number + 1
        return page, start

    def finish(self, header: Mapping[str, Any], shard: int, columns: Sequence[tuple[str, str]]) -> None:
        """Write the header and the index."""
        for page in self._pages:
            page["shard_id"] = shard
        whole = {**header, "page": self._pages, "shard_id": shard}
        text = json.dumps(whole, separators=(",", ":")).encode()
        if len(text) + 8 > self._header_size:
            raise wrong(f"the header has {len(text):,} bytes", "set_header_size makes room for it")
        self._file.seek(0)
        self._file.write(struct.pack("<Q", len(text)) + text)
        self._file.close()
        keys = "".join(f", INC_{k} INT, {name} {kind}" for k, (name, kind) in enumerate(columns))
        primary = ", ".join(["ROW_ID", *(f"INC_{k}" for k in range(len(columns)))])
        made = ", ".join(f"{name} INT NOT NULL" for name in _INDEX)
        self._part_of_index.unlink(missing_ok=True)
        with closing(sqlite3.connect(self._part_of_index)) as base:
            base.execute(f"CREATE TABLE INDEXES({made}{keys}, PRIMARY KEY({primary}))")
            base.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            base.execute("INSERT INTO SHARD_NAME VALUES (?)", (self.path.name,))
            marks = ", ".join("?" * (len(_INDEX) + 2 * len(columns)))
            base.executemany(f"INSERT INTO INDEXES VALUES ({marks})", self.index)
            base.commit()
        index = self.path.with_name(self.path.name + ".db")
        index.unlink(missing_ok=True)
        self._part.replace(self.path)
        self._part_of_index.replace(index)

    def discard(self) -> None:
        """Leave nothing of what was written; files of that name stay as they were before."""
        with suppress(OSError):  # What is still to be written, the disk may not hold either.
            self._file.close()
        self._part.unlink(missing_ok=True)
        self._part_of_index.unlink(missing_ok=True)


class FileWriter:
    """Writes MindRecord files: `add_schema`, `write_raw_data` of lists of dictionaries, then `commit`.

    With `shard_num` above 1 rows go to the shards in turn. Raises MSC1311, MSC0010.
    """

    def __init__(self, file_name: Any, shard_num: int = 1, overwrite: bool = False) -> None:
        path = file_path("file_name", file_name, writes=True)
        number = arguments.count("shard_num", shard_num)
        if number > _MOST_SHARDS:
            refuse("shard_num", number, f"at most {_MOST_SHARDS}")
        digits = len(str(number - 1))
        named = [path] if number == 1 else [path.with_name(f"{path.name}{k:0{digits}}") for k in range(number)]
        taken = next((p for n in named for p in (n, n.with_name(n.name + ".db")) if p.exists()), None)
        if taken is not None and not overwrite:
            raise ApiValueError("MSC1311", f"MindRecord: there is '{taken}' already", help="overwrite=True replaces it")
        self._paths = named
        self._schema: MindRecordSchema | None = None
        self._desc = ""
        self._indexed: list[str] | None = None
        self._header_size, self._page_size = 1 << 24, 1 << 25
        self._writers: list[_ShardWriter] = []
        self._count = 0

    def set_header_size(self, header_size: int) -> None:
        """Bytes of the header, a power of two from 16 KiB to 128 MiB."""
        self._header_size = _power("header_size", header_size, 14, 27)

    def set_page_size(self, page_size: int) -> None:
        """Bytes of a page, a power of two from 32 KiB to 256 MiB: no row is larger."""
        self._page_size = _power("page_size", page_size, 15, 28)

    def add_schema(self, content: Any, desc: str | None = None) -> int:
        """The fields, as `{"label": {"type": "int32"}, "x": {"type": "float32", "shape": [-1]}}`."""
        self._schema, self._desc = MindRecordSchema(content), desc or ""
        return 0

    def add_index(self, index_fields: Any) -> None:
        """The raw fields that the index holds; all of them by default."""
        found = names("index_fields", index_fields)
        schema = self._known_schema()
        arguments.known("index_fields", found, tuple(schema.raw))
        self._indexed = list(found)

    def _known_schema(self) -> MindRecordSchema:
        if self._schema is None:
            raise wrong("there is no schema yet", "add_schema comes first")
        return self._schema

    def write_raw_data(self, raw_data: Any, parallel_writer: bool = False) -> None:
        """Rows as dictionaries of all fields."""
        unused("FileWriter.write_raw_data", parallel_writer=parallel_writer)
        schema = self._known_schema()
        if not isinstance(raw_data, list):
            raise wrong(f"raw_data is {described(raw_data)}", "a list of dictionaries")
        rows = [(row, *schema.encoded(row)) for row in cast("list[Any]", raw_data)]
        with self._writing():
            for row, raw, blob in rows:
                keys = tuple(v for name in self._keys() for v in (0, _plain(row[name])))
                raw = raw if schema.raw else b"\x81" + packed("id") + packed(0)
                self._writers[self._count % len(self._writers)].add(raw, blob, keys)
                self._count += 1

    def _keys(self) -> list[str]:
        return self._known_schema().raw if self._indexed is None else self._indexed

    @contextmanager
    def _writing(self) -> Generator[None]:
        """The shards are open within. Raises MSC1311 if the disk takes no more, and leaves nothing then."""
        try:
            if not self._writers:
                for path in self._paths:
                    self._writers.append(_ShardWriter(path, self._header_size, self._page_size))
            yield
        except (OSError, sqlite3.Error) as error:
            self.discard()
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ApiError("MSC1311", f"MindRecord: '{self._paths[0]}' cannot be written: {reason}") from None

    def discard(self) -> None:
        """Leave nothing of what was not committed."""
        for writer in self._writers:
            writer.discard()
        self._writers = []

    def commit(self) -> None:
        """Write headers and indexes: the files are whole then."""
        schema = self._known_schema()
        header = {
            "header_size": self._header_size,
            "index_fields": [{"index_field": name, "schema_id": 0} for name in self._keys()],
            "page_size": self._page_size,
            "compression_size": 0,
            "schema": [{"blob_fields": schema.blobs, "desc": self._desc, "schema": schema.fields}],
            "shard_addresses": [path.name for path in self._paths],
            "statistics": None,
            "version": "3.0",
        }
        columns = [(f"{name}_0", _SQL[schema.fields[name]["type"]]) for name in self._keys()]
        with self._writing():
            for shard, writer in enumerate(self._writers):
                writer.finish(header, shard, columns)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


def _power(name: str, value: Any, low: int, high: int) -> int:
    number = arguments.count(name, value)
    if number & (number - 1) or not 1 << low <= number <= 1 << high:
        refuse(name, number, f"a power of two from {1 << low:,} to {1 << high:,}")
    return number


def saved(dataset: Dataset, file_name: Any, num_files: Any, file_type: Any) -> None:
    """Write the rows of an epoch. See `Dataset.save`."""
    if file_type != "mindrecord":
        refuse("file_type", file_type, "'mindrecord'")
    writer = FileWriter(file_name, num_files, overwrite=True)
    schema: dict[str, dict[str, Any]] = {}
    try:
        for row in dataset.rows(EpochRun(config.seed_of_a_run())):
            if not schema:
                schema = {name: _entry(name, value) for name, value in zip(dataset.columns, row, strict=True)}
                writer.add_schema(schema)
            named = zip(dataset.columns, row, strict=True)
            writer.write_raw_data([{name: _storable(value, schema[name]) for name, value in named}])
        if not schema:
            raise wrong("there are no rows to save", "a data set that has some")
        writer.commit()
    except BaseException:
        writer.discard()
        raise


def _entry(name: str, value: Array) -> dict[str, Any]:
    """The field of a column."""
    if value.dtype.kind == "U" and value.ndim == 0:
        return {"type": "string"}
    if value.dtype == np.uint8 and value.ndim == 1:
        return {"type": "bytes"}
    kinds = [k for k, dtype in NUMBERS.items() if np.can_cast(value.dtype, dtype)]
    if value.dtype.kind not in "uifb" or not kinds:
        raise wrong(f"column '{name}' is {value.dtype} of rank {value.ndim}", "numbers, strings of rank 0, and bytes")
    return {"type": kinds[0], "shape": [-1, *value.shape[1:]]} if value.ndim else {"type": kinds[0]}


def _storable(value: Array, entry: Mapping[str, Any]) -> Any:
    if entry["type"] in ("string", "bytes"):
        return str(value) if entry["type"] == "string" else value
    made = value.astype(entry["type"])
    return made if value.ndim else made.item()
