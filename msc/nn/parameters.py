"""How layers make their parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msc.frontend import dtypes
from msc.frontend.dtypes import DTypeLike
from msc.frontend.initializers import Init, Uniform, initializer
from msc.frontend.parameter import Parameter


def parameter(
    init: Init, shape: Sequence[int], name: str, dtype: DTypeLike = dtypes.float32, *, fan_in: int | None = None
) -> Parameter:
    """A parameter of a shape; without `init` uniform within 1 / sqrt(fan_in), which is He's with slope sqrt(5)."""
    if init is None:
        init = Uniform(1 / math.sqrt(fan_in)) if fan_in else "zeros"
    return Parameter(initializer(init, shape, dtype), name=name)
