"""Strategies as text: one operator a line, its name and into how many parts each dimension of each operand is cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from msc.planner.operators import OperatorGraph
from msc.support.diagnostics import Diagnostic, Location, MscError, did_you_mean

MARK = "# msc strategies: an operator, and into how many parts each dimension of each operand is cut"

Strategy = tuple[tuple[int, ...], ...]


def strategies_text(cuts: Iterable[tuple[str, Sequence[Sequence[int]]]]) -> str:
    """The file of operators' strategies."""
    return "\n".join([MARK, *(f"{name} {json.dumps(rows)}" for name, rows in cuts)]) + "\n"


def read_strategies(text: str, file: str) -> dict[str, Strategy]:
    """Strategies by the operators' names. Raises MSC1125 for a line that is none."""
    found: dict[str, Strategy] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, _, written = line.partition("#")[0].strip().partition(" ")
        if not name:
            continue
        strategy = _strategy(written)
        if strategy is None:
            message = f"'{name}' has no strategy such as [[2, 1], [1, 4]]"
            raise _wrong(message, file, number, line)
        if name in found:
            raise _wrong(f"'{name}' has two strategies", file, number, line)
        found[name] = strategy
    return found


def _strategy(text: str) -> Strategy | None:
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    rows = cast("list[Any]", read if isinstance(read, list) else [None])
    if not all(isinstance(row, list) and all(type(n) is int and n > 0 for n in cast("list[Any]", row)) for row in rows):
        return None
    return tuple(tuple(row) for row in rows)


def with_strategies(graph: OperatorGraph, strategies: Mapping[str, Strategy], file: str) -> OperatorGraph:
    """The graph whose operators are cut as they are told. Raises MSC1125 for operators that it does not have."""
    names = {op.name for op in graph.operators}
    for name in strategies:
        if name not in names:
            raise MscError(_diagnostic(f"{file}: the model has no operator '{name}'", did_you_mean(name, names)))
    marked = [replace(op, given=strategies.get(op.name, op.given)) for op in graph.operators]
    return OperatorGraph(graph.tensors, marked)


def _diagnostic(message: str, advice: str | None) -> Diagnostic:
    return Diagnostic("MSC1125", message, help=advice or "msc parallel plan MODEL --strategy FILE writes such a file")


def _wrong(message: str, file: str, line: int, text: str) -> MscError:
    return MscError(Diagnostic("MSC1125", message, Location(file, line, 1), text, len(text)))
