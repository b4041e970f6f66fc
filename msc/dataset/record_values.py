"""Values of MindRecord's rows as bytes: see `msc.dataset.mindrecord`."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from msc.dataset.values import Array
from msc.frontend.errors import ApiError, ApiTypeError
from msc.support.argument_values import described

NUMBERS = {"int32": "<i4", "int64": "<i8", "float32": "<f4", "float64": "<f8"}
_TYPES = (*NUMBERS, "string", "bytes")
_WIDTHS = (np.int8, np.int16, np.int32, np.int64)


def packed(value: Any) -> bytes:
    """A number or a text in MessagePack. Source: https://github.com/msgpack/msgpack/blob/master/spec.md."""
    if isinstance(value, str):
        data = value.encode()
        size = len(data)
        if size < 32:
            return bytes([0xA0 | size]) + data
        code, form = next(
            (c, f) for c, f, most in ((0xD9, ">B", 8), (0xDA, ">H", 16), (0xDB, ">I", 32)) if size < 1 << most
        )
        return bytes([code]) + struct.pack(form, size) + data
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if 0 <= value < 128:
        return bytes([value])
    return b"\xd3" + struct.pack(">q", value)


_NUMBER_FORMS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_TEXT_FORMS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}


def _unpacked(data: bytes, at: int) -> tuple[Any, int]:
    """A value of MessagePack and where it ends. Raises ValueError, IndexError, struct.error."""
    code = data[at]
    at += 1
    if code < 0x80 or code >= 0xE0:
        return code - 256 if code >= 0xE0 else code, at
    if code in _NUMBER_FORMS:
        form = _NUMBER_FORMS[code]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if code & 0xE0 == 0xA0:
        size = code & 0x1F
    elif code in _TEXT_FORMS:
        form = _TEXT_FORMS[code]
        (size,) = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
    else:
        raise ValueError(f"byte {code:#x} begins no number or text")
    if at + size > len(data):
        raise ValueError("a text ends beyond its row")
    return data[at : at + size].decode(), at + size


def _fields(data: bytes) -> dict[str, Any]:
    """The map of a raw row."""
    if data[0] & 0xF0 == 0x80:
        count, at = data[0] & 0x0F, 1
    elif data[0] == 0xDE:
        count, at = struct.unpack_from(">H", data, 1)[0], 3
    else:
        raise ValueError("a row of raw fields is no map")
    found: dict[str, Any] = {}
    for _ in range(count):
        name, at = _unpacked(data, at)
        found[name], at = _unpacked(data, at)
    return found


