"""Programs whose surroundings change between calls, a few of `python -m tests.stale_graphs --count 2000`."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor
from tests.stale_graphs.programs import difference


@pytest.mark.parametrize("first", range(5000, 5120, 20))
def test_modes_agree(first: int) -> None:
    found = [text for seed in range(first, first + 20) if (text := difference(seed)) is not None]
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("changed", ["def f(x):\n    return x * 5\n", "\n\ndef f(x):\n    return x * 5\n"])
def test_the_code_that_was_imported_is_read(tmp_path: Path, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path, x = tmp_path / "edited.py", Tensor(np.ones(3, np.float32))
    path.write_text("def f(x):\n    return x * 2\n")
    spec = importlib.util.spec_from_file_location("edited", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text(changed)
    assert _first(msc.jit(module.f, backend="interpreter"), x) == 2
    spec.loader.exec_module(module)
    assert _first(msc.jit(module.f, backend="interpreter"), x) == 5


def test_a_split_with_a_large_constant_that_changes() -> None:
    held: list[Any] = [None]

    def split(v: Any) -> Any:
        y = v * Tensor(held[0])
        if float(y.sum().asnumpy()) > 1e9:
            y = y * 0
        return y

    compiled, found = msc.jit(split), []
    for k in (1, 2, 3, 3, 4):
        held[0] = np.full(65, float(k), np.float32)
        found.append(_first(compiled, Tensor(np.ones(65, np.float32))))
    assert found == [1, 2, 3, 3, 4]


def test_what_is_not_known_is_explained() -> None:
    def reads_environment(x: Any) -> Any:
        return x * float(os.environ.get("MSC_ABSENT", "2"))

    compiled = msc.jit(reads_environment, backend="interpreter")
    assert _first(compiled, Tensor(np.ones(3, np.float32))) == 2
    assert "split" in msc.jit.explain(compiled)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors as Linux shows them")
def test_libraries_close_with_their_functions() -> None:
    x = Tensor(np.ones(5, np.float32))

    def opened(count: int) -> int:
        functions = [msc.jit(lambda x: x * 2 + 1) for _ in range(count)]
        assert all(_first(f, x) == 3 for f in functions)
        return len(os.listdir("/proc/self/fd"))

    opened(1)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    assert opened(5) <= before + 1
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def _first(function: Any, x: Any) -> float:
    return float(function(x).asnumpy().flat[0])
