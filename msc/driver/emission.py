"""Compiling a model and writing what was asked for, whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msc.driver.bundles import emit_bundle
from msc.driver.compile import Compilation, compile_model, generate_c, stage_text
from msc.driver.forms import Output
from msc.driver.onnx_models import check_onnx
from msc.driver.options import CompileOptions, Reporting
from msc.runtime.build import BuildOptions, Kind, build, write_sources
from msc.runtime.program import CProgram
from msc.runtime.weights import weights_assembly, write_weights
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import make_folder, replacing, write_bytes, write_text
from msc.support.progress import progress

if TYPE_CHECKING:
    from msc.dialects.arrays import Array

_KINDS: Mapping[str, Kind] = {"obj": "o", "so": "so", "exe": "exe"}


@progress()
def emit(model: str, output: Output, options: CompileOptions, reporting: Reporting) -> Compilation:
    """Compile a model and write the output. Raises what compiling and building raise, and MSC0004."""
    compilation = compile_model(model, options, output.last_stage, reporting, checks_weights=output.has_weights)
    if output.form == "onnx":
        _emit_onnx(output, compilation)
        return compilation
    if not output.has_weights:
        _put_text(output, stage_text(compilation))
        return compilation
    weights = compilation.parameters()
    program = generate_c(compilation)
    if reporting.save_temps is not None:
        write_temporaries(program, weights, reporting.save_temps)
    with compilation.timed("artifact", output.form):
        _WRITERS[output.form](output, compilation, program)
    return compilation


def _put_text(output: Output, text: str) -> None:
    if output.path is None:
        sys.stdout.write(text)
    else:
        write_text(output.path, text)


def _emit_onnx(output: Output, compilation: Compilation) -> None:
    assert output.path is not None
    check_onnx()
    from msc.driver.onnx_export import onnx_bytes

    write_bytes(output.path, onnx_bytes(compilation.model))


def _emit_c(output: Output, compilation: Compilation, program: CProgram) -> None:
    """The C file; in files also the header, and the weights as bytes and assembler text, under the names it needs."""
    if output.path is None:
        sys.stdout.write(program.source)
        return
    folder, name = output.path.parent, program.name
    if program.signature.weights_bytes:
        with replacing(folder / f"{name}_weights.bin") as file:
            write_weights(program, compilation.parameters(), file)
        write_text(folder / f"{name}_weights.S", weights_assembly(program))
    write_text(folder / f"{name}.h", program.header)
    write_text(output.path, program.source)


def _emit_binary(output: Output, compilation: Compilation, program: CProgram) -> None:
    assert output.path is not None
    build(program, compilation.parameters(), _KINDS[output.form], output.path, BuildOptions())


def _emit_bundle(output: Output, compilation: Compilation, program: CProgram) -> None:
    assert output.path is not None
    emit_bundle(compilation, program, output.path)


_WRITERS: Mapping[str, Callable[[Output, Compilation, CProgram], None]] = {
    "c": _emit_c,
    "bundle": _emit_bundle,
    **dict.fromkeys(_KINDS, _emit_binary),
}


def write_temporaries(program: CProgram, weights: Mapping[str, Array], folder: Path) -> None:
    """Keep what the C compiler gets. Raises MSC0004."""
    try:
        write_sources(program, weights, make_folder(folder), "so")
    except OSError as error:
        raise MscError(Diagnostic("MSC0004", f"cannot write into '{folder}': {error.strerror}")) from error
