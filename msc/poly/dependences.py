"""Iteration domains, access relations and dependences of a kernel, as isl objects.

Statement k is the tuple `Sk`, array k the tuple `Ak`. A dependence is a pair of instances in program order (statements
one after the other, each over its box) that access one element, which at least one of them writes. Pairs with another
write between them stay in: updates may be reordered, so each of them must follow the initialisation of its element,
not just the one that is first in program order. Isl's flow analysis takes such pairs out, and ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from typing import TypeAlias

import islpy as isl
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from msc.poly.affine import bounds
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.remembered import remembered
from msc.poly.valid_extents import over_symbols

_Box: TypeAlias = tuple[tuple[int, int], ...]
"""The least and the largest index along each axis."""


@dataclass(frozen=True)
class Dependences:
    """What a schedule must respect: `order` holds flow, anti and output dependences; `flow` only writes before reads.

    `updates` is the part of `order` between updates of one place by one statement. Combiners are associative and
    commutative (for
    floating-point sums by decision: reassociation), so updates may run in any order, though not at the same time.
    """

    domain: isl.UnionSet
    order: isl.UnionMap
    flow: isl.UnionMap
    updates: isl.UnionMap
    anywhere: Dependences | None = None
    """The same and more: for instances without ends."""

    @cached_property
    def strict(self) -> isl.UnionMap:
        """The dependences whose order no decision relaxes."""
        return self.order.subtract(self.updates)


def isl_expr(expr: AffineExpr) -> str:
    """An affine expression in isl's syntax; dimension k is `dk`, symbol k `nk`."""
    match expr:
        case AffineConstantExpr():
            return str(expr.value)
        case AffineDimExpr():
            return f"d{expr.position}"
        case AffineSymExpr():
            return f"n{expr.position}"
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return f"({isl_expr(lhs)} + {isl_expr(rhs)})"
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs):
            return f"({isl_expr(lhs)} * {isl_expr(rhs)})"
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, lhs, rhs):
            return f"(({isl_expr(lhs)}) mod {isl_expr(rhs)})"
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, rhs):
            return f"floor(({isl_expr(lhs)}) / {isl_expr(rhs)})"
        case AffineBinaryOpExpr(AffineBinaryOpKind.CeilDiv, lhs, rhs):
            return f"ceil(({isl_expr(lhs)}) / {isl_expr(rhs)})"
        case _:
            raise ValueError(f"{expr} has no isl form")


def tuple_of(index: int, rank: int) -> str:
    """`Sk[d0, d1, ...]`"""
    return f"S{index}[{', '.join(f'd{i}' for i in range(rank))}]"


def domain_of(index: int, statement: KernelStatement, valid: bool = False) -> str:
    """The iteration domain of a statement, as isl text without braces; the valid part ends at the bounds."""
    ends = (limit(statement, d) if valid else str(n) for d, n in enumerate(statement.extents))
    box = " and ".join(f"0 <= d{i} < {end}" for i, end in enumerate(ends))
    return tuple_of(index, len(statement.extents)) + (f" : {box}" if box else "")


def limit(statement: KernelStatement, dim: int) -> str:
    """The end of a dimension, in isl's syntax over the sizes."""
    bound = statement.bound(dim)
    return str(statement.extents[dim]) if bound is None else isl_expr(over_symbols(bound))


def parameters(model: KernelModel, more: Sequence[str] = ()) -> str:
    """The sizes, and more, as isl's parameters: the beginning of a set's text."""
    names = [*(f"n{k}" for k in range(len(model.sizes))), *more]
    return f"[{', '.join(names)}] -> " if names else ""


@remembered
def domain(model: KernelModel) -> isl.UnionSet:
    """All iteration domains, of the largest sizes: what is legal there is legal for smaller ones."""
    return isl.UnionSet("{ " + "; ".join(domain_of(i, s) for i, s in enumerate(model.statements)) + " }")


@remembered
def valid_domain(model: KernelModel) -> isl.UnionSet:
    """All iteration domains, for any sizes in their ranges."""
    if not model.sizes:
        return domain(model)
    box = "; ".join(domain_of(i, s, valid=True) for i, s in enumerate(model.statements))
    return isl.UnionSet(f"{parameters(model)}{{ {box} }}")


@remembered
def dependences(model: KernelModel) -> Dependences:
    """Dependences of the kernel in its program order."""
    accesses = tuple(_accesses(model))
    return inside(_of_accesses(accesses, tuple(_meeting(accesses)), tuple(_updates(model))), domain(model))


def inside(found: Dependences, instances: isl.UnionSet) -> Dependences:
    """Those of dependences without ends that are between some instances."""
    order, flow, updates = (
        pairs.intersect_domain(instances).intersect_range(instances)
        for pairs in (found.order, found.flow, found.updates)
    )
    return Dependences(instances, order, flow, updates, found)


