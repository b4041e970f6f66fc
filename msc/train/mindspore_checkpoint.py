"""Reading MindSpore's own checkpoints, which are protobuf messages, without trusting them.

    Checkpoint { repeated Value value = 1; }
    Value { string tag = 1; TensorProto tensor = 2; }
    TensorProto { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; }

A large tensor stands in several entries of one tag, whose contents follow each other. Dims of [0] are a number.
Source: MindSpore, mindspore/train/checkpoint.proto; https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msc.frontend.dtypes import by_name
from msc.frontend.errors import ApiValueError
from msc.support.diagnostics import MscError

Array: TypeAlias = NDArray[Any]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_CHECKSUM = b"crc_num"
_CHECKSUM_BYTES = len(_CHECKSUM) + 10


@dataclass
class Entry:
    """What is known of a tag so far."""

    type_name: str
    dims: list[int]
    contents: list[memoryview]


def read_tensors(data: bytes, file: str) -> dict[str, Array]:
    """The tensors of a checkpoint by tag. Raises MSC0830 for what is none."""
    if data[-_CHECKSUM_BYTES:].startswith(_CHECKSUM):
        data = data[:-_CHECKSUM_BYTES]
    entries: dict[str, Entry] = {}
    try:
        for number, value in _fields(memoryview(data)):
            if number == 1:
                _add(entries, _message(value))
    except (_MalformedError, UnicodeDecodeError) as error:
        raise corrupt(file, f"it is neither safetensors nor a checkpoint of MindSpore ({error})") from None
    return {tag: _array(tag, entry, file) for tag, entry in entries.items() if entry.type_name != "str"}


def corrupt(file: str, reason: str) -> MscError:
    """The error of a checkpoint that cannot be read."""
    return ApiValueError("MSC0830", f"checkpoint {file} cannot be read: {reason}")


class _MalformedError(Exception):
    """The bytes are no message."""


def _add(entries: dict[str, Entry], value: memoryview) -> None:
    tag, tensor = None, None
    for number, field in _fields(value):
        if number == 1:
            tag = str(_message(field), "utf-8")
        elif number == 2:
            tensor = _message(field)
    if tag is None or tensor is None:
        raise _MalformedError("an entry has no tag or no tensor")
    part = _tensor(tensor)
    known = entries.setdefault(tag, Entry(part.type_name, part.dims, []))
    known.contents += part.contents


def _tensor(message: memoryview) -> Entry:
    entry = Entry("", [], [])
    for number, field in _fields(message):
        if number == 1 and isinstance(field, int):
            entry.dims.append(field)
        elif number == 1:
            place, packed = 0, _message(field)
            while place < len(packed):
                size, place = _varint(packed, place)
                entry.dims.append(size)
        elif number == 2:
            entry.type_name = str(_message(field), "utf-8")
        elif number == 3:
            entry.contents.append(_message(field))
    return entry


def _array(tag: str, entry: Entry, file: str) -> Array:
    try:
        dtype = by_name(entry.type_name).numpy
    except MscError:
        raise corrupt(file, f"'{tag}' has element type {entry.type_name!r}") from None
    data = b"".join(entry.contents)
    shape = () if entry.dims == [0] and len(data) == dtype.itemsize else tuple(entry.dims)
    if math.prod(shape) * dtype.itemsize != len(data):
        raise corrupt(file, f"'{tag}' is {entry.type_name} of {list(shape)}, but has {len(data)} bytes")
    return np.frombuffer(data, dtype).reshape(shape)


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The number and the value of each field of a message."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield number, value
        elif kind in (_BYTES, _FIXED64, _FIXED32):
            size, place = _varint(message, place) if kind == _BYTES else (8 if kind == _FIXED64 else 4, place)
            if size > len(message) - place:
                raise _MalformedError("a field is longer than what holds it")
            yield number, message[place : place + size]
            place += size
        else:
            raise _MalformedError(f"a field of wire type {kind}")


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for i in range(_LONGEST_VARINT):
        if place >= len(message):
            raise _MalformedError("the file ends within a number")
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, place
    raise _MalformedError("a number of more than ten bytes")


def _message(field: int | memoryview) -> memoryview:
    if isinstance(field, int):
        raise _MalformedError("a number where bytes belong")
    return field
