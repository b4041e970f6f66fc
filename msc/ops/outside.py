"""What NumPy or LAPACK computes outside of compiled graphs, which are split there."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msc.frontend.capture import INSTALLED
from msc.frontend.modes import Hooks
from msc.frontend.tensor import Tensor, concrete


def on_arrays(name: str, function: Callable[..., Any], *inputs: Any, bprop: Callable[..., Any] | None = None) -> Any:
    """What a function of arrays gives for tensors, which may stand in lists, tuples and dicts.

    `bprop(*inputs, out, dout)` says its gradient, in operations that have one themselves: so derivatives of all orders
    are there. Without, results of floats have none. Raises MSC0856 where one is asked for.
    """

    def run(*given: Any) -> Any:
        return _tensors(function(*_arrays(name, given)))

    return run(*inputs) if INSTALLED.builder is None else Hooks.with_bprop(run, bprop, inputs, name)


def _arrays(name: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        return concrete(value, name)
    if isinstance(value, list | tuple):
        return type(value)(_arrays(name, v) for v in value)
    return {key: _arrays(name, v) for key, v in value.items()} if isinstance(value, dict) else value


def _tensors(found: Any) -> Any:
    return tuple(map(_tensors, found)) if isinstance(found, list | tuple) else Tensor.of(np.array(found))
