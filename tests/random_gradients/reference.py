"""The Cells' tensors and functions in PyTorch, whose autograd gives the wanted gradients."""

# PyTorch has no types here, and values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tests.random_cells.reference import Array, plain

torch: Any = importlib.import_module("torch")


class TorchArray(Array):
    """A reference to a tensor of PyTorch that is never written."""

    def __init__(self, value: Any) -> None:
        self.value = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)

    def sum(self) -> Array:
        return TorchArray(self.value.sum())

    def max(self) -> Array:
        return TorchArray(self.value.amax())

    def __setitem__(self, index: Any, item: Any) -> None:
        changed = self.value.clone()
        changed[plain(index)] = plain(item)
        self.value = changed


def _beyond(compute: Any) -> Callable[..., Array]:
    """The larger or smaller of two tensors, or of a tensor and a number: equal elements share the gradient."""

    def function(a: Any, b: Any) -> Array:
        other = b.value if isinstance(b, Array) else torch.tensor(b, dtype=a.value.dtype)
        return TorchArray(compute(a.value, other))

    return function


def _function(compute: Callable[..., Any]) -> Callable[..., Array]:
    return lambda *args: TorchArray(compute(*map(plain, args)))


class TorchFunctions:
    """The functions that programs use, in place of `msc.ops`."""

    maximum = staticmethod(_beyond(torch.maximum))
    minimum = staticmethod(_beyond(torch.minimum))
    abs = staticmethod(_function(torch.abs))
    relu = staticmethod(_function(torch.relu))
    tanh = staticmethod(_function(torch.tanh))
    sigmoid = staticmethod(_function(torch.sigmoid))
    sin = staticmethod(_function(torch.sin))
    cos = staticmethod(_function(torch.cos))
    erf = staticmethod(_function(torch.erf))
    square = staticmethod(_function(torch.square))
    softplus = staticmethod(_function(torch.nn.functional.softplus))
    softmax = staticmethod(_function(torch.softmax))
    matmul = staticmethod(_function(torch.matmul))
    transpose = staticmethod(_function(torch.permute))


def tensors(result: Any) -> list[Any]:
    """The tensors of floats in a result."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [tensor for item in result for tensor in tensors(item)]
    value: Any = result.value if isinstance(result, Array) else None
    return [value] if value is not None and value.is_floating_point() else []
