"""docs/from-pytorch.md: the model in the clone is the one that its program exports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

pytest.importorskip("torch")
EXAMPLE = Path(__file__).parents[4] / "examples" / "from_pytorch"


def test_the_model_is_what_the_program_exports(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(EXAMPLE / "encoder.py")], cwd=tmp_path, check=True, capture_output=True)
    exported, kept = (
        onnx.load_model_from_string((folder / "encoder.onnx").read_bytes()).graph for folder in (tmp_path, EXAMPLE)
    )
    assert [node.op_type for node in exported.node] == [node.op_type for node in kept.node]
    weights = [{w.name: numpy_helper.to_array(w) for w in graph.initializer} for graph in (exported, kept)]
    assert weights[0].keys() == weights[1].keys()
    for name, weight in weights[0].items():
        np.testing.assert_array_equal(weight, weights[1][name])
