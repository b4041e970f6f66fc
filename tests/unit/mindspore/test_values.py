"""Values and element types as MindSpore 2.10 gives them, which is recorded."""

from __future__ import annotations

from tests.mindspore_values import CASES, RECORDED
from tests.mindspore_values.__main__ import compared


def test_values_and_element_types_are_those_of_mindspore() -> None:
    assert set(CASES) <= set(RECORDED)
    assert compared() == []
