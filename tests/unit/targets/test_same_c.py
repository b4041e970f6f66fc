"""C for a machine by name does not depend on the machine that msc runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.targets import catalogue

PRODUCT = """func.func @main(%a: tensor<40x72xf32>, %b: tensor<72x48xf32>) -> tensor<40x48xf32> {
  %c = ms.matmul %a, %b
  %s = ms.softmax %c
  func.return %s : tensor<40x48xf32>
}
"""


def text(model: Path, march: str) -> str:
    return generate_c(compile_model(str(model), CompileOptions(march=march))).source


@pytest.mark.parametrize("march", ["x86-64-v4", "neon"])
def test_nothing_is_detected_for_a_name(tmp_path: Path, march: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "product.mir"
    model.write_text(PRODUCT, encoding="utf-8")
    here = text(model, march)

    def fail(*_: object) -> None:
        raise AssertionError("the machine was asked")

    for name in ("detect_cpu", "detect_cache_facts", "detect_cores"):
        monkeypatch.setattr(catalogue, name, fail)
    assert text(model, march) == here


def test_a_file_with_the_figures_of_a_name_gives_its_c(tmp_path: Path) -> None:
    model, machine = tmp_path / "product.mir", tmp_path / "x86-64-v3.toml"
    model.write_text(PRODUCT, encoding="utf-8")
    machine.write_text('base = "x86-64-v3"\n', encoding="utf-8")
    assert text(model, str(machine)) == text(model, "x86-64-v3")
    machine.write_text('base = "x86-64-v3"\n[vectors]\nregisters = 8\n', encoding="utf-8")
    assert text(model, str(machine)) != text(model, "x86-64-v3")
