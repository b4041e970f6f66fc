"""The instances of a kernel's statements that run when its inputs are smaller than their capacities.

A statement runs if all elements that it reads are valid. The elements that are then written are valid, and no others
are needed. A loop whose index reads a valid dimension therefore ends at its bound, also in a reduction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.poly.affine import bounds, linear_form, simplified
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Cast, Index, Read, Scalar, apply, reads, rewritten
from msc.poly.valid_extents import (
    Factor,
    NotABox,
    Size,
    ValidExtent,
    ValidShape,
    below,
    fitting,
    is_whole,
    meet,
    merged,
    ranges_of,
    upper_bound,
    whole,
)


@dataclass
class ValidAnalysis:
    """The valid part of a kernel's arrays, from that of its inputs, and each statement's dimensions."""

    shapes: Sequence[tuple[int, ...]]
    sizes: tuple[Size, ...]
    arrays: dict[int, ValidShape]
    """What is known: at first the inputs; operand numbers that are not in it are whole."""
    internal: frozenset[int] = frozenset()
    """Arrays of which nothing is needed but what the statements read."""
    statements: list[tuple[ValidExtent, ...]] = field(default_factory=list[tuple[ValidExtent, ...]])

    def run(self, statements: Sequence[KernelStatement]) -> None:
        """Follow the statements in order. Raises NotABox where the valid part is no box."""
        self.statements = [self._forward(statement) for statement in statements]
        for number in reversed(range(len(statements))):
            target = statements[number].target
            if target in self.internal:
                self.arrays[target] = self._read_part(target, statements[number:])
            self.statements[number] = self._needed(statements[number], self.statements[number])
        for statement, dims in zip(statements, self.statements, strict=True):
            if any(len(dims[d]) > 1 for d in statement.reduced):
                raise NotABox("a reduced dimension merges dimensions of open sizes")

    def _forward(self, statement: KernelStatement) -> tuple[ValidExtent, ...]:
        box = _Box(statement.extents, self.sizes)
        for d, bound in enumerate(statement.bounds if self.sizes else ()):
            if bound is not None:
                box.found[d] = (Factor(statement.extents[d], bound),)
        for read in reads(statement.body):
            if read.operand in self.arrays:
                box.add(read, self.arrays[read.operand])
        dims = box.dims()
        written = self._written(statement, dims)
        known = self.arrays.get(statement.target, whole(self.shapes[statement.target]))
        self.arrays[statement.target] = tuple(meet(a, b) for a, b in zip(known, written, strict=True))
        return dims

    def _written(self, statement: KernelStatement, dims: Sequence[ValidExtent]) -> ValidShape:
        shape = self.shapes[statement.target]
        return tuple(_written_dim(e, dims, n) for e, n in zip(statement.write.results, shape, strict=True))

    def _read_part(self, array: int, statements: Sequence[KernelStatement]) -> ValidShape:
        """The part that is read of what is written of an array; `statements` are the last ones."""
        found: list[set[ValidExtent]] = [set() for _ in self.shapes[array]]
        for statement, dims in zip(statements, self.statements[-len(statements) :], strict=True):
            for read in (read for read in reads(statement.body) if read.operand == array):
                indirect = {axis for axis, _ in read.indirect}
                for axis, (expr, size) in enumerate(zip(read.index.results, self.shapes[array], strict=True)):
                    valid: ValidExtent = (Factor(size),)
                    if isinstance(expr, AffineDimExpr) and axis not in indirect:
                        valid = dims[expr.position] if statement.extents[expr.position] == size else valid
                    found[axis].add(valid)
        written = zip(self.arrays[array], found, strict=True)
        return tuple(parts.pop() if is_whole(dim) and len(parts) == 1 else dim for dim, parts in written)

    def _needed(self, statement: KernelStatement, dims: Sequence[ValidExtent]) -> tuple[ValidExtent, ...]:
        """The dimensions without what nothing reads: the valid part of the target is all that is needed."""
        needed = list(dims)
        for expr, valid in zip(statement.write.results, self.arrays[statement.target], strict=True):
            if is_whole(valid):
                continue
            if isinstance(expr, AffineDimExpr) and statement.extents[expr.position] == prod(f.capacity for f in valid):
                needed[expr.position] = meet(needed[expr.position], valid)
            elif expr.used_dims() and _written_dim(expr, dims, prod(f.capacity for f in valid)) != valid:
                raise NotABox("a part of a dimension of open size is written")
        return tuple(needed)


def _written_dim(expr: AffineExpr, dims: Sequence[ValidExtent], size: int) -> ValidExtent:
    """The valid indices of an axis of `size` that a statement over `dims` writes at `expr`."""
    used = sorted(expr.used_dims())
    if all(is_whole(dims[d]) for d in used):
        return (Factor(size),)
    form = linear_form(expr)
    if form is None or form.constant:
        raise NotABox("a dimension of open size is moved")
    place, factors = 1, list[Factor]()
    for d in sorted(used, key=lambda d: form.coefficients[d]):
        if form.coefficients[d] != place:
            raise NotABox("a dimension of open size is dilated")
        place *= prod(f.capacity for f in dims[d])
        factors = [*dims[d], *factors]
    if place != size:
        raise NotABox("a dimension of open size becomes a part of another")
    return merged(factors)


@dataclass
class _Box:
    """The dimensions of a statement as its reads bound them."""

    extents: tuple[int, ...]
    sizes: tuple[Size, ...]
    found: dict[int, ValidExtent] = field(default_factory=dict[int, ValidExtent])

    def dims(self) -> tuple[ValidExtent, ...]:
        return tuple(self.found.get(d, (Factor(n),)) for d, n in enumerate(self.extents))

    def add(self, read: Read, valid: ValidShape) -> None:
        """What a read of an array says: each index lies in its valid part."""
        digits: dict[int, list[tuple[int, ValidExtent]]] = {}
        indirect = {axis for axis, _ in read.indirect}
        ranges = {d: range(n) for d, n in enumerate(self.extents)}
        for axis, (index, dim) in enumerate(zip(read.index.results, valid, strict=True)):
            expr = simplified(index, ranges)
            digit = _digit(expr)
            if axis in indirect:
                continue
            if digit is not None:
                digits.setdefault(digit[0], []).append((digit[1], dim))
            elif not is_whole(dim):
                self._index(expr, dim)
        for d, parts in digits.items():
            if not all(is_whole(dim) for _, dim in parts):
                self._bound(d, _number(parts, self.extents[d]))

    def _index(self, expr: AffineExpr, dim: ValidExtent) -> None:
        if isinstance(expr, AffineDimExpr) and self.extents[expr.position] == prod(f.capacity for f in dim):
            self._bound(expr.position, dim)
            return
        bound, form = upper_bound(dim), linear_form(expr)
        if len(dim) > 1 or bound is None or form is None:
            raise NotABox("dimensions of open sizes are read in parts")
        if isinstance(expr, AffineConstantExpr):
            if bounds(bound, ranges_of(self.sizes))[0] <= expr.value:
                raise NotABox(f"element {expr.value} of a dimension is read that may not have it")
            return
        if min(form.coefficients.values()) < 0:
            raise NotABox("a dimension of open size is read from its end")
        lead = max(form.coefficients, key=lambda d: form.coefficients[d])
        rest = sum(c * (self.extents[d] - 1) for d, c in form.coefficients.items() if d != lead)
        if any(not is_whole(self.found.get(d, (Factor(1),))) for d in form.coefficients if d != lead):
            raise NotABox("dimensions of open sizes are added")
        step = form.coefficients[lead]
        self._bound(lead, fitting(below(bound, step, rest + form.constant), self.extents[lead], self.sizes))

    def _bound(self, d: int, dim: ValidExtent) -> None:
        self.found[d] = meet(self.found.get(d, (Factor(self.extents[d]),)), dim)


def _digit(expr: AffineExpr) -> tuple[int, int] | None:
    """`d floordiv n`, `d mod m` and `(d floordiv n) mod m` as (d, n)."""
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, AffineDimExpr(position=d), AffineConstantExpr()):
            return d, 1
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, inner, AffineConstantExpr()):
            return _digit(inner)
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, AffineDimExpr(position=d), AffineConstantExpr(value=n)):
            return d, n
        case _:
            return None


def _number(digits: Sequence[tuple[int, ValidExtent]], extent: int) -> ValidExtent:
    """The dimension whose digits, at these places, are valid as given."""
    factors: list[Factor] = []
    left = extent
    for place, dim in sorted(digits, key=lambda digit: -digit[0]):
        capacity = prod(f.capacity for f in dim)
        if left % (place * capacity):
            raise NotABox("a dimension of open size is read in parts")
        factors += [Factor(left // (place * capacity)), *dim]
        left = place
    return merged([*factors, Factor(left)])


def bounded(model: KernelModel, inputs: Mapping[int, ValidShape], sizes: tuple[Size, ...]) -> KernelModel:
    """The model with bounds on its statements' loops, where the valid part of its inputs gives some."""
    if not sizes:
        plain = tuple(replace(s, bounds=()) for s in model.statements)
        return replace(model, statements=plain)
    internal = frozenset(k for k, array in enumerate(model.arrays) if array.kind == "internal")
    analysis = ValidAnalysis([a.shape for a in model.arrays], sizes, dict(inputs), internal)
    analysis.run(model.statements)
    statements = [
        replace(s, bounds=tuple(map(upper_bound, dims)), body=_clamped(s.body, analysis))
        for s, dims in zip(model.statements, analysis.statements, strict=True)
    ]
    return replace(model, statements=tuple(statements), sizes=sizes)


def _clamped(body: Scalar, analysis: ValidAnalysis) -> Scalar:
    """A body in which an index that is data stays inside the valid part of what it reads."""

    def clamped(leaf: Read | Index) -> Scalar:
        if isinstance(leaf, Index) or leaf.operand not in analysis.arrays:
            return leaf
        valid = analysis.arrays[leaf.operand]
        indirect = ((axis, _within(index, _last(valid[axis], analysis.sizes))) for axis, index in leaf.indirect)
        return replace(leaf, indirect=tuple(indirect))

    return rewritten(body, clamped)


def _last(valid: ValidExtent, sizes: Sequence[Size]) -> Index | None:
    """The last valid index of a dimension, where it always has one and is not whole."""
    bound = upper_bound(valid)
    if bound is None or len(valid) > 1 or bounds(bound, ranges_of(sizes))[0] < 1:
        return None
    symbols = [AffineExpr.symbol(k) for k in range(len(sizes))]
    return Index(bound.replace_dims_and_symbols(symbols, []) + -1)


def _within(index: Scalar, last: Index | None) -> Scalar:
    if last is None:
        return index
    return apply("min", index if index.dtype == last.dtype else Cast(index, last.dtype), last)
