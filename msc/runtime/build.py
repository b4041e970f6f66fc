"""Generated C to an object, a shared library or a program, by the system's C compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msc.runtime.commands import Commands, run_command
from msc.runtime.flags import BUILD_FLAGS, GCC_FLAGS, LINK_FLAGS, SANITIZER_FLAGS, THREAD_FLAGS
from msc.runtime.interface import artifact_text, calls_text
from msc.runtime.mpi import mpi_flags, needs_mpi
from msc.runtime.program import CProgram
from msc.runtime.program_text import main_text, table_text, tensor_text
from msc.runtime.recognition import begins_as
from msc.runtime.seal import append_seal
from msc.runtime.text_library import text_object
from msc.runtime.toolchain import TIMEOUT_VARIABLE, Toolchain, compile_timeout, find_toolchain, refused_by_system
from msc.runtime.weights import assembly_name, bytes_name, fill_room, room_assembly, weights_assembly, write_weights
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import replacing
from msc.support.processors import detect_cores
from msc.support.temporary import leave_temporary, make_temporary, remove_temporary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["so", "o", "a", "exe"]

_MESSAGE_LINES = 12
_CALLS = "artifact_calls.c"
"""What is the same in all libraries."""
_known_calls = dict[tuple[Toolchain, tuple[str, ...]], bytes]()
"""The objects of that which this process has built, by compiler and flags."""


@dataclass(frozen=True)
class BuildOptions:
    """`flags` are added after msc's own; `sanitize` builds with AddressSanitizer and UBSan.

    So many compilers run at once as there are `processors`; with one, the C is compiled as one file.
    """

    flags: tuple[str, ...] = ()
    sanitize: bool = False
    toolchain: Toolchain | None = None
    processors: int = field(default_factory=detect_cores)

    def compiler(self) -> Toolchain:
        return self.toolchain or find_toolchain()


def build(
    program: CProgram,
    weights: Mapping[str, NDArray[np.generic]],
    kind: Kind,
    out: Path,
    options: BuildOptions | None = None,
    *,
    meanwhile: Callable[[], None] | None = None,
) -> Path:
    """Build `out`, which appears whole or not at all. `weights` maps parameter names to their data.

    `meanwhile` is called once, as soon as compilers run; what it raises ends them.

    Raises MSC0502 (no compiler), MSC0503 (it failed), MSC0509 (it is for another machine), MSC0505 (weights), MSC0004
    (cannot write).
    """
    chosen = options or BuildOptions()
    folder = make_temporary("build")
    kept = False
    try:
        _compile(program, weights, kind, folder, chosen, meanwhile or _nothing)
        if kind == "so":
            append_seal(folder / "result", program.signature.to_json())
        place(folder / "result", out, executable=kind in ("so", "exe"))
    except MscError as error:
        kept = any(d.code in ("MSC0503", "MSC0519") for d in error.diagnostics)
        if error.diagnostics[0].code == "MSC0503" and _is_for_another_machine(chosen.compiler(), program.march):
            kept = False
            raise _for_another_machine(chosen.compiler(), program.march) from error
        raise
    except OSError as error:
        message = f"the C compiler's files cannot be written into '{folder}': {error.strerror or error}"
        raise MscError(Diagnostic("MSC0021", message, help="TMPDIR=FOLDER names a folder with room")) from error
    finally:
        (leave_temporary if kept else remove_temporary)(folder)
    return out


def source_texts(program: CProgram, kind: Kind, processors: int = 1) -> dict[str, str]:
    """The texts that a compiler makes the `kind` of, by file name: C, header and, by kind, what calls the model."""
    texts = {f"{program.name}.h": program.header, **program.companions, **_model_texts(program, kind, processors)}
    if kind == "so":
        texts |= {"artifact.c": artifact_text(program), _CALLS: calls_text()}
    if kind == "exe":
        texts |= {"main.c": main_text(), "model_table.h": table_text(program), "tensor.h": tensor_text()}
    return texts


def _write_texts(program: CProgram, folder: Path, kind: Kind, processors: int) -> list[str]:
    """The names of the C files, with all texts written."""
    texts = source_texts(program, kind, processors)
    for file_name, text in texts.items():
        (folder / file_name).write_text(text, encoding="utf-8")
    return [file_name for file_name in texts if file_name.endswith(".c")]


def _model_texts(program: CProgram, kind: Kind, processors: int) -> dict[str, str]:
    """The model's C: several files where that pays, but for an object one: what that is linked with would see more."""
    name, split = program.name, program.split
    count = split.count(processors) if split is not None and kind not in ("o", "a") else 1
    if split is None or count == 1:
        return {f"{name}.c": program.source}
    return {f"{name}_{k}.c": text for k, text in enumerate(split.units(count))}


