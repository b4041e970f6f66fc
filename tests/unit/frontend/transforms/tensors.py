"""Tensors that the tests of transforms begin with."""

from __future__ import annotations

import msc
from msc import Tensor


def vector(*values: float) -> Tensor:
    """One axis, f32."""
    return Tensor(list(values), msc.float32)
