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
    folder = make_temporary("build")
    try:
        options = (*flags, *LINK_FLAGS, "-fPIC", "-shared")
        return SharedLibrary.of(os.open(_built(texts, options, libraries, folder, find_toolchain()), os.O_RDONLY))
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"the C compiler's files cannot be written or built: {error}"
        raise MscError(Diagnostic("MSC0021", message, help="TMPDIR=FOLDER names a folder with room")) from error
    finally:
        remove_temporary(folder)


def text_object(code: LinkedCode, folder: Path, compiler: Toolchain) -> Path:
    """One object of the C files of `code`, from the cache or built into `folder`. Raises MSC0503, OSError."""
    place = folder / "linked"
    place.mkdir()
    options = (*code.flags, "-fPIC", "-fvisibility=hidden", "-r", "-nostdlib")
    return _built(code.texts, options, (), place, compiler)


def _built(
    texts: Mapping[str, str], options: Sequence[str], libraries: Sequence[str], folder: Path, compiler: Toolchain
) -> Path:
    """What the C compiler makes of texts: from the cache, or in `folder` and put into the cache."""
    store = open_cache()
    parts = [part for name in sorted(texts) for part in (name, texts[name])]
    key = digest([*parts, *compiler.command, compiler.version, *options, *libraries])
    found = store.get(key) if store is not None else None
    if found is not None:
        return found
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    sources = [name for name in texts if name.endswith(".c")]
    result = compiler.run((*options, "-o", "result", *sources, *libraries), folder)
    if result.returncode != 0:
        raise _failed(compiler.version, result.stderr, folder.name)
    if store is not None:
        store.put(key, folder / "result")
    return folder / "result"


def _failed(version: str, text: str, name: str) -> MscError:
    refused = refused_by_system(text)
    if refused is not None:
        return MscError(refused)
    lines = tuple(text.strip().splitlines()[:12])
    return MscError(
        Diagnostic("MSC0503", f"the C compiler failed: {version}", notes=(*lines, f"its files were in {name}"))
    )
