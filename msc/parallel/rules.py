"""How an operation may be cut: which dimensions of operands and results go together, from its compute definition.

A *factor* is a dimension of the iterations that a cut divides, with the dimensions of tensors that it runs over. Cut
along a parallel factor, every rank computes its part of the results. Cut along a reduced one, the results are partial:
the ranks' values are still to be summed. What reads a neighbourhood, a place that data say, or its own index is no
factor. A composite operation has the factors that all operations of its expansion share, the parallel ones alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.dialects import ms
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.dialects.ms.collectives import CollectiveOp
from msc.dialects.ms.shapes import Shape
from msc.graph.emitter import CompositeEmitter
from msc.graph.expand.expanders import expander
from msc.ir.typed import is_tensor, shape
from msc.parallel.layouts import Reduction
from msc.poly.affine import linear_form
from msc.poly.compute import Combine, Statement
from msc.poly.scalar import indices, reads

_REDUCTIONS: Mapping[Combine, Reduction] = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Rule:
    """For each operand and result the factor of each dimension, None where it is to be whole.

    `divides` is what the number of parts of each factor divides; `reduced` has the factors over which results are
    partial, and how they are reduced.
    """

    operands: tuple[tuple[int | None, ...], ...]
    results: tuple[tuple[int | None, ...], ...]
    divides: Mapping[int, int]
    reduced: Mapping[int, Reduction]

    @property
    def factors(self) -> tuple[int, ...]:
        return tuple(sorted(self.divides))


def rule_of(op: Operation) -> Rule:
    """The rule of an operation; of one that is not understood, everything is to be whole."""
    if isinstance(op, MsOp) and not isinstance(op, CollectiveOp) and _is_static(op):
        if isinstance(op, BasicOp) and op.is_basic:
            return _Dimensions(op).of_statements(op.compute())
        if isinstance(op, ViewOp):
            return _view(op)
        if isinstance(op, ms.BarrierOp | ms.IdentityOp | ms.StopGradientOp):
            return _Dimensions(op).of_equal(op.operands[0], op.results[0])
        if isinstance(op, ms.ConstantOp):
            return _Dimensions(op).of_constant(op)
        if op.operands:
            return _of_composite(op)
    return _Dimensions(op).whole()


_COMPOSITES: dict[Hashable, Rule] = {}
"""Those of composite operations, by all that decides them."""


def _of_composite(op: MsOp) -> Rule:
    expand = expander.get(type(op))
    if expand is None:
        return _Dimensions(op).whole()
    types = tuple(value.type for value in (*op.operands, *op.results))
    same = tuple(op.operands.index(value) for value in op.operands)
    key = (op.name, types, same, tuple(sorted(op.properties.items())))
    if key not in _COMPOSITES:
        emit = CompositeEmitter(op)
        value = expand(op, emit)
        ops = emit.finished(value)
        plain = all(isinstance(inner, MsOp) for inner in ops)
        dimensions = _Dimensions(op)
        _COMPOSITES[key] = dimensions.of_expansion(ops, value) if plain else dimensions.whole()
        for inner in reversed(ops):
            inner.erase(safe_erase=False)
    return _COMPOSITES[key]


def _is_static(op: Operation) -> bool:
    types = [value.type for value in (*op.operands, *op.results)]
    return all(is_tensor(type_) and -1 not in type_.get_shape() for type_ in types)


Place = tuple[str, int, int]
"""Dimension `d` of operand or result `n`, or of statement `n`."""


class _Dimensions:
    """Classes of dimensions that are cut together, by union of those that one iteration runs over."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.parent: dict[Place, Place] = {}
        self.blocked: set[Place] = set()
        self.sizes: dict[Place, list[int]] = {}
        self.reduced: dict[Place, Reduction] = {}

    def whole(self) -> Rule:
        """The rule of what no rank does a part of."""
        operands, results = (
            tuple((None,) * len(shape(v)) if is_tensor(v.type) else () for v in values)
            for values in (self.op.operands, self.op.results)
        )
        return Rule(operands, results, {}, {})

    def of_equal(self, operand: SSAValue, result: SSAValue) -> Rule:
        """That of a result which is the operand."""
        for d, size in enumerate(shape(operand)):
            self.join(("operand", 0, d), ("result", 0, d), size)
        return self.rule()

    def of_constant(self, op: ms.ConstantOp) -> Rule:
        """Of equal elements a rank makes its own."""
        for d, size in enumerate(shape(op.result) if op.value.is_splat() else ()):
            self.sizes["result", 0, d] = [size]
        return self.rule()

    def of_expansion(self, ops: Sequence[Operation], last: SSAValue) -> Rule:
        """That of a composite operation: dimensions are joined if one of its operations joins them."""
        values: dict[SSAValue, tuple[str, int]] = {v: ("operand", n) for n, v in enumerate(self.op.operands)}
        for k, inner in enumerate(ops):
            values |= {result: ("inner", k * 8 + n) for n, result in enumerate(inner.results)}
            self._inner(rule_of(inner), inner, values)
        for d, size in enumerate(shape(last)):
            self.join((*values[last], d), ("result", 0, d), size)
        return self.rule()

    def _inner(self, rule: Rule, inner: Operation, values: Mapping[SSAValue, tuple[str, int]]) -> None:
        first: dict[int, Place] = {}
        tensors = zip((*inner.operands, *inner.results), (*rule.operands, *rule.results), strict=True)
        for value, factors in tensors:
            for d, (size, factor) in enumerate(zip(shape(value), factors, strict=True)):
                at = (*values[value], d)
                if factor is None:
                    self.sizes.setdefault(at, []).append(size)
                    self.blocked |= {at} if size != 1 else set()
                    continue
                self.join(at, first.setdefault(factor, at), size)
                self.blocked |= {at} if factor in rule.reduced else set()

    def of_statements(self, statements: Sequence[Statement]) -> Rule:
        """That of compute definitions."""
        for number, statement in enumerate(statements):
            self._statement(number, statement, len(statements) == 1)
        return self.rule()

    def _statement(self, number: int, statement: Statement, alone: bool) -> None:
        def place(dimension: int) -> Place:
            return ("statement", number, dimension)

        for d, size in enumerate(statement.extents):
            self.sizes.setdefault(place(d), []).append(size)
        written = shape(self.op.results[statement.result])
        self._access(statement.write.results, written, ("result", statement.result), place, statement)
        for read in reads(statement.body):
            operand_shape = shape(self.op.operands[read.operand])
            indirect = {dimension for dimension, _ in read.indirect}
            self._access(read.index.results, operand_shape, ("operand", read.operand), place, statement, indirect)
        for index in indices(statement.body):
            self.blocked |= {place(d) for d in index.expr.used_dims()}
        for d in statement.reduced:
            how = _REDUCTIONS.get(statement.combine) if statement.combine and alone else None
            if how is None or statement.accumulate:
                self.blocked.add(place(d))
            else:
                self.reduced[place(d)] = how

    def _access(
        self,
        exprs: Sequence[AffineExpr],
        sizes: Shape,
        tensor: tuple[str, int],
        place: Callable[[int], Place],
        statement: Statement,
        indirect: Collection[int] = (),
    ) -> None:
        for d, (expr, size) in enumerate(zip(exprs, sizes, strict=True)):
            at = (*tensor, d)
            only = None if d in indirect else only_dimension(expr)
            if only is not None and statement.extents[only] == size:
                self.join(at, place(only), size)
                continue
            self.sizes.setdefault(at, []).append(size)
            self.blocked.add(at)
            if d not in indirect:
                self.blocked |= {place(used) for used in expr.used_dims()}

    def join(self, a: Place, b: Place, size: int) -> None:
        for place in (a, b):
            self.sizes.setdefault(place, []).append(size)
        self.parent[self.root(a)] = self.root(b)

    def root(self, place: Place) -> Place:
        while place in self.parent and self.parent[place] != place:
            place = self.parent[place]
        return place

    def rule(self) -> Rule:
        """The rule of what was joined; a class with a blocked dimension, or one of size 1, is no factor."""
        blocked = {self.root(place) for place in self.blocked}
        divides: dict[Place, int] = {}
        for place, sizes in self.sizes.items():
            root = self.root(place)
            divides[root] = math.gcd(divides.get(root, 0), *sizes)
        good = [root for root, size in divides.items() if root not in blocked and size > 1]
        number = {root: k for k, root in enumerate(good)}

        def factors(kind: str, values: Sequence[SSAValue]) -> tuple[tuple[int | None, ...], ...]:
            return tuple(
                tuple(number.get(self.root((kind, n, d))) for d in range(len(shape(value))))
                for n, value in enumerate(values)
            )

        found: dict[int, Reduction] = {
            number[self.root(place)]: how for place, how in self.reduced.items() if self.root(place) in number
        }
        results = factors("result", self.op.results)
        return Rule(
            factors("operand", self.op.operands),
            results,
            {number[root]: divides[root] for root in good},
            {factor: how for factor, how in found.items() if not any(factor in result for result in results)},
        )


