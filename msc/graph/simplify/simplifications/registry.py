"""The table of simplifications: operation class -> the rules to try on it, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from xdsl.ir import SSAValue

from msc.dialects.ms.base import MsOp
from msc.graph.emitter import Emitter
from msc.support.families import import_families

Op = TypeVar("Op", bound=MsOp)
Rule: TypeAlias = Callable[[Op, Emitter], SSAValue | None]

_FAMILIES = ("arithmetic", "selection", "movement", "reductions", "products")
_RULES: dict[type[MsOp], list[Rule[MsOp]]] = {}


def simplification(*classes: type[Op]) -> Callable[[Rule[Op]], Rule[Op]]:
    """Declare a rule for operation classes: it gives the value that replaces the one result, or None."""

    def register(rule: Rule[Op]) -> Rule[Op]:
        def apply(op: MsOp, emit: Emitter) -> SSAValue | None:
            assert isinstance(op, classes)
            return rule(op, emit)

        for class_ in classes:
            _RULES.setdefault(class_, []).append(apply)
        return rule

    return register


def simplifications_of(operation: type[MsOp]) -> Sequence[Rule[MsOp]]:
    """The rules for an operation class."""
    import_families("msc.graph.simplify.simplifications", _FAMILIES)
    return _RULES.get(operation, ())
