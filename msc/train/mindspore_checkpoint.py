"""MindSpore's own checkpoints, which are protobuf messages, written, and read without trusting them.

    Checkpoint { repeated Value value = 1; }
    Value { string tag = 1; TensorProto tensor = 2; }
    TensorProto { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; }

A large tensor stands in several entries of one tag, whose contents follow each other. Dims of [0] are a number.
Source: MindSpore, mindspore/train/checkpoint.proto; https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from msc.frontend.dtypes import as_dtype, by_name
from msc.frontend.errors import ApiValueError
from msc.support.arrays import Array
from msc.support.diagnostics import MscError
from msc.support.escaping import shown
from msc.support.wire_format import MalformedError, bytes_field, fields, integer_field, read_varint, submessage

_CHECKSUM = b"crc_num"
_NUMBER_BYTES = 10
_CHECKSUM_BYTES = len(_CHECKSUM) + _NUMBER_BYTES
_LARGEST_RANK = 32
_LARGEST = 256 << 20
"""Bytes of a tensor in one entry: a message of protocol buffers has less than 2 GiB."""


@dataclass
class CheckpointEntry:
    """What is known of a tag so far."""

    type_name: str
    dims: list[int]
    contents: list[memoryview]


def tensors_message(arrays: Mapping[str, Array]) -> bytes:
    """The checkpoint of tensors by tag."""
    return b"".join(part for tag, array in arrays.items() for part in _written(tag, array))


def _written(tag: str, array: Array) -> Iterable[bytes]:
    data, dims = np.ascontiguousarray(array).tobytes(), b"".join(integer_field(1, size) for size in array.shape)
    head = dims + bytes_field(2, str(as_dtype(array.dtype)).encode())
    for start in range(0, max(len(data), 1), _LARGEST):
        tensor = head + bytes_field(3, data[start : start + _LARGEST])
        yield bytes_field(1, bytes_field(1, tag.encode()) + bytes_field(2, tensor))


def checksum(data: bytes) -> bytes:
    """What follows a checkpoint whose reader is to compare its CRC-32."""
    return _CHECKSUM + zlib.crc32(data).to_bytes(_NUMBER_BYTES, "big")


def without_checksum(file: str) -> MscError:
    """The error of a file that should have a checksum."""
    return ApiValueError("MSC0889", f"checkpoint {file} has no checksum", help="save_checkpoint(..., crc_check=True)")


def read_tensors(
    content: bytes | memoryview,
    file: str,
    wanted: Callable[[str], bool] = lambda name: True,
    crc_check: bool = False,
) -> dict[str, Array]:
    """The tensors of a checkpoint by tag, those that are wanted. Raises MSC0830 for what is none.

    A checkpoint may end with the CRC-32 of what stands before, which is checked; with `crc_check` it must (MSC0889).
    """
    data = memoryview(content)
    if bytes(data[-_CHECKSUM_BYTES:-_NUMBER_BYTES]) == _CHECKSUM:
        data, number = data[:-_CHECKSUM_BYTES], data[-_NUMBER_BYTES:]
        if zlib.crc32(data) != int.from_bytes(number, "big"):
            raise corrupt(file, "its checksum (crc_num) is another: the file was damaged or changed")
    elif crc_check:
        raise without_checksum(file)
    entries: dict[str, CheckpointEntry] = {}
    try:
        for number, value in fields(data):
            if number == 1:
                _add(entries, submessage(value))
    except (MalformedError, UnicodeDecodeError) as error:
        raise corrupt(file, f"it is neither safetensors nor a checkpoint of MindSpore ({error})") from None
    return {tag: _array(tag, entry, file) for tag, entry in entries.items() if entry.type_name != "str" and wanted(tag)}


def corrupt(file: str, reason: str) -> MscError:
    """The error of a checkpoint that cannot be read."""
    return ApiValueError("MSC0830", f"checkpoint {file} cannot be read: {reason}")


def _add(entries: dict[str, CheckpointEntry], value: memoryview) -> None:
    tag, tensor = None, None
    for number, field in fields(value):
        if number == 1:
            tag = str(submessage(field), "utf-8")
        elif number == 2:
            tensor = submessage(field)
    if tag is None or tensor is None:
        raise MalformedError("an entry has no tag or no tensor")
    part = _tensor(tensor)
    known = entries.setdefault(tag, CheckpointEntry(part.type_name, part.dims, []))
    known.contents += part.contents


def _tensor(message: memoryview) -> CheckpointEntry:
    entry = CheckpointEntry("", [], [])
    for number, field in fields(message):
        if number == 1 and isinstance(field, int):
            entry.dims.append(field)
        elif number == 1:
            place, packed = 0, submessage(field)
            while place < len(packed):
                size, place = read_varint(packed, place)
                entry.dims.append(size)
        elif number == 2:
            entry.type_name = str(submessage(field), "utf-8")
        elif number == 3:
            entry.contents.append(submessage(field))
    return entry


def _array(tag: str, entry: CheckpointEntry, file: str) -> Array:
    try:
        dtype = by_name(entry.type_name).numpy
    except MscError:
        raise corrupt(file, f"'{shown(tag)}' has element type {entry.type_name!r}") from None
    data = b"".join(entry.contents)
    shape = () if entry.dims == [0] and len(data) == dtype.itemsize else tuple(entry.dims)
    if len(shape) > _LARGEST_RANK or math.prod(n or 1 for n in shape) >= 1 << 59:
        raise corrupt(file, f"'{shown(tag)}' has a shape of {len(shape)} axes that no tensor has")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise corrupt(file, f"'{shown(tag)}' is {entry.type_name} of {list(shape)}, but has {len(data)} bytes")
    return np.frombuffer(data, dtype).reshape(shape)
