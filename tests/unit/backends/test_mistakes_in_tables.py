"""Mistakes in the tables of a back end: errors that say what does not exist."""

from __future__ import annotations

import pytest

from msc.backends.registry import dialect_factory
from msc.driver.passes import registry
from msc.driver.passes.registry import find_property, load_pass
from msc.support.diagnostics import MscError


def test_a_pass_that_does_not_exist() -> None:
    with pytest.raises(MscError, match=r"MSC0506.*the pass 'vectorise', which does not exist(.|\n)*'vectorize'"):
        load_pass("vectorise")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("msc.nowhere:Mine", "the pass 'mine' .* cannot be loaded: No module named"),
        ("msc.lowering.cpu.vectorize.vectorize:Mine", "the pass 'mine' .* cannot be loaded: .* no attribute"),
        ("msc.lowering.cpu.vectorize.vectorize:Vectorize", "is not a pass with the name 'mine'"),
    ],
)
def test_a_pass_that_is_none(target: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PASSES, "mine", target)
    with pytest.raises(MscError, match=f"MSC0506.*{problem}"):
        load_pass("mine")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Vector", r"the property 'Vector', which does not exist(.|\n)*did you mean 'Vectors'"),
        ("msc.analysis.properties:NONE", "the property .* cannot be loaded"),
        ("msc.analysis.properties:PROPERTIES", "is not a property"),
    ],
)
def test_a_property_that_is_none(name: str, problem: str) -> None:
    with pytest.raises(MscError, match=f"MSC0506.*{problem}"):
        find_property(name)


def test_a_dialect_that_is_none() -> None:
    with pytest.raises(MscError, match=r"MSC0506.*the dialect 'MINE' .* cannot be loaded"):
        dialect_factory("msc.dialects.ms:MINE")()
    with pytest.raises(MscError, match=r"MSC0506.*is not a dialect"):
        dialect_factory("msc.dialects.ms.values:Value")()