def statement_numbers(pairs: isl.Map) -> tuple[int, int]:
    """The numbers of the two statements whose instances are in a relation."""
    source, sink = (int(pairs.get_tuple_name(t).removeprefix("S")) for t in (isl.dim_type.in_, isl.dim_type.out))
    return source, sink


@dataclass(frozen=True)
class _Access:
    """An access of a statement, whose iterations are `instance`, to `element` of an array, both in isl's syntax.

    It reaches a `box` of elements, or less.
    """

    statement: int
    instance: str
    array: int
    element: str
    writes: bool
    box: _Box = field(compare=False)

    def meets(self, other: _Access) -> bool:
        """Whether both may access one element, which one of them writes."""
        return (
            self.array == other.array
            and (self.writes or other.writes)
            and all(a <= d and c <= b for (a, b), (c, d) in zip(self.box, other.box, strict=True))
        )


def _meeting(accesses: Sequence[_Access]) -> Iterator[tuple[int, int]]:
    """The accesses that meet, by their numbers: that of the statement which runs first before the other."""
    by_array: dict[int, list[int]] = {}
    for number, access in enumerate(accesses):
        by_array.setdefault(access.array, []).append(number)
    for numbers in by_array.values():
        for pair in product(numbers, numbers):
            first, second = (accesses[k] for k in pair)
            if first.statement <= second.statement and first.meets(second):
                yield pair


@lru_cache(maxsize=256)
def _of_accesses(
    accesses: Sequence[_Access], meeting: Sequence[tuple[int, int]], updating: Sequence[str]
) -> Dependences:
    """The dependences between accesses that meet, whatever the extents: those of layers of one kind are alike."""
    relations = [isl.Map(f"{{ {access.instance} -> {access.element} }}") for access in accesses]
    flow, others = list[isl.Map](), list[isl.Map]()
    for first, second in meeting:
        pairs = relations[first].apply_range(relations[second].reverse())
        if accesses[first].statement == accesses[second].statement:
            pairs = pairs.intersect(isl.Map.lex_lt(pairs.get_space().domain()))
        (others if accesses[second].writes else flow).append(pairs)
    of_values = _joined(flow)
    every = of_values.union(_joined(others)).coalesce()
    instances = "; ".join(access.instance for access in accesses if access.writes)
    return Dependences(isl.UnionSet(f"{{ {instances} }}"), every, of_values, every.intersect(_union(updating)))


def _joined(maps: Sequence[isl.Map]) -> isl.UnionMap:
    """The union, of halves: each union copies both parts."""
    if len(maps) > 1:
        return _joined(maps[: len(maps) // 2]).union(_joined(maps[len(maps) // 2 :]))
    return isl.UnionMap.from_map(maps[0]) if maps else _union(())


def _updates(model: KernelModel) -> Iterable[str]:
    """All pairs of instances of a statement that updates in place."""
    ranks = {i: len(s.extents) for i, s in enumerate(model.statements) if s.combine}
    return (f"{_instance(i, rank, 'a')} -> {_instance(i, rank, 'b')}" for i, rank in ranks.items())


def _instance(index: int, rank: int, letter: str) -> str:
    return f"S{index}[{', '.join(f'{letter}{k}' for k in range(rank))}]"


def _accesses(model: KernelModel) -> Iterator[_Access]:
    """Writes, and reads of arrays that the kernel writes: no others are in a dependence."""
    written = {s.target for s in model.statements}
    for number, statement in enumerate(model.statements):
        instance, whole = tuple_of(number, len(statement.extents)), set(statement.whole_reads())
        for k, (array, index) in enumerate(statement.accesses()):
            if array not in written:
                continue
            shape = model.arrays[array].shape
            element, box = _anywhere(array, shape) if array in whole else _at(statement, array, index, shape)
            if k or statement.combine:
                yield _Access(number, instance, array, element, False, box)
            if k == 0:
                yield _Access(number, instance, array, element, True, box)


def _anywhere(array: int, shape: Sequence[int]) -> tuple[str, _Box]:
    """Any element of an array."""
    names = [f"a{axis}" for axis in range(len(shape))]
    inside = " and ".join(f"0 <= {name} < {n}" for name, n in zip(names, shape, strict=True))
    return f"A{array}[{', '.join(names)}] : {inside or 'true'}", tuple((0, n - 1) for n in shape)


def _at(statement: KernelStatement, array: int, index: AffineMap, shape: Sequence[int]) -> tuple[str, _Box]:
    """The elements of an array at an index. Where its ends are not known, those are the array's."""
    ranges, box = {d: range(n) for d, n in enumerate(statement.extents)}, list[tuple[int, int]]()
    for expr, n in zip(index.results, shape, strict=True):
        try:
            box.append(bounds(expr, ranges))
        except ValueError:
            box.append((0, n - 1))
    return f"A{array}[{', '.join(map(isl_expr, index.results))}]", tuple(box)


def _union(maps: Iterable[str]) -> isl.UnionMap:
    return isl.UnionMap("{ " + "; ".join(maps) + " }")
