"""Imports inside of functions that graph mode reads: they bind what Python binds, and are never stale."""

# pyright: reportMissingImports=false, reportUnusedImport=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

import msc
from msc import Tensor


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package with a number and a module that is imported by nothing yet."""
    made = ModuleType("msc_test_package")
    made.__dict__.update(K=2.0, __path__=[])
    monkeypatch.setitem(sys.modules, "msc_test_package", made)
    return made


def _names(x: Tensor) -> Tensor:
    import os.path
    import xml.dom as d
    from math import pi
    from math import sqrt as root
    from xml import dom

    return x * root(4.0) * pi * (d is dom) * (os.path is not None)


def _in_branches(x: Tensor) -> Tensor:
    if x.sum() > 0:
        import math as m

        y = x * m.pi
    else:
        import cmath as m

        y = x * m.e
    return y * m.pi


def _in_loops(x: Tensor) -> Tensor:
    while x.sum() < 100:
        from math import pi

        x = x * pi
    return x


def _one_that_is_missing(x: Tensor) -> Tensor:
    try:
        import nothing_of_this_name  # noqa: F401
    except ImportError:
        return x * 2
    return x


@pytest.mark.parametrize("function", [_names, _in_branches, _in_loops, _one_that_is_missing])
def test_imports_bind_what_python_binds(function: Callable[[Tensor], Tensor]) -> None:
    compiled, x = msc.jit(function), Tensor(np.ones((2, 3), np.float32))
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).asnumpy(), function(x).asnumpy(), rtol=1e-6)


def test_a_function_with_an_import_is_compiled_once() -> None:
    compiled, x = msc.jit(_names), Tensor(np.ones(3, np.float32))
    for _ in range(3):
        compiled(x)
    assert [event.split(":")[0] for event in msc.jit.explain(compiled).splitlines()] == ["compiled"]


def test_modules_that_change_are_imported_anew(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x: Tensor) -> Tensor:
        import msc_test_package as package

        return x * package.K

    compiled, x = msc.jit(scaled), Tensor(np.ones(1, np.float32))
    assert compiled(x).asnumpy()[0] == 2
    module.__dict__["K"] = 5.0
    assert compiled(x).asnumpy()[0] == 5
    other = ModuleType("msc_test_package")
    other.__dict__["K"] = 7.0
    monkeypatch.setitem(sys.modules, "msc_test_package", other)
    assert compiled(x).asnumpy()[0] == 7
