"""Which values a block no longer needs after an operation, so that an evaluation holds only what is live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue


def last_uses(block: Block) -> Mapping[Operation, Sequence[SSAValue]]:
    """For each operation of the block: the values whose last use in the block, nested regions included, it is.

    Results that are never used die with the operation that makes them.
    """
    seen: set[SSAValue] = set()
    dying: dict[Operation, list[SSAValue]] = {}
    for op in reversed(list(block.ops)):
        touched = [*op.results, *(operand for inner in op.walk() for operand in inner.operands)]
        fresh = list(dict.fromkeys(value for value in touched if value not in seen))
        seen.update(fresh)
        dying[op] = fresh
    return dying
