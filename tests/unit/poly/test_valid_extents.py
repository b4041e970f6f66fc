"""Valid parts of tensors under other shapes."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineExpr

from msc.poly.valid_extents import Factor, NotABox, reshaped

N = AffineExpr.dimension(0)
OPEN = (Factor(7, N),)


def test_a_tensor_without_elements_keeps_its_open_dimension() -> None:
    assert reshaped(((Factor(0),), (Factor(1),), OPEN), (0, 7, 1)) == ((Factor(0),), OPEN, (Factor(1),))


def test_a_tensor_without_elements_has_no_form_under_another_size() -> None:
    with pytest.raises(NotABox):
        reshaped(((Factor(0),), OPEN), (0, 3))
