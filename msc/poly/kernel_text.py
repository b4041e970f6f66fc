"""The statements of a kernel as people read them, in the words of its schedule.

`S1 over n.0 1, m.1 3, k.2 6: t0[n, m] += in0[n, k] * in1[k, m]`: S1.2 is its dimension k, of 6 iterations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count

from msc.poly.model import KernelModel, KernelStatement
from msc.poly.remembered import remembered
from msc.poly.statement_text import index_text, scalar_text, update_text

_LENGTH = 200
"""Characters of a formula that are shown."""


def kernel_lines(model: KernelModel) -> list[str]:
    """A line for each statement: its dimensions with their extents, and what it computes."""
    names = array_names(model)
    return [_line(number, statement, names) for number, statement in enumerate(model.statements)]


@remembered
def array_names(model: KernelModel) -> tuple[str, ...]:
    """`in0`, `out0`, `t0`: the names of the arrays of a kernel, numbered by kind."""
    prefixes, numbers = {"input": "in", "output": "out", "internal": "t"}, defaultdict[str, Iterator[int]](count)
    return tuple(f"{prefixes[array.kind]}{next(numbers[array.kind])}" for array in model.arrays)


def _line(number: int, statement: KernelStatement, names: Sequence[str]) -> str:
    variables = _variables(statement)
    extents = zip(variables, statement.extents, strict=True)
    over = ", ".join(f"{name}.{d} {extent}" for d, (name, extent) in enumerate(extents))
    target = names[statement.target] + index_text(statement.write.results, variables)
    value = scalar_text(statement.body, names, variables)
    combine = statement.combine
    formula = f"{target} = {value}" if combine is None else update_text(target, combine, value)
    shown = formula if len(formula) <= _LENGTH else f"{formula[:_LENGTH]}..."
    return f"S{number}{f' over {over}' if over else ''}: {shown}"


def _variables(statement: KernelStatement) -> list[str]:
    """The names of the dimensions, made distinct."""
    return [name if statement.names.count(name) == 1 else f"{name}{d}" for d, name in enumerate(statement.names)]
