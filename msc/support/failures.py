"""Exceptions of Python's at the edge of msc, as diagnostics: of known causes with a code, all others as bugs of msc."""

from __future__ import annotations

import errno
import os
from typing import Self

from msc.support.diagnostics import Diagnostic, MscError

_INTERNAL = "MSC09"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_FILES = (errno.EMFILE, errno.ENFILE)
_ADVICE = "this is a bug in msc: please report it with the command and its input; --debug shows the traceback"


def diagnosed(error: BaseException) -> Diagnostic:
    """What to tell of an exception that is no MscError."""
    match error:
        case MemoryError():
            message = "there is not enough memory for what was asked"
            return Diagnostic("MSC0020", message, help="a smaller model or batch, or a machine with more memory")
        case OSError():
            return _of_system(error)
        case _:
            reason = str(error).partition("\n")[0][:200]
            message = f"internal error: {type(error).__name__}{': ' if reason else ''}{reason}"
            return Diagnostic("MSC0900", message, help=_ADVICE)


def _of_system(error: OSError) -> Diagnostic:
    """What the system refused, with the file if there is one."""
    what = error.strerror or str(error) or type(error).__name__
    name = f"'{error.filename}': " if isinstance(error.filename, str) else ""
    if error.errno in _NO_SPACE:
        advice = "free some space, or set TMPDIR to a folder with more; `ulimit -f` limits the size of files"
    elif error.errno in _NO_FILES:
        advice = "`ulimit -n` limits the number of open files"
    else:
        advice = "check the file, and the folders for temporary files (TMPDIR) and for the cache (XDG_CACHE_HOME)"
    return Diagnostic("MSC0021", f"the system refused what msc needs: {name}{what}", help=advice)


def is_internal(error: BaseException) -> bool:
    """Whether an exception means a bug in msc."""
    if isinstance(error, MscError):
        return error.diagnostics[0].code.startswith(_INTERNAL)
    return isinstance(error, Exception) and diagnosed(error).code.startswith(_INTERNAL)


class Door:
    """The edge of a public function: what leaves it is an MscError, or what ends programs, as KeyboardInterrupt.

    A user's mistake leaves without the traceback of msc's inside, which explains nothing; MSC_TRACEBACK=1 keeps it.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, MscError):
            raise MscError(diagnosed(error)) from error
        if error is not None and not is_internal(error) and not os.environ.get("MSC_TRACEBACK"):
            error.__traceback__ = error.__cause__ = None
            error.__suppress_context__ = True
