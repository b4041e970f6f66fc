"""Activations as cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msc import ops
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.support.diagnostics import did_you_mean

Activation: TypeAlias = "str | Cell | Callable[[Tensor], Tensor] | None"


class ReLU(Cell):
    """max(0, x)."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(x)


_BY_NAME: dict[str, type[Cell]] = {"relu": ReLU}


def get_activation(name: str | None) -> Cell | None:
    """The activation of a name. Raises MSC0825."""
    if name is None:
        return None
    if name.lower() not in _BY_NAME:
        raise ApiValueError("MSC0825", f"there is no activation {name!r}", help=did_you_mean(name, _BY_NAME))
    return _BY_NAME[name.lower()]()


def activation_of(value: Activation) -> Cell | Callable[[Tensor], Tensor] | None:
    """The activation that a layer was given: by name, as a cell or a function, or none."""
    if isinstance(value, str):
        return get_activation(value)
    if value is None or callable(value):
        return value
    raise ApiTypeError("MSC0825", f"an activation is a name or a Cell, not a {type(value).__name__}")