def _write_weights(program: CProgram, weights: Mapping[str, NDArray[np.generic]], folder: Path) -> None:
    with (folder / bytes_name(program.name)).open("wb") as file:
        write_weights(program, weights, file)


def compile_flags(program: CProgram, options: BuildOptions) -> tuple[str, ...]:
    """Everything that decides what the compiler makes of the C."""
    threads = THREAD_FLAGS if program.signature.threads != 1 else ()
    sanitize = SANITIZER_FLAGS if options.sanitize else ()
    own = () if options.compiler().is_clang else GCC_FLAGS
    ranks = mpi_flags("compile") if needs_mpi(program.source) else ()
    return (*BUILD_FLAGS, *own, *program.march, *threads, *sanitize, *ranks, *options.flags)


def _nothing() -> None:
    pass


def _compile(
    program: CProgram,
    weights: Mapping[str, NDArray[np.generic]],
    kind: Kind,
    folder: Path,
    options: BuildOptions,
    meanwhile: Callable[[], None],
) -> None:
    flags = compile_flags(program, options)
    objects = _objects(program, kind, folder, options, [*flags, *([] if kind == "exe" else ["-fPIC"])], meanwhile)
    if program.linked is not None:
        objects.append(str(text_object(program.linked, folder, options.compiler())))
    if not program.signature.weights_bytes:
        return _link(program, kind, objects, folder, options, flags)
    if kind in ("so", "exe"):
        _link(
            program,
            kind,
            [*objects, _assembled(program, room_assembly(program), folder, options)],
            folder,
            options,
            flags,
        )
        if fill_room(folder / "result", program, weights):
            return None
    _write_weights(program, weights, folder)
    return _link(
        program,
        kind,
        [*objects, _assembled(program, weights_assembly(program), folder, options)],
        folder,
        options,
        flags,
    )


def _assembled(program: CProgram, text: str, folder: Path, options: BuildOptions) -> str:
    source = assembly_name(program.name)
    (folder / source).write_text(text, encoding="utf-8")
    return _object(source, folder, options, [])


def _link(
    program: CProgram,
    kind: Kind,
    objects: Sequence[str],
    folder: Path,
    options: BuildOptions,
    flags: Sequence[str],
) -> None:
    libraries = ("-lm", *(mpi_flags("link") if needs_mpi(program.source) else ()))
    match kind:
        case "so":
            _run(options, folder, [*flags, *LINK_FLAGS, "-fPIC", "-shared", "-o", "result", *objects, *libraries])
        case "exe":
            _run(options, folder, [*flags, *LINK_FLAGS, "-o", "result", *objects, *libraries])
        case "o":
            _run(options, folder, ["-r", "-nostdlib", "-o", "result", *objects])
        case "a":
            _run(options, folder, ["-r", "-nostdlib", "-o", "model.o", *objects])
            _archive(options, folder, "model.o")


def _objects(
    program: CProgram,
    kind: Kind,
    folder: Path,
    options: BuildOptions,
    flags: Sequence[str],
    meanwhile: Callable[[], None],
) -> list[str]:
    """Each file compiled by itself, as many at once as there are processors. Whatever goes wrong ends all of them.

    The compiler is found before: a signal interrupts this thread alone, so a search in the pool's would go on.
    """
    options = replace(options, toolchain=options.compiler())
    sources = _write_texts(program, folder, kind, options.processors)
    with ThreadPoolExecutor(options.processors) as pool, Commands() as commands:
        running = [pool.submit(_object, source, folder, options, flags, commands) for source in sources]
        meanwhile()
        done, _ = wait(running, return_when=FIRST_EXCEPTION)
        return [compiled.result() for compiled in running if compiled in done]


