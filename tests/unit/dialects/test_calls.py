"""Operations that are one call of a C function: what any of them does, shown on one that a program adds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.traits import is_side_effect_free
from xdsl.utils.exceptions import VerifyException

from msc.dialects.calls.library_call import CALLS, register
from msc.dialects.gk import CallKernelOp
from tests.unit.compiled.programs import parsed

ROOT = Path(__file__).parents[3]
TEXT = """
func.func @main(%x: tensor<4x9xi32>) -> tensor<4x3xi64> {
  %y = gk.call "argsort" %x : (tensor<4x9xi32>) -> tensor<4x3xi64>
  func.return %y : tensor<4x3xi64>
}
"""


def test_a_call_added_from_outside_is_compiled_and_run(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).with_name("added_call.py")), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MSC_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert (done.stdout, done.returncode) == ("as NumPy says\n", 0), done.stderr


@pytest.mark.parametrize(
    ("name", "types", "message"),
    [
        ("sort", "4x3xi64", "no library call is named 'sort', but argsort"),
        ("argsort", "5x3xi64", "[4, 9], [5, 3] are not rows of the same axes"),
        ("argsort", "4x3xi64 4x3xi64", "argsort takes keys and gives places"),
        ("argsort", "4x3xi32", "keys are i32 or i64, places are i64"),
    ],
)
def test_wrong_calls_are_errors(name: str, types: str, message: str) -> None:
    (given,) = next(op for op in parsed(TEXT).walk() if isinstance(op, CallKernelOp)).inputs
    results = [TensorType(i64 if "i64" in t else i32, [int(n) for n in t.split("x")[:-1]]) for t in types.split()]
    with pytest.raises(VerifyException) as error:
        CallKernelOp(name, [given], results).verify_()
    assert message in str(error.value)


def test_a_name_has_one_function() -> None:
    with pytest.raises(ValueError, match="two library calls 'argsort'"):
        register(type(CALLS["argsort"])())


def test_only_pure_calls_may_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parsed(TEXT)
    (call,) = [op for op in module.walk() if isinstance(op, CallKernelOp)]
    assert is_side_effect_free(call)
    monkeypatch.setattr(type(CALLS["argsort"]), "pure", False)
    assert not is_side_effect_free(call)
