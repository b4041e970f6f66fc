"""A slice of `python -m tests.mutated_kernels`: harmful changes of kernels are refused."""

import pytest

from tests.mutated_kernels.judging import Original, texts
from tests.mutated_kernels.mutations import REFUSED, mutants

TEXTS = texts()


@pytest.mark.parametrize("name", ["add by hand", "product, packets", "product with gelu, ub"])
def test_harmful_changes_are_refused(name: str) -> None:
    original = Original(TEXTS[name])
    chosen = list(mutants(TEXTS[name]))
    assert len(chosen) > 100
    cheap = [mutant for mutant in chosen if mutant.allowed == REFUSED][::17]
    for mutant in [*cheap, *[mutant for mutant in chosen if mutant.allowed != REFUSED][5::67]]:
        assert original.fault(mutant) is None, mutant.what
