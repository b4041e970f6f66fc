"""What a kernel of copies moves: boxes of elements with strides in global memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from xdsl.ir.affine import AffineMap

from msc.dialects.ms.indexing import place as place_of
from msc.poly.affine import LinearForm, linear_form
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Constant, Read, Scalar, reads
from msc.targets.davinci_isa import ELEMENTS, WORDS

_EXACT = 1 << 24
"""Up to here f32 has every integer."""


@dataclass(frozen=True)
class BoxAxis:
    """A dimension of a box: its extent, and the elements between neighbours where it is read and where it is written.

    The read stride of a constant is 0. `dims` are the dimensions of the statement that are one here, the outermost
    first, each with its extent. `index` is the stride among indices, where these choose what is read.
    """

    extent: int
    read: int
    write: int
    dims: tuple[tuple[int, int], ...] = ()
    index: int = 0

    def sizes(self) -> set[int]:
        """Sizes of tiles: all, and powers of two below, of one dimension with all of those further in.

        A tile that has no whole dimension divides its own, so that no tile goes across the end of one.
        """
        found: set[int] = set()
        inside = self.extent
        for position, (_, extent) in enumerate(self.dims):
            inside //= extent
            powers = {extent, *(1 << k for k in range(extent.bit_length()))}
            found |= {size * inside for size in powers if position == 0 or extent % size == 0}
        return found or {self.extent}

    def cut_at(self, size: int) -> tuple[int, int]:
        """The position of the dimension that tiles of a size cut, and how much of it they have."""
        inside = self.extent
        for position, (_, extent) in enumerate(self.dims):
            inside //= extent
            if size % inside == 0:
                return position, size // inside
        return len(self.dims), 1


@dataclass(frozen=True)
class Chosen:
    """Indices in `array`, from element `at` on, that choose one of `below` rows, `stride` elements apart."""

    array: int
    dtype: str
    at: int
    below: int
    stride: int


@dataclass(frozen=True)
class Box:
    """Elements that go from array `source` to array `target`, or a constant that fills a part of `target`.

    `axes` are sorted by the stride of writing, the widest first. `read_at` and `write_at` are the first elements.
    `dtype` is the element type by the cores' names, `statement` the number of what says so in the kernel. `chosen` are
    the indices that a gather adds to where it reads.
    """

    axes: tuple[BoxAxis, ...]
    source: int | None
    read_at: int
    target: int
    write_at: int
    dtype: str
    value: float
    statement: int
    chosen: Chosen | None = None


def boxes_of(model: KernelModel) -> list[Box] | None:
    """The boxes of a kernel; None where a statement computes, or where two statements may write one element."""
    boxes = [_box(model, number) for number in range(len(model.statements))]
    if any(not _are_apart(one, other) for one, other in combinations(model.statements, 2)):
        return None
    found = [box for box in boxes if box is not None]
    return found if len(found) == len(boxes) else None


def _box(model: KernelModel, number: int) -> Box | None:
    statement = model.statements[number]
    target, body = model.arrays[statement.target], statement.body
    if statement.combine is not None or target.kind != "output" or body.dtype != target.dtype:
        return None
    write = _flat(statement.write, target)
    if write is None:
        return None
    chosen: Chosen | None = None
    strides: Mapping[int, int] = {}
    match body:
        case Constant() if _is_exact(body):
            read, source, value = LinearForm({}, 0), None, float(body.value)
        case Read(indirect=()) if model.arrays[body.operand].kind == "input":
            read, source, value = _flat(body.index, model.arrays[body.operand]), body.operand, 0.0
        case Read(indirect=((axis, place),)) if model.arrays[body.operand].kind == "input":
            read, source, value = _flat(body.index, model.arrays[body.operand], axis), body.operand, 0.0
            found = _chosen(place, model, model.arrays[body.operand], axis)
            if found is None:
                return None
            chosen, strides = found
        case _:
            return None
    if read is None:
        return None
    axes = [
        BoxAxis(extent, read.coefficients.get(d, 0), write.coefficients.get(d, 0), ((d, extent),), strides.get(d, 0))
        for d, extent in enumerate(statement.extents)
        if extent > 1
    ]
    axes.sort(key=lambda axis: -axis.write)
    if not _writes_once(axes):
        return None
    merged, dtype = tuple(_merged(axes)), ELEMENTS[target.dtype]
    return Box(merged, source, read.constant, statement.target, write.constant, dtype, value, number, chosen)


def index_arrays(model: KernelModel) -> set[int]:
    """The arrays that only hold indices of gathers."""
    bodies = [statement.body for statement in model.statements]
    chosen = [index for body in bodies if isinstance(body, Read) for _, index in body.indirect]
    indices = {read.operand for index in chosen for read in reads(index)}
    return indices - {body.operand for body in bodies if isinstance(body, Read)}


def _chosen(place: Scalar, model: KernelModel, array: Array, axis: int) -> tuple[Chosen, Mapping[int, int]] | None:
    """The indices behind the place of an axis, and their strides; None where it is not simply an index read."""
    found = list(reads(place))
    below = array.shape[axis]
    if len(set(found)) != 1 or place != place_of(found[0], below) or found[0].indirect:
        return None
    indices = model.arrays[found[0].operand]
    form = _flat(found[0].index, indices)
    if form is None or indices.kind != "input" or indices.dtype not in WORDS:
        return None
    return Chosen(found[0].operand, indices.dtype, form.constant, below, array.strides[axis]), form.coefficients


def _is_exact(constant: Constant) -> bool:
    """Whether a float of 32 bits holds a constant: the vector unit gets it as one."""
    value = float(constant.value)
    return "f" in constant.dtype or abs(value) <= _EXACT


def _flat(index: AffineMap, array: Array, without: int | None = None) -> LinearForm | None:
    """The place of an element in its array, counted row by row; `without` an axis whose index is data."""
    coefficients: dict[int, int] = {}
    constant = 0
    for axis, (expr, stride) in enumerate(zip(index.results, array.strides, strict=True)):
        form = linear_form(expr) if axis != without else LinearForm({}, 0)
        if form is None:
            return None
        constant += form.constant * stride
        for d, c in form.coefficients.items():
            coefficients[d] = coefficients.get(d, 0) + c * stride
    return LinearForm({d: c for d, c in coefficients.items() if c}, constant)


def _writes_once(axes: Sequence[BoxAxis]) -> bool:
    """Whether each point writes another element."""
    reach = 0
    for axis in reversed(axes):
        if axis.write <= reach:
            return False
        reach += (axis.extent - 1) * axis.write
    return True


def _merged(axes: Sequence[BoxAxis]) -> list[BoxAxis]:
    """Neighbours that run on where the other ends, in all arrays, as one axis."""
    merged: list[BoxAxis] = []
    for axis in axes:
        before = merged[-1] if merged else None
        if before and (before.read, before.write, before.index) == tuple(
            stride * axis.extent for stride in (axis.read, axis.write, axis.index)
        ):
            merged[-1] = replace(axis, extent=before.extent * axis.extent, dims=(*before.dims, *axis.dims))
        else:
            merged.append(axis)
    return merged


def _are_apart(one: KernelStatement, other: KernelStatement) -> bool:
    """Whether two statements write different elements: some dimension of the array tells them apart."""
    if one.target != other.target:
        return True
    for mine, theirs in zip(one.write.results, other.write.results, strict=True):
        a, b = _range(linear_form(mine), one.extents), _range(linear_form(theirs), other.extents)
        if a is not None and b is not None and (a[-1] < b[0] or b[-1] < a[0]):
            return True
        if a is not None and b is not None and a.step == b.step and a[0] % a.step != b[0] % b.step:
            return True
    return False


def _range(form: LinearForm | None, extents: Sequence[int]) -> range | None:
    """The values of an index of at most one dimension."""
    if form is None or len(form.coefficients) > 1 or any(c < 0 for c in form.coefficients.values()):
        return None
    for d, c in form.coefficients.items():
        return range(form.constant, form.constant + (extents[d] - 1) * c + 1, c)
    return range(form.constant, form.constant + 1)
