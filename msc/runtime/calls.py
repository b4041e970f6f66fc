"""Calls of an artifact's functions: in the caller's thread, or in one of their own.

A thread of its own gets a call that does not fit on the caller's stack, and one that may take long, made from Python's
main thread: Python can look for ^C only while that waits.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.typing import NDArray

from msc.runtime.interface import (
    CANCEL_SYMBOL,
    CANCELLED,
    NO_STACK,
    PROFILE_SYMBOL,
    RUNNING,
    SPARE_STACK,
    START_SYMBOL,
    WAIT_SYMBOL,
    run_symbol,
)
from msc.runtime.program import Signature
from msc.runtime.shared_library import SharedLibrary
from msc.support.diagnostics import Diagnostic, MscError

Array: TypeAlias = "NDArray[Any]"
Pointers: TypeAlias = "ctypes.Array[ctypes.c_void_p]"

LONG = 1 << 28
"""Operations from which on a call may take a tenth of a second and more."""

_STACK = 1 << 20
"""The least stack of a call's own thread; more than its pages that are used costs nothing."""

_WAIT_MILLISECONDS = 100
_PATIENCE = 8
"""How often a call that was ended is waited for; one that shares a loop with other threads ends behind that."""

_ERRORS = {1: "a pointer was null", 2: "a pointer was misaligned", 3: "the weights were not set"}

_abandoned: list[object] = []
"""Memory that calls which could not be ended may still write to."""


class Calls:
    """How the functions of one library are called: `run(pointers, workspace)`, then `settle` what is not 0."""

    def __init__(self, library: SharedLibrary, signature: Signature, number: int = 0) -> None:
        """Of function `number` of the library. Raises AttributeError for a library without them."""
        here = library.function(run_symbol(number))
        self._number = ctypes.c_size_t(number)
        is_long = signature.operations is None or signature.operations >= LONG
        self.run = _outside_main_thread(here) if is_long else here
        self.has_clocks = number == 0 and library.has(PROFILE_SYMBOL)
        self._start = library.function(START_SYMBOL, ctypes.c_void_p)
        self._wait = library.function(WAIT_SYMBOL)
        self._cancel = library.function(CANCEL_SYMBOL, None)
        self._stack = ctypes.c_size_t(max(_STACK, signature.stack_bytes + 2 * SPARE_STACK))
        self._updates = any(tensor.result is not None for tensor in signature.inputs)
        self._library = library

    def settle(self, status: int, pointers: Pointers, workspace: ctypes.c_void_p, keep: object) -> None:
        """Do what is left to do after `run(pointers, workspace)` returned something else than 0.

        `keep` holds all memory that the model reads and writes. Raises MSC0606, MSC0612.
        """
        final = self._apart(pointers, workspace, keep) if status == NO_STACK else status
        if final:
            raise _reported(final)

    def profiled(self, pointers: Pointers, workspace: ctypes.c_void_p, keep: object, seconds: Array) -> None:
        """Run with clocks between kernels, which add to `seconds`. Raises MSC0606, MSC0612."""
        status = self._apart(pointers, workspace, (keep, seconds), ctypes.c_void_p(seconds.ctypes.data))
        if status:
            raise _reported(status)

    def _apart(self, pointers: Pointers, workspace: ctypes.c_void_p, keep: object, seconds: Any = None) -> int:
        """The status of a call in a thread of its own, which ends when this is interrupted. Raises MSC0612.

        One that updates arrays of the caller's is not ended half-way, unless it is interrupted once more.
        """
        running: int | None = None
        try:
            running = self._start(pointers, workspace, seconds, self._stack, self._number)
            if not running:
                message = "the system gives no thread for a call that needs one of its own"
                raise MscError(Diagnostic("MSC0612", message))
            return self._waited(running)
        except KeyboardInterrupt:
            if running and not (self._updates and self._completed(running)):
                self._end(running, keep)
            raise

    def _waited(self, running: int) -> int:
        pointer = ctypes.c_void_p(running)
        while (status := self._wait(pointer, _WAIT_MILLISECONDS)) == RUNNING:
            pass
        return status

    def _completed(self, running: int) -> bool:
        """Whether a call came to its end by itself before this was interrupted."""
        try:
            self._waited(running)
        except KeyboardInterrupt:
            return False
        return True

    def _end(self, running: int, keep: object) -> None:
        pointer = ctypes.c_void_p(running)
        self._cancel(pointer)
        for _ in range(_PATIENCE):
            if self._wait(pointer, _WAIT_MILLISECONDS) != RUNNING:
                return
        _abandoned.append((self, keep))


def _reported(status: int) -> MscError:
    """The error of a call that returned this."""
    meaning = "it was ended" if status == CANCELLED else _ERRORS.get(status, f"error {status}")
    return MscError(Diagnostic("MSC0606", f"the compiled model returned an error: {meaning}"))


def _outside_main_thread(here: Callable[..., int]) -> Callable[..., int]:
    """The function `here`, which refuses to begin in Python's main thread."""

    def run(pointers: Pointers, workspace: ctypes.c_void_p) -> int:
        return NO_STACK if threading.current_thread() is threading.main_thread() else here(pointers, workspace)

    return run
