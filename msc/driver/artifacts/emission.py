"""Compiling a model and writing what was asked for, whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msc.driver.artifacts.forms import Output
from msc.driver.compile import Compilation, compile_model, generate, stage_text
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions, Reporting
from msc.formats.format import Format
from msc.graph.inline_calls import InlineCalls
from msc.graph.shapes.infer_shapes import InferShapes
from msc.importers.imported import Imported
from msc.runtime.build import BuildOptions, Kind, build, source_texts
from msc.runtime.program import CProgram
from msc.runtime.recognition import is_built
from msc.runtime.weights import assembly_name, bytes_name, is_weights_file, weights_assembly, write_weights
from msc.support.collection import collect_young, paused_collection
from msc.support.escaping import printable
from msc.support.files import append_file
from msc.support.folder_outputs import filled_folder
from msc.support.marks import goes_with_another, is_marked, marked
from msc.support.outputs import OutputGuard, OutputSet, destination, print_text
from msc.support.progress import progress
from msc.support.temporary import temporary_folder

if TYPE_CHECKING:
    from msc.dialects.arrays import Array

from msc.driver.models.interpretation import interpret
from msc.driver.models.model_inputs import random_inputs
from msc.driver.models.model_outputs import Tolerance
from msc.driver.models.reading_models import read_model
from msc.runtime.bundle import Golden, write_bundle
from msc.runtime.stored_order import StoredOrders

_KINDS: Mapping[str, Kind] = {"obj": "o", "archive": "a", "so": "so", "exe": "exe"}


@progress()
@paused_collection()
def emit(
    model: str | LoadedModel, output: Output, options: CompileOptions, reporting: Reporting, *, force: bool = False
) -> Compilation:
    """Compile a model, a file or one in memory, and write the output.

    Raises what compiling and building raise, MSC0004, and MSC0010 and MSC0011 (`Guard.check`) unless forced.
    """
    if output.path is not None and isinstance(model, str):
        OutputGuard(named_inputs(model, options), force).check_inputs(output.path)
    compilation = compile_model(
        model,
        options,
        output.last_stage,
        reporting,
        checks_weights=output.has_weights,
        checks_later=output.form in _KINDS and reporting.is_silent,
    )
    guard = OutputGuard(compilation.input_files(), force)
    if output.format is not None:
        write_model(output.format, compilation.model, output.path, guard)
        return compilation
    if not output.has_weights:
        _put_text(output, stage_text(compilation), guard)
        return compilation
    with compilation.checking():
        _emit_code(output, compilation, reporting, guard)
    return compilation


def _emit_code(output: Output, compilation: Compilation, reporting: Reporting, guard: OutputGuard) -> None:
    weights = compilation.parameters()
    program = generate(compilation)
    if not isinstance(program, CProgram):
        _put_text(output, program.source, guard)
        return
    if reporting.save_temps is not None:
        write_temporaries(program, weights, reporting.save_temps, guard)
    with compilation.timed("artifact", output.form):
        _WRITERS[output.form](output, compilation, program, guard)


def named_inputs(model: str, options: CompileOptions) -> tuple[Path, ...]:
    """The files that the command itself names."""
    return (Path(model), *(() if options.tuned is None else (options.tuned,)))


def write_model(format_: Format, model: LoadedModel, path: Path | None, guard: OutputGuard) -> None:
    """Write a model at the graph stage in a format. Its calls are inlined and its shapes inferred. Raises MSC0720."""
    assert path is not None
    format_.check_packages()
    for item in (InlineCalls(), InferShapes()):
        item.apply(model.context, model.module)
    with OutputSet(guard) as files:
        format_.write(Imported(model.module, model.weights()), path, files)


def _put_text(output: Output, text: str, guard: OutputGuard) -> None:
    if output.path is None:
        print_text(marked(text))
        return
    with OutputSet(guard) as files:
        files.write(output.path, marked(text), is_marked)


def _emit_c(output: Output, compilation: Compilation, program: CProgram, guard: OutputGuard) -> None:
    """The C file; beside a regular file also what goes with it."""
    text = marked(program.source, ".c")
    if output.path is None:
        print_text(text)
        return
    with OutputSet(guard) as files:
        files.write(output.path, text, is_marked)
        if not destination(output.path).is_stream:
            _write_companions(files, output.path, program, compilation)


def _write_companions(files: OutputSet, out: Path, program: CProgram, compilation: Compilation | None) -> None:
    """The header and, with a compilation, the weights as bytes and assembler text, under the names that C has."""
    name, header = program.name, out.with_name(f"{program.name}.h")
    with suppress(OSError):
        if goes_with_another(header, out.stem, program.header):
            note = f"'{header}' went with another output until now; --name gives this one a header of its own"
            print(f"note: {printable(note)}", file=sys.stderr)
    files.write(header, marked(program.header, ".h", out.stem), is_marked)
    if compilation is None or not program.signature.weights_bytes:
        return
    with files.open(out.with_name(bytes_name(name)), is_weights_file) as file:
        write_weights(program, compilation.parameters(), file)
    text = marked(weights_assembly(program), ".S", out.stem)
    files.write(out.with_name(assembly_name(name)), text, is_marked)


def _emit_binary(output: Output, compilation: Compilation, program: CProgram, guard: OutputGuard) -> None:
    """A built file; beside a regular object or archive also the header that is needed to call it."""
    assert output.path is not None
    kind = _KINDS[output.form]
    with temporary_folder("build") as folder, OutputSet(guard, durable=False) as files:
        built = build(
            program,
            compilation.parameters(),
            kind,
            folder / "result",
            BuildOptions(),
            meanwhile=partial(_check, compilation),
        )
        with files.open(output.path, lambda path: is_built(path, kind), executable=kind == "exe") as file:
            append_file(built, file)
        if kind in ("o", "a") and not destination(output.path).is_stream:
            _write_companions(files, output.path, program, None)


def _check(compilation: Compilation) -> None:
    """Let the collector see what was made, and verify the last stage: work for a processor that compilers leave.

    The collector comes first: while it looks, no thread begins a compiler, and the first ones have just begun.
    """
    collect_young()
    compilation.check()


def _emit_bundle(output: Output, compilation: Compilation, program: CProgram, guard: OutputGuard) -> None:
    assert output.path is not None
    emit_bundle(compilation, program, output.path, guard)


_WRITERS: Mapping[str, Callable[[Output, Compilation, CProgram, OutputGuard], None]] = {
    "c": _emit_c,
    "bundle": _emit_bundle,
    **dict.fromkeys(_KINDS, _emit_binary),
}


def write_temporaries(program: CProgram, weights: Mapping[str, Array], folder: Path, guard: OutputGuard) -> None:
    """Keep what the C compiler gets. Raises MSC0004, MSC0010 and MSC0011."""
    with filled_folder(folder, guard, is_shared=True) as files:
        for name, text in source_texts(program, "so").items():
            files.write(name, text)
        if program.signature.weights_bytes:
            with files.open(bytes_name(program.name)) as file:
                write_weights(program, weights, file)
            files.write(assembly_name(program.name), weights_assembly(program))
        files.finish()


# Bundles from compilations: the golden input is seeded random, the golden output is the interpreter's.
_SEED = 0


def emit_bundle(compilation: Compilation, program: CProgram, folder: Path, guard: OutputGuard) -> None:
    """Write a bundle whose self-test compares C with the interpreter on the model as it was read, as `msc verify` does.

    The inputs that the function updates are not compared. Raises MSC0004 (place), MSC0010 and MSC0011 (files that are
    there), MSC0505 (weights), MSC0532 (layout).
    """
    inputs = random_inputs(program.signature.inputs, _SEED)
    results = interpret(read_model(compilation.model.path, compilation.options), inputs)
    updated = {tensor.result for tensor in program.signature.inputs}
    outputs = [result for number, result in enumerate(results) if number not in updated]
    tolerances = [Tolerance().scaled(output) for output in outputs]
    stored = StoredOrders(program.signature.inputs).stored(inputs)
    golden = Golden(stored, outputs, [(t.absolute, t.relative) for t in tolerances])
    write_bundle(program, compilation.parameters(), golden, folder, guard, compilation.options.layout)