def narrowed(values: Array) -> bytes:
    """Integers, each in as few bytes as it needs."""
    flat = values.reshape(-1)
    size = np.where(flat < 0, ~flat, flat)  # Of a width w fits what is below 2^(w-1).
    kinds = (size[:, None] >= np.array([1 << 7, 1 << 15, 1 << 31])).sum(1)
    bits = np.zeros(-(-len(flat) // 4) * 4, np.uint8)
    bits[: len(flat)] = kinds
    widths = (bits.reshape(-1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(1, dtype=np.uint8).tobytes()
    parts = [int(v).to_bytes(1 << int(k), "little", signed=True) for v, k in zip(flat, kinds, strict=True)]
    return struct.pack(">I", len(flat)) + widths + b"".join(parts)


def widened(data: bytes) -> Array:
    """The integers of `narrowed`. Raises ValueError, struct.error."""
    (count,) = struct.unpack_from(">I", data)
    start = 4 + -(-count // 4)
    bits = np.frombuffer(data, np.uint8, start - 4, 4)
    kinds = ((bits[:, None] >> np.array([6, 4, 2, 0], np.uint8)) & 3).reshape(-1)[:count]
    ends = np.cumsum(1 << kinds.astype(np.int64)) + start
    if (ends[-1] if count else start) != len(data):
        raise ValueError("packed integers have another length")
    made = np.zeros(count, np.int64)
    raw = np.frombuffer(data, np.uint8)
    for kind, width in enumerate(_WIDTHS):
        (chosen,) = np.nonzero(kinds == kind)
        if chosen.size:
            size = 1 << kind
            made[chosen] = np.ascontiguousarray(raw[ends[chosen, None] - size + np.arange(size)]).view(width)[:, 0]
    return made


class MindRecordSchema:
    """Fields with their types: numbers and strings are raw, bytes and arrays blobs. Raises MSC1311."""

    def __init__(self, fields: Any) -> None:
        if not isinstance(fields, Mapping) or not fields:
            raise wrong("a schema is a dictionary of fields", 'as in {"label": {"type": "int32"}}')
        self.fields: dict[str, dict[str, Any]] = {}
        for name in sorted(cast("Mapping[str, Any]", fields)):
            entry: Any = fields[name]
            kind = entry.get("type") if isinstance(entry, Mapping) else None
            shape = entry.get("shape") if isinstance(entry, Mapping) else None
            if not str(name).isidentifier():
                raise wrong(f"{described(name)} is no name of a field", "letters, digits and _")
            if kind not in _TYPES:
                raise wrong(f"field '{name}' has type {described(kind)}", f"there are {', '.join(_TYPES)}")
            if shape is not None and (kind not in NUMBERS or not all(type(n) is int for n in shape)):
                raise wrong(f"field '{name}' of {kind} has the shape {shape}", "arrays of numbers have shapes")
            self.fields[name] = {"type": kind} if shape is None else {"shape": list(shape), "type": kind}
        self.blobs = [n for n, entry in self.fields.items() if "shape" in entry or entry["type"] == "bytes"]
        self.raw = [n for n in self.fields if n not in self.blobs]

    def encoded(self, row: Any) -> tuple[bytes, bytes]:
        """The raw fields and the blobs of a row."""
        if not isinstance(row, Mapping) or set(cast("Mapping[str, Any]", row)) != set(self.fields):
            given = sorted(map(str, row)) if isinstance(row, Mapping) else described(row)
            raise wrong(f"a row has {given}", f"a dictionary of {', '.join(self.fields)}")
        entries = [packed(n) + packed(self._number(n, row[n])) for n in self.raw]
        head = bytes([0x80 | len(entries)]) if len(entries) < 16 else b"\xde" + struct.pack(">H", len(entries))
        blobs = [self._blob(n, row[n]) for n in self.blobs]
        whole = blobs[0] if len(blobs) == 1 else b"".join(struct.pack(">Q", len(b)) + b for b in blobs)
        return head + b"".join(entries), whole

    def _number(self, name: str, value: Any) -> Any:
        kind = self.fields[name]["type"]
        value = value.item() if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0 else value
        if kind == "string":
            fits = isinstance(value, str)
        elif kind.startswith("int"):
            limit = 1 << (int(kind[3:]) - 1)
            fits = isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        else:
            fits = isinstance(value, float | int) and not isinstance(value, bool)
            value = float(value) if fits else value
        if not fits:
            raise wrong(f"field '{name}' is {described(value)}", f"a value of {kind}")
        return value

    def _blob(self, name: str, value: Any) -> bytes:
        entry = self.fields[name]
        if entry["type"] == "bytes":
            if isinstance(value, bytes | bytearray):
                return bytes(value)
            if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 1:
                return value.tobytes()
            raise wrong(f"field '{name}' is {described(value)}", "bytes")
        array, shape = np.asarray(value), entry["shape"]
        known = [n for n in shape if n != -1]
        fits = array.dtype == entry["type"] and (
            array.shape == tuple(shape) if -1 not in shape else array.size % max(int(np.prod(known)), 1) == 0
        )
        if not fits:
            raise wrong(f"field '{name}' is {array.dtype} of shape {list(array.shape)}", f"{entry['type']} of {shape}")
        return narrowed(array) if array.dtype.kind == "i" else np.ascontiguousarray(array).tobytes()

    def decoded(self, raw: bytes, blob: bytes) -> dict[str, Any]:
        """The values of a row: numbers, texts, bytes and arrays. Raises ValueError, KeyError, struct.error."""
        values, at = _fields(raw), 0
        found: dict[str, Any] = {n: values[n] for n in self.raw}
        for name in self.blobs:
            size = len(blob)
            if len(self.blobs) > 1:
                (size,) = struct.unpack_from(">Q", blob, at)
                at += 8
            part, at = blob[at : at + size], at + size
            if at > len(blob):
                raise ValueError(f"field '{name}' ends beyond its row")
            entry = self.fields[name]
            if entry["type"] == "bytes":
                found[name] = part
                continue
            kind = np.dtype(NUMBERS[entry["type"]])
            flat = widened(part).astype(kind) if kind.kind == "i" else np.frombuffer(part, kind)
            found[name] = flat.reshape(entry["shape"])
        return found


def wrong(message: str, wanted: str) -> ApiError:
    """The error of rows that do not fit."""
    return ApiTypeError("MSC1311", f"MindRecord: {message}", help=wanted)
