"""Values of a graph by where they come from, and the first operation whose value a later form of the graph lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, FusedLoc
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.driver.models.model_outputs import Tolerance
from msc.ir.locations import location_of
from msc.support.diagnostics import Location

_MAXIMUM_BYTES = 1 << 30
"""A trace keeps the values of the first operations up to this much memory; divergence beyond is named by pass alone."""


@dataclass
class Trace:
    """The operations of one evaluation in order, with their results; give `record` to the interpreter as observer."""

    steps: list[tuple[Operation, tuple[Array, ...]]] = field(default_factory=list[tuple[Operation, tuple[Array, ...]]])
    _bytes: int = 0

    def record(self, op: Operation, results: tuple[Array, ...]) -> None:
        """Keep the results of an operation that computes."""
        if isinstance(op, MsOp) and not isinstance(op, GetParameterOp | ConstantOp):
            self._bytes += sum(array.nbytes for array in results)
            if self._bytes <= _MAXIMUM_BYTES:
                self.steps.append((op, results))

    def by_place(self) -> Mapping[Location, Sequence[Array]]:
        """All values that come from a place in the source."""
        found = defaultdict[Location, list[Array]](list)
        for op, results in self.steps:
            for place in _places(op.location):
                found[place] += results
        return found


def _places(location: Attribute) -> Iterator[Location]:
    inner = location.locations if isinstance(location, FusedLoc) else None
    for leaf in inner if isa(inner, ArrayAttr[Attribute]) else (location,):
        place = location_of(leaf)
        if place is not None:
            yield place


def first_lost(reference: Trace, later: Trace, tolerance: Tolerance) -> Operation | None:
    """The first operation of the reference whose value no operation from its place has, nor any value made of it."""
    values = later.by_place()
    kept = {op for op, results in reference.steps if _kept(op, results, values, tolerance)}
    return next((op for op, _ in reference.steps if op not in kept and not _leads_to(op, kept)), None)


def _kept(
    op: Operation, results: Sequence[Array], values: Mapping[Location, Sequence[Array]], tolerance: Tolerance
) -> bool:
    candidates = [value for place in _places(op.location) for value in values.get(place, ())]
    return any(_same(candidate, result, tolerance) for result in results for candidate in candidates)


def _same(candidate: Array, result: Array, tolerance: Tolerance) -> bool:
    """Equal elements in the same order; views between may have changed the shape."""
    if candidate.size != result.size or candidate.dtype != result.dtype:
        return False
    return tolerance.agree(candidate.reshape(-1), result.reshape(-1))


def _leads_to(op: Operation, kept: set[Operation]) -> bool:
    pending, seen = [op], {op}
    while pending:
        for result in pending.pop().results:
            for use in result.uses:
                if use.operation in kept:
                    return True
                if use.operation not in seen:
                    seen.add(use.operation)
                    pending.append(use.operation)
    return False
