"""Weights of few bits stay packed from an ONNX file to the artifact, and back to ONNX."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import msc
from msc.dialects.packed_weights import bytes_of, codes_of_bytes, from_panels, in_panels
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output
from msc.driver.options import CompileOptions, Reporting
from tests.unit.exporters.test_onnx_export import session_of

onnx: Any = importlib.import_module("onnx")

CASES = [(1, 64, 48, 32, 4, "none"), (5, 100, 70, 32, 4, "packed"), (3, 128, 64, 64, 8, "packed"),
         (2, 64, 33, 16, 2, "packed"), (4, 256, 64, 128, 4, "order")]  # fmt: skip


def file_with(path: Path, m: int, k: int, n: int, block: int, bits: int, kind: str) -> Path:
    rng, blocks = np.random.default_rng(k + n + bits), -(-k // block)
    arrays: dict[str, Any] = {
        "B": rng.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8),
        "scales": rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32),
    }
    inputs = ["A", *arrays]
    if kind == "packed":
        arrays["zeros"] = bytes_of(rng.integers(0, 1 << bits, (n, blocks)), bits)
        inputs.append("zeros")
    if kind == "order":
        arrays["order"] = rng.permutation(np.arange(k) // block).astype(np.int32)
        inputs += ["", "order"]
    node = helper.make_node("MatMulNBits", inputs, ["Y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)
    given, made = (helper.make_tensor_value_info(name, 1, [m, size]) for name, size in (("A", k), ("Y", n)))
    initialisers = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph([node], "g", [given], [made], initialisers)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    return path


def stored_bytes(path: Path) -> int:
    model: Any = onnx.load(path)
    return sum(numpy_helper.to_array(each).nbytes for each in model.graph.initializer)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_product_is_that_of_the_runtime_and_weights_stay_packed(
    case: tuple[int, int, int, int, int, str], tmp_path: Path
) -> None:
    path = file_with(tmp_path / "model.onnx", *case)
    x = np.random.default_rng(1).normal(size=case[:2]).astype(np.float32)
    compiled = msc.compile(path)
    session = None if case[4] == 2 or case[5] == "order" else session_of(path.read_bytes())
    again = tmp_path / "again.onnx"
    emit(str(path), Output("onnx", again), CompileOptions(), Reporting())
    expected = msc.compile(again)(x) if session is None else session.run(None, {"A": x})[0]
    np.testing.assert_allclose(compiled(x), expected, rtol=2e-4, atol=2e-4)
    if session is not None:
        np.testing.assert_allclose(
            session_of(again.read_bytes()).run(None, {"A": x})[0], expected, rtol=1e-4, atol=1e-4
        )
    if case[2] % 16 == 0 and case[5] == "none":
        emit(str(path), Output("so", tmp_path / "model.so"), CompileOptions(), Reporting())
        assert b'"weights_bytes":%d' % stored_bytes(path) in (tmp_path / "model.so").read_bytes()


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_bytes_hold_the_codes(bits: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (70, 96)).astype(np.uint8)
    np.testing.assert_array_equal(from_panels(in_panels(codes, bits, 32), bits)[:70], codes)
    np.testing.assert_array_equal(codes_of_bytes(bytes_of(codes, bits), bits)[:, :96], codes)
