"""C texts to a cached shared library: for C that is no compiled model, such as the simulator and its kernels."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msc.runtime.cache import open_cache
from msc.runtime.flags import LINK_FLAGS
from msc.runtime.program import LinkedCode
from msc.runtime.shared_library import SharedLibrary
from msc.runtime.toolchain import Toolchain, find_toolchain, refused_by_system
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.hashing import digest
from msc.support.temporary import make_temporary, remove_temporary


def text_library(texts: Mapping[str, str], flags: Sequence[str], libraries: Sequence[str] = ()) -> SharedLibrary:
    """The library of the C files among `texts`, from the cache or built. Raises MSC0502, MSC0503, MSC0021."""
    compiler, store = find_toolchain(), open_cache()
    parts = [part for name in sorted(texts) for part in (name, texts[name])]
    key = digest([*parts, *compiler.command, compiler.version, *flags, *libraries])
    found = store.get(key) if store is not None else None
    if found is not None:
        return SharedLibrary(os.open(found, os.O_RDONLY))
    folder = make_temporary("build")
    try:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        sources = [name for name in texts if name.endswith(".c")]
        command = (*flags, *LINK_FLAGS, "-fPIC", "-shared", "-o", "result", *sources, *libraries)
        result = compiler.run(command, folder)
        if result.returncode != 0:
            raise _failed(compiler.version, result.stderr, folder.name)
        if store is not None:
            store.put(key, folder / "result")
        return SharedLibrary(os.open(folder / "result", os.O_RDONLY))
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"the C compiler's files cannot be written or built: {error}"
        raise MscError(Diagnostic("MSC0021", message, help="TMPDIR=FOLDER names a folder with room")) from error
    finally:
        remove_temporary(folder)


def text_object(code: LinkedCode, folder: Path, compiler: Toolchain) -> Path:
    """One object of the C files of `code`, from the cache or built into `folder`. Raises MSC0503, OSError."""
    store = open_cache()
    parts = [part for name in sorted(code.texts) for part in (name, code.texts[name])]
    key = digest(["object", *parts, *compiler.command, compiler.version, *code.flags])
    found = store.get(key) if store is not None else None
    if found is not None:
        return found
    place = folder / "linked"
    place.mkdir()
    for name, text in code.texts.items():
        (place / name).write_text(text, encoding="utf-8")
    sources = [name for name in code.texts if name.endswith(".c")]
    command = (*code.flags, "-fPIC", "-fvisibility=hidden", "-r", "-nostdlib", "-o", "linked.o", *sources)
    result = compiler.run(command, place)
    if result.returncode != 0:
        raise _failed(compiler.version, result.stderr, place.name)
    if store is not None:
        store.put(key, place / "linked.o")
    return place / "linked.o"


def _failed(version: str, text: str, name: str) -> MscError:
    refused = refused_by_system(text)
    if refused is not None:
        return MscError(refused)
    lines = tuple(text.strip().splitlines()[:12])
    return MscError(
        Diagnostic("MSC0503", f"the C compiler failed: {version}", notes=(*lines, f"its files were in {name}"))
    )
