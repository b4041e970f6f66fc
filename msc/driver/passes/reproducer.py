"""A file that repeats a bug of msc: the module before the pass that failed, and the passes that were left to run.

As MLIR's crash reproducers, the pipeline stands in the file itself, in its first line: `msc opt FILE` runs it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from msc.ir.locations import format_module
from msc.support.diagnostics import MscError
from msc.support.failures import diagnosed, is_internal

KEPT = 16
"""Reproducers of one user that stay in the folder for temporary files: the newest."""

_PIPELINE = "// msc opt: "
_PREFIX = "msc-reproducer-"


def recorded_pipeline(text: str) -> str:
    """The pipeline that a module's text asks for in its first line; "" if it asks for none."""
    first = text.partition("\n")[0]
    return first.removeprefix(_PIPELINE).strip() if first.startswith(_PIPELINE) else ""


class Reproducing:
    """A context in which each of `passes` runs: an error that is a bug of msc leaves with the name of a reproducer.

    `done` counts the passes that have ended well. With `change`, passes may change the module, so a copy of it is kept;
    what ran on the module `earlier` has one already.
    """

    def __init__(
        self,
        context: Context,
        module: ModuleOp,
        passes: Sequence[ModulePass],
        *,
        change: bool = True,
        earlier: Reproducing | None = None,
    ) -> None:
        self._context = context
        if earlier is None:
            self._before, self._passes, self.done = module.clone() if change else module, tuple(passes), 0
        else:
            self._before, self._passes, self.done = earlier._before, (*earlier._passes, *passes), earlier.done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and is_internal(error):
            told = with_reproducer(error, self._text, ".mir", "msc opt {}")
            raise _of_package(told, self._passes[self.done]) from error

    def _text(self) -> str:
        """The passes that went well are run again on what they were given: they leave the same."""
        for item in self._passes[: self.done]:
            item.apply(self._context, self._before)
        rest = ",".join(str(item.pipeline_pass_spec()) for item in self._passes[self.done :])
        return f"{_PIPELINE}{rest}\n{format_module(self._before, debuginfo=True)}"


def _of_package(error: MscError, item: ModulePass) -> MscError:
    """The error as it is, or, where the pass is not one of msc, with whose bug it is."""
    package = type(item).__module__.partition(".")[0]
    if package in ("msc", "xdsl"):
        return error
    first, *others = error.diagnostics
    message = (
        f"pass '{item.name}' of '{type(item).__module__}' failed: {first.message.removeprefix('internal error: ')}"
    )
    advice = "the mistake is in that pass, not in msc; --debug shows the traceback"
    return MscError(replace(first, message=message, help=advice), *others)


def with_reproducer(error: Exception, text: Callable[[], str], suffix: str, command: str) -> MscError:
    """The error as a diagnostic, with the name of a file that repeats it; `command` runs that file, `{}`."""
    diagnostics = error.diagnostics if isinstance(error, MscError) else (diagnosed(error),)
    first, *others = diagnostics
    if any("reproducer" in note for note in first.notes):
        return MscError(*diagnostics)
    path = _written(text, suffix)
    note = () if path is None else (f"the reproducer is {path}: {command.format(path)} repeats the error",)
    return MscError(replace(first, notes=(*first.notes, *note)), *others)


def _written(text: Callable[[], str], suffix: str) -> str | None:
    """The file; None where none can be made, which must not hide the error: a pass may take what has no text."""
    with suppress(Exception):
        written = text()
        _remove_old()
        descriptor, path = tempfile.mkstemp(prefix=_PREFIX, suffix=suffix)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(written)
        return path
    return None


def _remove_old() -> None:
    """Make room for one: a program that meets one bug again and again must not fill the disk."""
    own = list[tuple[int, str]]()
    for entry in os.scandir(tempfile.gettempdir()):
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            if entry.name.startswith(_PREFIX) and stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                own.append((status.st_mtime_ns, entry.path))
    for _, path in sorted(own, reverse=True)[KEPT - 1 :]:
        with suppress(OSError):
            os.unlink(path)
