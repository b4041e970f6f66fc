"""SSA dominance: every value is defined before its use, in the same region or an enclosing one.

xDSL's verifier does not check this (xdslproject/xdsl#1033); passes that move operations break it silently.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo


def dominance_violations(root: Operation) -> Iterator[tuple[Operation, SSAValue]]:
    """Every (operation, operand) inside `root` whose operand does not dominate the operation, in textual order."""
    checker = _Checker(root)
    for op in root.walk():
        for operand in op.operands:
            if not checker.dominates(operand, op):
                yield op, operand


class _Checker:
    def __init__(self, root: Operation) -> None:
        self._order = {op: index for index, op in enumerate(root.walk())}
        self._regions: dict[Region, DominanceInfo] = {}

    def dominates(self, value: SSAValue, user: Operation) -> bool:
        """Whether `value` is defined where `user` may use it."""
        block = _defining_block(value)
        if block is None:
            return False
        ancestor = block.find_ancestor_op_in_block(user)
        if ancestor is None:
            return self._dominates_from_other_block(block, user)
        return isinstance(value, BlockArgument) or self._precedes(value, ancestor)

    def _precedes(self, value: SSAValue, ancestor: Operation) -> bool:
        owner = value.owner
        if not isinstance(owner, Operation) or owner is ancestor:
            return False
        return owner in self._order and self._order[owner] < self._order[ancestor]

    def _dominates_from_other_block(self, block: Block, user: Operation) -> bool:
        region = block.parent
        used_in = None if region is None else _block_in(region, user)
        if region is None or used_in is None:
            return False
        if region not in self._regions:
            self._regions[region] = DominanceInfo(region)
        return self._regions[region].strictly_dominates(block, used_in)


def _defining_block(value: SSAValue) -> Block | None:
    match value:
        case BlockArgument():
            return value.block
        case OpResult():
            return value.op.parent
        case _:
            return None


def _block_in(region: Region, op: Operation) -> Block | None:
    """The block of `region` that contains `op`, at any depth."""
    block = op.parent
    while block is not None and block.parent is not region:
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return block
