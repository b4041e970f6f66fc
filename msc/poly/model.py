"""The polyhedral model of a kernel: arrays, and statements over boxes that read and write them."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from xdsl.ir.affine import AffineExpr, AffineMap

from msc.poly.compute import Combine, Statement, affine_map, dims, identity
from msc.poly.remembered import remembered
from msc.poly.scalar import Cast, Constant, Index, Read, Scalar, reads, rewritten
from msc.poly.valid_extents import Size

ArrayKind: TypeAlias = Literal["input", "output", "internal"]


@dataclass(frozen=True)
class Array:
    """A tensor that the kernel touches; `internal` ones exist only inside it."""

    shape: tuple[int, ...]
    dtype: str
    kind: ArrayKind

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major strides in elements."""
        return tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))


@dataclass(frozen=True)
class KernelStatement:
    """A statement of the kernel; reads in `body` and `target` are positions in the kernel's arrays.

    `combine` is None for a plain write, else the statement updates what it writes. `bounds` end a dimension before its
    extent where there is one: expressions over the kernel's sizes (`msc.poly.valid_statements`).
    """

    extents: tuple[int, ...]
    names: tuple[str, ...]
    target: int
    write: AffineMap
    body: Scalar
    combine: Combine | None
    operation: int
    bounds: tuple[AffineExpr | None, ...] = ()

    @property
    def points(self) -> int:
        return math.prod(self.extents)

    def bound(self, dim: int) -> AffineExpr | None:
        """The bound at which a dimension ends, if that is before its extent."""
        return self.bounds[dim] if self.bounds else None

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        """Dimensions that the write map does not use."""
        return self.unwritten if self.combine else ()

    @property
    def unwritten(self) -> tuple[int, ...]:
        """The same of any statement: of a plain write, those of one iteration."""
        used = self.write.used_dims()
        return tuple(d for d in range(len(self.extents)) if d not in used)

    @remembered
    def accesses(self) -> tuple[tuple[int, AffineMap], ...]:
        """Every (array, index map): the write first, then the reads."""
        return ((self.target, self.write), *((r.operand, r.index) for r in reads(self.body)))

    def whole_reads(self) -> tuple[int, ...]:
        """Arrays read at an index that is data: any element of them may be meant."""
        return tuple(r.operand for r in reads(self.body) if r.indirect)


@dataclass(frozen=True)
class Materialized:
    """An internal array that one member of a kernel computes and the next one, from operation `reader` on, reads.

    It is computed a block at a time along some of its axes.
    """

    array: int
    axes: tuple[int, ...]
    reader: int


@dataclass(frozen=True)
class KernelModel:
    """Arrays and statements in program order. `operations` name what the statements came from, for reports.

    `sizes` are those that a call decides; extents and shapes are for the largest. `materialized` lie in memory between
    the members of the kernel, in order.
    """

    arrays: tuple[Array, ...]
    statements: tuple[KernelStatement, ...]
    operations: tuple[str, ...]
    sizes: tuple[Size, ...] = ()
    materialized: tuple[Materialized, ...] = ()

    @property
    def members(self) -> list[list[int]]:
        """The numbers of the statements of each member: of one, if there are no statements."""
        firsts = [each.reader for each in self.materialized]
        members: list[list[int]] = [[] for _ in range(len(firsts) + 1)]
        for number, statement in enumerate(self.statements):
            members[bisect(firsts, statement.operation)].append(number)
        return [member for member in members if member] or members[:1]

    @property
    def points(self) -> int:
        return sum(s.points for s in self.statements)

    @cached_property
    def structure(self) -> str:
        """The same text for kernels that compute the same, wherever they came from; it tells 0.0 from -0.0."""
        return repr((self.arrays, self.statements, self.sizes, *self.materialized))


def statements_of(
    compute: Sequence[Statement], operands: Sequence[int], results: Sequence[int], operation: int, dtypes: Sequence[str]
) -> list[KernelStatement]:
    """A basic operation's statements on the kernel's arrays; a reduction becomes an initialisation and an update."""
    statements: list[KernelStatement] = []
    for statement in compute:
        body = renumber(statement.body, operands)
        target = results[statement.result]
        if statement.combine is not None and not statement.accumulate:
            statements.append(_initialisation(statement, target, operation, dtypes[statement.result]))
        statements.append(
            KernelStatement(
                statement.extents, statement.names, target, statement.write, body, statement.combine, operation
            )
        )
    return statements