def _object(
    source: str, folder: Path, options: BuildOptions, flags: Sequence[str], commands: Commands | None = None
) -> str:
    made = f"{Path(source).stem}.o"
    key = (options.compiler(), tuple(flags))
    if source == _CALLS and key in _known_calls:
        (folder / made).write_bytes(_known_calls[key])
        return made
    _run(options, folder, [*flags, "-c", "-o", made, source], commands)
    if source == _CALLS:
        _known_calls[key] = (folder / made).read_bytes()
    return made


def _archive(options: BuildOptions, folder: Path, member: str) -> None:
    """An archive of one object, by the archiver that the compiler names."""
    compiler = options.compiler()
    archiver = compiler.archiver()
    result = run_command((archiver, "rcs", "result", member), folder, compile_timeout())
    if result.returncode != 0 or not begins_as(folder / "result", "a"):
        raise _failed(compiler, (archiver, "rcs", "result", member), folder, result.stderr or "it wrote no archive")


def _run(options: BuildOptions, folder: Path, arguments: Sequence[str], commands: Commands | None = None) -> None:
    """Run the compiler, and see that it made what was asked for: a broken one may say that it did."""
    compiler, made = options.compiler(), folder / arguments[arguments.index("-o") + 1]
    try:
        result = compiler.run(arguments, folder, commands)
    except subprocess.TimeoutExpired as error:
        raise _endless(compiler, arguments, folder) from error
    except OSError as error:
        raise _failed(compiler, arguments, folder, str(error)) from error
    if result.returncode != 0:
        raise _failed(compiler, arguments, folder, result.stderr or f"exit status {result.returncode}")
    if not made.is_file():
        raise _failed(compiler, arguments, folder, "it reported success and wrote nothing")
    if not begins_as(made, "o"):
        raise _failed(compiler, arguments, folder, f"it reported success, but '{made.name}' is no object file")


def _endless(compiler: Toolchain, arguments: Sequence[str], folder: Path) -> MscError:
    message = f"the C compiler did not end within {compile_timeout():g} seconds: {compiler.version}"
    notes = (f"the command was: {' '.join((*compiler.command, *arguments))}", f"its files are in {folder}")
    return MscError(Diagnostic("MSC0519", message, notes=notes, help=f"{TIMEOUT_VARIABLE}=SECONDS gives it more time"))


def _failed(compiler: Toolchain, arguments: Sequence[str], folder: Path, text: str) -> MscError:
    refused = refused_by_system(text)
    if refused is not None:
        return MscError(refused)
    with suppress(OSError):
        (folder / "compiler-output.txt").write_text(text, encoding="utf-8")
    lines = text.strip().splitlines()[:_MESSAGE_LINES]
    return MscError(
        Diagnostic(
            "MSC0503",
            f"the C compiler failed: {compiler.version}",
            notes=(
                *lines,
                f"the command was: {' '.join((*compiler.command, *arguments))}",
                f"its files are in {folder}",
            ),
            help="generated C should always compile: please report this with those files",
        )
    )


def _is_for_another_machine(compiler: Toolchain, march: Sequence[str]) -> bool:
    return compiler.accepts(()) and not compiler.accepts(march)


def _for_another_machine(compiler: Toolchain, march: Sequence[str]) -> MscError:
    message = f"this C compiler does not build for {' '.join(march)}: {compiler.version}"
    advice = "name one that does, say `CC=aarch64-linux-gnu-gcc msc ...`, or write C or a bundle and build that there"
    return MscError(Diagnostic("MSC0509", message, help=advice))


def place(source: Path, out: Path, executable: bool) -> None:
    """Put a finished file where it was asked for, atomically: moved where the file system is the same, else copied."""
    if not out.exists() and not out.is_symlink():
        with suppress(OSError):
            source.rename(out)
            return
    with replacing(out) as target, source.open("rb") as file:
        shutil.copyfileobj(file, target, 1 << 20)
    if executable:
        with suppress(OSError):
            out.chmod(out.stat().st_mode | 0o111 & ~_umask_of(out))


def _umask_of(path: Path) -> int:
    """Who may not read the file may not execute it either."""
    mode = path.stat().st_mode
    return 0o111 & ~(mode >> 2)
