"""Artifacts loaded and called: NumPy arrays in, NumPy arrays out, nothing copied that is already as the model wants it.

An artifact is code: loading one runs it, so load only what you built or trust.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from msc.runtime.arguments import Checker, numpy_dtype
from msc.runtime.cache import place_artifact
from msc.runtime.interface import CALLS_SYMBOL, PROFILE_SYMBOL, RUN_SYMBOL, SIGNATURE_SYMBOL
from msc.runtime.open_calls import live_specs, new_output, placed, sizes_of
from msc.runtime.program import ALIGNMENT, Signature
from msc.support.diagnostics import Diagnostic, MscError

Array: TypeAlias = NDArray[Any]

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

_ERRORS = {1: "a pointer was null", 2: "a pointer was misaligned", 3: "the weights were not set"}


class _Workspace(threading.local):
    """Scratch memory and the array of pointers, one of each for every thread: calls in threads do not meet."""

    def __init__(self, nbytes: int, tensors: int) -> None:
        self.memory = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = self.memory.ctypes.data
        self.address = ctypes.c_void_p(start + -start % ALIGNMENT)
        self.pointers = (ctypes.c_void_p * max(tensors, 1))()


def array_beside(beside: int, shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> Array:
    """An uninitialised array.

    A large one starts at a cache line, so that no vector that is stored lies in two, and a little before the place in
    its page that the address `beside` has.
    """
    if nbytes < LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(nbytes + PAGE, np.uint8)
    place = (beside - BEHIND) & -ALIGNMENT
    return np.ndarray(shape, dtype, memory, (place - _address(memory)) % PAGE)


class CompiledModel:
    """A compiled model, callable with arrays in the order of its inputs, or by name; safe to call from many threads."""

    def __init__(self, library: ctypes.CDLL, signature: Signature, path: Path | None = None) -> None:
        self.signature = signature
        self.path = path
        self._library = library
        self._run = _function(library, RUN_SYMBOL)
        self._checker = Checker(signature.inputs)
        self._outputs = tuple((t.shape, numpy_dtype(t.dtype), t.bytes) for t in signature.outputs)
        self._narrow = any(t.codes for t in (*signature.inputs, *signature.outputs))
        sizes = [t.bytes for t in signature.inputs]
        self._largest = sizes.index(max(sizes)) if sizes else None
        arguments = len(signature.inputs) + len(signature.outputs) + len(signature.sizes)
        self._local = _Workspace(signature.workspace_bytes, arguments)

    def __call__(self, *arrays: Array, **named: Array) -> Any:
        """The model's outputs: an array, or a tuple for several, which no type checker can tell apart.

        Raises MSC0601 and MSC0602 (which inputs), MSC0603 (shape), MSC0604 (dtype).
        """
        outputs = self.outputs(*arrays, **named)
        return outputs[0] if len(outputs) == 1 else outputs

    def outputs(self, *arrays: Array, **named: Array) -> tuple[Array, ...]:
        """The model's outputs as a tuple, also when there is one. Raises as a call does."""
        if self._narrow:
            arrays, named = self._coded(arrays, named), {}
        outputs = self._open_outputs(arrays, named) if self.signature.sizes else self._plain_outputs(arrays, named)
        return self._decoded(outputs) if self._narrow else outputs

    def _plain_outputs(self, arrays: tuple[Array, ...], named: Mapping[str, Array]) -> tuple[Array, ...]:
        inputs = self._checker.check(arrays, named)
        outputs = tuple(self._new_outputs(inputs))
        self.call_into(inputs, outputs)
        return outputs

    def _open_outputs(self, arrays: tuple[Array, ...], named: Mapping[str, Array]) -> tuple[Array, ...]:
        inputs = self.check(self._checker.arranged(arrays, named))
        outputs = self.new_outputs(inputs)
        self.call_into(inputs, outputs)
        return tuple(map(np.ascontiguousarray, outputs))

    def _coded(self, arrays: tuple[Array, ...], named: Mapping[str, Array]) -> tuple[Array, ...]:
        """The inputs in order, those of narrow types as their codes."""
        from msc.runtime.narrow_types import codes_of, narrow_dtype

        given = zip(self._checker.arranged(arrays, named), self.signature.inputs, strict=True)
        return tuple(codes_of(np.asarray(a), narrow_dtype(t.codes)) if t.codes else a for a, t in given)

    def _decoded(self, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """The outputs, codes as the values of their narrow types."""
        from msc.runtime.narrow_types import narrow_dtype, values_of

        made = zip(outputs, self.signature.outputs, strict=True)
        return tuple(values_of(a, narrow_dtype(t.codes)) if t.codes else a for a, t in made)

    def new_outputs(self, inputs: Sequence[Array] | None = None) -> list[Array]:
        """Uninitialised arrays for the outputs of a call, of the largest sizes or those of its checked inputs."""
        if not self.signature.sizes:
            return self._new_outputs(inputs)
        sizes = [s.high for s in self.signature.sizes] if inputs is None else sizes_of(self.signature, inputs)
        return [new_output(tensor, sizes) for tensor in self.signature.outputs]

    def _new_outputs(self, inputs: Sequence[Array] | None) -> list[Array]:
        beside = _address(inputs[self._largest]) if inputs and self._largest is not None else 0
        return [array_beside(beside, *output) for output in self._outputs]

    def check(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """The inputs in order as `call_into` takes them. Raises MSC0601 to MSC0604."""
        if not self.signature.sizes:
            return self._checker.check(tuple(arrays), {})
        given = self._checker.arranged(tuple(arrays), {})
        sizes = sizes_of(self.signature, given)
        checked = Checker(live_specs(self.signature.inputs, sizes)).check(tuple(given), {})
        return [placed(a, t) for a, t in zip(checked, self.signature.inputs, strict=True)]

    def call_into(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run on arrays already checked: of the right shapes and dtypes, lying in memory as the model has them."""
        local = self._local
        pointers = local.pointers
        position = 0
        for array in inputs:
            pointers[position] = _address(array)
            position += 1
        for array in outputs:
            pointers[position] = _address(array)
            position += 1
        sizes = self._place_sizes(inputs) if self.signature.sizes else None
        status = self._run(pointers, local.address)
        del sizes
        if status:
            raise _reported(status)

    def _place_sizes(self, inputs: Sequence[Array]) -> Array:
        """Put the addresses of the sizes behind those of the tensors; they lie in the result."""
        sizes = np.array(sizes_of(self.signature, inputs), np.int64)
        first = len(self.signature.inputs) + len(self.signature.outputs)
        for k in range(len(sizes)):
            self._local.pointers[first + k] = sizes.ctypes.data + k * sizes.itemsize
        return sizes

    def save(self, path: Path | str) -> None:
        """Write the shared library that `msc.load` takes. Raises MSC0004."""
        if self.path is None:
            raise MscError(Diagnostic("MSC0004", f"cannot write '{path}': the model was not loaded from a file"))
        place_artifact(self.path, Path(path))

    @property
    def calls(self) -> tuple[str, ...]:
        """Names of the kernel calls, if the model was built for profiling; else none."""
        if not hasattr(self._library, CALLS_SYMBOL):
            return ()
        names = _function(self._library, CALLS_SYMBOL, ctypes.POINTER(ctypes.c_char_p))()
        return tuple(_until_null(names))

    def profile(self, inputs: Sequence[Array], seconds: NDArray[np.float64]) -> tuple[Array, ...]:
        """One call that adds each kernel call's time to `seconds`; needs a model built for profiling."""
        checked = self.check(inputs)
        outputs = self.new_outputs(checked)
        self.profile_into(checked, outputs, seconds)
        return tuple(outputs)

    def profile_into(self, inputs: Sequence[Array], outputs: Sequence[Array], seconds: NDArray[np.float64]) -> None:
        """As `profile`, on arrays already checked."""
        local = self._local
        addresses = [_address(array) for array in (*inputs, *outputs)] or [0]
        local.pointers[: len(addresses)] = addresses
        sizes = self._place_sizes(inputs) if self.signature.sizes else None
        run = _function(self._library, PROFILE_SYMBOL)
        status = run(local.pointers, local.address, ctypes.c_void_p(seconds.ctypes.data))
        del sizes
        if status:
            raise _reported(status)


def _address(array: Array) -> int:
    """Where the data lies. The buffer protocol is quicker than `array.ctypes`, but refuses read-only arrays."""
    try:
        return _addressof(_from_buffer(array))
    except (TypeError, ValueError):
        return array.ctypes.data


def _until_null(names: object) -> list[str]:
    pointer = cast(Sequence[bytes | None], names)
    found = list[str]()
    while (name := pointer[len(found)]) is not None:
        found.append(name.decode())
    return found


def _reported(status: int) -> MscError:
    meaning = _ERRORS.get(status, f"error {status}")
    return MscError(Diagnostic("MSC0606", f"the compiled model returned an error: {meaning}"))


def _function(library: ctypes.CDLL, name: str, result: type | None = ctypes.c_int) -> Callable[..., int]:
    function = library[name]
    function.restype = result
    return cast(Callable[..., int], function)


def load(path: Path | str) -> CompiledModel:
    """Load a shared library that msc built. Raises MSC0504 when it is something else, MSC0001 when it is not there."""
    file = Path(path).resolve()
    if not file.is_file():
        raise MscError(Diagnostic("MSC0001", f"cannot read '{path}': no such file"))
    try:
        library = ctypes.CDLL(str(file))
        text = cast(bytes, cast(object, _function(library, SIGNATURE_SYMBOL, ctypes.c_char_p)()))
        signature = Signature.from_json(text.decode())
    except (OSError, AttributeError, ValueError) as error:
        message = f"'{path}' is not an artifact that this msc can load"
        raise MscError(Diagnostic("MSC0504", message, notes=(str(error)[:300], *_machine_notes(file)))) from error
    return CompiledModel(library, signature, file)


def _machine_notes(file: Path) -> tuple[str, ...]:
    """What the loader does not say of an ELF file for another machine than this Python's."""
    is_elf = _head(file).startswith(b"\x7fELF")
    return ("it was built for another machine",) if is_elf and _machine(file) != _machine(Path(sys.executable)) else ()


def _machine(file: Path) -> tuple[bytes, bytes]:
    """An ELF file's class and order of bytes, and its machine."""
    head = _head(file)
    return head[4:6], head[18:20]


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(20)
