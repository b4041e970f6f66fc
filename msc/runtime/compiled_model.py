"""Compiled models: NumPy arrays in, NumPy arrays out, nothing copied that is already as the model wants it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from msc.runtime.arguments import Checker, convertible, numpy_dtype, raise_index_error
from msc.runtime.cache import place_artifact
from msc.runtime.calls import Calls, Pointers
from msc.runtime.interface import CALLS_SYMBOL, ERROR_INDEX
from msc.runtime.narrow_types import codes_of, narrow_dtype, values_of
from msc.runtime.open_calls import OpenCall, OpenCalls, new_output, placed
from msc.runtime.program import ALIGNMENT, Signature, TensorSpec
from msc.runtime.shared_library import SharedLibrary
from msc.runtime.stored_order import StoredOrders, lies_so, not_in_place, own_array
from msc.runtime.structures import Restore, restorer
from msc.runtime.tensor_info import TensorInfo, tensor_infos
from msc.support.argument_values import boolean, described, file_path, sequence
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.failures import diagnosed
from msc.support.notebooks import html_table
from msc.support.outputs import OutputGuard
from msc.support.wording import counted

_PUBLIC = "bind call_into functions inputs new_outputs outputs results save signature state".split()
"""What users call, besides the model itself."""
_OTHER_FORMS = frozenset({".mir", ".onnx", ".c", ".h", ".o", ".a", ".exe", ".bundle", ".safetensors"})


class CompiledModel:
    """A compiled model, callable with arrays in the order of its inputs, or by name; safe to call from many threads.

    `inputs` and `outputs` describe what it takes and gives. It can be pickled: what is pickled is the artifact. `path`
    is the file that it was loaded from, which may have changed or gone since.
    Of a model with several functions, `model.step(x)` and `model["step"](x)` call the one of this name. An array that
    a function updates is given by the caller and is one of the results: the same array with its new contents.
    """

    def __init__(
        self,
        library: SharedLibrary,
        signature: Signature,
        artifact_bytes: int,
        path: Path | None = None,
        number: int = 0,
    ) -> None:
        self._signature = signature
        self.path = path
        self._library = library
        self._artifact_bytes = artifact_bytes
        self._calls = Calls(library, signature, number)
        self._enter = self._calls.run
        self._open = OpenCalls(signature) if signature.sizes else None
        self._checker = Checker(signature.inputs)
        self._orders = StoredOrders(signature.inputs)
        self._outputs = tuple((t.shape, numpy_dtype(t.dtype), t.bytes) for t in signature.outputs)
        self._states = tuple(k for k, t in enumerate(signature.inputs) if t.result is not None)
        self._has_narrow = any(t.codes for t in (*signature.inputs, *signature.outputs))
        is_dense = all(t.is_dense and not t.order for t in (*signature.inputs, *signature.outputs))
        self._plain = is_dense and not self._states and not self._has_narrow and not signature.lengths
        """Whether a call is no more than checked arrays: nothing is updated, moved or decoded."""
        self._restore = _restore_of(signature)
        self._is_single = self._restore is _only
        sizes = [t.bytes for t in signature.inputs]
        placed_beside = bool(sizes) and any(t.bytes >= LARGE for t in signature.outputs)
        self._largest = sizes.index(max(sizes)) if placed_beside else None
        arguments = len(signature.inputs) + len(signature.outputs) + len(signature.sizes)
        self._local = Workspace(signature.workspace_bytes, arguments)
        others = enumerate(signature.others, 1)
        models = (CompiledModel(library, other, artifact_bytes, path, k) for k, other in others)
        self._others = {model.signature.function: model for model in models}

    @property
    def functions(self) -> Mapping[str, CompiledModel]:
        """The entry functions by name; of one that was taken from these, itself."""
        return {self.signature.function: self, **self._others}

    def __getitem__(self, name: str) -> CompiledModel:
        """The function of a name. Raises MSC0605."""
        if name not in self.functions:
            near = did_you_mean(name, self.functions) or f"it has: {', '.join(self.functions)}"
            raise MscError(Diagnostic("MSC0605", f"the model has no function '{name}'", help=near))
        return self.functions[name]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> CompiledModel: ...

    @property
    def signature(self) -> Signature:
        """What the artifact says of itself: tensors as they lie in memory, workspace, target, threads."""
        return self._signature

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each input, in the order of a call."""
        return tensor_infos(self._signature.inputs, self._signature)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each output, in the order of the results."""
        return tensor_infos(self._signature.results, self._signature)

    def __repr__(self) -> str:
        taken, given = (", ".join(map(str, tensors)) for tensors in (self.inputs, self.outputs))
        threads = counted(self._signature.threads, "thread") if self._signature.threads else "all processors"
        return (
            f"<msc.CompiledModel {self._signature.name}({taken}) -> ({given}), for {self._signature.target}, {threads}>"
        )

    def _repr_html_(self) -> str:
        """What notebooks show: the tensors that a call takes and gives."""
        tensors = [("input", each) for each in self.inputs] + [("output", each) for each in self.outputs]
        rows = [(kind, each.name, str(each.dtype), str(each.shape)) for kind, each in tensors]
        threads = counted(self._signature.threads, "thread") if self._signature.threads else "all processors"
        caption = f"CompiledModel {self._signature.name}, for {self._signature.target}, {threads}"
        return html_table(caption, ("", "name", "dtype", "shape"), rows)

    def __dir__(self) -> list[str]:
        """What users call; what verbs and tests of msc use besides is left out."""
        return sorted({*_PUBLIC, *self._others, *(name for name in super().__dir__() if name.startswith("__"))})

    def __call__(self, *arrays: Any, **named: Any) -> Array:
        """The model's results: an array, a tuple for several, or the nested value that the model's function returns.

        Checkers of types are told the first, which most models give; `results` is a tuple always.

        Raises MSC0601 and MSC0602 (which inputs), MSC0603 (shape), MSC0604 (dtype), MSC0614 (an array to be updated).
        """
        results = self.results(*arrays, **named)
        return results[0] if self._is_single else self._restore(results)

    def results(self, *arrays: Array, **named: Array) -> tuple[Array, ...]:
        """The model's results as a tuple, also when there is one. Raises as a call does, and MSC0020."""
        try:
            if self._plain:
                if self._open is not None:
                    return self._plain_open_results(self._checker.arranged(arrays, named), self._open)
                inputs = self._checker.check(arrays, named)
                outputs = tuple(self._new_outputs(inputs))
                self._run(inputs, outputs)
                return outputs
            return self._special_results(self._checker.arranged(arrays, named))
        except MemoryError as error:
            raise MscError(diagnosed(error)) from error

    def _plain_open_results(self, given: Sequence[Array], calls: OpenCalls) -> tuple[Array, ...]:
        call = calls.of(given)
        inputs = call.checker.check(tuple(given), {})
        beside = self._beside(inputs)
        outputs = tuple([array_beside(beside, *output) for output in call.outputs])
        self._run(inputs, outputs, call)
        return outputs

    def _special_results(self, given: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a model with open sizes, narrow types or arrays that are updated in place."""
        inputs = self._in_memory(self._coded(given) if self._has_narrow else given)
        self._check_states(inputs, given)
        results = self._outputs_of(inputs)
        self._run(inputs, results)
        results = [a if a.flags.c_contiguous else a.copy() for a in results]
        return self._meant(inputs, self._decoded(results) if self._has_narrow else results)

    def ordered(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> tuple[Array, ...]:
        """All results after a call on checked inputs: the outputs, with the inputs that it updated in their places."""
        results = list(outputs)
        places = ((self._signature.inputs[k].result or 0, k) for k in self._states)
        for number, position in sorted(places):
            results.insert(number, inputs[position])
        return tuple(results)

    def _meant(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> tuple[Array, ...]:
        """All results after a call, as long as data decided, without these lengths."""
        results = self.ordered(inputs, outputs)
        if not self._signature.lengths:
            return results
        named = {t.name: a for t, a in zip(self._signature.outputs, outputs, strict=True)}
        lengths = {name: int(named[name]) for name in self._signature.lengths}
        parts = {
            id(named[t.name]): tuple(slice(lengths.get(name)) for name in t.counts)
            for t in self._signature.outputs
            if t.counts
        }
        hidden = {id(named[name]) for name in lengths}
        kept = [array for array in results if id(array) not in hidden]
        return tuple(np.ascontiguousarray(a[parts[id(a)]]) if id(a) in parts else a for a in kept)

    def _check_states(self, inputs: Sequence[Array], given: Sequence[object]) -> None:
        """An array that is updated must be the caller's own. Raises MSC0614 for one that would have to be copied."""
        for position in self._states:
            if inputs[position] is not given[position] or not inputs[position].flags.writeable:
                raise MscError(not_in_place(self._signature.inputs[position]))

    def _coded(self, given: Sequence[Array]) -> list[Array]:
        """The inputs in order, those of narrow types as their codes."""
        pairs = [(convertible(a, t.name), t.codes) for a, t in zip(given, self._signature.inputs, strict=True)]
        return [codes_of(np.asarray(a), narrow_dtype(codes)) if codes else a for a, codes in pairs]

    def _decoded(self, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs, codes as the values of their narrow types."""
        pairs = zip(outputs, self._signature.outputs, strict=True)
        return tuple(values_of(a, narrow_dtype(t.codes)) if t.codes else a for a, t in pairs)

    def new_outputs(self, inputs: Sequence[Array] | None = None) -> list[Array]:
        """Uninitialised arrays for the outputs of a call, of the largest sizes or those of its inputs.

        Raises MSC0601 to MSC0604 for the inputs.
        """
        return self._outputs_of(None if inputs is None else self.check(inputs))

    def _outputs_of(self, inputs: Sequence[Array] | None) -> list[Array]:
        """The same of inputs already checked."""
        if self._open is None:
            return self._new_outputs(inputs)
        largest = tuple(size.high for size in self._signature.sizes)
        call = OpenCall.of(self._signature, largest) if inputs is None else self._open.of(inputs)
        beside = self._beside(inputs)
        return [
            array_beside(beside, *output) if tensor.is_dense else new_output(tensor, *output[:2])
            for tensor, output in zip(self._signature.outputs, call.outputs, strict=True)
        ]

    def _new_outputs(self, inputs: Sequence[Array] | None) -> list[Array]:
        beside = self._beside(inputs)
        return [array_beside(beside, *output) for output in self._outputs]

    def _beside(self, inputs: Sequence[Array] | None) -> int:
        """The address of the largest input, where that matters."""
        return address_of(inputs[self._largest]) if inputs and self._largest is not None else 0

    def check(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """The inputs in order, lying in memory as the model has them. Raises MSC0601 to MSC0604."""
        given = self._checker.arranged(sequence("inputs", arrays, "a list of arrays"), {})
        return self._in_memory(given)

    def _in_memory(self, given: Sequence[Array]) -> Sequence[Array]:
        stored = self._orders.stored(given)
        return self._orders.seen(given, stored, self._checked(stored))

    def _checked(self, given: Sequence[Array]) -> Sequence[Array]:
        """The inputs in order, their dimensions in the order of memory. Raises MSC0603 and MSC0604."""
        if self._open is None:
            return self._checker.check(tuple(given), {})
        checked = self._open.of(given).checker.check(tuple(given), {})
        return [placed(a, t) for a, t in zip(checked, self._signature.inputs, strict=True)]

    def state(self, name: str, value: Array) -> Array:
        """An array of its own with these elements, which lies as calls update it: for an input of this name.

        Raises MSC0602, MSC0603 and MSC0604.
        """
        specs = {tensor.name: tensor for tensor in self._signature.inputs}
        if name not in specs:
            message = f"the model has no input '{name}'; its inputs are {', '.join(specs) or 'none'}"
            raise MscError(Diagnostic("MSC0602", message, help=did_you_mean(name, specs)))
        return own_array(specs[name], value)

    def can_update(self, position: int, array: Array) -> bool:
        """Whether an array of the shape and dtype of input number `position` lies in memory as calls update it."""
        return lies_so(self._signature.inputs[position], array)

    def call_into(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run on given memory: `outputs` are arrays of the results' shapes and dtypes, as `new_outputs` makes them.

        Raises as a call does, and MSC0613 for the outputs.
        """
        self.bind(inputs, outputs)()

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """A function that runs on these arrays, which are checked once, here. Raises as `call_into`."""
        checked = self.check(inputs)
        self._check_outputs(checked, outputs)
        return lambda: self._run(checked, outputs)

    def _check_outputs(self, inputs: Sequence[Array], outputs: object, *, shared: bool = False) -> None:
        """Check arrays for the outputs of a call on these inputs. Raises MSC0613."""
        sizes = () if self._open is None else self._open.of(inputs).sizes
        check_outputs(self._signature, sizes, inputs, outputs, shared=shared)

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array], call: OpenCall | None = None) -> None:
        """Run on arrays already checked: of the right shapes and dtypes, lying in memory as the model has them."""
        memory, pointers, workspace = self._local.memory
        position = 0
        for array in inputs:
            pointers[position] = address_of(array)
            position += 1
        for array in outputs:
            pointers[position] = address_of(array)
            position += 1
        sizes = None
        if self._open is not None:
            call = call or self._open.of(inputs)
            sizes = call.memory
            for address in call.addresses:
                pointers[position] = address
                position += 1
        status = self._enter(pointers, workspace)
        if status:
            if status == ERROR_INDEX:
                raise_index_error(self._signature.inputs, inputs)
            self._calls.settle(status, pointers, workspace, (memory, inputs, outputs, sizes))

    def _place_sizes(self, inputs: Sequence[Array], pointers: Pointers, position: int) -> Array | None:
        """Put the addresses of the sizes behind those of the tensors; they lie in the result."""
        if self._open is None:
            return None
        call = self._open.of(inputs)
        for address in call.addresses:
            pointers[position] = address
            position += 1
        return call.memory

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the shared library that `msc.load` takes, whatever it is called.

        Raises MSC0004, MSC0008, MSC0007 for a name that promises another form, as `a.c` does, and MSC0011 where a file
        is that msc did not write, unless forced.
        """
        out = file_path("path", path, "the path of a file", writes=True)
        if out.suffix in _OTHER_FORMS:
            message = f"save writes a shared library, and '{out.name}' is the name of something else"
            raise MscError(
                Diagnostic("MSC0007", message, help=f"as in save('{out.stem}.so'); msc.export writes other forms")
            )
        place_artifact(self._library.file, out, OutputGuard(force=boolean("force", force)))

    @property
    def calls(self) -> tuple[str, ...]:
        """Names of the kernel calls, if the model was built for profiling; else none."""
        if not self._library.has(CALLS_SYMBOL):
            return ()
        names = self._library.function(CALLS_SYMBOL, ctypes.POINTER(ctypes.c_char_p))()
        return tuple(_until_null(names))

    def profile(self, inputs: Sequence[Array], seconds: NDArray[np.float64]) -> tuple[Array, ...]:
        """One call that adds each kernel call's time to `seconds`, an array of as many float64 as there are `calls`.

        Raises as a call does, MSC0609 for a model that was not built for profiling, MSC0613 for other `seconds`.
        """
        checked = self.check(inputs)
        outputs = self._outputs_of(checked)
        self.profile_into(checked, outputs, seconds)
        return self._meant(checked, outputs)

    def profile_into(
        self, inputs: Sequence[Array], outputs: Sequence[Array], seconds: NDArray[np.float64], *, shared: bool = False
    ) -> None:
        """As `profile`, into memory as `call_into` takes it; `shared` outputs may overlap, where only times matter."""
        if not self._calls.has_clocks:
            message = "the model was built without clocks between its kernels"
            raise MscError(Diagnostic("MSC0609", message, help="msc compile MODEL --profile -o model.so"))
        checked = self.check(inputs)
        self._check_outputs(checked, outputs, shared=shared)
        check_seconds(seconds, len(self.calls))
        memory = self._local.memory
        addresses = [address_of(array) for array in (*checked, *outputs)]
        memory[1][: len(addresses)] = addresses
        sizes = self._place_sizes(checked, memory[1], len(addresses))
        self._calls.profiled(memory[1], memory[2], (memory, checked, outputs, sizes), seconds)

    def artifact(self) -> bytes:
        """The bytes of the artifact."""
        with self._library.file.open("rb") as file:
            return file.read(self._artifact_bytes)

    def __copy__(self) -> Self:
        """Itself: a model does not change."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: a model does not change."""
        return self


