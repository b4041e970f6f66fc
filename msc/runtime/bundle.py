"""A bundle: a folder that builds with `make` anywhere, with no msc and no Python, and tests itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msc.runtime.firmware import firmware_texts
from msc.runtime.flags import BUILD_FLAGS, GCC_FLAGS, THREAD_FLAGS
from msc.runtime.layouts import LAYOUTS, check_layout, laid_out
from msc.runtime.mpi import needs_mpi
from msc.runtime.program import CProgram
from msc.runtime.program_text import (
    Golden,
    bundle_manifest,
    main_text,
    readme_text,
    selftest_text,
    table_text,
    tensor_text,
)
from msc.runtime.weights import assembly_name, bytes_name, weights_assembly, write_weights
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.folder_outputs import FolderOutput, filled_folder
from msc.support.outputs import OutputGuard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def write_bundle(
    program: CProgram,
    weights: Mapping[str, NDArray[np.generic]],
    golden: Golden,
    folder: Path,
    guard: OutputGuard | None = None,
    layout: str = "",
) -> Path:
    """Write the bundle, whole or not at all; one for a microcontroller in a layout of `LAYOUTS`, if that is named.

    Of an earlier bundle at `folder` the files that its manifest lists are replaced, or go; all others stay. Raises
    MSC0004 (cannot write there), MSC0010, MSC0011 (`Guard.check`), MSC0505 (weights or golden data do not fit) and
    MSC0532 (no such layout).
    """
    check_layout(layout, program)
    with filled_folder(folder, guard or OutputGuard()) as files:
        _write_files(program, weights, golden, files, layout)
    return folder


def _write_files(
    program: CProgram, weights: Mapping[str, NDArray[np.generic]], golden: Golden, files: FolderOutput, layout: str
) -> None:
    if program.boards:
        _golden_bytes(program, golden)
        texts = firmware_texts(program, weights, golden)
        for name, text in (laid_out(program, texts, LAYOUTS[layout]) if layout else texts).items():
            files.write(name, text)
        files.finish(bundle_manifest(program, files.digests))
        return
    texts = _texts(program, golden)
    if program.signature.weights_bytes:
        texts[assembly_name(program.name)] = weights_assembly(program)
        with files.open(bytes_name(program.name)) as file:
            write_weights(program, weights, file)
    files.write("golden.bin", _golden_bytes(program, golden))
    for name, text in texts.items():
        files.write(name, text)
    files.finish(bundle_manifest(program, files.digests))


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
        "README.md": readme_text(program),
    }


def _golden_bytes(program: CProgram, golden: Golden) -> bytes:
    tensors = (*program.signature.inputs, *program.signature.outputs)
    arrays = (*golden.inputs, *golden.outputs)
    if [t.bytes for t in tensors] != [a.nbytes for a in arrays]:
        raise MscError(Diagnostic("MSC0505", "golden inputs and outputs do not fit the signature"))
    return b"".join(array.tobytes() for array in arrays)


_MAKEFILE = """# make && ./selftest
{compiler}CFLAGS = {flags}
# Of GCC alone: it fuses every product and sum, so that no number of threads changes a bit.
CFLAGS += $(shell $(CC) -Werror {gcc} -E -x c /dev/null >/dev/null 2>&1 && echo {gcc})
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

_MPI = "ifeq ($(origin CC),default)\nCC = mpicc\nendif\n"
"""MPI's compiler, which knows where its header and library are: `make && mpirun -n RANKS ./selftest`."""


def _makefile(program: CProgram) -> str:
    name, has_weights = program.name, program.signature.weights_bytes > 0
    threads = THREAD_FLAGS if program.signature.threads != 1 else ()
    objects = f"{name}.o {name}_weights.o" if has_weights else f"{name}.o"
    return _MAKEFILE.format(
        name=name,
        compiler=_MPI if needs_mpi(program.source) else "CC ?= cc\n",
        flags=" ".join((*BUILD_FLAGS, *program.march, *threads)),
        gcc=" ".join(GCC_FLAGS),
        objects=objects,
        weights=bytes_name(name) if has_weights else "",
    )
