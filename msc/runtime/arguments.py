"""Inputs of a call checked against a signature: names, shapes, dtypes, layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from msc.runtime.program import TensorSpec
from msc.support.argument_values import CONVERSION_ERRORS
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.other_frameworks import is_tensor, to_array
from msc.support.wording import counted

_DTYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "i1": "bool",
    **{f"{sign}i{bits}": f"{'u' if sign else ''}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """The NumPy dtype of a tensor; bf16, which NumPy lacks, is that of ml_dtypes."""
    if dtype == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_DTYPES[dtype])


class Checker:
    """Checks the inputs of calls; built once a model, so that a right call costs little."""

    def __init__(self, inputs: Sequence[TensorSpec]) -> None:
        self._inputs = tuple(inputs)
        self._expected = tuple((t.shape, numpy_dtype(t.dtype)) for t in inputs)

    def check(self, arrays: tuple[Array, ...], named: Mapping[str, Array]) -> Sequence[Array]:
        """The inputs in order, C-contiguous; copied only when they are not. Raises MSC0601 to MSC0604."""
        arrays = self.arranged(arrays, named)
        for array, (shape, dtype) in zip(arrays, self._expected, strict=True):
            # Identity is the usual case and quicker than equality, which decides all others.
            if (
                type(array) is not np.ndarray
                or array.shape != shape
                or (array.dtype is not dtype and array.dtype != dtype)
                or not array.flags.c_contiguous
            ):
                return self._explain(arrays)
        return arrays

    def arranged(self, arrays: tuple[Array, ...], named: Mapping[str, Array]) -> tuple[Array, ...]:
        """As many arrays as the model has inputs, in their order. Raises MSC0601 and MSC0602."""
        return self._arrange(arrays, named) if named or len(arrays) != len(self._expected) else arrays

    def _explain(self, arrays: Sequence[object]) -> Sequence[Array]:
        """Anything that is not plainly right: array-likes of the right shape and dtype pass, the rest is explained."""
        converted = [_converted(a, t) for a, t in zip(arrays, self._inputs, strict=True)]
        problems = [p for a, t in zip(converted, self._inputs, strict=True) for p in _problems(a, t)]
        if problems:
            raise MscError(*problems)
        return [a for a in converted if not isinstance(a, Diagnostic)]

    def _arrange(self, arrays: tuple[Array, ...], named: Mapping[str, Array]) -> tuple[Array, ...]:
        names = [t.name for t in self._inputs]
        for name in named:
            if name not in names:
                message = f"the model has no input '{name}'; its inputs are {', '.join(names) or 'none'}"
                raise MscError(Diagnostic("MSC0602", message, help=did_you_mean(name, names)))
        if len(arrays) > len(names):
            raise MscError(
                Diagnostic(
                    "MSC0602", f"the model takes {counted(len(names), 'input')} ({', '.join(names)}), got {len(arrays)}"
                )
            )
        twice = [name for name in names[: len(arrays)] if name in named]
        if twice:
            raise MscError(Diagnostic("MSC0602", f"input '{twice[0]}' is given twice, in order and by name"))
        missing = [name for name in names[len(arrays) :] if name not in named]
        if missing:
            raise MscError(Diagnostic("MSC0601", f"missing input{'s'[: len(missing) > 1]}: {', '.join(missing)}"))
        return (*arrays, *(named[name] for name in names[len(arrays) :]))


def convertible(value: object, name: str) -> Array:
    """The value for input `name`, of which NumPy can make an array. Raises MSC0604."""
    made = _array_of(value, name)
    if isinstance(made, Diagnostic):
        raise MscError(made)
    return cast(Array, value)


def _array_of(value: object, name: str) -> Array | Diagnostic:
    if isinstance(value, np.ma.MaskedArray):
        return _not_taken(name, "is a masked array; the model knows no masks", "pass array.filled(value)")
    try:
        return to_array(value) if is_tensor(value) else np.asarray(value)
    except CONVERSION_ERRORS as error:
        nested = isinstance(value, list | tuple)
        reason = "its rows have several lengths" if nested else str(error).partition("\n")[0][:120]
        return _not_taken(name, f"is no array: {reason}", "pass an array, or a nested list with rows of one length")


def _converted(value: object, tensor: TensorSpec) -> Array | Diagnostic:
    """The value as an array; numbers and lists of numbers, which have no dtype, as one of the tensor's, if exactly."""
    array, dtype = _array_of(value, tensor.name), numpy_dtype(tensor.dtype)
    if isinstance(array, Diagnostic):
        return array
    if array.dtype.kind in _NO_NUMBERS and array.dtype.isbuiltin != _REGISTERED:
        what = "is None" if value is None else f"holds {_NO_NUMBERS[array.dtype.kind]}"
        advice = f"pass an array of {dtype} of shape {list(tensor.shape)}"
        return _not_taken(tensor.name, f"{what}, expected {dtype}", advice)
    if not hasattr(value, "dtype") and array.shape == tensor.shape and array.dtype != dtype:
        array = _as_written(array, dtype)
    return _in_c_order(array)


