"""The table of expanders: operation class -> the function that rewrites it into basic operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from xdsl.ir import SSAValue

from msc.dialects.ms.base import MsOp
from msc.graph.emitter import Emitter
from msc.support.families import import_families

Op = TypeVar("Op", bound=MsOp)
Expander: TypeAlias = Callable[[Op, Emitter], SSAValue]

_FAMILIES = (
    "activations",
    "normalisation",
    "ordering",
    "linear",
    "convolution",
    "pooling",
    "reductions",
    "shapes",
    "indexing",
)
_EXPANDERS: dict[type[MsOp], Expander[MsOp]] = {}


def expander(*classes: type[Op]) -> Callable[[Expander[Op]], Expander[Op]]:
    """Declare the expander of operation classes; it gives the value that replaces the operation's one result."""

    def register(function: Expander[Op]) -> Expander[Op]:
        def expand(op: MsOp, emit: Emitter) -> SSAValue:
            assert isinstance(op, classes)
            return function(op, emit)

        for class_ in classes:
            if class_ in _EXPANDERS:
                raise ValueError(f"{class_.name} has two expanders")
            _EXPANDERS[class_] = expand
        return function

    return register


def expander_of(operation: type[MsOp]) -> Expander[MsOp] | None:
    """The expander of an operation class, or None."""
    import_families("msc.graph.expand.expanders", _FAMILIES)
    return _EXPANDERS.get(operation)
