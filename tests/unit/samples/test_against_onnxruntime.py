"""Each sample's text, run by the interpreter, gives what ONNX Runtime gives for the same network written as ONNX."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func

from benchmarks.sample_models import Attention, LeNet5, Mlp, ResNetTiny, Sample
from msc.dialects.ms import MS
from msc.interp import evaluate
from msc.ir.reading import parse_module
from msc.weights.module_weights import Weights


@pytest.mark.parametrize("model", [LeNet5(), Mlp(), ResNetTiny(), Attention()], ids=lambda model: model.name)
def test_the_interpreter_agrees_with_onnx_runtime(model: Sample) -> None:
    context = Context()
    for dialect in (Builtin, Func, MS):
        context.load_dialect(dialect)
    module = parse_module(context, model.mir.read_text(encoding="utf-8"), str(model.mir))
    module.verify()
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(str(model.onnx), providers=["CPUExecutionProvider"])
    inputs = model.example()
    (result,) = evaluate(module, inputs, Weights.of_module(module, model.mir.parent))
    np.testing.assert_allclose(result, session.run(None, inputs)[0], rtol=1e-5, atol=1e-5)
