"""The table of gradients by formula: operation class -> the function that writes its adjoint.

What is not in the table is derived from its compute definition (`derived`), after its expansion if it is composite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import SSAValue

from msc.dialects.ms.base import MsOp
from msc.support.families import import_families

Contributions: TypeAlias = Sequence[SSAValue | None]
"""What operands get, in their order; None for nothing."""

Rule: TypeAlias = Callable[..., Contributions]
"""From an operation, an emitter and the gradient of each result to what its operands get.

Of an operation with several results, those that nothing depends on are given as zeros.
"""

RuleT = TypeVar("RuleT", bound=Callable[..., Any])

_FAMILIES = ("activations", "convolution", "indexing", "linear", "movement", "normalisation", "reductions")
_RULES: dict[type[MsOp], Rule] = {}


def gradient(*classes: type[MsOp]) -> Callable[[RuleT], RuleT]:
    """Declare how the gradient of operation classes is written."""

    def register(function: RuleT) -> RuleT:
        for class_ in classes:
            if class_ in _RULES:
                raise ValueError(f"{class_.name} has two gradients")
            _RULES[class_] = function
        return function

    return register


def rule_of(operation: type[MsOp]) -> Rule | None:
    """The gradient of an operation class by formula, or None."""
    import_families("msc.graph.autodiff.rules", _FAMILIES)
    return _RULES.get(operation)
