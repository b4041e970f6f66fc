"""The wire format of protocol buffers, and the record files of TensorFlow, without trusting what is read.

Messages of a few types are read and written here; a package for them would be larger than what it replaces.
Sources: https://protobuf.dev/programming-guides/encoding; tensorflow/core/lib/io/record_writer.h.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import IO

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_POLYNOMIAL = 0x82F63B78
"""CRC-32C's, reversed."""
_MASK_DELTA = 0xA282EAD8


class MalformedError(Exception):
    """The bytes are no message, or no record."""


# Reading messages.


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The number and the value of each field of a message. Raises MalformedError."""
    place = 0
    while place < len(message):
        key, place = read_varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = read_varint(message, place)
            yield number, value
        elif kind in (_BYTES, _FIXED64, _FIXED32):
            size, place = read_varint(message, place) if kind == _BYTES else (8 if kind == _FIXED64 else 4, place)
            if size > len(message) - place:
                raise MalformedError("a field is longer than what holds it")
            yield number, message[place : place + size]
            place += size
        else:
            raise MalformedError(f"a field of wire type {kind}")


def read_varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number at a place, and the place after it. Raises MalformedError."""
    value = 0
    for i in range(_LONGEST_VARINT):
        if place >= len(message):
            raise MalformedError("the file ends within a number")
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, place
    raise MalformedError("a number of more than ten bytes")


def submessage(field: int | memoryview) -> memoryview:
    """A field that holds bytes. Raises MalformedError for a number."""
    if isinstance(field, int):
        raise MalformedError("a number where bytes belong")
    return field


# Writing messages.


def varint(number: int) -> bytes:
    """An integer; negative ones as 64 bits."""
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer_field(number: int, value: int) -> bytes:
    """A field of an integer."""
    return varint(number << 3 | _VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field of bytes, of a string or of a message."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def double_field(number: int, value: float) -> bytes:
    """A field of a double."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def float_field(number: int, value: float) -> bytes:
    """A field of a float."""
    return varint(number << 3 | _FIXED32) + struct.pack("<f", value)


# Record files.


def _table() -> tuple[int, ...]:
    found: list[int] = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


_TABLE = _table()


def crc32c_in_python(data: bytes) -> int:
    """The CRC-32C of bytes, one after the other."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


@cache
def crc32c() -> Callable[[bytes], int]:
    """The function of the package `crc32c`, which has instructions for it; without the package Python's."""
    return importlib.import_module("crc32c").crc32c if find_spec("crc32c") else crc32c_in_python


def masked_checksum(data: bytes) -> int:
    """The masked CRC-32C of a record."""
    value = crc32c()(data)
    return ((value >> 15 | value << 17) + _MASK_DELTA) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """A record: its length in 8 bytes, the checksum of these, the data, the checksum of the data."""
    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", masked_checksum(size)) + data + struct.pack("<I", masked_checksum(data))


def record_places(file: IO[bytes], size: int) -> Iterator[tuple[int, int]]:
    """Where the data of each record of a file of `size` bytes begin, and how long they are. Raises MalformedError."""
    place = 0
    while place < size:
        file.seek(place)
        head = file.read(12)
        if len(head) < 12:
            raise MalformedError("it ends within the head of a record")
        length, checksum = struct.unpack("<QI", head)
        if masked_checksum(head[:8]) != checksum:
            raise MalformedError(f"the head of a record at byte {place} has a wrong checksum")
        if place + 16 + length > size:
            raise MalformedError(f"a record at byte {place} is longer than the file")
        yield place + 12, length
        place += 16 + length


def read_record(file: IO[bytes], place: int, length: int) -> bytes:
    """The data of a record. Raises MalformedError if their checksum is wrong."""
    file.seek(place)
    data = file.read(length + 4)
    if len(data) != length + 4 or masked_checksum(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise MalformedError(f"the record at byte {place - 12} has a wrong checksum")
    return data[:-4]
