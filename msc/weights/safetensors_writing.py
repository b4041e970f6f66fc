"""Writing safetensors files: the arrays streamed, never joined."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from msc.dialects.arrays import Array, dtype_text
from msc.support.files import replacing
from msc.support.plain_files import opened
from msc.weights.safetensors_file import DTYPES

_CODES = {name: code for code, name in DTYPES.items()}
_CHUNK_BYTES = 1 << 24
_ALIGNMENT = 8


def write_safetensors(arrays: Mapping[str, Array], path: Path) -> None:
    """Write arrays as a safetensors file, atomically, a piece at a time. Raises MSC0004."""
    with replacing(path) as file:
        write_tensors(arrays, file)


def write_tensors(arrays: Mapping[str, Array], file: IO[bytes]) -> None:
    """Write arrays in the format to an open file, a piece at a time."""
    header = _header(arrays)
    file.write(len(header).to_bytes(8, "little"))
    file.write(header)
    for array in arrays.values():
        _write_array(file, array)


def is_written_here(path: Path) -> bool:
    """Whether msc wrote a safetensors file. Raises OSError."""
    with opened(path) as file:
        return file.read(8 + len(_MADE))[8:] == _MADE


_MADE = b'{"__metadata__":{"made_by":"msc"}'
"""How the header begins."""


def _header(arrays: Mapping[str, Array]) -> bytes:
    entries: dict[str, object] = json.loads(_MADE + b"}")
    offset = 0
    for name, array in arrays.items():
        end = offset + array.nbytes
        code = _CODES[dtype_text(array.dtype)]
        entries[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % _ALIGNMENT)


def _write_array(file: IO[bytes], array: Array) -> None:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, _CHUNK_BYTES):
        file.write(flat[start : start + _CHUNK_BYTES].data)
