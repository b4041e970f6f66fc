"""Bounds of indices on the arguments of entry functions: what `--check-indices` makes the generated C look at.

`ms.indices = [low, high]` on an argument says of all its elements that an operation gathers by them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute

from msc.graph.index_checks import index_checks
from msc.ir.entry import entries
from msc.ir.index_bounds import INDICES


def mark_indices(module: ModuleOp) -> int:
    """Mark arguments; how many indices are computed, and have no mark. Raises MSC0610 for a constant one outside."""
    computed = 0
    for function in entries(module):
        block = function.body.block
        checks = index_checks(block)
        bounds: dict[int, tuple[int, int]] = {}
        for check in checks.arguments:
            if not check.exact:
                computed += 1
                continue
            low, high = bounds.get(check.argument, (check.expected.low, check.expected.high))
            bounds[check.argument] = max(low, check.expected.low), min(high, check.expected.high)
        computed += len(checks.computed) + len(checks.results)
        given = list(function.arg_attrs or [DictionaryAttr({}) for _ in block.args])
        for number, pair in bounds.items():
            marks: list[Attribute] = [IntegerAttr(bound, i64) for bound in pair]
            given[number] = DictionaryAttr({**given[number].data, INDICES: ArrayAttr(marks)})
        if bounds:
            function.arg_attrs = ArrayAttr(given)
    return computed
