"""Models of which a call decides what must be known to compile: sizes, axes, counts. Each is compiled at its call."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

from msc.driver.artifacts.libraries import library_of
from msc.driver.options import CompileOptions, InputValue
from msc.runtime.artifact import CompiledModel
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError
from msc.support.failures import Door

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msc.driver.models.model_inputs import Value
    from msc.driver.models.open_tensors import OpenTensor
    from msc.runtime.tensor_info import TensorInfo

Array: TypeAlias = "NDArray[Any]"
R = TypeVar("R")


Make: TypeAlias = Callable[[Mapping[str, tuple[int, ...]], Mapping[str, Array]], R]
"""Compiles for shapes by input and for values by input; these are inputs no more. Raises DecidedByCall."""

MAXIMUM_ELEMENTS = 4096
"""Of an integer or boolean input whose value may decide a shape."""

MAXIMUM_REAL_ELEMENTS = 16
"""Of a float input whose value may: the limits of a range, the scales of a resize."""

MAXIMUM_SPECIALISATIONS = 64
"""The one that was used least recently goes when there are more."""

_Key: TypeAlias = tuple[tuple[str, str, bytes, tuple[int, ...]], ...]


class Specialisations(Generic[R]):
    """What `make` gives for inputs, once for each of their shapes and for the values of those that decide shapes.

    Which inputs these are is found at the first call. Safe to ask from many threads.
    """

    def __init__(self, make: Make[R]) -> None:
        self.bound: frozenset[str] = frozenset()
        """The inputs whose values decide shapes, as far as calls have shown."""
        self._make = make
        self._kept: OrderedDict[_Key, R] = OrderedDict()
        self._lock = threading.RLock()

    def at(self, inputs: Mapping[str, Array]) -> tuple[R, dict[str, Array]]:
        """What is made for these inputs, and those of them that it takes.

        Raises MSC0716 if the value of a large input decides a shape, and what `make` raises.
        """
        with self._lock:
            while True:
                try:
                    made = self._at(inputs)
                except DecidedByCall as error:
                    new = (error.inputs & inputs.keys()) - self.bound
                    if not new:
                        raise
                    _check_small(error, {name: inputs[name] for name in sorted(new)})
                    self.bound |= new
                else:
                    return made, {name: array for name, array in inputs.items() if name not in self.bound}

    def _at(self, inputs: Mapping[str, Array]) -> R:
        key = tuple((n, a.dtype.str, a.tobytes() if n in self.bound else b"", a.shape) for n, a in inputs.items())
        if key not in self._kept:
            values = {name: inputs[name] for name in sorted(self.bound & inputs.keys())}
            shapes = {name: array.shape for name, array in inputs.items() if name not in values}
            made = self._make(shapes, values)
            if len(self._kept) >= MAXIMUM_SPECIALISATIONS:
                self._kept.popitem(last=False)
            self._kept[key] = made
        self._kept.move_to_end(key)
        return self._kept[key]


def _check_small(error: DecidedByCall, inputs: Mapping[str, Array]) -> None:
    large = [name for name, array in inputs.items() if array.size > _limit(array)]
    if large:
        found = error.diagnostics[0]
        names = ", ".join(f"'{name[:80]}'" for name in large)
        message = f"{found.message}; {names} is too large to compile for each of its values"
        raise MscError(Diagnostic("MSC0716", message, found.location)) from error


def _limit(array: Array) -> int:
    return MAXIMUM_ELEMENTS if array.dtype.kind in "iub" else MAXIMUM_REAL_ELEMENTS


class ModelOnCall(CompiledModel):
    """A model that is compiled at each call with sizes, or values of inputs that decide sizes, that are new.

    The 64 that were used last are kept, and all of them in the cache. It has no signature and cannot be saved: `reason`
    says what would have to be known.
    """

    def __init__(
        self,
        name: str,
        options: CompileOptions,
        reason: DecidedByCall,
        declared: tuple[OpenTensor, ...],
        make: Make[CompiledModel],
        outputs: Callable[[], Sequence[OpenTensor]] | None = None,
        keep: object = None,
    ) -> None:
        self.reason = reason
        self.path = None
        self._name, self._options, self._declared, self._outputs = name, options, declared, outputs
        self._specialisations, self._keep = Specialisations(make), keep

    @classmethod
    def of_file(
        cls, model: str, options: CompileOptions, reason: DecidedByCall, *, use_cache: bool = True, keep: object = None
    ) -> ModelOnCall:
        """A model file; `keep` goes with the function: what holds the file, for one."""
        from msc.driver.models.open_tensors import open_inputs, open_outputs

        def make(shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]) -> CompiledModel:
            return library_of(model, at_call(options, shapes, values), use_cache=use_cache).load()

        declared = open_inputs(model, options)
        return cls(Path(model).name, options, reason, declared, make, lambda: open_outputs(model, options), keep)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each input that the options leave, in the order of a call."""
        from msc.driver.models.open_tensors import infos

        return infos(self._declared, self._options)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each output, in the order of the results."""
        from msc.driver.models.open_tensors import infos

        if self._outputs is None:
            raise self.reason
        return infos(tuple(self._outputs()), self._options)

    def __call__(self, *arrays: Array, **named: Array) -> Any:
        """The model's results, as those of a CompiledModel. Raises as `results` does."""
        compiled, taken, states = self._at_call(arrays, named)
        return compiled(*taken.values(), *states[0], **states[1])

    def results(self, *arrays: Array, **named: Array) -> tuple[Array, ...]:
        """The model's outputs as a tuple. Raises MSC0601 to MSC0604, MSC0716, and what compiling raises."""
        compiled, taken, states = self._at_call(arrays, named)
        return compiled.results(*taken.values(), *states[0], **states[1])

    def at(self, *shapes: tuple[int, ...]) -> CompiledModel:
        """The compiled model for inputs of these shapes."""
        import numpy as np

        inputs = [np.zeros(shape, tensor.dtype) for shape, tensor in zip(shapes, self.inputs, strict=True)]
        return self._at_call(inputs, {})[0]

    def _at_call(
        self, arrays: Sequence[Array], named: Mapping[str, Array]
    ) -> tuple[CompiledModel, Mapping[str, Array], tuple[Sequence[Array], Mapping[str, Array]]]:
        """The model for these inputs, those of them that it takes, and the states that a call updates behind them."""
        from msc.driver.models.open_tensors import checked_inputs

        states: tuple[Sequence[Array], Mapping[str, Array]] = (), {}
        if self._outputs is None:  # a Cell; which parameters it updates is known when it has been captured
            count, names = len(self._declared), {tensor.name for tensor in self._declared}
            states = arrays[count:], {name: array for name, array in named.items() if name not in names}
            arrays, named = arrays[:count], {name: array for name, array in named.items() if name in names}
        with Door():
            compiled, taken = self._specialisations.at(checked_inputs(self._declared, self._options, arrays, named))
            return compiled, taken, states

    @property
    def signature(self) -> NoReturn:
        """A signature is of known sizes, or ranges of them. Raises the reason why there is none."""
        raise self.reason

    def __reduce__(self) -> NoReturn:
        """There is no artifact to pickle. Raises the reason."""
        raise self.reason

    @property
    def bound(self) -> frozenset[str]:
        """The inputs whose values decide shapes, as far as calls have shown."""
        return self._specialisations.bound

    def save(self, path: str | PathLike[str], *, force: bool = False) -> NoReturn:
        """A library is of known sizes, or ranges of them. Raises the reason why there is none."""
        raise self.reason

    def __repr__(self) -> str:
        inputs = ", ".join(f"{i.name}: {i.type_text}" for i in self._declared)
        return f"<msc.ModelOnCall '{self._name}' of {inputs}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.reason


def at_call(
    options: CompileOptions, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]
) -> CompileOptions:
    """The options for a call of these shapes and values: ranges of sizes are no more."""
    known = {name: InputValue.of(array) for name, array in values.items()}
    dims = {name: size for name, size in options.dims.items() if name not in options.open_dims}
    return replace(options, dims=dims, shapes=dict(shapes), input_values={**options.input_values, **known})


def made_for(
    options: CompileOptions, given: Mapping[str, Value], make: Callable[[CompileOptions], R]
) -> tuple[R, dict[str, Value]]:
    """What `make` gives for options, and the given inputs that it takes.

    Where sizes or values must be known, they are those of the given inputs. Raises MSC0607 for one without a type then.
    """
    from msc.driver.models.model_inputs import arrays_of

    try:
        return make(options), dict(given)
    except DecidedByCall:
        if not given:
            raise
    made, taken = Specialisations(lambda shapes, values: make(at_call(options, shapes, values))).at(arrays_of(given))
    return made, dict(taken)