class CompiledFunctions(CompiledModel):
    """A compiled model of several entry functions, which are its attributes; it is the first of them itself.

    A class that has a `__getattr__` looks up all attributes more slowly, so models of one function have none.
    """

    def __getattr__(self, name: str) -> CompiledModel:
        if not name.startswith("_") and name in self.functions:
            return self.functions[name]
        near = None if name.startswith("_") else did_you_mean(name, self.functions)
        raise AttributeError(f"the model has no function or attribute '{name}'" + (f"; {near}" if near else ""))


def _restore_of(signature: Signature) -> Restore:
    """What makes a call's value of the results."""
    if signature.structure is not None:
        return restorer(signature.structure)
    return _only if len(signature.results) == 1 else tuple


def _only(results: Sequence[Array]) -> Array:
    return results[0]


def _until_null(names: object) -> list[str]:
    pointer = cast(Sequence[bytes | None], names)
    found = list[str]()
    while (name := pointer[len(found)]) is not None:
        found.append(name.decode())
    return found


# Memory that a caller gives for the results of a call: refused where the model would write beside it.
def check_outputs(
    signature: Signature, sizes: Sequence[int], inputs: Sequence[Array], outputs: object, *, shared: bool = False
) -> None:
    """Check arrays for the outputs of a call of these sizes on these inputs; `shared` ones may overlap each other.

    Raises MSC0613.
    """
    specs = signature.outputs
    if not isinstance(outputs, list | tuple):
        raise _refused(f"the model writes to a list of {counted(len(specs), 'array')}, got {described(outputs)}")
    given = cast("list[object] | tuple[object, ...]", outputs)
    if len(given) != len(specs):
        raise _refused(f"the model writes {counted(len(specs), 'output')}, got {counted(len(given), 'array')}")
    seen = list(inputs)
    for item, tensor in zip(given, specs, strict=True):
        array = cast(Array, item) if isinstance(item, np.ndarray) else None
        reason = _objection(array, tensor, tensor.valid_shape(sizes))
        if array is None or reason is not None:
            raise _refused(f"memory for output '{tensor.name}' {reason}")
        if any(np.may_share_memory(array, other) for other in seen):
            raise _refused(f"memory for output '{tensor.name}' is shared with an input or another output")
        if not shared:
            seen.append(array)


