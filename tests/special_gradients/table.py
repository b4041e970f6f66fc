"""The table of what PyTorch gives: a line of JSON for each case, which tests read without PyTorch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.special_gradients.cases import SECOND, Case
from tests.special_gradients.evaluating import Derivatives
from tests.special_gradients.inputs import Array

PATH = Path(__file__).with_name("expected.jsonl")
TOLERANCES = {"float64": 1e-7, "float32": 2e-4}
"""Relative to an element, or to the largest one of a result (f32: up to 1000), or to 1."""


def written(case: Case, found: Mapping[str, Derivatives]) -> str:
    """The line of a case: what it gives in f64, and in f32 where that is not the same rounded."""
    wide, narrow = found["float64"], found["float32"]
    line: dict[str, Any] = {"case": case.name, "float64": _plain(wide)}
    if differences(narrow, wide, "float32", case):
        line["float32"] = _plain(narrow)
    return json.dumps(line) + "\n"


def expected(dtype: str) -> dict[str, Derivatives]:
    """What PyTorch gives in a type, by name of the case."""
    found: dict[str, Derivatives] = {}
    for text in PATH.read_text("utf-8").splitlines():
        line: dict[str, Any] = json.loads(text)
        parts: dict[str, Any] = line.get(dtype, line["float64"])
        second = parts["second"]
        arrays = np.array(parts["value"], np.float64), _arrays(parts["first"]), second and _arrays(second)
        found[line["case"]] = Derivatives(*arrays)
    return found


def _arrays(nested: list[Any]) -> list[Array]:
    return [np.array(part, np.float64) for part in nested]


def _plain(found: Derivatives) -> dict[str, Any]:
    second = None if found.second is None else [_rounded(g) for g in found.second]
    return {"value": _rounded(found.value), "first": [_rounded(g) for g in found.first], "second": second}


def _rounded(array: Array) -> Any:
    flat = [float(f"{x:.9g}") for x in array.ravel()]
    return np.reshape(flat, array.shape).tolist()


def differences(found: Derivatives, wanted: Derivatives, dtype: str, case: Case) -> list[str]:
    """What differs. A second derivative that PyTorch does not have may be any number, but not NaN."""
    pairs = [("value", found.value, wanted.value)]
    pairs += [(f"gradient {k}", *both) for k, both in enumerate(zip(found.first, wanted.first, strict=True))]
    texts = [f"{what}: {a} instead of {b}" for what, a, b in pairs if not np.all(is_close(a, b, dtype))]
    if found.second is None or wanted.second is None:
        return texts
    as_pytorch = not any(map(case.theirs.startswith, SECOND))
    for k, (a, b) in enumerate(zip(found.second, wanted.second, strict=True)):
        right = is_close(a, b, dtype) if as_pytorch else ~np.isnan(a) | np.isnan(b)
        free = np.isnan(b) & ~np.isnan(a)
        if not np.all(right | free):
            texts.append(f"second derivative {k}: {a} instead of {b}")
    return texts


def is_close(found: Array, wanted: Array, dtype: str) -> Array:
    """Whether each element is the expected one."""
    if found.shape != wanted.shape:
        return np.array(False)
    tolerance = TOLERANCES[dtype]
    finite = np.abs(wanted[np.isfinite(wanted)])
    size = 1.0 if dtype == "float64" else min(max(1.0, float(finite.max(initial=0))), 1e3)
    return np.isclose(found.astype(np.float64), wanted, tolerance, tolerance * size, equal_nan=True)
