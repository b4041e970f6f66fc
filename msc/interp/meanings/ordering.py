"""The order of elements along an axis."""

from __future__ import annotations

import numpy as np

from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.interp.registry import meaning


@meaning("argsort")
def _argsort(op: MsOp, x: Array) -> Array:
    """Stable; NaN is as infinity. From the largest on is from the end of the ascending order of x in reverse."""
    axis, count = op.int_("axis") % x.ndim, op.int_("count")
    keys = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
    if op.flag("descending"):
        ascending = np.argsort(np.flip(keys, axis), axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(ascending, axis)
    else:
        order = np.argsort(keys, axis, kind="stable")
    return order if count < 0 else np.take(order, np.arange(count), axis)
