"""Compiled models as programs of their own: what sanitizers watch, and what emulators of other machines run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msc.dialects.arrays import numpy_dtype
from msc.runtime.build import BuildOptions, Kind, compile_flags, source_texts
from msc.runtime.program import ALIGNMENT, CProgram, Signature
from msc.runtime.weights import assembly_name, bytes_name, weights_assembly, write_weights

Array: TypeAlias = NDArray[Any]

_MAIN = Path(__file__).with_name("process_main.c")
_SIZE_BYTES = 8


@dataclass(frozen=True)
class Process:
    """A program that runs a model once for each call, started by `command`, which may be an emulator."""

    signature: Signature
    path: Path
    command: tuple[str, ...] = ()

    def outputs(self, inputs: Sequence[Array], sizes: Sequence[int] = ()) -> tuple[Array, ...]:
        """The results for inputs that lie as those of the largest sizes, in a call of `sizes`: outputs and updates.

        Raises AssertionError with what the program says.
        """
        folder = self.path.parent
        data = [*(array.tobytes() for array in inputs), np.array(sizes, np.int64).tobytes()]
        (folder / "inputs").write_bytes(b"".join(data))
        command = [*self.command, str(self.path), "inputs", "outputs"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        assert result.returncode == 0, f"exit status {result.returncode} {result.stderr}"
        return tuple(_split((folder / "outputs").read_bytes(), self.signature))


def write_sources(program: CProgram, weights: Mapping[str, Array], folder: Path, kind: Kind) -> None:
    """The files that a compiler makes the `kind` of."""
    for name, text in source_texts(program, kind).items():
        (folder / name).write_text(text, "utf-8")
    if program.signature.weights_bytes:
        (folder / assembly_name(program.name)).write_text(weights_assembly(program), "utf-8")
        with (folder / bytes_name(program.name)).open("wb") as file:
            write_weights(program, weights, file)


def process(
    program: CProgram,
    weights: Mapping[str, Array],
    folder: Path,
    options: BuildOptions,
    command: tuple[str, ...] = (),
) -> Process:
    """Build the program in `folder`. Raises AssertionError with what the compiler says."""
    write_sources(program, weights, folder, "so")
    shutil.copy(_MAIN, folder)
    sources = sorted(path.name for path in folder.iterdir() if path.suffix in (".c", ".S"))
    flags = [*compile_flags(program, options), *_definitions(program.signature)]
    built = options.compiler().run([*flags, "-o", "process", *sources, "-lm"], folder)
    assert built.returncode == 0, built.stderr
    return Process(program.signature, folder / "process", command)


def _definitions(signature: Signature) -> Iterator[str]:
    tensors = (*signature.inputs, *signature.outputs)
    sizes = [*(tensor.bytes for tensor in tensors), *(_SIZE_BYTES for _ in signature.sizes)]
    yield f"-DINPUTS={len(signature.inputs)}"
    yield f"-DOUTPUTS={len(signature.outputs)}"
    yield f"-DBYTES={','.join(map(str, sizes))}"
    yield f"-DRESULTS={','.join(str(tensors.index(tensor)) for tensor in signature.results)}"
    yield f"-DALIGNMENT={ALIGNMENT}"
    yield f"-DWORKSPACE={signature.workspace_bytes}"


def _split(data: bytes, signature: Signature) -> Iterator[Array]:
    start = 0
    for tensor in signature.results:
        yield np.frombuffer(data[start : start + tensor.bytes], numpy_dtype(tensor.dtype)).reshape(tensor.shape)
        start += tensor.bytes
