"""The table of expected derivatives is what PyTorch gives; exceptions to it are needed."""

from __future__ import annotations

import pytest

from tests.special_gradients.cases import CASES, SECOND, Case
from tests.special_gradients.reference import in_pytorch
from tests.special_gradients.table import TOLERANCES, differences, expected


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table_is_what_pytorch_gives(case: Case, dtype: str) -> None:
    assert differences(in_pytorch(case, dtype), expected(dtype)[case.name], dtype, case) == []


@pytest.mark.parametrize("beginning", SECOND)
def test_exceptions_are_of_functions_that_are_compared(beginning: str) -> None:
    assert any(case.theirs.startswith(beginning) for case in CASES)
