"""Each sample's text, run by the interpreter, gives what ONNX Runtime gives for the same network written as ONNX."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func

from benchmarks.models import MODELS
from msc.dialects.ms import MS
from msc.interp import Weights, evaluate
from msc.ir.reading import parse_module

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("name", list(MODELS))
def test_the_interpreter_agrees_with_onnx_runtime(name: str) -> None:
    model = MODELS[name]
    context = Context()
    for dialect in (Builtin, Func, MS):
        context.load_dialect(dialect)
    module = parse_module(context, model.mir.read_text(encoding="utf-8"), str(model.mir))
    module.verify()
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(model.onnx, providers=["CPUExecutionProvider"])
    inputs = dict(zip(model.inputs, model.example(), strict=True))
    (result,) = evaluate(module, inputs, Weights.of_module(module, model.mir.parent))
    np.testing.assert_allclose(result, session.run(None, inputs)[0], rtol=1e-5, atol=1e-5)
