"""Outputs of models: compared with expected ones, and written to files."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from msc.dialects.arrays import dtype_text
from msc.driver.models.model_inputs import Elements, Value
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, did_you_mean, raise_any
from msc.support.escaping import shown
from msc.support.folder_outputs import filled_folder
from msc.support.naming import unique
from msc.support.outputs import OutputGuard

_RELATIVE = {"float16": 4e-3, "bfloat16": 3e-2}
"""A few roundings of the narrow types."""


@dataclass(frozen=True)
class Tolerance:
    """Two numbers agree if they differ by at most `absolute + relative * |expected|`; NaN agrees with NaN."""

    absolute: float = 1e-5
    relative: float = 1e-4

    def scaled(self, expected: Array, sources: Sequence[Array] = ()) -> Tolerance:
        """The tolerance for sums of terms as large as the largest element.

        It is at least that of the narrowest type among the elements and the `sources` that they are computed from:
        a number that was rounded to a narrow type on the way is no better than that.
        """
        if expected.dtype.kind in "biu" or expected.size == 0:
            return self
        relative = max(self.relative, *(_RELATIVE.get(array.dtype.name, 0.0) for array in (expected, *sources)))
        wide = np.abs(expected.astype(np.float64))
        largest = float(wide[np.isfinite(wide)].max(initial=0.0))
        return Tolerance(self.absolute + relative * largest, relative)

    def agree(self, got: Array, expected: Array) -> bool:
        """Whether two arrays of one shape and dtype agree in every element."""
        if got.shape != expected.shape or got.dtype != expected.dtype:
            return False
        if got.dtype.kind in "biu":
            return bool(np.array_equal(got, expected))
        wide, other = got.astype(np.float64), expected.astype(np.float64)
        return bool(np.allclose(wide, other, self.relative, self.absolute, equal_nan=True))


def largest_error(got: Array, expected: Array) -> float:
    """The largest absolute difference; infinite where only one of two elements is NaN, or infinite."""
    if got.shape != expected.shape:
        return float("inf")
    a, b = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    with np.errstate(all="ignore"):
        difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return float(np.nan_to_num(difference, nan=np.inf, posinf=np.inf).max(initial=0.0))


def save_outputs(outputs: Mapping[str, Array], folder: Path, guard: OutputGuard | None = None) -> list[Path]:
    """Write each output as `<name>.npy`, a safe form of the name, and a manifest of them: all or none.

    Raises MSC0004, and MSC0010 and MSC0011 (`Guard.check`).
    """
    names = list[str]()
    with filled_folder(folder, guard or OutputGuard(), is_shared=True) as files:
        for position, (name, array) in enumerate(outputs.items()):
            plain = "".join(c if c.isalnum() or c in "_-." else "_" for c in name).lstrip(".")[:80]
            plain = unique(plain or f"output{position}", [own.removesuffix(".npy") for own in names])
            names.append(f"{plain}.npy")
            stream = io.BytesIO()
            np.save(stream, array, allow_pickle=False)
            files.write(names[-1], stream.getvalue())
        files.finish()
    return [folder / name for name in names]


def check_expected(outputs: Mapping[str, Array], expected: Mapping[str, Value], tolerance: Tolerance) -> None:
    """Raises one MscError with an MSC0608 for each output that is not as expected, or is not there; and MSC0607."""
    problems = [d for name, array in expected.items() if (d := _mismatch(outputs, name, array, tolerance)) is not None]
    raise_any(problems)


def _mismatch(outputs: Mapping[str, Array], name: str, value: Value, tolerance: Tolerance) -> Diagnostic | None:
    if name not in outputs:
        help_line = did_you_mean(name, outputs) or f"its outputs: {', '.join(outputs)}"
        return Diagnostic("MSC0608", f"the model has no output '{name}'", help=help_line)
    got = outputs[name]
    expected = value.of(dtype_text(got.dtype), got.shape) if isinstance(value, Elements) else value
    if tolerance.agree(got, expected):
        return None
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        types = f"{got.dtype} {list(got.shape)}, expected {expected.dtype} {list(expected.shape)}"
        return Diagnostic("MSC0608", f"output '{name}' is {types}")
    error = largest_error(got, expected)
    limits = f"allowed are {tolerance.absolute:g} + {tolerance.relative:g} * |expected|"
    return Diagnostic("MSC0608", f"output '{name}' differs by up to {error:.3g}; {limits}")


def describe(outputs: Mapping[str, Array]) -> str:
    """Outputs for people: name, type and elements, long ones shortened."""
    return "\n".join(
        f"{shown(name)}: {array.dtype} {list(array.shape)}\n{np.array2string(_shown(array), precision=6, threshold=64)}"
        for name, array in outputs.items()
    )


def to_json(outputs: Mapping[str, Array]) -> str:
    """Outputs for programs: name to dtype, shape and the elements in row-major order; NaN and infinities as strings."""
    return json.dumps({name: _entry(array) for name, array in outputs.items()}, allow_nan=False)


def _entry(array: Array) -> dict[str, object]:
    flat = cast(list[float | int | bool], _shown(array).reshape(-1).tolist())
    plain = [value if not isinstance(value, float) or np.isfinite(value) else str(value) for value in flat]
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": plain}


def _shown(array: Array) -> Array:
    """The narrow floats of ml_dtypes as float32, which NumPy prints."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array
