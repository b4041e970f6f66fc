"""The edge of every program of msc: exit codes, rendered errors, and no traceback unless --debug asks for it."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, Self, TextIO

import click

from msc.driver.interruptions import Ended, end_by, ending_on_signals, leave, say
from msc.support.colours import for_stream
from msc.support.diagnostics import Diagnostic, MscError, render
from msc.support.failures import diagnosed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EXIT_FAILURE = 1
_OUTPUT = "the standard output"
_YOUNG = 2_000_000
"""Objects that a program makes before the collector of cycles looks through them: about half a gigabyte. A deep network
is fewer, and goes with the process; looking through its IR took a fifteenth of the time to compile it.
"""


def run_program(command: click.Command, name: str) -> NoReturn:
    """Run a click command on the process's arguments and exit: 0, 1 for an MscError, 2 for wrong usage, 130 for ^C."""
    _open_standard_streams()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # what is left goes with the process: nothing looks through it for cycles
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    with Reports(debug=len(arguments) < len(sys.argv) - 1), ending_on_signals():
        status: object = command.main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)


class Reports:
    """Turns what escapes the program into its message and its exit code."""

    def __init__(self, *, debug: bool) -> None:
        self._debug = debug

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, SystemExit):
            return
        status = self._report(error)
        if status is not None:
            sys.exit(status)

    def _report(self, error: BaseException) -> int | None:
        """Print what there is to say; None lets the exception go on, with its traceback."""
        match error:
            case click.exceptions.Exit():
                return error.exit_code
            case click.ClickException():
                with suppress(OSError):
                    error.show()
                _abandon_output()
                return error.exit_code
            case Ended():
                leave(error.number)
            case KeyboardInterrupt() | click.Abort():
                return end_by(signal.SIGINT)
            case BrokenPipeError():
                _abandon_output()
                return EXIT_FAILURE
            case _ if self._debug:
                return None
            case MscError():
                _abandon_output()
                say(for_stream(str(error)))
                return EXIT_FAILURE
            case _:
                refused = _refused_output(error)
                _abandon_output()
                say(for_stream(render(refused or diagnosed(error))))
                return EXIT_FAILURE
        return None


class _Output(io.FileIO):
    """The standard output, whose errors name it."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = _OUTPUT
            raise


def _open_standard_streams() -> None:
    """Put something in the place of standard streams that are closed: the next files opened would get their numbers.

    What is written to a closed output fails, as it would have.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    streams: tuple[TextIO | None, TextIO | None] = (sys.stdout, sys.stderr)
    out, errors = (stream or os.fdopen(k + 1, "w", closefd=False) for k, stream in enumerate(streams))
    if isinstance(out, io.TextIOWrapper) and sys.stdout in (None, sys.__stdout__):
        raw = io.BufferedWriter(_Output(1, "w", closefd=False))
        out = io.TextIOWrapper(
            raw, out.encoding, out.errors, line_buffering=out.line_buffering, write_through=out.write_through
        )
    sys.stdout, sys.stderr = out, errors


def _refused_output(error: BaseException) -> Diagnostic | None:
    """What to tell of an error of the standard output."""
    if not isinstance(error, OSError) or error.filename != _OUTPUT:
        return None
    from msc.support.files import cannot_write

    return cannot_write(_OUTPUT, error).diagnostics[0]


def _abandon_output() -> None:
    """Where output cannot be written, Python would complain once more when it flushes at exit."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
