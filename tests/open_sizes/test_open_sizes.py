"""A few random models of open sizes, always the same; `python -m tests.open_sizes` tries more."""

from collections.abc import Sequence

import pytest

from tests.open_sizes.operators import LAYERS
from tests.open_sizes.trying import try_seed

OTHER_OPERATIONS_AT_ONE = (50317, 50340)
"""Seeds of models that have other operations where dimensions of 1 broadcast."""


@pytest.mark.parametrize("seeds", [*(range(first, first + 3) for first in range(0, 12, 3)), OTHER_OPERATIONS_AT_ONE])
def test_random_models_are_right_at_every_size(seeds: Sequence[int]) -> None:
    for seed in seeds:
        outcome = try_seed(seed)
        assert outcome.verdict in ("right", "on call", "refused", "not a model"), f"{seed}: {outcome.text}"


def test_random_layers_are_right_at_every_size() -> None:
    for seed in range(2):
        outcome = try_seed(seed, 2, LAYERS)
        assert outcome.verdict in ("right", "on call"), f"{seed}: {outcome.text}"
