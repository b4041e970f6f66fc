"""Which values parameters and constants decide, and how much of a function is looked at for that."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.analysis import constancy
from msc.analysis.constancy import Constancy, is_constant
from msc.dialects.ms.base import MsOp
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module

TEXT = """
ms.parameter @w : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = ms.get_parameter @w : tensor<4xf32>
  %a = ms.neg %w
  %b = ms.add %a, %w
  %c = ms.add %x, %b
  %d = ms.add %b, %c
  %e = ms.exp %d
  %f = ms.add %b, %a
  func.return %e : tensor<4xf32>
}
"""


def operations() -> tuple[ModuleOp, dict[str, MsOp]]:
    """The module, and its operations by the names of their results."""
    module = parse_module(new_context(), TEXT, "test.mir")
    found = [op for op in module.walk() if isinstance(op, MsOp) and op.results]
    return module, {op.results[0].name_hint or "": op for op in found}


@pytest.mark.parametrize("order", ["abcdef", "fedcba", "eab"])
def test_what_parameters_decide_is_constant(order: str) -> None:
    _module, named = operations()
    answers = Constancy()
    assert {name: answers.of(named[name].results[0]) for name in order} == {name: name in "abf" for name in order}


def test_the_first_operand_that_is_not_constant_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training step has thousands of values, nearly all of them not constant."""
    asked = list[str]()

    def depends_on_sizes(op: MsOp) -> bool:
        asked.append(op.results[0].name_hint or "")
        return False

    monkeypatch.setattr(constancy, "depends_on_sizes", depends_on_sizes)
    _module, named = operations()
    assert not is_constant(named["c"].results[0])
    assert asked == []
