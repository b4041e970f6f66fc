"""Calibration data as the inputs of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from msc.dialects.arrays import Array
from msc.quantization.copies import Rows
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean


@dataclass(frozen=True)
class InputType:
    """An input of the model: its name, its shape and its NumPy type."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def rows_of(data: object, inputs: Sequence[InputType], most: int = 512) -> Rows:
    """The inputs of at most so many calls.

    `data` is an array, or a dict of arrays by the names of the inputs, with all samples along axis 0; or it gives
    samples or batches one after the other: arrays, tuples of them in the order of the inputs, or dicts. Samples are put
    together to the batches that the model takes; those left over are filled up from the first ones.
    Raises MSC1211 for what does not fit the inputs.
    """
    if isinstance(data, Mapping | np.ndarray) or hasattr(data, "asnumpy"):
        return _split(_named(cast(object, data), inputs), inputs)[:most]
    if not isinstance(data, Iterable):
        raise _wrong(f"the calibration data is a {type(data).__name__}")
    rows = list[Mapping[str, Array]]()
    for sample in cast(Iterable[object], data):
        rows += _split(_named(sample, inputs), inputs)
        if len(rows) >= most:
            break
    return rows[:most]


def _named(sample: object, inputs: Sequence[InputType]) -> dict[str, Array]:
    if isinstance(sample, Mapping):
        given = {str(name): _array(value) for name, value in cast(Mapping[object, object], sample).items()}
        names = [each.name for each in inputs]
        for name in names:
            if name not in given:
                near = did_you_mean(name, given) or f"it has {', '.join(given) or 'none'}"
                raise _wrong(f"the calibration data has no array for input '{name}'", near)
        return {name: given[name] for name in names}
    values = list(cast(Sequence[object], sample)) if isinstance(sample, tuple | list) else [sample]
    if len(values) < len(inputs):
        raise _wrong(f"a row of the calibration data has {len(values)} arrays; the model has {len(inputs)} inputs")
    return {each.name: _array(value) for each, value in zip(inputs, values, strict=False)}


def _array(value: object) -> Array:
    asnumpy = getattr(value, "asnumpy", None) or getattr(value, "numpy", None)
    return np.asarray(asnumpy() if callable(asnumpy) else value)


def _split(arrays: Mapping[str, Array], inputs: Sequence[InputType]) -> list[dict[str, Array]]:
    """One dict for each call."""
    apart = {each.name: _calls(arrays[each.name], each) for each in inputs}
    counts = {len(calls) for calls in apart.values()}
    if len(counts) > 1:
        sizes = ", ".join(f"{name}: {len(calls)}" for name, calls in apart.items())
        raise _wrong(f"the inputs have different numbers of rows ({sizes})")
    return [dict(zip(apart, row, strict=True)) for row in zip(*apart.values(), strict=True)]


def _calls(array: Array, wanted: InputType) -> list[Array]:
    """An array along axis 0, in pieces of the input's shape."""
    if not np.can_cast(array.dtype, wanted.dtype, "same_kind"):
        raise _wrong(f"input '{wanted.name}' is {wanted.dtype}, its calibration data {array.dtype}")
    array = array.astype(wanted.dtype)
    if array.shape == wanted.shape:
        return [array]
    if array.shape[1:] == wanted.shape:
        return list(array)
    if array.shape[1:] != wanted.shape[1:] or not wanted.shape:
        if array.shape == wanted.shape[1:]:
            return [np.repeat(array[None], wanted.shape[0], axis=0)]
        shown = "x".join(map(str, array.shape))
        raise _wrong(
            f"input '{wanted.name}' is {'x'.join(map(str, wanted.shape))}, its calibration data {shown}",
            "give all samples along axis 0",
        )
    batch = wanted.shape[0]
    if len(array) % batch:
        array = np.concatenate([array, np.resize(array, (batch - len(array) % batch, *array.shape[1:]))])
    return [array[start : start + batch] for start in range(0, len(array), batch)]


def _wrong(message: str, help_: str | None = None) -> MscError:
    return MscError(Diagnostic("MSC1211", message, help=help_))
