"""A random network by TensorFlow Lite for Microcontrollers, by the interpreter and as C."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import msc
from benchmarks.tflite_graph import Array, run_micro
from msc.importers.tflite import import_bytes
from msc.interp import evaluate
from msc.ir.verification import verify_module
from tests.random_tflite.drawing import MAKERS, Draw


def problems(name: str, seed: int, *, is_quantised: bool, compiles: bool) -> Iterator[str]:
    """What differs: of integers a bit, of reals more than sums in another order."""
    draw = Draw(seed, is_quantised)
    data = draw.graph.bytes(MAKERS[name](draw))
    given = draw.given()
    wanted = run_micro(data, given)
    imported = import_bytes(data)
    verify_module(imported.module)
    names = [draw.graph.tensors[t].name for t in draw.graph.inputs]
    results = {"interpreter": evaluate(imported.module, dict(zip(names, given, strict=True)), imported.weights)}
    if compiles:
        got = msc.compile(data)(*given)
        results["C"] = got if isinstance(got, tuple) else (got,)
    for who, arrays in results.items():
        for index, (got, expected) in enumerate(zip(arrays, wanted, strict=True)):
            if text := _difference(np.asarray(got), expected):
                operators = " ".join(o.name for o in draw.graph.operators)
                yield f"{who}, output {index} of {operators}: {text}"


def _difference(got: Array, wanted: Array) -> str | None:
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype} {got.shape} for {wanted.dtype} {wanted.shape}"
    if got.dtype.kind == "f":
        close = np.isclose(got, wanted, rtol=2e-5, atol=1e-5)
        return (
            None if close.all() else f"{(~close).sum()} of {close.size} differ: {got[~close][:3]}, {wanted[~close][:3]}"
        )
    if (got == wanted).all():
        return None
    other = got != wanted
    return f"{other.sum()} of {other.size} differ: {got[other][:5]}, {wanted[other][:5]}"
