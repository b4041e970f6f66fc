"""Running a case by ONNX Runtime without its optimisations, by the interpreter and as C, and comparing."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from xdsl.context import Context

from msc.driver.artifacts.libraries import compile_module
from msc.driver.options import CompileOptions
from msc.graph.simplify.quantised_products import QuantisedProducts
from msc.importers.imported import Imported
from msc.importers.onnx import import_proto
from msc.interp import evaluate
from msc.ir.verification import verify_module
from tests.random_quantised.operators import Array, Case


def runtime_results(case: Case) -> list[Array]:
    """What ONNX Runtime gives."""
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    made = case.model.SerializeToString()
    return runtime.InferenceSession(made, options, providers=["CPUExecutionProvider"]).run(None, dict(case.inputs))


def problems(case: Case, **options: Any) -> Iterator[str]:
    """What is wrong with the results of a case: one text each."""
    wanted = runtime_results(case)
    for in_integers in (False, True)[: 1 + (case.name == "network")]:
        imported = import_proto(case.model)
        if in_integers:
            QuantisedProducts(always=True).apply(Context(), imported.module)
        yield from _compared(case, imported, wanted, options)


def _compared(case: Case, imported: Imported, wanted: list[Array], options: dict[str, Any]) -> Iterator[str]:
    verify_module(imported.module)
    meant = evaluate(imported.module, case.inputs, imported.weights)
    chosen = CompileOptions(**options)
    found = compile_module(imported.module, imported.weights, chosen, name="model.onnx", use_cache=False).results(
        **case.inputs
    )
    for number, (right, by_meaning, got) in enumerate(zip(wanted, meant, found, strict=True)):
        for what, array in (("the interpreter", by_meaning), ("C", got)):
            text = difference(case, right, array)
            if text:
                yield f"output {number} of {what}: {text}"


def difference(case: Case, right: Array, got: Array) -> str:
    """What is wrong with an output that ought to be `right`; empty if nothing is."""
    if got.dtype != right.dtype or got.shape != right.shape:
        return f"{got.dtype}{got.shape}, not {right.dtype}{right.shape}"
    if right.dtype == np.float32:
        far = ~np.isclose(got, right, rtol=2e-5, atol=1e-5 * max(1.0, float(np.abs(right).max(initial=0))))
        return f"{far.sum()} of {far.size} differ, by up to {np.abs(got - right).max()}" if far.any() else ""
    off = np.abs(got.astype(np.int64) - right.astype(np.int64))
    allowed = int(np.ceil(case.share * off.size)) if case.steps else 0
    if off.max(initial=0) > case.steps or np.count_nonzero(off) > allowed:
        return f"{np.count_nonzero(off)} of {off.size} differ, by up to {off.max()}; {allowed} may, by {case.steps}"
    return ""
