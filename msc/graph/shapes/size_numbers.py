"""Constants as expressions over the sizes that calls decide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.arrays import dense_array
from msc.dialects.ms.constants import constant_of
from msc.dialects.ms.structure import ConstantOp
from msc.dialects.open_sizes import CONSTANT
from msc.graph.shapes.size_expressions import Numbers


def numbers_of(constant: ConstantOp) -> Numbers | None:
    """The elements of a constant that are integers."""
    array = dense_array(constant.value)
    if array.dtype.kind == "b":
        return None
    numbers = array.astype(np.int64)
    return numbers if np.array_equal(numbers.astype(array.dtype), array) else None


def of_sizes(constant: ConstantOp, expression: AffineExpr, sizes: int) -> ConstantOp:
    """A copy of a constant that says what it is over the sizes."""
    own = constant.clone()
    own.attributes[CONSTANT] = AffineMapAttr(AffineMap(sizes, 0, (expression,)))
    return own


def number(expression: AffineExpr, highest: Sequence[int]) -> ConstantOp:
    """An expression over the sizes as a constant of type i64."""
    plain = constant_of(np.array(expression.eval(highest, ()), np.int64))
    return of_sizes(plain, expression, len(highest)) if expression.used_dims() else plain
