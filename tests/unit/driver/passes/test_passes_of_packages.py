"""Passes that other packages bring by the entry point `msc.passes`: found, run, listed; their mistakes are theirs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from msc.driver.cli import command
from msc.driver.passes import registry
from msc.support.diagnostics import MscError

PASSES = '''
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass


class Sign(ModulePass):
    """Sign a module."""

    name = "sign-module"

    def apply(self, ctx, op):
        op.attributes["signed"] = StringAttr("yes")


class Fails(ModulePass):
    """Has a bug."""

    name = "has-a-bug"

    def apply(self, ctx, op):
        {}["nothing"]
'''
POINTS = {
    "sign-module": "own_passes:Sign",
    "has-a-bug": "own_passes:Fails",
    "other-name": "own_passes:Sign",
    "cse": "own_passes:Sign",
    "not-there": "own_passes:Nothing",
}
MODEL = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}\n"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_passes.py").write_text(PASSES, "utf-8")
    info = tmp_path / "own_passes-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-passes\nVersion: 0.1\n", "utf-8")
    lines = ["[msc.passes]", *(f"{name} = {value}" for name, value in POINTS.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    (tmp_path / "net.mir").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    importlib.invalidate_caches()
    registry._installed.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield
    registry._installed.cache_clear()  # pyright: ignore[reportPrivateUsage]
    sys.modules.pop("own_passes", None)


def run(tmp_path: Path, *words: str) -> str:
    result = CliRunner().invoke(command, ["opt", str(tmp_path / "net.mir"), *words])
    return str(result.exception) if isinstance(result.exception, MscError) else result.output


def test_a_pass_runs(tmp_path: Path) -> None:
    assert 'signed = "yes"' in run(tmp_path, "-p", "sign-module")
    assert 'signed = "yes"' in run(tmp_path, "--sign-module")


def test_a_pass_of_msc_is_not_replaced(tmp_path: Path) -> None:
    assert "signed" not in run(tmp_path, "-p", "cse")


@pytest.mark.parametrize("name", ["other-name", "not-there"])
def test_a_pass_that_is_not_there(tmp_path: Path, name: str) -> None:
    assert "MSC0506" in run(tmp_path, "-p", name)


def test_a_bug_in_a_pass_is_not_one_of_msc(tmp_path: Path) -> None:
    told = run(tmp_path, "-p", "has-a-bug")
    assert "pass 'has-a-bug' of 'own_passes' failed: KeyError" in told
    assert "a bug in msc" not in told
    assert "reproducer" in told
