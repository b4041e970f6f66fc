"""The reference of operations: made from definitions, complete, and the page in docs is what they say now."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from msc.dialects.ms import MS
from msc.dialects.ms.base import MsOp
from msc.driver.cli import command
from msc.driver.reports.operation_pages import page, terminal_text
from msc.driver.reports.operation_reference import has_example, operation_names, reference
from msc.support.diagnostics import MscError
from tools.document_examples import ROOT

LITERALS = {"ms.constant", "ms.get_parameter"}
"""Operations that are written with a literal or a symbol, not on operands; their first sentence is the example."""


def test_every_operation_has_an_example_that_is_legal() -> None:
    operations = [op for op in MS.operations if issubclass(op, MsOp)]
    assert {op.name for op in operations if not has_example(op)} == LITERALS
    assert all(reference(name).example for name in operation_names() if name not in LITERALS)


def test_the_page_is_what_the_definitions_say() -> None:
    written = (ROOT / "docs" / "operations.md").read_text("utf-8")
    is_current = written == page()  # pytest would show 11,000 characters of differences before the command
    assert is_current, "python -m msc.driver.reports.operation_pages > docs/operations.md"


def test_a_reduction_shows_its_formula() -> None:
    assert reference("ms.matmul").definition == (
        "y[m, n] = 0",
        "for m < 4, n < 2, k < 8:",
        "  y[m, n] += a[m, k] * b[k, n]",
    )


def test_a_composite_operation_shows_what_it_is_rewritten_into() -> None:
    text = terminal_text(reference("ms.softmax"))
    assert "is rewritten into, here:\n  %y = ms.reduce_max %x {axis = [-1], keep_dims = true}" in text
    assert "ms.origin" not in text


def test_types_are_those_that_the_operation_takes() -> None:
    assert reference("ms.exp").element_types == ("f16", "bf16", "f32", "f64")
    assert reference("ms.logical_and").element_types == ("i1",)


def test_explain_prints_an_operation_as_text_and_as_json() -> None:
    text = CliRunner().invoke(command, ["explain", "ms.conv2d"]).output
    assert 'pad_mode = "valid": "valid" | "same" | "pad"' in text
    found = json.loads(CliRunner().invoke(command, ["explain", "ms.conv2d", "--json"]).output)
    assert found["operands"][2] == {"name": "bias", "count": "optional"}


@pytest.mark.parametrize("name", ["ms.relu6", "ms.tile"])
def test_explain_lists_all_operations(name: str) -> None:
    assert any(
        line.startswith(f"{name} ") for line in CliRunner().invoke(command, ["explain", "ms"]).output.splitlines()
    )


def test_a_misspelt_operation_gets_a_near_match() -> None:
    with pytest.raises(MscError, match=r"(?s)MSC0005.*did you mean 'ms.conv2d'\?"):
        reference("ms.conv2")
