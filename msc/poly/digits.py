"""Dimensions run through the digits of an index where other statements do.

A grouped convolution writes channel `g * 16 + oc`, and its bias and activation run through all channels by one
dimension, so that the two share no loop over channels. With the activation's channels as groups and channels of a group
they share both. A dimension is split if it is all that indexes an axis of an array between statements that a sum writes
by digits. That of a sum itself, which its register tiles are of, stays whole; so does one that ends early, or along
which blocks are cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from msc.poly.affine import linear_form, simplified
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Index, Read, Scalar, rewritten

_Axis: TypeAlias = tuple[int, int]
"""An array and one of its axes."""
Digits: TypeAlias = tuple[tuple[int, int], ...]
"""What a step of each digit of an index is worth and how many values it takes, the first digit first."""


def index_digits(statement: KernelStatement, expr: AffineExpr) -> tuple[Digits, tuple[int, ...]] | None:
    """The digits that make an index, and their dimensions: no two points of them give one index. None for all else.

    Dimensions of one iteration are none. A dimension by itself is one digit of no form.
    """
    if isinstance(expr, AffineDimExpr):
        return (), (expr.position,)
    form = linear_form(expr)
    if form is None or form.constant:
        return None
    extents = statement.extents
    digits = sorted(((c, extents[d], d) for d, c in form.coefficients.items() if extents[d] > 1), reverse=True)
    largest = 0
    for worth, extent, _ in reversed(digits):
        if worth <= largest:
            return None
        largest += worth * (extent - 1)
    dims = tuple(dim for *_, dim in digits)
    is_plain = [worth for worth, *_ in digits] == [1]
    return () if is_plain else tuple((worth, extent) for worth, extent, _ in digits), dims


def with_dimensions_as_digits(model: KernelModel) -> KernelModel:
    """The model with each dimension split that indexes what a sum writes by digits, and what is computed of that."""
    forms, statements = _Forms(model), list[KernelStatement]()
    for statement in (s for s in model.statements if s.reduced):
        forms.add(statement)
    for statement in model.statements:
        split = forms.split(statement)
        if split is not statement:
            forms.add(split)
        statements.append(split)
    return replace(model, statements=tuple(statements)) if forms.found else model


class _Forms:
    """The axes between statements that are written by digits: `found` has the extents and names of these."""

    def __init__(self, model: KernelModel) -> None:
        self._arrays = model.arrays
        self._blocks = {(m.array, axis) for m in model.materialized for axis in m.axes}
        self.found: dict[_Axis, tuple[Sequence[int], Sequence[str]]] = {}

    def add(self, statement: KernelStatement) -> None:
        """Note the digits by which a statement writes."""
        array = self._arrays[statement.target]
        for axis, expr in enumerate(statement.write.results if array.kind == "internal" else ()):
            form, dims = index_digits(statement, expr) or ((), ())
            if form and _is_whole(form, array.shape[axis]) and (statement.target, axis) not in self._blocks:
                digits = [extent for _, extent in form], [statement.names[d] for d in dims]
                self.found.setdefault((statement.target, axis), digits)

    def split(self, statement: KernelStatement) -> KernelStatement:
        """The statement with digits for each dimension that indexes such an axis alone, if it is no sum."""
        if statement.reduced or any(bound is not None for bound in statement.bounds):
            return statement
        for axis, expr in _indices(statement):
            if axis in self.found and isinstance(expr, AffineDimExpr):
                extents, names = self.found[axis]
                if statement.extents[expr.position] == math.prod(extents):
                    return self.split(_split(statement, expr.position, extents, names))
        return statement


def _split(statement: KernelStatement, dim: int, extents: Sequence[int], names: Sequence[str]) -> KernelStatement:
    """The statement with digits of these extents and names in place of a dimension, first digit first."""
    total, more = len(statement.extents), len(extents) - 1
    value = AffineExpr.dimension(dim)
    for k, extent in enumerate(extents[1:], start=dim + 1):
        value = value * extent + AffineExpr.dimension(k)
    places = [AffineExpr.dimension(d if d < dim else d + more) for d in range(total)]
    places[dim] = simplified(value)

    def moved(index: AffineMap) -> AffineMap:
        results = tuple(simplified(e.replace_dims_and_symbols(places, [])) for e in index.results)
        return AffineMap(total + more, index.num_symbols, results)

    def leaf(each: Read | Index) -> Scalar:
        if isinstance(each, Index):
            return replace(each, expr=each.expr.replace_dims_and_symbols(places, []))
        return replace(each, index=moved(each.index))

    return replace(
        statement,
        extents=(*statement.extents[:dim], *extents, *statement.extents[dim + 1 :]),
        names=(*statement.names[:dim], *names, *statement.names[dim + 1 :]),
        write=moved(statement.write),
        body=rewritten(statement.body, leaf),
        bounds=(),
    )


def _is_whole(form: Digits, size: int) -> bool:
    """Whether digits reach each index of an axis."""
    extents = [extent for _, extent in form]
    worths = [math.prod(extents[k + 1 :]) for k in range(len(form))]
    return [worth for worth, _ in form] == worths and math.prod(extents) == size


def _indices(statement: KernelStatement) -> Iterator[tuple[_Axis, AffineExpr]]:
    """Each axis that a statement accesses, and its index there."""
    return (((array, k), expr) for array, index in statement.accesses() for k, expr in enumerate(index.results))
