"""A captured graph as a function of sizes: is the graph of other sizes the one that is derived from some?"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from msc.dialects.arrays import Array, dense_array
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.building import FOLD_BYTES
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.graph.shapes.size_comparison import is_part
from msc.graph.shapes.size_expressions import linear, product, quotient
from msc.interp.registry import evaluate_op
from msc.ir.entry import find_entry
from msc.ir.typed import is_tensor

Sizes: TypeAlias = tuple[int, ...]
_NUMBER = re.compile(r"\b\d{1,18}\b")
_Function: TypeAlias = Callable[[Sequence[int]], Array]


@dataclass
class SizelessGraph:
    """A graph without what sizes may change: numbers and known arrays stand apart, in the order of the text.

    Types of results follow from those of arguments and from properties. What is computed of known arrays alone is one.
    """

    words: list[Hashable] = field(default_factory=list[Hashable])
    numbers: list[int] = field(default_factory=list[int])
    arrays: list[Array] = field(default_factory=list[Array])

    @staticmethod
    def of(module: ModuleOp, weights: Mapping[str, Array]) -> SizelessGraph:
        """The outline of a module with one function."""
        entry = find_entry(module)
        assert entry is not None
        return _Writer(weights).write(entry)


class _Writer:
    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights = weights
        self._outline = SizelessGraph()
        self._numbered: dict[SSAValue, int] = {}
        self._known: dict[SSAValue, Array] = {}

    def write(self, entry: FuncOp) -> SizelessGraph:
        block = entry.body.block
        for argument in block.args:
            self._attribute(argument.type)
        for said in (*(entry.arg_attrs or ()), *(entry.res_attrs or ())):
            self._attribute(said)
        self._block(block)
        return self._outline

    def _block(self, block: Block) -> None:
        self._outline.words.append(len(block.args))
        for argument in block.args:
            self._numbered[argument] = len(self._numbered)
        for op in block.ops:
            if not self._is_known(op):
                self._operation(op)
        self._outline.words.append("end")

    def _is_known(self, op: Operation) -> bool:
        """Note the elements of an operation that has no others than known operands."""
        match op:
            case ConstantOp():
                self._known[op.result] = dense_array(op.value)
            case GetParameterOp():
                self._known[op.results[0]] = self._weights[op.symbol]
            case MsOp() if not op.regions and all(
                operand in self._known and self._known[operand].nbytes <= FOLD_BYTES for operand in op.operands
            ):
                results = evaluate_op(op, *(self._known[operand] for operand in op.operands))
                self._known.update(zip(op.results, map(np.asarray, results), strict=True))
            case _:
                return False
        return True

    def _operation(self, op: Operation) -> None:
        words = self._outline.words
        words.append((op.name, len(op.operands), len(op.results), len(op.regions)))
        for operand in op.operands:
            array = self._known.get(operand)
            if array is None:
                words.append(self._numbered[operand])
            else:
                words.append((array.dtype.str, array.ndim))
                self._outline.arrays.append(array)
        for name, attribute in (*sorted(op.properties.items()), *sorted(op.attributes.items())):
            words.append(name)
            self._attribute(attribute)
        for result in op.results:
            self._numbered[result] = len(self._numbered)
            words.append((result.type.element_type, len(result.type.get_shape())) if is_tensor(result.type) else None)
        for region in op.regions:
            for block in region.blocks:
                self._block(block)

    def _attribute(self, attribute: Attribute) -> None:
        words, numbers = self._outline.words, self._outline.numbers
        if isa(attribute, IntegerAttr):
            words.append(attribute.type)
            numbers.append(attribute.value.data)
        elif isa(attribute, DenseArrayBase[IntegerType]):
            values = attribute.get_values()
            words.append((attribute.elt_type, len(values)))
            numbers += [int(value) for value in values]
        elif isa(attribute, ArrayAttr[Attribute]):
            words.append(len(attribute))
            for item in attribute:
                self._attribute(item)
        elif isinstance(attribute, DictionaryAttr):
            for name, item in sorted(attribute.data.items()):
                words.append(name)
                self._attribute(item)
        elif is_tensor(attribute):
            words.append((attribute.element_type, len(attribute.get_shape())))
            numbers += attribute.get_shape()
        elif isinstance(attribute, StringAttr):  # statements of `ms.compute` have the extents of loops in them
            words.append(_NUMBER.sub("#", attribute.data))
            numbers += map(int, _NUMBER.findall(attribute.data))
        else:
            words.append(attribute)


class SizeFunctions:
    """The graph of any sizes, derived from those at the largest and at `samples` of others."""

    def __init__(self, largest: SizelessGraph, samples: Mapping[Sizes, SizelessGraph], highest: Sizes) -> None:
        """Raises ValueError if one is not what the others say: another graph, or a number that follows no rule."""
        self._words = largest.words
        at, outlines = list(samples), list(samples.values())
        if any(other.words != largest.words for other in outlines):
            raise ValueError("the graph has other operations at other sizes")
        columns = zip(largest.numbers, *(other.numbers for other in outlines), strict=True)
        self._numbers = [_function([np.array(n, np.int64) for n in column], at, highest) for column in columns]
        rows = zip(largest.arrays, *(other.arrays for other in outlines), strict=True)
        self._arrays = [_array_function(row, at, highest) for row in rows]

    def serve(self, sizes: Sizes, outline: SizelessGraph) -> bool:
        """Whether an outline is that of these sizes."""
        return (
            outline.words == self._words
            and all(n == f(sizes) for n, f in zip(outline.numbers, self._numbers, strict=True))
            and all(_is_close(a, f(sizes)) for a, f in zip(outline.arrays, self._arrays, strict=True))
        )


def _function(values: Sequence[Array], at: Sequence[Sizes], highest: Sizes) -> _Function:
    """The linear expression, or the product of sizes, that has these values, the first at the largest sizes."""
    first, *others = values
    if all(_is_same(first, other) for other in others):
        return lambda sizes: first
    if all(array.dtype.kind in "iuf" and _is_whole(array) for array in values):
        top, *rest = (array.astype(np.int64) for array in values)
        found = linear(top, rest, at, highest)
        if found is not None:
            return lambda sizes: (
                found.constant + sum(c * n for c, n in zip(found.coefficients, sizes, strict=True))
            ).astype(first.dtype)
        factors = product(top, rest, at, highest)
        if factors is not None:
            factor, used = factors
            return lambda sizes: np.full_like(
                first, factor * np.prod([size.eval(sizes, ()) for size in used], dtype=np.int64)
            )
    divided = quotient(first, others, at, highest)
    if divided is not None:
        number, divisors = divided
        return lambda sizes: np.full_like(first, number / np.prod([size.eval(sizes, ()) for size in divisors]))
    raise ValueError("a number in the graph is neither linear in the sizes nor a product or quotient of them")


def _array_function(values: Sequence[Array], at: Sequence[Sizes], highest: Sizes) -> _Function:
    """As a number, or as the beginning of the array at the largest sizes."""
    first, *others = values
    if all(other.shape == first.shape for other in others):
        return _function(values, at, highest)
    shapes = zip(*(array.shape for array in values), strict=True)
    dims = [_function([np.array(n, np.int64) for n in column], at, highest) for column in shapes]
    if all(is_part(other, first) for other in others):
        return lambda sizes: first[tuple(slice(int(dim(sizes))) for dim in dims)]
    if all(array.size and (array == array.flat[0]).all() for array in values):
        element = _function([array.reshape(-1)[:1] for array in values], at, highest)
        return lambda sizes: np.broadcast_to(element(sizes), [int(dim(sizes)) for dim in dims])
    raise ValueError("an array in the graph is not the beginning of that at larger sizes")


def _is_whole(array: Array) -> bool:
    return bool(array.dtype.kind in "iu" or (np.isfinite(array).all() and (array == np.rint(array)).all()))


def _is_close(a: Array, b: Array) -> bool:
    """Whether arrays are equal up to the rounding of quotients."""
    if _is_same(a, b):
        return True
    return a.shape == b.shape and a.dtype == b.dtype and a.dtype.kind == "f" and np.allclose(a, b, 1e-6, 0.0)


def _is_same(a: Array, b: Array) -> bool:
    return a is b or (a.shape == b.shape and a.dtype == b.dtype and is_part(a, b))
