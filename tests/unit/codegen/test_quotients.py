"""Quotients that are rounded to bytes: the product with the inverse gives what the division does."""

from __future__ import annotations

import numpy as np
import pytest

import msc
from msc.codegen.c.quotients import is_proven

SCALES = (0.0371, 1.0, 0.0039215563, 3.1e-7, 512.5)


def _model() -> str:
    lines = [f"  %s{k} = ms.constant dense<{scale}> : tensor<f32>" for k, scale in enumerate(SCALES)]
    lines += ["  %z = ms.constant dense<-3> : tensor<i8>"]
    lines += [f"  %y{k} = ms.quantize %x{k}, %s{k}, %z {{dtype = i8}}" for k in range(len(SCALES))]
    parameters = ", ".join(f"%x{k} : tensor<4640xf32>" for k in range(len(SCALES)))
    results = ", ".join(f"%y{k}" for k in range(len(SCALES)))
    types = ", ".join(["tensor<4640xi8>"] * len(SCALES))
    body = "\n".join([*lines, f"  func.return {results} : {types}"])
    return f"func.func @main({parameters}) -> ({types}) {{\n{body}\n}}\n"


def _around_ties(scale: float) -> list[np.float32]:
    """Each tie and two floats on either side of it, and what lies outside of all bytes."""
    found = [np.float32(v) for v in (0.0, -0.0, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45)]
    for tie in (np.arange(-260, 260) + 0.5) * np.float64(np.float32(scale)):
        middle = np.float32(tie)
        for end in (np.float32(np.inf), np.float32(-np.inf)):
            near = np.nextafter(middle, end)
            found += [middle, near, np.nextafter(near, end)]
    return (found + [np.float32(0)] * 4640)[:4640]


@pytest.mark.parametrize("march", ["native", "x86-64-v3"])
def test_bytes_at_and_beside_every_tie_are_those_of_the_division(march: str) -> None:
    inputs = [np.array(_around_ties(scale), np.float32) for scale in SCALES]
    found = msc.compile(_model(), march=march)(*inputs)
    for scale, x, got in zip(SCALES, inputs, found, strict=True):
        with np.errstate(over="ignore"):
            right = np.clip(np.rint(x / np.float32(scale)) - 3, -128, 127)
        np.testing.assert_array_equal(got, right.astype(np.int8))


@pytest.mark.parametrize("scale", [0.0, -0.1, 1e-40, 1e30, float("inf"), float("nan")])
def test_scales_whose_inverse_or_ties_are_no_usual_numbers_are_divided_by(scale: float) -> None:
    assert not is_proven(scale)


def test_most_scales_are_proven() -> None:
    assert all(is_proven(float(np.float32(scale))) for scale in np.geomspace(1e-6, 1e3, 50))
