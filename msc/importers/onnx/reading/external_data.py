"""External data: weights in files beside the model, mapped. A model may name only plain files in its own folder.

Refused are absolute paths, `..`, links (symbolic, at any level below the folder, and hard ones), anything that is not a
plain file, and offsets or lengths outside the file: four CVEs of other readers are about these.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

from onnx import TensorProto

from msc.importers.failures import failure, shown
from msc.support.diagnostics import MscError

_KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})


class ExternalData:
    """The files that the tensors of a model in `folder` may name; each is mapped once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: dict[str, memoryview] = {}

    @property
    def files(self) -> tuple[str, ...]:
        """The files that have been read, relative to the folder."""
        return tuple(self._maps)

    def bytes_of(self, tensor: TensorProto, size: int) -> memoryview:
        """The `size` bytes of a tensor. Raises MSC0706 for a file that may not be read, MSC0707 for wrong extents."""
        entries = {e.key: e.value for e in tensor.external_data if e.key in _KEYS}
        location = entries.get("location", "")
        offset = self._number(tensor, entries.get("offset", "0"), "offset")
        length = self._number(tensor, entries.get("length", str(size)), "length")
        data = self._mapped(tensor, location)
        if length != size:
            raise _wrong(tensor, f"its length is {length} bytes, but its type takes {size}")
        if offset > len(data) or length > len(data) - offset:
            raise _wrong(
                tensor, f"bytes {offset} to {offset + length} lie outside the {len(data)} of '{shown(location)}'"
            )
        return data[offset : offset + length]

    def _number(self, tensor: TensorProto, text: str, what: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise _wrong(tensor, f"its {what} is '{shown(text)}'")
        return int(text)

    def _mapped(self, tensor: TensorProto, location: str) -> memoryview:
        if location not in self._maps:
            self._maps[location] = _map(self._folder, tensor, _checked_parts(tensor, location))
        return self._maps[location]


def _checked_parts(tensor: TensorProto, location: str) -> tuple[str, ...]:
    parts = PurePosixPath(location).parts
    rooted = PurePosixPath(location).is_absolute() or bool(PureWindowsPath(location).anchor)
    if not parts or rooted or ".." in parts or "\0" in location or "\\" in location:
        raise _refused(tensor, location, "it must be a path inside the folder of the model")
    return parts


def _map(folder: Path, tensor: TensorProto, parts: tuple[str, ...]) -> memoryview:
    """Open one component after another, none of which may be a link, and map the file."""
    location = "/".join(parts)
    descriptors: list[int] = []
    try:
        descriptors.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            descriptors.append(os.open(part, flags, dir_fd=descriptors[-1]))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptors.append(os.open(parts[-1], flags, dir_fd=descriptors[-1]))
        return _map_descriptor(descriptors[-1], tensor, location)
    except OSError as error:
        raise _refused(tensor, location, f"{error.strerror} (links are not followed)") from error
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _map_descriptor(descriptor: int, tensor: TensorProto, location: str) -> memoryview:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _refused(tensor, location, "it is not a plain file")
    if status.st_nlink != 1:
        raise _refused(tensor, location, "it is a hard link: it has other names")
    if status.st_size == 0:
        return memoryview(b"")
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))


def _refused(tensor: TensorProto, location: str, why: str) -> MscError:
    return failure("MSC0706", f"external data '{shown(location)}' of tensor '{shown(tensor.name)}': {why}")


def _wrong(tensor: TensorProto, why: str) -> MscError:
    return failure("MSC0707", f"external data of tensor '{shown(tensor.name)}': {why}")
