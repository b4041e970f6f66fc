"""Models of which a call decides what must be known to compile: sizes, axes, counts. Each is compiled at its call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from msc.driver.artifacts.libraries import library_of
from msc.driver.artifacts.specialisations import Specialisations
from msc.driver.options import CompileOptions, InputValue
from msc.runtime.artifact import CompiledModel
from msc.support.diagnostics import DecidedByCall
from msc.support.failures import Door

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msc.driver.models.model_inputs import Value
    from msc.runtime.tensor_info import TensorInfo

Array: TypeAlias = "NDArray[Any]"
R = TypeVar("R")


class ModelOnCall(CompiledModel):
    """A model that is compiled at each call with sizes, or values of inputs that decide sizes, that are new.

    The 64 that were used last are kept, and all of them in the cache. It has no signature and cannot be saved: `reason`
    says what would have to be known. `keep` goes with it: what holds the model's file, for one.
    """

    def __init__(
        self,
        model: str,
        options: CompileOptions,
        reason: DecidedByCall,
        *,
        use_cache: bool = True,
        keep: object = None,
    ) -> None:
        from msc.driver.models.open_tensors import open_inputs

        self.reason = reason
        self.path = None
        self._keep = keep
        self._declared = open_inputs(model, options)
        self._model, self._options, self._use_cache = model, options, use_cache
        self._specialisations = Specialisations(self._compile)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each input that the options leave, in the order of a call."""
        from msc.driver.models.open_tensors import infos

        return infos(self._declared, self._options)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each output, in the order of the results."""
        from msc.driver.models.open_tensors import infos, open_outputs

        return infos(open_outputs(self._model, self._options), self._options)

    def __call__(self, *arrays: Array, **named: Array) -> Any:
        """The model's results, as those of a CompiledModel. Raises as `results` does."""
        compiled, taken = self._at_call(arrays, named)
        return compiled(*taken.values())

    def results(self, *arrays: Array, **named: Array) -> tuple[Array, ...]:
        """The model's outputs as a tuple. Raises MSC0601 to MSC0604, MSC0716, and what compiling raises."""
        compiled, taken = self._at_call(arrays, named)
        return compiled.results(*taken.values())

    def _at_call(
        self, arrays: Sequence[Array], named: Mapping[str, Array]
    ) -> tuple[CompiledModel, Mapping[str, Array]]:
        """The model for these inputs, and those of them that it takes."""
        from msc.driver.models.open_tensors import checked_inputs

        with Door():
            return self._specialisations.at(checked_inputs(self._declared, self._options, arrays, named))

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
        return f"<msc.ModelOnCall '{Path(self._model).name}' of {inputs}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.reason

    def _compile(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]) -> CompiledModel:
        options = at_call(self._options, shapes, values)
        return library_of(self._model, options, use_cache=self._use_cache).load()


def input_value(array: Array) -> InputValue:
    """An array as the options have the value of an input."""
    return InputValue(array.dtype.name, array.shape, array.tobytes())


def at_call(
    options: CompileOptions, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]
) -> CompileOptions:
    """The options for a call of these shapes and values: ranges of sizes are no more."""
    known = {name: input_value(array) for name, array in values.items()}
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
