"""Memory of calls: results where stores do not hinder loads, and scratch memory for each thread."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from msc.runtime.program import ALIGNMENT
from msc.support.arrays import Array

_addressof = ctypes.addressof
_from_buffer = cast(Callable[[Array], ctypes.c_char], ctypes.c_char.from_buffer)

LARGE = 64 * 1024
"""Bytes of a result from which on its place in memory is worth a microsecond."""

PAGE = 4096
BEHIND = 512
"""Bytes that a result's place in its page lies behind that of the largest input.

A load waits for stores before it to addresses that agree in their last 12 bits, as those just written and those read
next do where both arrays are passed in the same order, at the same places of their pages or a little further on.
"""


class Workspace(threading.local):
    """Scratch memory and the array of pointers, one of each for every thread: calls in threads do not meet.

    A call holds on to `memory` itself: that of a thread goes when the interpreter ends, before the thread does.
    """

    def __init__(self, nbytes: int, tensors: int) -> None:
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = memory.ctypes.data
        self.memory = memory, (ctypes.c_void_p * max(tensors, 1))(), ctypes.c_void_p(start + -start % ALIGNMENT)


def array_beside(beside: int, shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> Array:
    """An uninitialised array.

    A large one starts at a cache line, so that no vector that is stored lies in two, and a little before the place in
    its page that the address `beside` has.
    """
    if nbytes < LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(nbytes + PAGE, np.uint8)
    place = (beside - BEHIND) & -ALIGNMENT
    return np.ndarray(shape, dtype, memory, (place - address_of(memory)) % PAGE)


def address_of(array: Array) -> int:
    """Where the data lies. The buffer protocol is quicker than `array.ctypes`, but refuses read-only arrays."""
    try:
        return _addressof(_from_buffer(array))
    except (TypeError, ValueError):
        return array.ctypes.data
