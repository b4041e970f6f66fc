"""Iteration domains, access relations and dependences of a kernel, as isl objects.

Statement k is the tuple `Sk`, array k the tuple `Ak`. A dependence is a pair of instances in program order (statements
one after the other, each over its box) that access one element, which at least one of them writes. Pairs with another
write between them stay in: updates may be reordered, so each of them must follow the initialisation of its element,
not just the one that is first in program order. Isl's flow analysis takes such pairs out, and ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import islpy as isl
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from msc.poly.model import KernelModel, KernelStatement
from msc.poly.remembered import remembered
from msc.poly.valid_extents import over_symbols


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
    found = _of_accesses(tuple(_reads(model)), tuple(_writes(model)), tuple(_updates(model)))
    instances = domain(model)
    order, flow, updates = (
        pairs.intersect_domain(instances).intersect_range(instances)
        for pairs in (found.order, found.flow, found.updates)
    )
    return Dependences(instances, order, flow, updates, found)


@lru_cache(maxsize=256)
def _of_accesses(reading: Sequence[str], writing: Sequence[str], updating: Sequence[str]) -> Dependences:
    """The dependences between accesses, whatever the extents: those of layers of one kind are alike."""
    reads, writes = _union(reading), _union(writing)
    readers, writers = reads.reverse(), writes.reverse()
    flow = _forward(writes.apply_range(readers))
    output = _forward(writes.apply_range(writers))
    anti = _forward(reads.apply_range(writers))
    every = flow.union(output).union(anti).coalesce()
    return Dependences(writes.domain().union(reads.domain()), every, flow, every.intersect(_union(updating)))


def _forward(pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs whose first instance runs before the second in program order."""
    forward = isl.UnionMap.empty(pairs.get_space())

    def visit(pair: isl.Map) -> None:
        nonlocal forward
        source, sink = (int(pair.get_tuple_name(t).removeprefix("S")) for t in (isl.dim_type.in_, isl.dim_type.out))
        if source == sink:
            pair = pair.intersect(isl.Map.lex_lt(pair.get_space().domain()))
        if source <= sink:
            forward = forward.union(isl.UnionMap.from_map(pair))

    pairs.foreach_map(visit)
    return forward


def _updates(model: KernelModel) -> Iterable[str]:
    """All pairs of instances of a statement that updates in place."""
    ranks = {i: len(s.extents) for i, s in enumerate(model.statements) if s.combine}
    return (f"{_instance(i, rank, 'a')} -> {_instance(i, rank, 'b')}" for i, rank in ranks.items())


def _instance(index: int, rank: int, letter: str) -> str:
    return f"S{index}[{', '.join(f'{letter}{k}' for k in range(rank))}]"


def _reads(model: KernelModel) -> Iterable[str]:
    """Reads of arrays that the kernel writes: no others are in a dependence."""
    written = {s.target for s in model.statements}
    for index, statement in enumerate(model.statements):
        source = tuple_of(index, len(statement.extents))
        whole = set(statement.whole_reads())
        accesses = statement.accesses() if statement.combine else statement.accesses()[1:]
        for array, map_ in accesses:
            if array not in written:
                continue
            if array in whole:
                rank = len(model.arrays[array].shape)
                free = ", ".join(f"a{i}" for i in range(rank))
                bounds = " and ".join(f"0 <= a{i} < {n}" for i, n in enumerate(model.arrays[array].shape))
                yield f"{source} -> A{array}[{free}] : {bounds or 'true'}"
            else:
                yield f"{source} -> A{array}[{', '.join(map(isl_expr, map_.results))}]"


def _writes(model: KernelModel) -> Iterable[str]:
    for index, statement in enumerate(model.statements):
        target = ", ".join(map(isl_expr, statement.write.results))
        yield f"{tuple_of(index, len(statement.extents))} -> A{statement.target}[{target}]"


def _union(maps: Iterable[str]) -> isl.UnionMap:
    return isl.UnionMap("{ " + "; ".join(maps) + " }")
