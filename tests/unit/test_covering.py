"""The combinations that tests run have all pairs of values, in few rows."""

from itertools import combinations, product

import pytest

from tests.covering import LARGE, each, pairs

PARAMETERS = ("abcd", (1, 2, 3), (True, False), "xy")


@pytest.mark.skipif(LARGE, reason="all combinations are run")
def test_every_two_values_meet() -> None:
    rows = pairs(*PARAMETERS)
    for (i, first), (k, second) in combinations(enumerate(PARAMETERS), 2):
        assert {(row[i], row[k]) for row in rows} == set(product(first, second))
    assert len(rows) < 20


@pytest.mark.skipif(LARGE, reason="all combinations are run")
def test_every_value_occurs() -> None:
    rows = each(*PARAMETERS)
    assert [set(column) for column in zip(*rows, strict=True)] == [set(values) for values in PARAMETERS]
    assert len(rows) == 4
