"""The table of meanings: operation name -> the NumPy function that says what it computes.

A meaning takes the operation (for its properties) and one array an operand, and gives one array, or a tuple for
several results. What all have in common is here: 16-bit floats are computed in f32 and rounded once an operation,
results get the element type that the operation declares, and IEEE exceptions are not warnings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from msc.dialects.arrays import BFLOAT16, Array, tensor_dtype
from msc.dialects.ms.base import MsOp
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.families import Table

Meaning: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]

meaning: Table[str, Meaning] = Table(
    "meanings", "msc.interp.meanings",
    "elementwise", "activations", "reductions", "linear", "convolution", "pooling", "normalisation", "movement",
    "indexing", "quantisation", "generic", "collectives",
)  # fmt: skip
"""Declares the meaning of `ms.<name>` for each name."""


def meaning_of(op: MsOp) -> Meaning:
    """The meaning of an operation. Raises MSC0906 if it has none."""
    name = op.name.removeprefix("ms.")
    found = meaning.get(name)
    if found is None:
        message = f"{op.name} has no meaning: no function of msc/interp/meanings is declared for it"
        advice = f'@meaning("{name}") declares one; docs/adding-an-operator.md lists all that an operator needs'
        raise MscError(Diagnostic("MSC0906", message, source_location(op), help=advice))
    return found


def evaluate_op(op: MsOp, *arrays: Array) -> tuple[Array, ...]:
    """The results of one operation on arrays. Raises MSC0906 if it has no meaning."""
    function = meaning_of(op)
    with np.errstate(all="ignore"):
        results = function(op, *map(_widened, arrays))
        values = results if isinstance(results, tuple) else (results,)
        return tuple(_rounded(value, tensor_dtype(op.result_tensor(i))) for i, value in enumerate(values))


def _widened(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype in (np.float16, BFLOAT16) else array


def _rounded(value: Array, dtype: np.dtype[Any]) -> Array:
    return np.asarray(value).astype(dtype, copy=False)
