"""Random numbers under `vmap`: those of one example, for all of them, as MindSpore says."""

from __future__ import annotations

import numpy as np
import pytest

import msc
from msc import Tensor, ops


def together(x: Tensor) -> Tensor:
    return ops.dropout(x, 0.5)


def branching(x: Tensor) -> Tensor:
    if x.sum() > 20:
        return ops.dropout(x, 0.5) * 2
    return ops.dropout(x, 0.5)


@pytest.mark.parametrize("function", [together, branching])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_all_examples_have_one_mask(function: object, is_compiled: bool) -> None:
    msc.set_seed(3)
    x = Tensor(np.stack([np.ones(16), np.full(16, 2.0)]).astype(np.float32))
    mapped = msc.vmap(function)
    masks = (msc.jit(mapped) if is_compiled else mapped)(x).asnumpy() != 0
    assert 0 < masks.sum() < masks.size
    np.testing.assert_array_equal(masks[0], masks[1])


def test_the_next_call_has_another_mask() -> None:
    mapped, x = msc.vmap(branching), Tensor(np.ones((2, 64), np.float32))
    assert not np.array_equal(mapped(x).asnumpy(), mapped(x).asnumpy())
