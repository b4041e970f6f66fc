"""NumPy's own functions on the elements of tensors, outside of compiled graphs."""

# Values of user programs and lambdas are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msc.frontend.dtypes import as_dtype
from msc.frontend.tensor import Tensor
from msc.ops.operands import cast
from msc.ops.outside import on_arrays

_NARROW: dict[Any, Any] = {np.dtype(np.int64): np.int32, np.dtype(np.float64): np.float32}


def typed(x: Tensor, dtype: Any) -> Tensor:
    """A tensor in an element type, if one is given."""
    return x if dtype is None else cast(x, as_dtype(dtype))


def narrow(found: Any) -> Any:
    """NumPy's arrays with 32 bits in place of 64, as MindSpore has them."""
    if isinstance(found, tuple | list):
        return tuple(map(narrow, found))
    array = np.asarray(found)
    return array.astype(_NARROW.get(array.dtype, array.dtype))


def by_numpy(name: str) -> Callable[..., Any]:
    """NumPy's own function on the elements; 64 bits become 32, as in MindSpore."""
    function: Any = getattr(np, name)

    def called(*args: Any, **keywords: Any) -> Any:
        named = {n: v for n, v in keywords.items() if n != "dtype"}
        result = on_arrays(name, lambda given, other: narrow(function(*given, **other)), args, named)
        return typed(result, keywords.get("dtype")) if isinstance(result, Tensor) else result

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"NumPy's {name} on the elements, outside of compiled graphs; floats have no gradient."
    return called
