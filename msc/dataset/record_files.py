"""TFRecord files: records of `tf.train.Example`, read by number.

    Example { Features features = 1; }          Features { map<string, Feature> feature = 1; }
    Feature { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; }

Source: tensorflow/core/example/example.proto and feature.proto.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from msc.dataset import arguments
from msc.dataset.arguments import names, refuse
from msc.dataset.images import corrupt
from msc.dataset.sources import IndexedDataset
from msc.dataset.text_files import Shuffle, shuffles
from msc.dataset.values import Array, Row, converted
from msc.frontend.dtypes import as_dtype
from msc.frontend.errors import ApiValueError
from msc.frontend.settings import unused
from msc.support.files import read_source
from msc.support.plain_files import opened
from msc.support.wire_format import MalformedError, fields, read_record, read_varint, record_places, submessage

_BYTES, _FLOATS, _INTEGERS = 1, 2, 3


class Schema:
    """The columns of a TFRecord file, with element types and shapes: from `add_column`, or a file of JSON."""

    def __init__(self, schema_file: str | Path | None = None) -> None:
        self.columns: dict[str, tuple[np.dtype[Any], list[int] | None]] = {}
        if schema_file is not None:
            path = arguments.files("schema_file", schema_file)[0]
            try:
                self.parse_columns(json.loads(read_source(path))["columns"])
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise corrupt(path, f"it is not a schema in JSON ({error})") from None

    def add_column(self, name: str, de_type: Any, shape: list[int] | None = None) -> None:
        """A column by name, with its element type and, if it is not of rank 1, its shape (-1: from the data)."""
        sizes: Any = shape or []
        if not isinstance(sizes, list | tuple) or not all(type(n) is int and n >= -1 for n in sizes):
            refuse("shape", shape, "a list of sizes, of which one may be -1")
        kind = np.dtype(np.str_) if de_type in ("string", str) else as_dtype(de_type).numpy
        self.columns[names("name", name)[0]] = (kind, None if shape is None else list(sizes))

    def parse_columns(self, columns: Any) -> None:
        """Columns from what JSON holds: a dictionary by name, or a list of dictionaries with `name`."""
        entries: Any = (
            [{"name": n, **e} for n, e in cast("Mapping[str, Any]", columns).items()]
            if isinstance(columns, Mapping)
            else columns
        )
        for entry in entries:
            self.add_column(entry["name"], entry["type"], entry.get("shape"))


class TFRecordDataset(IndexedDataset):
    """The features of `tf.train.Example`s in record files; each is a column of rank 1.

    `schema` (a Schema or its file) gives columns their types and shapes; without it they are those of the first record,
    Int64, Float32, and bytes as strings or, where they are no text, UInt8. `columns_list` takes some columns. Checksums
    are checked. Raises MSC0870.
    """

    def __init__(
        self,
        dataset_files: Any,
        schema: Any = None,
        columns_list: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        shard_equal_rows: bool = False,
        cache: object = None,
        compression_type: str | None = None,
    ) -> None:
        unused("TFRecordDataset", cache=cache, shard_equal_rows=shard_equal_rows)
        if compression_type:
            refuse("compression_type", compression_type, "None: unpack the files first")
        self._files = arguments.files("dataset_files", dataset_files)
        self._schema = (
            schema.columns if isinstance(schema, Schema) else None if schema is None else Schema(schema).columns
        )
        known = tuple(self._schema) if self._schema is not None else tuple(sorted(self._example_features()))
        columns = known if columns_list is None else names("columns_list", columns_list)
        arguments.known("columns_list", columns, known)
        super().__init__(columns, None, shuffles(shuffle), num_samples, num_shards, shard_id, num_parallel_workers)

    @cached_property
    def _places(self) -> list[tuple[Path, int, int]]:
        found: list[tuple[Path, int, int]] = []
        for path in self._files:
            try:
                with opened(path) as file:
                    found += [(path, *place) for place in record_places(file, os.fstat(file.fileno()).st_size)]
            except OSError as error:
                raise corrupt(path, error.strerror or str(error)) from None
            except MalformedError as error:
                raise corrupt(path, f"it is not a file of records ({error})") from None
        return found

    def _example_features(self) -> dict[str, Any]:
        if not self._places:
            raise ApiValueError("MSC0870", f"'{self._files[0]}' has no records that say what columns there are")
        return self._features(0)

    def _features(self, index: int) -> dict[str, Any]:
        path, place, length = self._places[index]
        try:
            with opened(path) as file:
                return _example(memoryview(read_record(file, place, length)))
        except OSError as error:
            raise corrupt(path, error.strerror or str(error)) from None
        except (MalformedError, UnicodeDecodeError, OverflowError) as error:
            raise corrupt(path, f"record {index} is no tf.train.Example ({error})") from None

    def total(self) -> int:
        return len(self._places)

    def row(self, index: int) -> Row:
        features = self._features(index)
        return tuple(self._column(name, features, index) for name in self.columns)

    def _column(self, name: str, features: Mapping[str, Any], index: int) -> Array:
        path = self._places[index][0]
        if name not in features:
            raise corrupt(path, f"record {index} has no feature '{name}'")
        value = _array(features[name])
        if self._schema is None:
            return self._like_the_first(name, value, index)
        kind, shape = self._schema[name]
        if kind.kind != "U" and value.dtype.kind == "U":
            value = _bytes(features[name])
        value = value if kind.kind == "U" else converted(value, kind, f"feature '{name}' of record {index}")
        if shape is None:
            return value
        fixed = math.prod(n for n in shape if n != -1) or 1
        if shape.count(-1) > 1 or (value.size % fixed if -1 in shape else value.size != fixed):
            raise corrupt(path, f"record {index}: feature '{name}' has {value.size} values, not shape {shape}")
        return value.reshape(shape)

    def _like_the_first(self, name: str, value: Array, index: int) -> Array:
        """A value whose element type is that of the first record, which says the types of columns without a schema."""
        kind = self._first_values[name].dtype
        if kind.kind == value.dtype.kind or not value.size:
            return value.astype(kind) if not value.size else value
        own, first = ("text" if k.kind == "U" else str(as_dtype(k)) for k in (value.dtype, kind))
        raise ApiValueError(
            "MSC0870",
            f"'{self._places[index][0]}': feature '{name}' is {own} in record {index}, and {first} in the first one",
            help=f"a schema says what it is: Schema().add_column('{name}', ...); bytes that are no text are 'uint8'",
        )

    @cached_property
    def _first_values(self) -> dict[str, Array]:
        return {name: _array(feature) for name, feature in self._example_features().items()}


def _example(message: memoryview) -> dict[str, Any]:
    """The features of an Example by name: lists of bytes, of floats or of integers."""
    found: dict[str, Any] = {}
    for number, features in fields(message):
        if number != 1:
            continue
        for _, entry in fields(submessage(features)):
            parts = dict(fields(submessage(entry)))
            name = str(submessage(parts.get(1, memoryview(b""))), "utf-8")
            found[name] = _feature(submessage(parts.get(2, memoryview(b""))))
    return found


def _feature(message: memoryview) -> Any:
    for kind, content in fields(message):
        values = [value for number, value in fields(submessage(content)) if number == 1]
        if kind == _BYTES:
            return [bytes(submessage(value)) for value in values]
        if kind == _FLOATS:
            data = b"".join(submessage(value) for value in values)
            if len(data) % 4:
                raise MalformedError(f"floats of {len(data)} bytes")
            return np.frombuffer(data, "<f4")
        if kind == _INTEGERS:
            return np.asarray([n for value in values for n in _integers(value)], np.uint64).astype(np.int64)
    return np.zeros(0, np.float32)


def _integers(value: int | memoryview) -> list[int]:
    if isinstance(value, int):
        return [value & 0xFFFFFFFFFFFFFFFF]
    found: list[int] = []
    place = 0
    while place < len(value):
        number, place = read_varint(value, place)
        found.append(number & 0xFFFFFFFFFFFFFFFF)
    return found


def _array(feature: Any) -> Array:
    if not isinstance(feature, list):
        return feature
    try:
        texts = [item.decode() for item in cast("list[bytes]", feature)]
    except UnicodeDecodeError:
        return _bytes(cast("list[bytes]", feature))
    if any(text.endswith("\0") for text in texts):  # Arrays of strings would lose it.
        return _bytes(cast("list[bytes]", feature))
    return np.asarray(texts, np.str_)


def _bytes(feature: list[bytes]) -> Array:
    return np.frombuffer(b"".join(feature), np.uint8)
