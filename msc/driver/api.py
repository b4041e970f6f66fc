"""`msc.compile` and `msc.load`: models as Python functions on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from msc.driver.libraries import library_of
from msc.driver.model_on_call import Array, ModelOnCall, input_value
from msc.driver.options import DEFAULT_MEMORY, CompileOptions, Dim, InputValue
from msc.runtime.artifact import CompiledModel, load
from msc.support.diagnostics import DecidedByCall

__all__ = ["CompiledModel", "compile", "load"]


def compile(
    model: str | PathLike[str],
    target: str = "cpu",
    threads: int = 1,
    dims: Mapping[str, Dim] | None = None,
    *,
    march: str = "native",
    weights: str | PathLike[str] | None = None,
    max_memory: int = DEFAULT_MEMORY,
    tuned: str | PathLike[str] | None = None,
    input_values: Mapping[str, object] | None = None,
    winograd: bool = True,
    flush_subnormals: bool = False,
    without: Sequence[str] = (),
    use_cache: bool = True,
) -> CompiledModel:
    """Compile a model file, a `.mir` or any later stage, to a function: NumPy arrays in, NumPy arrays out.

    `threads` is 0 for one on each processor; `dims` gives sizes to open dimensions, or
    ranges such as `(1, 64)`, within which each call decides by the shapes of its inputs; `march` is a CPU, `native`
    this one; `weights` is the folder of the weights if it is not the model's; `tuned` is a file that `msc tune`
    wrote; `input_values` fixes inputs of an ONNX model, such as axes, which then are inputs no more; `winograd` lets
    convolutions be computed by minimal filtering; `flush_subnormals` takes zeros for subnormal numbers; `without` names
    optimisations to turn off. A model that was compiled before comes from the cache.

    Where sizes are open that `dims` does not give, where the values of inputs decide shapes, and where no one library
    is right for all sizes of a range, the function is a `ModelOnCall`: it compiles at the first call of a kind. Raises
    MscError for everything that is wrong with the model or its files.
    """
    folder = None if weights is None else Path(weights)
    plans = None if tuned is None else Path(tuned)
    options = CompileOptions(
        target,
        march,
        threads,
        dict(dims or {}),
        max_memory,
        folder,
        input_values={name: _value(value) for name, value in (input_values or {}).items()},
        tuned=plans,
        flush_subnormals=flush_subnormals,
        without=(*without, *(() if winograd else ("winograd",))),
    )
    try:
        return library_of(fspath(model), options, use_cache=use_cache).load()
    except DecidedByCall as reason:
        return ModelOnCall(fspath(model), options, reason, use_cache=use_cache)


def _value(value: object) -> str | InputValue:
    """The value of an input as the options have it; numbers without a dtype take the input's."""
    array: Array = np.asarray(value)
    if isinstance(value, np.ndarray | np.generic):
        return input_value(array)
    return ",".join(repr(item) for item in array.reshape(-1).tolist())
