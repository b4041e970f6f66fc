"""The seal of an artifact: what stands behind the shared library in its file, which loaders of ELF files ignore.

    shared library | signature as JSON | magic, length of the library, length of the signature, CRC-32 of all before

So a reader knows what an artifact is, for which machine, and that it is whole, before any of it is mapped for
execution: a file that was cut short has no seal, and any other damage does not fit it. The seal is no protection
against an adversary: an artifact is code.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"msc sealed 1\n\0\0\0"
_FOOTER = struct.Struct("<16sQII")
_BLOCK = 1 << 20


class BrokenSeal(ValueError):
    """The file is no artifact, or not whole; the text says which."""


@dataclass(frozen=True)
class Seal:
    """`signature` is the JSON text; the library and it are `library_bytes` and `signature_bytes` long."""

    library_bytes: int
    signature_bytes: int
    checksum: int
    signature: str

    @property
    def file_bytes(self) -> int:
        """Of the library with its seal."""
        return self.library_bytes + self.signature_bytes + _FOOTER.size


def append_seal(library: Path, signature: str) -> None:
    """Seal a shared library that was just built. Raises OSError."""
    text = signature.encode()
    with library.open("r+b") as file:
        length = file.seek(0, os.SEEK_END)
        lengths = struct.pack("<QI", length, len(text))
        file.write(text)
        file.flush()
        checksum = zlib.crc32(lengths, _checksum(file.fileno(), length + len(text)))
        file.write(_FOOTER.pack(_MAGIC, length, len(text), checksum))


def read_seal(descriptor: int, size: int) -> Seal:
    """The seal at the end of the first `size` bytes of an open file. Raises BrokenSeal, OSError."""
    footer = os.pread(descriptor, _FOOTER.size, max(0, size - _FOOTER.size))
    if len(footer) < _FOOTER.size or not footer.startswith(_MAGIC):
        raise BrokenSeal(_why_unsealed(descriptor, size))
    _, library, signature, checksum = _FOOTER.unpack(footer)
    if library + signature + _FOOTER.size != size:
        raise BrokenSeal(f"it has {size} bytes and was written with {library + signature + _FOOTER.size}")
    text = os.pread(descriptor, signature, library)
    return Seal(library, signature, checksum, text.decode("utf-8", "replace"))


def check_seal(descriptor: int, seal: Seal) -> None:
    """Compare all bytes with the checksum. Raises BrokenSeal, OSError."""
    found = _checksum(descriptor, seal.library_bytes + seal.signature_bytes)
    if zlib.crc32(struct.pack("<QI", seal.library_bytes, seal.signature_bytes), found) != seal.checksum:
        raise BrokenSeal("its checksum is wrong: it was damaged or changed since msc wrote it")


def _checksum(descriptor: int, length: int) -> int:
    with mmap.mmap(descriptor, length, prot=mmap.PROT_READ) as data, memoryview(data) as view:
        state = 0
        for start in range(0, length, _BLOCK):
            state = zlib.crc32(view[start : start + _BLOCK], state)
        return state


def _why_unsealed(descriptor: int, size: int) -> str:
    if not os.pread(descriptor, 4, 0).startswith(b"\x7fELF"):
        return "it is not a shared library"
    needed = _elf_extent(os.pread(descriptor, 64, 0))
    if needed > size:
        return f"it was cut short: it has {size} bytes, and {needed} and more by its own header"
    return "it ends without the seal of msc: msc did not write it, or it was cut short, stripped or changed since"


def _elf_extent(header: bytes) -> int:
    """Where the table of sections ends, which linkers write last; 0 where the header does not tell."""
    if len(header) < 64 or header[4:6] != b"\x02\x01":
        return 0
    start, (size, count) = struct.unpack_from("<Q", header, 40)[0], struct.unpack_from("<HH", header, 58)
    return start + size * count