def _in_c_order(array: Array) -> Array:
    """The array itself where its elements lie row by row: one that a call updates must not be a copy."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


_REGISTERED = 2
"""What `isbuiltin` says of dtypes that other packages add, as bfloat16."""

_NO_NUMBERS = {
    "T": "text",
    "O": "Python objects",
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "times",
    "V": "records",
}
"""Kinds of arrays that no `astype` makes numbers of."""


def _as_written(array: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers of a list in the dtype, integers only if none changes."""
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        return array
    with np.errstate(over="ignore"):
        changed = array.astype(dtype)
    return array if dtype.kind in "iu" and not np.array_equal(changed, array) else changed


def _not_taken(name: str, what: str, advice: str) -> Diagnostic:
    return Diagnostic("MSC0604", f"input '{name}' {what}", help=advice)


def _problems(array: Array | Diagnostic, tensor: TensorSpec) -> list[Diagnostic]:
    if isinstance(array, Diagnostic):
        return [array]
    if array.dtype != numpy_dtype(tensor.dtype):
        wanted = numpy_dtype(tensor.dtype)
        message = f"input '{tensor.name}' has dtype {array.dtype}, expected {wanted} ({tensor.dtype})"
        return [Diagnostic("MSC0604", message, help=f"pass {_conversion(array, wanted)}")]
    if array.shape == tensor.shape:
        return []
    return [Diagnostic("MSC0603", _shape_message(array.shape, tensor))]


def _conversion(array: Array, wanted: np.dtype[Any]) -> str:
    real = "array.real" if array.dtype.kind == "c" else "array"
    return f"{real}.astype('{wanted}')"


def _shape_message(shape: tuple[int, ...], tensor: TensorSpec) -> str:
    start = f"input '{tensor.name}' has shape {list(shape)}, expected {list(tensor.shape)}"
    if len(shape) != len(tensor.shape):
        return f"{start}: rank {len(shape)} instead of {len(tensor.shape)}"
    wrong = next(k for k, (got, wanted) in enumerate(zip(shape, tensor.shape, strict=True)) if got != wanted)
    return f"{start}: dimension {wrong} is {shape[wrong]} instead of {tensor.shape[wrong]}"


def raise_index_error(specs: Sequence[TensorSpec], arrays: Sequence[Array]) -> None:
    """Raise MSC0610 for the first element of an input that is an index outside."""
    for spec, array in zip(specs, arrays, strict=True):
        if spec.indices is not None:
            low, high = spec.indices
            outside = (array < low) | (array > high)
            if outside.any():
                place = [int(i) for i in np.argwhere(outside)[0]]
                at = f" at {place}" if place else ""
                message = f"input '{spec.name}': index {array[tuple(place)]}{at} is outside {low} to {high}"
                raise MscError(Diagnostic("MSC0610", message))