def _objection(array: Array | None, tensor: TensorSpec, shape: tuple[int, ...]) -> str | None:
    dtype = numpy_dtype(tensor.dtype)
    if array is None:
        return "is no array"
    if array.dtype != dtype:
        return f"has dtype {array.dtype}, expected {dtype}"
    if array.shape != shape:
        return f"has shape {list(array.shape)}, expected {list(shape)}"
    if not array.flags.writeable:
        return "is read-only"
    if tensor.is_dense or shape == tensor.shape:
        return None if array.flags.c_contiguous else "is not C-contiguous"
    return None if _begins(array, tensor.shape) else f"is not the first part of an array of shape {list(tensor.shape)}"


def _begins(array: Array, shape: tuple[int, ...]) -> bool:
    """Whether an array is a view of the first part of a whole one of this shape."""
    whole: object = array.base
    if not isinstance(whole, np.ndarray):
        return False
    fits = whole.flags.c_contiguous and whole.shape == shape
    return fits and whole.ctypes.data == array.ctypes.data and whole.strides == array.strides


def check_seconds(seconds: object, calls: int) -> None:
    """Check the array that clocks add to. Raises MSC0613."""
    array = cast(Array, seconds) if isinstance(seconds, np.ndarray) else np.empty(0)
    fits = array.dtype == np.float64 and array.shape == (calls,) and isinstance(seconds, np.ndarray)
    if not fits or not array.flags.c_contiguous or not array.flags.writeable:
        raise _refused(f"'seconds' is no array of {counted(calls, 'float64')}, one for each kernel call")


def _refused(message: str) -> MscError:
    return MscError(Diagnostic("MSC0613", message, help="new_outputs() makes arrays that fit"))


# Memory of calls: results where stores do not hinder loads, and scratch memory for each thread.
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
