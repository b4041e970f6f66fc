"""A bundle: a folder that builds with `make` anywhere, with no msc and no Python, and tests itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msc.runtime.flags import BUILD_FLAGS, THREAD_FLAGS
from msc.runtime.program import CProgram
from msc.runtime.program_text import main_text, manifest_text, selftest_text, table_text, tensor_text
from msc.runtime.weights import weights_assembly, write_weights
from msc.support.diagnostics import Diagnostic, MscError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = Sequence[NDArray[np.generic]]

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Golden:
    """Inputs and the outputs that are right for them, each within its `absolute + relative * |right|`."""

    inputs: Arrays
    outputs: Arrays
    tolerances: Sequence[tuple[float, float]]
    """Absolute and relative, of each output."""


def write_bundle(program: CProgram, weights: Mapping[str, NDArray[np.generic]], golden: Golden, folder: Path) -> Path:
    """Write the bundle; an earlier bundle at `folder` is replaced, any other content is an error.

    Raises MSC0004 (cannot write there) and MSC0505 (weights or golden data do not fit).
    """
    _check_place(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name[:32]}.", dir=folder.parent))
        draft.chmod(0o755)
    except OSError as error:
        raise _cannot_write(folder, error.strerror or str(error)) from error
    try:
        _write_files(program, weights, golden, draft)
        _exchange(draft, folder)
    except OSError as error:
        raise _cannot_write(folder, error.strerror or str(error)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _check_place(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise _cannot_write(folder, "it is not a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MANIFEST).is_file():
        raise _cannot_write(folder, "the folder holds other files")


def _cannot_write(folder: Path, reason: str) -> MscError:
    return MscError(Diagnostic("MSC0004", f"cannot write '{folder}': {reason}"))


def _exchange(draft: Path, folder: Path) -> None:
    """Put the finished draft in the folder's place."""
    old = draft.with_name(f"{draft.name}.old")
    if folder.exists():
        folder.rename(old)
    draft.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _write_files(program: CProgram, weights: Mapping[str, NDArray[np.generic]], golden: Golden, folder: Path) -> None:
    texts = _texts(program, golden)
    if program.signature.weights_bytes:
        texts[f"{program.name}_weights.S"] = weights_assembly(program)
        with (folder / f"{program.name}_weights.bin").open("wb") as file:
            write_weights(program, weights, file)
    (folder / "golden.bin").write_bytes(_golden_bytes(program, golden))
    names = [*texts, *(path.name for path in folder.iterdir()), _MANIFEST]
    texts[_MANIFEST] = manifest_text(program, sorted(set(names)))
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _texts(program: CProgram, golden: Golden) -> dict[str, str]:
    name = program.name
    return {
        f"{name}.c": program.source,
        f"{name}.h": program.header,
        "model_table.h": table_text(program),
        "tensor.h": tensor_text(),
        "main.c": main_text(),
        "selftest.c": selftest_text(golden.tolerances),
        "Makefile": _makefile(program),
    }


def _golden_bytes(program: CProgram, golden: Golden) -> bytes:
    tensors = (*program.signature.inputs, *program.signature.outputs)
    arrays = (*golden.inputs, *golden.outputs)
    if [t.bytes for t in tensors] != [a.nbytes for a in arrays]:
        raise MscError(Diagnostic("MSC0505", "golden inputs and outputs do not fit the signature"))
    return b"".join(array.tobytes() for array in arrays)


_MAKEFILE = """# make && ./selftest
CC ?= cc
CFLAGS = {flags}
OBJECTS = {objects}

all: selftest {name}

selftest: selftest.o $(OBJECTS)
	$(CC) $(CFLAGS) $^ -o $@ -lm

{name}: main.o $(OBJECTS)
	$(CC) $(CFLAGS) $^ -o $@ -lm

%.o: %.c {name}.h model_table.h tensor.h
	$(CC) $(CFLAGS) -c $< -o $@

%.o: %.S {weights}
	$(CC) -c $< -o $@

clean:
	rm -f *.o selftest {name}

.PHONY: all clean
"""


def _makefile(program: CProgram) -> str:
    name, has_weights = program.name, program.signature.weights_bytes > 0
    threads = THREAD_FLAGS if program.signature.threads != 1 else ()
    objects = f"{name}.o {name}_weights.o" if has_weights else f"{name}.o"
    return _MAKEFILE.format(
        name=name,
        flags=" ".join((*BUILD_FLAGS, *program.march, *threads)),
        objects=objects,
        weights=f"{name}_weights.bin" if has_weights else "",
    )
