"""`msc verify --against onnxruntime`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from onnx import ModelProto, TensorProto

from msc.driver.cli import command
from msc.support.diagnostics import MscError
from tests.unit.importers.models import classifier, model, node, tensor

POOLED = model(
    [
        node("Relu", ["x"], ["r"], name="relu"),
        node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2]),
        node("Neg", ["p"], ["y"], name="neg"),
    ],
    [tensor("x", ["batch", 1, 2, 3])],
    [tensor("y", ["batch", 1, 1, 2])],
)


def verified(made: ModelProto, folder: Path, *arguments: str) -> Result:
    path = folder / "m.onnx"
    made.ir_version = 10
    path.write_bytes(made.SerializeToString())
    return CliRunner().invoke(
        command, ["verify", str(path), "--against", "onnxruntime", *arguments], standalone_mode=False
    )


def test_outputs_agree_also_on_inputs_that_decide_shapes(tmp_path: Path) -> None:
    result = verified(classifier(), tmp_path, "--input", "x=2x3x6x6xf32=0.5", "--input", "axes=1xi64=1")
    assert result.exit_code == 0, result.output
    assert "output z" in result.stdout
    assert "all outputs agree with ONNX Runtime" in result.stdout
    assert verified(classifier(), tmp_path, "--dim", "batch=2", "--input-value", "axes=0").exit_code == 0


def test_the_first_node_that_diverges_is_named(tmp_path: Path) -> None:
    """MaxPool of NaN is NaN here, as in NumPy; ONNX Runtime skips it."""
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    x[0, 0, 0, 0] = np.nan
    np.save(tmp_path / "x.npy", x)
    result = verified(POOLED, tmp_path, "--input", f"x=@{tmp_path}/x.npy")
    assert result.return_value == 1, result.output
    assert "the value p diverges from ONNX Runtime" in result.stdout
    assert "it is the first: of MaxPool 'pool'" in result.stdout
    checks = json.loads(verified(POOLED, tmp_path, "--input", f"x=@{tmp_path}/x.npy", "--json").stdout)
    assert [(c["subject"], c["verdict"]) for c in checks] == [("output y", "diverges"), ("value p", "diverges")]


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    text = tmp_path / "m.mir"
    text.write_text("builtin.module {}")
    result = CliRunner().invoke(command, ["verify", str(text), "--against", "onnxruntime"])
    assert isinstance(result.exception, MscError)
    assert "MSC0008" in str(result.exception)


def _no_package(name: str) -> None:
    """As if a package were not there."""
    del name


def test_a_model_that_onnx_runtime_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = model([node("Add", ["x", "x"], ["y"])], [tensor("x", [2], TensorProto.UINT16)], [tensor("y", None)])
    result = verified(made, tmp_path)
    assert isinstance(result.exception, MscError)
    assert "MSC0721" in str(result.exception)
    monkeypatch.setattr("msc.formats.format.find_spec", _no_package)
    assert "MSC0717" in str(verified(made, tmp_path).exception)
