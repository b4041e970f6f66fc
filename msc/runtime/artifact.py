"""Artifacts are loaded whole, of this msc and for this machine, or refused before any of them is mapped for execution.

An artifact is code: calling one runs it, so load only what you built or trust.
"""

from __future__ import annotations

import copyreg
import os
import stat
import sys
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msc.runtime.cache import trailer_bytes
from msc.runtime.compiled_model import CompiledFunctions, CompiledModel
from msc.runtime.program import Signature
from msc.runtime.seal import Seal, check_seal, read_seal
from msc.runtime.shared_library import SharedLibrary, copy_of_bytes, copy_of_file
from msc.support.argument_values import content, file_path
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.failures import Door
from msc.support.files import near_file
from msc.targets.detection import detect_flags

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["CompiledModel", "Source", "load", "load_bytes", "load_unchanging"]

Source: TypeAlias = "str | PathLike[str] | bytes | BinaryIO"
"""Where an artifact is: the path of a file, its bytes, or a file open for reading bytes."""


def load(path: Source) -> CompiledModel:
    """Load a model that msc compiled: a `.so` file by its path, its bytes, or a file open for reading bytes.

    What becomes of the file later does not touch the model. Its memory and its threads go with the last reference to
    it. Raises MSC0001 when there is no such file; MSC0504 for what is no artifact, or one that is cut short, damaged,
    of another format or for another architecture; MSC0510 when this CPU lacks a feature that the artifact needs.
    """
    with Door():
        source: object = path
        if isinstance(source, bytes | bytearray | memoryview):
            return load_bytes(bytes(source))
        if not isinstance(source, str) and hasattr(source, "read"):
            return load_bytes(content("path", source))
        file = file_path("path", source, "the path of an artifact, its bytes or an open file")
        return _load(_open(file), file, changes=True)


def signature_of(path: Path) -> Signature:
    """What an artifact says of itself, also one for another machine. Nothing of it is mapped for execution.

    Raises MSC0001 and MSC0504 as `load`.
    """
    descriptor, name = _open(path), f"'{path}'"
    try:
        size = os.fstat(descriptor).st_size
        seal = read_seal(descriptor, size - trailer_bytes(descriptor, size))
        check_seal(descriptor, seal)
        return Signature.from_json(seal.signature)
    except (OSError, ValueError) as error:
        raise _refused(name, str(error)[:300]) from error
    finally:
        os.close(descriptor)


def load_bytes(data: bytes) -> CompiledModel:
    """Load an artifact from its bytes. Raises as `load`."""
    return _load(copy_of_bytes(data), None, changes=False, known=False)


def load_unchanging(path: Path) -> CompiledModel:
    """Load an artifact of msc's own, which nobody changes and which is known to be whole: without a copy.

    Raises as `load`.
    """
    return _load(_open(path), path, changes=False)


def _open(path: Path) -> int:
    """A descriptor of a regular file. Raises MSC0001."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None)
        message = f"cannot read '{path}': {reason or 'no such file'}"
        raise MscError(Diagnostic("MSC0001", message, help=near_file(path))) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    kind = "it is a folder" if path.is_dir() else "it is no regular file"
    raise MscError(Diagnostic("MSC0001", f"cannot read '{path}': {kind}", help="an artifact is a .so file"))


def _load(descriptor: int, path: Path | None, *, changes: bool, known: bool = True) -> CompiledModel:
    """The model in an open file, which it takes over; of one that others may change, a copy is checked and used."""
    name = "the artifact" if path is None else f"'{path}'"
    owned = [descriptor]
    try:
        _refuse_other_machines(descriptor, name)
        size = os.fstat(descriptor).st_size
        seal = read_seal(descriptor, size - trailer_bytes(descriptor, size))
        if changes:
            owned.append(copy_of_file(descriptor, seal.file_bytes))
        if changes or not known:
            check_seal(owned[-1], seal)
        signature = _signature(seal, name)
        kind = CompiledFunctions if signature.others else CompiledModel
        return kind(SharedLibrary.of(owned.pop()), signature, seal.file_bytes, path)
    except (OSError, ValueError, AttributeError, LookupError, TypeError, ArithmeticError) as error:
        raise _refused(name, str(error)[:300]) from error
    finally:
        for opened in owned:
            os.close(opened)


def _pickled(model: CompiledModel) -> tuple[Callable[[bytes, str], CompiledModel], tuple[bytes, str]]:
    """The bytes of the artifact; who reads the pickle loads them, as `load` would."""
    return _function_of_bytes, (model.artifact(), model.signature.function)


def _function_of_bytes(data: bytes, name: str) -> CompiledModel:
    """A function of an artifact."""
    return load_bytes(data)[name]


for _kind in (CompiledModel, CompiledFunctions):
    copyreg.pickle(_kind, _pickled)


def _signature(seal: Seal, name: str) -> Signature:
    signature = Signature.from_json(seal.signature)
    present = detect_flags()
    lacking = sorted(set(signature.features) - present) if present else []
    if lacking:
        message = f"{name} was compiled for a CPU with {', '.join(lacking)}, which this one lacks"
        advice = "compile the model with --march generic, or for this CPU (docs/cli.md lists the names)"
        raise MscError(Diagnostic("MSC0510", message, help=advice))
    return signature


def _refuse_other_machines(descriptor: int, name: str) -> None:
    """An ELF file's class, order of bytes and machine must be those of this Python."""
    head, own = os.pread(descriptor, 20, 0), _head(Path(sys.executable))
    both = head.startswith(b"\x7fELF") and own.startswith(b"\x7fELF")
    if both and len(head) == 20 and (head[4:6], head[18:20]) != (own[4:6], own[18:20]):
        raise _refused(name, "it was built for another machine")


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(20)


def _refused(name: str, reason: str) -> MscError:
    message = f"{name} is not an artifact that this msc can load"
    is_model = Path(name.strip("'")).suffix not in ("", ".so")
    advice = "msc.compile makes an artifact of a model" if is_model else "compile the model again"
    return MscError(Diagnostic("MSC0504", message, notes=(reason,), help=advice))
