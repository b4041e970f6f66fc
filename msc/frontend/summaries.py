"""What summary operators were given since the last record: kinds, names and arrays."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from msc.frontend.capture import INSTALLED
from msc.frontend.tensor import Tensor, concrete
from msc.support.arrays import Array

_COLLECTED: list[tuple[str, str, Array]] = []
_MOST = 10_000
"""Values that are kept when nothing records them; the oldest go first."""


@runtime_checkable
class Deferring(Protocol):
    """A builder that calls functions when the graph that it writes has run."""

    def defer(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str) -> None:
        """Call a function with what its tensors have then, in this call and in every later one."""
        ...


def summarise(kind: str, name: str, value: Tensor) -> None:
    """Keep the elements of a tensor until they are recorded; while a graph is captured, in each of its calls."""
    builder = INSTALLED.builder
    if isinstance(builder, Deferring):
        builder.defer(_collect, (kind, name, value), {}, f"a summary, '{name}',")
    else:
        _collect(kind, name, value)


def _collect(kind: str, name: str, value: Tensor) -> None:
    _COLLECTED.append((kind, name, np.array(concrete(value, "a summary"))))
    del _COLLECTED[:-_MOST]


def collected() -> list[tuple[str, str, Array]]:
    """What was given; it is not kept any longer."""
    found = list(_COLLECTED)
    _COLLECTED.clear()
    return found
