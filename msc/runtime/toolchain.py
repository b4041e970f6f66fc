"""The system's C compiler: which one, which version, what it accepts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from pathlib import Path

from msc.runtime.commands import Commands, run_command
from msc.runtime.flags import THREAD_FLAGS
from msc.support.diagnostics import Diagnostic, MscError

_CANDIDATES = ("cc", "gcc", "clang")
_VERSION_TIMEOUT = 20
TIMEOUT_VARIABLE = "MSC_CC_TIMEOUT"
"""The environment variable with the seconds after which a C compiler is taken to hang."""
_COMPILE_TIMEOUT = 300.0


@dataclass(frozen=True)
class Toolchain:
    """A C compiler: the command with its own first arguments (`ccache gcc`), and its version line."""

    command: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version.lower()

    @property
    def supports_threads(self) -> bool:
        """Whether a program of several threads compiles and links."""
        return self.accepts(THREAD_FLAGS)

    def accepts(self, flags: Sequence[str]) -> bool:
        """Whether a program compiles and links with these flags."""
        return _links(self.command, tuple(flags))

    def archiver(self) -> str:
        """The `ar` that goes with the compiler. Raises OSError and TimeoutExpired."""
        asked = run_command((*self.command, "-print-prog-name=ar"), None, _VERSION_TIMEOUT)
        return asked.stdout.strip() or "ar"

    def run(
        self, arguments: Sequence[str], folder: Path, commands: Commands | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the compiler in `folder`, as one of `commands`. OSError, TimeoutExpired and Stopped come through."""
        run = commands.run if commands else run_command
        return run((*self.command, *arguments), folder, compile_timeout())


def compile_timeout() -> float:
    """Seconds that one run of the compiler may take. Raises MSC0008 when the variable holds something else."""
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        seconds = float(text) if text else _COMPILE_TIMEOUT
    except ValueError:
        seconds = nan
    if not 0 < seconds < threading.TIMEOUT_MAX:
        message = f"{TIMEOUT_VARIABLE} is '{text}', which is no number of seconds"
        raise MscError(Diagnostic("MSC0008", message, help=f"unset it, or write {TIMEOUT_VARIABLE}=300"))
    return seconds


_REFUSALS = (
    (
        ("No space left on device", "Disk quota exceeded", "File too large", "File size limit exceeded"),
        ("MSC0021", "there is no room for the C compiler's files", "TMPDIR=FOLDER names a folder with room"),
    ),
    (
        ("Too many open files",),
        ("MSC0021", "the C compiler may open no more files", "`ulimit -n` limits the number of open files"),
    ),
    (
        ("Cannot allocate memory", "out of memory", "virtual memory exhausted", "Killed signal terminated program"),
        ("MSC0020", "there is not enough memory for the C compiler", "a machine with more memory, or fewer at once"),
    ),
)
"""What compilers and linkers say, in English, where the system refuses them something, and what to tell of it."""


def refused_by_system(text: str) -> Diagnostic | None:
    """What to tell of a compiler's messages if they name a limit of the system: the C is not to blame then."""
    for line in text.splitlines():
        for signs, (code, message, advice) in _REFUSALS:
            if any(sign in line for sign in signs):
                return Diagnostic(code, message, notes=(line.strip(),), help=advice)
    return None


def find_toolchain() -> Toolchain:
    """$CC, else cc, gcc, clang on the PATH. Raises MSC0502 when there is none that runs."""
    return _find(os.environ.get("CC", ""), os.environ.get("PATH", ""), _here())


def _here() -> str:
    """The working folder; nothing where that was removed."""
    with suppress(OSError):
        return str(Path.cwd())
    return ""


@lru_cache(maxsize=8)
def _find(wanted: str, path: str, here: str) -> Toolchain:
    """Cached by what it depends on: the environment's CC and PATH, and the folder in which they mean something."""
    named = _words(wanted)
    for words in (named,) if named else tuple((name,) for name in _CANDIDATES):
        command = _anywhere(words, path, here)
        version = _version(command, path)
        if version is not None:
            return Toolchain(command, version)
    raise _no_compiler(wanted)


def _words(wanted: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(wanted))
    except ValueError as error:
        raise _no_compiler(wanted) from error


def _anywhere(words: tuple[str, ...], path: str, here: str) -> tuple[str, ...]:
    """The command for any folder, as it runs in a temporary one: relative paths, as of `CC=./cc`, become absolute."""
    program = shutil.which(words[0], path=path)
    if program is None or not here:
        return words
    first = words[0] if os.path.isabs(program) and os.sep not in words[0] else os.path.join(here, program)
    return (first, *(os.path.join(here, word) if _is_local(word, path, here) else word for word in words[1:]))


def _is_local(word: str, path: str, here: str) -> bool:
    """Whether an argument, as of `python3 wrapper.py`, is a file of the working folder and no program of the PATH."""
    return (
        not word.startswith("-")
        and Path(here, word).is_file()
        and (os.sep in word or not shutil.which(word, path=path))
    )


def _version(command: tuple[str, ...], path: str) -> str | None:
    if shutil.which(command[0], path=path) is None:
        return None
    try:
        result = run_command((*command, "--version"), None, _VERSION_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = result.stdout.splitlines()
    return lines[0].strip() if result.returncode == 0 and lines else None


def _no_compiler(wanted: str) -> MscError:
    looked = f"$CC is '{wanted}', which does not run" if wanted else f"none of {', '.join(_CANDIDATES)} is on the PATH"
    return MscError(
        Diagnostic(
            "MSC0502",
            f"no C compiler: {looked}",
            help="install one, say `sudo apt-get install gcc`, or name one: `CC=/path/to/gcc msc ...`",
        )
    )


def _links(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    try:
        result = run_command(
            (*command, *flags, "-x", "c", "-", "-o", "/dev/null"),
            None,
            _VERSION_TIMEOUT,
            "int main(void) { return 0; }\n",
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0
