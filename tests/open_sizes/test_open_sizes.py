"""A few random models of open sizes, always the same; `python -m tests.open_sizes` tries more."""

import pytest

from tests.open_sizes.trying import try_seed


@pytest.mark.parametrize("first", range(0, 12, 3))
def test_random_models_are_right_at_every_size(first: int) -> None:
    for seed in range(first, first + 3):
        outcome = try_seed(seed)
        assert outcome.verdict in ("right", "on call", "refused", "not a model"), f"{seed}: {outcome.text}"
