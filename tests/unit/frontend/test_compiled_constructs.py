"""Some of the constructs compiled to C: the graphs that reading writes are ordinary models."""

from __future__ import annotations

from typing import Any

import pytest

import msc
from msc import Tensor
from tests.unit.frontend.test_constructs import ALL, agree, on, worlds

NAMES = (
    "control.early_return_nested",
    "loops.while_with_continue",
    "loops.for_return_on_tensor",
    "control.in_tensor",
    "control.tail_recursion",
    "indexing.item_assignment_in_branch",
    "exceptions.try_around_tensor",
    "loops.for_else_binds_on_both_ends",
    "loops.while_else_binds_on_both_ends",
    "values.nested_results",
    "functions.closure_over_tensor",
)


@pytest.mark.parametrize("name", NAMES)
def test_compiled(name: str) -> None:
    function: Any = ALL[name]
    compiled = msc.jit(function)
    for world in worlds():
        agree(on(function, world, Tensor), on(compiled, world, Tensor))
