"""Linear work on pieces of a tensor: overlapping windows laid side by side, and a constant matrix along one axis.

Together they state fast convolution: windows of the image are transformed, multiplied, and transformed back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import ClassVar, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import BasicTensorOp
from msc.dialects.ms.movement import copy_statement
from msc.dialects.ms.properties import int_property, required_ints, required_reals
from msc.dialects.ms.shapes import UNKNOWN, known, normal_axis, shape_text, tensor_type
from msc.dialects.ms.windows import Window
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement, affine_map, dims
from msc.poly.scalar import Apply, Constant, Read, Scalar, apply

Terms = Sequence[tuple[int, float]]
"""Places along an axis with what the element there is multiplied by."""


@irdl_op_definition
class WindowsOp(BasicTensorOp):
    """All windows of an image: `[n, c, spatial...]` -> `[n, c, (positions, size)...]`, a pair for each spatial axis.

    Windows of `size` elements are moved by `stride`; what is left at the end of an axis is not read. Any element type.
    MindSpore Unfold, ordered so that windows stay windows.
    """

    name = "ms.windows"
    EXAMPLE: ClassVar[str] = "1x2x6x6xT {size = [4, 4], stride = [2, 2]}"
    x = operand_def(TensorType)
    size = required_ints()
    stride = required_ints()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        spatial = self.shape(0)[2:]
        windows = self._windows(len(spatial))
        pairs = [(w.positions(n), w.size) for w, n in zip(windows, spatial, strict=True)]
        if any(n != UNKNOWN and n < w.size for n, w in zip(spatial, windows, strict=True)):
            size = shape_text(self.ints("size"))
            raise ShapeConflict(f"ms.windows: a window of {size} does not fit into {shape_text(self.shape(0))}")
        return (tensor_type(self.dtype(0), (*self.shape(0)[:2], *chain.from_iterable(pairs))),)

    def _windows(self, axes: int) -> list[Window]:
        size, stride = self.ints("size"), self.ints("stride")
        if not axes or len(size) != axes or len(stride) != axes or min(*size, *stride) < 1:
            raise InvalidAttribute(
                f"ms.windows: size and stride must have an entry of 1 or more for each axis of "
                f"{shape_text(self.shape(0))} after the second"
            )
        return [Window(s, step, 1) for s, step in zip(size, stride, strict=True)]

    def source_index(self) -> tuple[AffineExpr, ...]:
        """The index into x for an index of the result."""
        n, c, *pairs = dims(len(self.shape(0)) * 2 - 2)
        axes = zip(pairs[0::2], pairs[1::2], self.ints("stride"), strict=True)
        return (n, c, *(position * stride + element for position, element, stride in axes))

    def compute(self) -> Sequence[Statement]:
        shape = self.result_shape()
        return (copy_statement(shape, dims(len(shape)), self.source_index(), self.dtype(0)),)


@irdl_op_definition
class TransformAxisOp(BasicTensorOp):
    """A constant matrix times the vectors along `axis`: result[.., f, ..] = sum over i of matrix[f, i] x[.., i, ..].

    `matrix` is row-major, with as many columns as x has elements along the axis; what stands at its zeros is not read.
    One float type. Each row is a statement, so that small matrices of mostly zeros and ones cost some additions.
    """

    name = "ms.transform_axis"
    EXAMPLE: ClassVar[str] = "2x3xT {axis = 1, matrix = [1.0, 0.0, -1.0, 0.5, 2.0, 0.5]}"
    x = operand_def(TensorType)
    axis = int_property(0)
    matrix = required_reals()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype, shape = self.expect_dtype(0, "a float"), self.shape(0)
        axis = normal_axis(self.name, self.int_("axis"), len(shape))
        if shape[axis] == UNKNOWN:
            return (tensor_type(dtype, (*shape[:axis], UNKNOWN, *shape[axis + 1 :])),)
        entries = len(self._entries())
        if not entries or not shape[axis] or entries % shape[axis]:
            raise InvalidAttribute(
                f"ms.transform_axis: a matrix of {entries} entries has no rows of {shape[axis]}, "
                f"the size of axis {axis} of {shape_text(shape)}"
            )
        return (tensor_type(dtype, (*shape[:axis], entries // shape[axis], *shape[axis + 1 :])),)

    def rows(self) -> list[tuple[float, ...]]:
        """The matrix."""
        axis = normal_axis(self.name, self.int_("axis"), len(self.shape(0)))
        entries, columns = self._entries(), self.shape(0)[axis]
        return [entries[k : k + columns] for k in range(0, len(entries), columns)]

    def _entries(self) -> tuple[float, ...]:
        return cast("tuple[float, ...]", self.plain("matrix"))

    def compute(self) -> Sequence[Statement]:
        if not known(self.result_shape()) or 0 in self.result_shape():
            return ()
        rows = self.rows()
        return [self._statement(f, _sums(rows, f)) for f in range(len(rows))]

    def _statement(self, row: int, sums: Sequence[tuple[bool, Terms]]) -> Statement:
        shape, dtype = self.result_shape(), self.dtype(0)
        axis = normal_axis(self.name, self.int_("axis"), len(shape))
        box = (*shape[:axis], *shape[axis + 1 :])
        d = dims(len(box))

        def at(place: int) -> Read:
            index = (*d[:axis], AffineExpr.constant(place), *d[axis:])
            return Read(0, affine_map(len(box), index), dtype)

        body: Scalar | None = None
        for negative, terms in sums:
            part = _weighted([(at(i), factor) for i, factor in terms], dtype)
            body = part if body is None else apply("sub" if negative else "add", body, part)
        write = affine_map(len(box), (*d[:axis], row, *d[axis:]))
        names = tuple(f"i{k}" for k in range(len(shape)) if k != axis)
        return Statement(box, names, write, body or Constant(0.0, dtype))


def _sums(rows: Sequence[Sequence[float]], row: int) -> list[tuple[bool, Terms]]:
    """The terms of a row in parts, and whether a part is subtracted.

    Two rows that differ in signs only are the sum and the difference of the same two parts, which then are computed
    once.
    """
    terms = [(i, factor) for i, factor in enumerate(rows[row]) if factor]
    for k, other in enumerate(rows):
        if k == row or [abs(a) for a in other] != [abs(a) for a in rows[row]]:
            continue
        first = rows[min(k, row)]
        alike = [(i, first[i]) for i, _ in terms if other[i] == rows[row][i]]
        unlike = [(i, first[i]) for i, _ in terms if other[i] != rows[row][i]]
        if alike and unlike:
            return [(False, alike), (row > k, unlike)]
    return [(False, terms)] if terms else []


def _weighted(terms: Sequence[tuple[Read, float]], dtype: str) -> Apply | Read:
    """The sum of reads times factors; a factor of one costs nothing, and one of minus one a subtraction."""
    (read, factor), *rest = sorted(terms, key=lambda term: term[1] != 1)
    total: Apply | Read = read if factor == 1 else apply("mul", read, Constant(factor, dtype))
    for read, factor in rest:
        if abs(factor) == 1:
            total = apply("add" if factor > 0 else "sub", total, read)
        else:
            total = apply("add", total, apply("mul", read, Constant(factor, dtype)))
    return total