def _view(op: ViewOp) -> Rule:
    """Dimensions whose sizes multiply to the same lie in the same memory: the first of each such group is cut alike."""
    dimensions = _Dimensions(op)
    for a, b in same_memory(shape(op.x), shape(op.results[0])):
        dimensions.join(("operand", 0, a), ("result", 0, b), shape(op.x)[a])
        dimensions.sizes["operand", 0, a].append(shape(op.results[0])[b])
    return dimensions.rule()


def same_memory(before: Shape, after: Shape) -> Iterator[tuple[int, int]]:
    """Pairs of dimensions of two shapes of the same elements that begin a group of the same product."""
    if 0 in before or 0 in after:
        return
    i = j = 0
    while True:
        i = next((k for k in range(i, len(before)) if before[k] != 1), len(before))
        j = next((k for k in range(j, len(after)) if after[k] != 1), len(after))
        if i == len(before) or j == len(after):
            return
        yield i, j
        left, right = before[i], after[j]
        while left != right:
            if left < right:
                i += 1
                left *= before[i]
            else:
                j += 1
                right *= after[j]
        i, j = i + 1, j + 1


def only_dimension(expr: AffineExpr) -> int | None:
    """The dimension that an index is, if it is one."""
    form = linear_form(expr)
    if form is None or form.constant or list(form.coefficients.values()) != [1]:
        return None
    return next(iter(form.coefficients))
