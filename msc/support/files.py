"""Whole files or none: reading source text and writing results so that a failure leaves no partial file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from msc.support.diagnostics import Diagnostic, Location, MscError, near_match
from msc.support.plain_files import opened
from msc.support.streams import is_stream, read_stream

MAXIMUM_SOURCE_BYTES = 16 << 20
"""Source text is read whole; weights, which are larger, are not in it."""


def read_source(path: Path) -> str:
    """The text of a source file, or of a stream (`-` is the standard input), which is read once.

    Raises MSC0001 (unreadable), MSC0002 (too large) and MSC0003 (not UTF-8).
    """
    try:
        if is_stream(str(path)):
            return decode_source(read_stream(str(path), MAXIMUM_SOURCE_BYTES), source_name(str(path)))
        with opened(path) as file:
            data = file.read(MAXIMUM_SOURCE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise MscError(Diagnostic("MSC0001", f"cannot read '{path}': {reason}", help=near_file(path))) from error
    return decode_source(data, str(path))


def source_name(path: str) -> str:
    """What diagnostics call a source."""
    return "<stdin>" if path == "-" else path


def near_file(path: Path) -> str | None:
    """The help line that proposes a file beside one that is not there, whose name is like it.

    Names of the same extension are compared without it, as it says nothing of how alike they are; after these come
    names whose extension is like that one, as `.onnx` is like `.onx`.
    """
    with suppress(OSError, ValueError):
        if not path.exists():
            beside = list(path.parent.iterdir())
            names = {_stem(each.name): each.name for each in beside if each.suffix == path.suffix}
            others = (each for each in beside if each.suffix != path.suffix)
            names |= {each.name: each.name for each in others if near_match(each.suffix, [path.suffix])}
            match = near_match(_stem(path.name), names) or near_match(path.name, names)
            return None if match is None else f"did you mean '{names[match]}'?"
    return None


def _stem(name: str) -> str:
    """A name without its extension: `a` of `a.mir`, and of `a.gk.mir`, which is what a stage makes of that."""
    return name.rpartition(".")[0].removesuffix(".opt").removesuffix(".gk").removesuffix(".loop") or name


def decode_source(data: bytes, name: str) -> str:
    """`data` as text, with universal newlines. Raises MSC0002 (too large) and MSC0003 (not UTF-8)."""
    if len(data) > MAXIMUM_SOURCE_BYTES:
        message = f"'{name}' is larger than {MAXIMUM_SOURCE_BYTES >> 20} MiB"
        raise MscError(Diagnostic("MSC0002", message, help="keep weights in a safetensors file, not in the text"))
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"'{name}' is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise MscError(Diagnostic("MSC0003", message, Location(name, line, column))) from error


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Write `text` as UTF-8, atomically. Raises MSC0004."""
    write_bytes(path, text.encode("utf-8"), durable=durable)


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write `data` atomically: a reader sees the old file or the whole new one. Raises MSC0004."""
    with replacing(path, durable=durable) as file:
        file.write(data)


def append_file(source: Path, target: IO[bytes]) -> None:
    """Copy a file to the end of an open one; the system does it where it can, and some file systems share the blocks.

    Raises OSError.
    """
    with source.open("rb", buffering=0) as file:
        target.seek(0, os.SEEK_END)
        with suppress(OSError, AttributeError):
            while os.copy_file_range(file.fileno(), target.fileno(), 1 << 30):
                pass
        target.seek(0, os.SEEK_END)
        shutil.copyfileobj(file, target, 1 << 20)


def make_folder(path: Path) -> Path:
    """`path` as a folder, made with its parents if it is not there. Raises MSC0004."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Generator[BinaryIO]:
    """A file open for writing that takes the place of `path` when the block ends well, and vanishes otherwise.

    If it is `durable`, that holds for a loss of power too, which takes the time that the disk takes to write the file.
    Raises MSC0004 when the directory or the disk does not allow it.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.chmod(temporary, default_mode())
        os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def default_mode(*, executable: bool = False) -> int:
    """The mode that `open` would give, or a linker: mkstemp makes files private."""
    mask = os.umask(0)
    os.umask(mask)
    return (0o777 if executable else 0o666) & ~mask


def names_folder(path: str) -> bool:
    """Whether a path can be only that of a folder, whatever is there."""
    return path.endswith((os.sep, f"{os.sep}.", f"{os.sep}..")) or path in (".", "..")


def file_to_write(path: str | os.PathLike[str]) -> Path:
    """The path of a file. Raises MSC0004 for one that names a folder, as `out/` does whether that is there or not."""
    text = os.fspath(path)
    if names_folder(text):
        message = f"cannot write '{text}': it is the name of a folder"
        raise MscError(Diagnostic("MSC0004", message, help=f"name a file in it, as {text.rstrip('./') or '.'}/NAME"))
    return Path(text)


def cannot_write(path: Path | str, error: OSError | ValueError) -> MscError:
    """The MSC0004 of a failure of the system's."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    name = f"'{path}'" if isinstance(path, Path) else path
    return MscError(Diagnostic("MSC0004", f"cannot write {name}: {reason}"))
