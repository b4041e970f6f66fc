"""Every operation that has a form in ONNX, exported and run by ONNX Runtime, against the interpreter."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc.dialects.arrays import Array
from msc.dialects.ms import OPERATIONS
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output
from msc.driver.options import CompileOptions, Reporting
from msc.exporters.onnx import export_model
from msc.interp import evaluate
from msc.support.diagnostics import MscError
from tests.unit.compiled.programs import Case, parsed, program_text
from tests.unit.compiled.values import inputs
from tests.unit.dialects.conftest import CASES

ROOT = Path(__file__).parents[3]
runtime: Any = importlib.import_module("onnxruntime")

ABSENT = {"compute", "scatter_add", "stop_gradient", "packed_matmul", "packed_dot"} | set(
    "bit_cast dilate windows transform_axis subpixel_conv rescale yield parameter get_parameter constant".split()
    + "all_reduce all_gather reduce_scatter all_to_all broadcast all_slice send_recv".split()
)
"""What ONNX 18 does not have, or of constants alone, most of which passes make; and what is no operation of a case."""

MORE = [
    ("ms.shift_left %0, %1", "4xui32 4xui32"),
    ("ms.shift_right %0, %1", "4xui64 4xui64"),
    ("ms.global_max_pool %0", "2x3x4xf32"),
    ("ms.triu %0 {diagonal = -1}", "4x3xf32"),
]
EVERY = [case for case in (*CASES, *MORE) if "bf16" not in f"{case}"]
"""Of which ONNX Runtime has the element types; it gives NumPy no bf16."""

RUNTIME_ERRORS: tuple[type[Exception], ...] = tuple(
    getattr(runtime.capi.onnxruntime_pybind11_state, name) for name in ("NotImplemented", "InvalidGraph", "Fail")
)
UNKNOWN_TO_RUNTIME = ("_IMPLEMENTED", "INVALID_GRAPH", "is invalid", "not a registered")
"""How ONNX Runtime says that it does not have an operator for an element type that the standard has."""

Results = tuple[list[Any], list[Any]]


def session_of(model: bytes) -> Any:
    """None for a model with an operator that ONNX Runtime does not have."""
    options: Any = runtime.SessionOptions()
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except RUNTIME_ERRORS as error:
        if any(word in str(error) for word in UNKNOWN_TO_RUNTIME):
            return None
        raise


def results(case: Case) -> Results | None:
    """What ONNX Runtime and the interpreter give; None where one of them does not have it."""
    given: list[Array] = inputs(*case, 0)
    if name_of(case) == "global_max_pool":
        given = [np.nan_to_num(array) for array in given]  # ONNX Runtime's loses NaN
    module = parsed(program_text([case]))
    try:
        model = export_model(module, {}, "msc").SerializeToString()
    except MscError as error:
        if "MSC0720" in str(error):
            return None
        raise
    session = session_of(model)
    if session is None:
        return None
    names = [i.name for i in session.get_inputs()]
    return list(session.run(None, dict(zip(names, given, strict=True)))), list(evaluate(module, given, {}))


def name_of(case: Case) -> str:
    return case[0].split("ms.")[1].split()[0]


@cache
def compared(case: Case) -> bool:
    """Whether a case could be compared; raises AssertionError where the two differ."""
    pairs = results(case)
    for got, expected in zip(*(pairs or ((), ())), strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
    return pairs is not None


@pytest.mark.parametrize("case", EVERY, ids=" ".join)
def test_runtime_agrees_with_the_interpreter(case: Case) -> None:
    compared(case)


def test_every_operation_is_compared_in_some_case() -> None:
    found = {name_of(case) for case in EVERY if compared(case)}
    assert {op.name.removeprefix("ms.") for op in OPERATIONS} - found == ABSENT


def test_weights_names_and_calls(tmp_path: Path) -> None:
    path, out = ROOT / "samples/lenet5/lenet5.mir", tmp_path / "lenet5.onnx"
    emit(str(path), Output("onnx", out), CompileOptions(), Reporting())
    session = session_of(out.read_bytes())
    assert [i.name for i in session.get_inputs()] == ["image"]
    assert [o.name for o in session.get_outputs()] == ["logits"]
    image = np.random.default_rng(0).standard_normal((1, 1, 32, 32)).astype(np.float32)
    np.testing.assert_allclose(session.run(None, {"image": image})[0], msc.compile(path)(image), rtol=1e-4, atol=1e-5)
    again = msc.compile(out)(image)
    np.testing.assert_allclose(again, msc.compile(path)(image), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "%y = ms.bit_cast %x {dtype = i32}\nfunc.return %y : tensor<2xi32>",
        "%t = arith.constant true\n%y = scf.if %t -> (tensor<2xi32>) {\n%a = ms.cast %x {dtype = i32}\n"
        "scf.yield %a : tensor<2xi32>\n} else {\n%b = ms.cast %x {dtype = i32}\nscf.yield %b : tensor<2xi32>\n}\n"
        "func.return %y : tensor<2xi32>",
    ],
)
def test_what_onnx_does_not_have_is_refused(body: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mir"
    path.write_text(f"func.func @main(%x: tensor<2xf32>) -> tensor<2xi32> {{\n{body}\n}}\n", "utf-8")
    with pytest.raises(MscError, match="MSC0720"):
        emit(str(path), Output("onnx", tmp_path / "model.onnx"), CompileOptions(), Reporting())
