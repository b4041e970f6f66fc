"""Results that depend only on the loops of a tree, not on its places, cached for later trees with the same loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from msc.poly.model import KernelModel
from msc.poly.remembered import remembered
from msc.poly.schedule_tree.moves import without_places
from msc.poly.schedule_tree.nodes import Tree

T = TypeVar("T")

_CACHED = 2
"""Trees of a model for which a result is cached: places are searched, the result is proved, then lowered."""


def of_loops(make: Callable[[KernelModel, Tree], T]) -> Callable[[KernelModel, Tree], T]:
    """Call `make` for a tree without places, once for the latest trees that have the same loops."""

    @remembered
    def latest(model: KernelModel) -> dict[Tree, T]:
        return {}

    @wraps(make)
    def made(model: KernelModel, tree: Tree) -> T:
        bare, known = without_places(tree), latest(model)
        if bare not in known:
            result = make(model, bare)
            for oldest in list(known)[: 1 - _CACHED]:
                del known[oldest]
            known[bare] = result
        return known[bare]

    return made
