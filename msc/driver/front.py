"""The edge of every program of msc: exit codes, rendered errors, and no traceback unless --debug asks for it."""

from __future__ import annotations

import os
import signal
import sys
from types import TracebackType
from typing import NoReturn, Self

import click

from msc.support.colours import for_stream
from msc.support.diagnostics import MscError, render
from msc.support.failures import diagnosed

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def run_program(command: click.Command, name: str) -> NoReturn:
    """Run a click command on the process's arguments and exit: 0, 1 for an MscError, 2 for wrong usage, 130 for ^C."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    with _Reporting(debug=len(arguments) < len(sys.argv) - 1):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status: object = command.main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)


class _Reporting:
    """Turns what escapes the program into its message and its exit code."""

    def __init__(self, *, debug: bool) -> None:
        self._debug = debug

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
                error.show()
                return error.exit_code
            case KeyboardInterrupt() | click.Abort():
                return EXIT_INTERRUPTED
            case BrokenPipeError():
                # The reader has gone; Python would complain once more when it flushes at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return EXIT_FAILURE
            case _ if self._debug:
                return None
            case MscError():
                print(for_stream(str(error)), file=sys.stderr)
                return EXIT_FAILURE
            case _:
                print(for_stream(render(diagnosed(error))), file=sys.stderr)
                return EXIT_FAILURE
