"""Reading safetensors files without trusting them: mapped data, and a header in which every number is checked.

Format: 8 bytes little-endian length, a JSON header {name: {dtype, shape, data_offsets}}, then the data.
Source: https://github.com/huggingface/safetensors (format section).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from msc.dialects.arrays import Array, numpy_dtype
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.escaping import shown
from msc.support.files import near_file
from msc.support.plain_files import mapped

DTYPES: Mapping[str, str] = {
    "F16": "f16",
    "BF16": "bf16",
    "F32": "f32",
    "F64": "f64",
    "BOOL": "i1",
    "I8": "i8",
    "I16": "i16",
    "I32": "i32",
    "I64": "i64",
    "U8": "ui8",
    "U16": "ui16",
    "U32": "ui32",
    "U64": "ui64",
}
"""Element types of the format that msc computes on."""

MAXIMUM_HEADER_BYTES = 100_000_000
"""The format's own limit."""

_LARGEST_RANK = 32
_MOST_ELEMENTS = 1 << 59
"""Whose bytes can still be counted in 63 bits, whatever their type; sizes of 0 are left out."""


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of a file: `dtype` as the format names it, and where its bytes lie in the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def type_text(self) -> str:
        """As the IR writes it, or with the format's word for an element type that the IR does not have."""
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{DTYPES.get(self.dtype, self.dtype)}>"


class TensorFile:
    """A mapped safetensors file. Raises MSC0301 (no such file) and MSC0302 (not a valid safetensors file)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._data = mapped(path)
        except (OSError, ValueError) as error:
            raise _missing(path, getattr(error, "strerror", None) or str(error)) from error
        length = self._header_length()
        self._start = 8 + length
        header = self._header(length)
        said = header.get("__metadata__")
        self.metadata: Mapping[str, Any] = cast(dict[str, Any], said) if isinstance(said, dict) else {}
        """What the file says of itself."""
        self.entries: Mapping[str, TensorEntry] = self._entries(header)

    def array(self, name: str) -> Array:
        """A read-only view of a tensor's bytes in the file; KeyError if it has no such tensor.

        Raises MSC0302 for an element type that msc does not compute on.
        """
        entry = self.entries[name]
        if entry.dtype not in DTYPES:
            reason = f"'{shown(name)}' has element type {shown(entry.dtype)}; msc reads {', '.join(DTYPES)}"
            raise MscError(Diagnostic("MSC0302", f"'{self.path}' cannot be read: {reason}"))
        dtype = numpy_dtype(DTYPES[entry.dtype])
        if dtype == np.bool_:
            return (
                np.frombuffer(self._data, np.uint8, math.prod(entry.shape), self._start + entry.begin).reshape(
                    entry.shape
                )
                != 0
            )
        flat = np.frombuffer(self._data, dtype, math.prod(entry.shape), self._start + entry.begin)
        return flat.reshape(entry.shape)

    def _header_length(self) -> int:
        if len(self._data) < 8:
            raise self._corrupt(f"it has {len(self._data)} bytes, and the length of the header alone takes 8")
        length = int.from_bytes(self._data[:8], "little")
        if length > MAXIMUM_HEADER_BYTES or length > len(self._data) - 8:
            raise self._corrupt(f"the header should have {length} bytes, but {len(self._data) - 8} follow")
        return length

    def _header(self, length: int) -> dict[str, Any]:
        try:
            header = json.loads(self._data[8 : 8 + length].decode("utf-8"), object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise self._corrupt(f"the header is not JSON: {error}") from error
        if not isinstance(header, dict):
            raise self._corrupt("the header is not a JSON object")
        return cast(dict[str, Any], header)

    def _entries(self, header: dict[str, Any]) -> Mapping[str, TensorEntry]:
        entries = {name: self._entry(name, value) for name, value in header.items() if name != "__metadata__"}
        end, before = 0, ""
        for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
            if entry.begin < end:
                raise self._corrupt(f"the data of '{shown(name)}' and '{shown(before)}' overlap")
            self._check_nothing_between(end, entry.begin)
            end, before = entry.end, name
        self._check_nothing_between(end, len(self._data) - self._start)
        return entries

    def _check_nothing_between(self, end: int, begin: int) -> None:
        """The format has no holes: what no tensor names could be anything, and another reader's tensors."""
        if begin != end:
            raise self._corrupt(f"bytes {end} to {begin} of the data belong to no tensor")

    def _entry(self, name: str, value: object) -> TensorEntry:
        fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
        dtype, shape, offsets = fields.get("dtype"), _sizes(fields.get("shape")), _sizes(fields.get("data_offsets"))
        if not isinstance(dtype, str) or shape is None or offsets is None or len(offsets) != 2:
            raise self._corrupt(f"the entry of '{shown(name)}' is not {{dtype, shape, data_offsets}}")
        entry = TensorEntry(dtype, shape, *offsets)
        self._check_extent(name, entry)
        if len(shape) > _LARGEST_RANK or math.prod(n for n in shape if n) > _MOST_ELEMENTS:
            raise self._corrupt(f"'{shown(name)}' has a shape of {len(shape)} axes that no tensor has")
        return entry

    def _check_extent(self, name: str, entry: TensorEntry) -> None:
        size = len(self._data) - self._start
        if not entry.begin <= entry.end <= size:
            where = f"bytes {entry.begin} to {entry.end}, but the file has {size} bytes of data"
            raise self._corrupt(f"the data of '{shown(name)}' is {where}")
        if entry.dtype in DTYPES:
            expected = math.prod(entry.shape) * numpy_dtype(DTYPES[entry.dtype]).itemsize
            if entry.end - entry.begin != expected:
                what = f"'{shown(name)}', {entry.type_text}"
                raise self._corrupt(f"{what}, has {entry.end - entry.begin} bytes, not {expected}")

    def _corrupt(self, reason: str) -> MscError:
        message = f"'{self.path}' is not a valid safetensors file: {reason}"
        return MscError(Diagnostic("MSC0302", message, help="the file may be truncated; write or download it again"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"'{next(n for n in names if names.count(n) > 1)}' stands twice")
    return result


def _sizes(value: object) -> tuple[int, ...] | None:
    """A list of non-negative integers, or None."""
    if not isinstance(value, list):
        return None
    items = cast(list[object], value)
    sizes = tuple(item for item in items if isinstance(item, int) and not isinstance(item, bool) and item >= 0)
    return sizes if len(sizes) == len(items) else None


def _missing(path: Path, reason: str) -> MscError:
    return MscError(Diagnostic("MSC0301", f"cannot read weights '{path}': {reason}", help=near_file(path)))