def _initialisation(statement: Statement, target: int, operation: int, dtype: str) -> KernelStatement:
    assert statement.combine is not None
    kept, write = _without_reduced(statement.extents, statement.reduced, statement.write)
    neutral = Constant(identity(statement.combine, dtype), dtype)
    names = tuple(statement.names[d] for d in kept)
    return KernelStatement(tuple(statement.extents[d] for d in kept), names, target, write, neutral, None, operation)


def _without_reduced(extents: Sequence[int], reduced: Sequence[int], write: AffineMap) -> tuple[list[int], AffineMap]:
    """The dimensions that are not reduced, and the write map over only them."""
    kept = [d for d in range(len(extents)) if d not in reduced]
    inner = dims(len(kept))
    zero = AffineExpr.constant(0)
    replacement = [inner[kept.index(d)] if d in kept else zero for d in range(len(extents))]
    return kept, affine_map(len(kept), [r.replace_dims_and_symbols(replacement, []) for r in write.results])


def with_accumulators(model: KernelModel) -> KernelModel:
    """Reductions into outputs, narrow floats or what is materialized go through internal accumulators, copied out last.

    So accumulators can live in registers, and sums of f16 and bf16 are kept in f32 and rounded once. What another
    operation writes into the same array (a border) stays there.
    """
    between = {each.array for each in model.materialized}
    for target in sorted({s.target for s in model.statements if s.combine}):
        array = model.arrays[target]
        if array.kind == "output" or target in between or array.dtype in ("f16", "bf16"):
            model = _through_accumulator(model, target)
    return model


def _through_accumulator(model: KernelModel, target: int) -> KernelModel:
    array = model.arrays[target]
    dtype = "f32" if array.dtype in ("f16", "bf16") else array.dtype
    accumulator = len(model.arrays)
    statements: list[KernelStatement] = []
    updating = {s.operation for s in model.statements if s.combine and s.target == target}
    moved = {i for i, s in enumerate(model.statements) if s.target == target and s.operation in updating}
    last = max(moved)
    for number, statement in enumerate(model.statements):
        if number in moved:
            body = statement.body if statement.body.dtype == dtype else _as(statement.body, dtype)
            statements.append(replace(statement, target=accumulator, body=body))
        else:
            statements.append(statement)
        if number == last:
            written = _written(model, sorted(moved), target)
            statements += [_copy_out(s, array, dtype, accumulator, target) for s in written]
    arrays = (*model.arrays, Array(array.shape, dtype, "internal"))
    return replace(model, arrays=arrays, statements=tuple(statements))


def _written(model: KernelModel, moved: Sequence[int], target: int) -> list[KernelStatement]:
    """Statements that between them write every place that those that were moved write, few of them.

    One that writes the whole array is enough. Else it is the update, and what fills places beside it.
    """
    shape = model.arrays[target].shape
    whole = affine_map(len(shape), dims(len(shape)))
    statements = [model.statements[number] for number in moved]
    for statement in statements:
        if statement.combine is None and statement.extents == shape and statement.write == whole:
            return [statement]
    found: dict[tuple[tuple[int, ...], AffineMap], KernelStatement] = {}
    for statement in statements:
        kept, write = _without_reduced(statement.extents, statement.unwritten, statement.write)
        found.setdefault((tuple(statement.extents[d] for d in kept), write), statement)
    return list(found.values())


def _as(body: Scalar, dtype: str) -> Scalar:
    return Constant(body.value, dtype) if isinstance(body, Constant) else Cast(body, dtype)


def _copy_out(update: KernelStatement, array: Array, dtype: str, source: int, target: int) -> KernelStatement:
    """Copies exactly the places that the update wrote: the array may have a border that something else writes."""
    kept, write = _without_reduced(update.extents, update.unwritten, update.write)
    read: Scalar = Read(source, write, dtype)
    body = read if dtype == array.dtype else Cast(read, array.dtype)
    extents, names = tuple(update.extents[d] for d in kept), tuple(update.names[d] for d in kept)
    return KernelStatement(extents, names, target, write, body, None, update.operation)


def renumber(scalar: Scalar, operands: Sequence[int]) -> Scalar:
    """The scalar with operand k read from array `operands[k]`."""

    def renumbered(leaf: Read | Index) -> Scalar:
        return leaf if isinstance(leaf, Index) else replace(leaf, operand=operands[leaf.operand])

    return rewritten(scalar, renumbered)
