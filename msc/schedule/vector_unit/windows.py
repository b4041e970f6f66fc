"""Kernels whose first step is a window for each channel.

Depthwise convolutions sum shifted reads times a weight, poolings sum the reads or take their largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from msc.poly.affine import LinearForm, linear_form
from msc.poly.compute import Combine, affine_map, dims, identity
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar, reads, rewritten
from msc.schedule.cube.convolutions import Along, along, without_padding

_FLOATS = ("f16", "bf16", "f32")
_Roles = tuple[int, ...]
"""Of images, rows, columns and channels: which dimension of an array each one is."""


@dataclass(frozen=True)
class WindowReduction:
    """`sums[n, y, x, c]` adds `image[n, y s + u d - p, x s + v d - p, c] * filters[c, u, v]` over the taps u and v.

    Of a pooling there are no filters, and `combine` may be `max`.

    `tail` is what follows: the kernel in which `sums`, f32, is an input. Its internal arrays have channels last.
    `kernel` is all of it, with windows that reach beyond the image in place of padding. `dims` are the dimensions of
    its statements that write the sums, over images, rows, columns, channels, u and v; None for one of one element.
    """

    kernel: KernelModel
    dims: Mapping[int, tuple[int | None, ...]]
    tail: KernelModel
    sums: int
    image: Array
    image_number: int
    filters: int | None
    rows: Along
    columns: Along
    combine: Combine = "add"

    @property
    def taps(self) -> int:
        """Weights of a channel."""
        return self.rows.taps * self.columns.taps

    @property
    def is_padded(self) -> bool:
        """Whether windows reach beyond the image."""
        return any(way.pad or (way.outputs - 1) * way.stride + reach(way) > way.size for way in self.ways)

    @property
    def ways(self) -> tuple[Along, Along]:
        """Rows and columns."""
        return self.rows, self.columns


def reach(way: Along) -> int:
    """Pixels from the first to the last tap of a window."""
    return (way.taps - 1) * way.dilation + 1


def windows(model: KernelModel) -> WindowReduction | None:
    """The windows of a kernel; None for a kernel of another form, or where images lie otherwise."""
    pools = any(s.combine == "max" for s in model.statements)
    plain, outside = (model, 0) if pools else without_padding(model)
    sums = [s for s in plain.statements if s.combine is not None] if plain is not None else []
    if plain is None or outside or len(sums) != 1 or any(s.bounds for s in plain.statements):
        return None
    plain = replace(plain, statements=tuple(map(_without_single, plain.statements)))
    (statement,) = (s for s in plain.statements if s.combine is not None)
    starts = [s for s in plain.statements if s.target == statement.target and s is not statement]
    body = statement.body.arg if isinstance(statement.body, Cast) else statement.body
    if not _starts_neutral(plain, statement, starts):
        return None
    if isinstance(body, Read):
        return _windows(plain, statement, body, None)
    if statement.combine != "add" or not isinstance(body, Apply) or body.op != "mul":
        return None
    for image, filters in (body.args, body.args[::-1]):
        if isinstance(image, Read) and isinstance(filters, Read):
            found = _windows(plain, statement, image, filters)
            if found is not None:
                return found
    return None


def _without_single(statement: KernelStatement) -> KernelStatement:
    """The statement with no index by a dimension of one element, as a sum of a group and the channel in it has."""

    def of(expr: AffineExpr) -> AffineExpr:
        form = linear_form(expr)
        if form is None or all(statement.extents[d] > 1 for d in form.coefficients):
            return expr
        terms = [AffineExpr.dimension(d) * c for d, c in form.coefficients.items() if statement.extents[d] > 1]
        total = terms[0] if terms else AffineExpr.constant(form.constant)
        for term in terms[1:]:
            total = total + term
        return total + form.constant if terms and form.constant else total

    def index(old: AffineMap) -> AffineMap:
        return affine_map(old.num_dims, [of(expr) for expr in old.results])

    def change(leaf: Read | Index) -> Scalar:
        return replace(leaf, index=index(leaf.index)) if isinstance(leaf, Read) else leaf

    return replace(statement, write=index(statement.write), body=rewritten(statement.body, change))


def _starts_neutral(model: KernelModel, statement: KernelStatement, starts: list[KernelStatement]) -> bool:
    """Whether a statement adds to zeros in f32, or takes the largest of floats, from -inf on."""
    dtype, combine = model.arrays[statement.target].dtype, statement.combine
    if len(starts) != 1 or not ((combine == "add" and dtype == "f32") or (combine == "max" and dtype in _FLOATS)):
        return False
    return isinstance(starts[0].body, Constant) and starts[0].body.value == identity(combine, dtype)


def _windows(
    model: KernelModel, statement: KernelStatement, image: Read, filters: Read | None
) -> WindowReduction | None:
    array, reduced = model.arrays[image.operand], statement.reduced
    kinds = {model.arrays[read.operand].kind for read in (image, filters) if read is not None}
    forms, write = _forms(image.index, statement), _forms(statement.write, statement)
    if forms is None or write is None or len(forms) != 4 or len(write) != 4 or kinds != {"input"}:
        return None
    outputs = tuple(d for d in range(len(statement.extents)) if d not in reduced)
    ways = [along(forms[k], array.shape[k], statement.extents, outputs, reduced) for k in (1, 2)]
    rows, columns = ways
    roles = _roles(forms, write, outputs)
    if rows is None or columns is None or roles is None or not all(map(_meets_image, (rows, columns))):
        return None
    shape = tuple(model.arrays[statement.target].shape[p] for p in roles)
    if shape != (array.shape[0], rows.outputs, columns.outputs, array.shape[3]) or shape[3] == 1:
        return None
    channel = write[roles[3]].coefficients
    taps, ways_of = (rows.taps, columns.taps), (channel, forms[1], forms[2])
    if filters is not None and not _are_filters(model, statement, filters, ways_of, taps):
        return None
    tail, number = _tail(model, statement, roles)
    weights, combine = None if filters is None else filters.operand, statement.combine or "add"
    dims = _dims_of_sums(model, statement, roles, [forms[k] for k in (1, 2)])
    found = WindowReduction(model, dims, tail, number, array, image.operand, weights, rows, columns, combine)
    return None if combine == "max" and found.is_padded else found


def _dims_of_sums(
    model: KernelModel, sums: KernelStatement, roles: _Roles, ways: list[LinearForm]
) -> dict[int, tuple[int | None, ...]]:
    """The dimensions of each statement that writes the sums, over images, rows, columns, channels, and the taps."""
    found: dict[int, tuple[int | None, ...]] = {}
    for number, statement in enumerate(model.statements):
        if statement.target == sums.target:
            write = _forms(statement.write, statement) or []
            of_taps = statement is sums
            taps = [next((d for d in way.coefficients if d in sums.reduced), None) if of_taps else None for way in ways]
            found[number] = (*(next(iter(write[role].coefficients), None) for role in roles), *taps)
    return found


def _forms(index: AffineMap, statement: KernelStatement) -> list[LinearForm] | None:
    """The indices as linear forms of the dimensions that have more than one element."""
    made: list[LinearForm] = []
    for expr in index.results:
        form = linear_form(expr)
        if form is None:
            return None
        live = {d: c for d, c in form.coefficients.items() if statement.extents[d] > 1}
        made.append(LinearForm(live, form.constant))
    return made


def _roles(forms: list[LinearForm], write: list[LinearForm], outputs: tuple[int, ...]) -> _Roles | None:
    """Which dimension of what is written runs over images, rows, columns and channels."""
    if any(form.constant or any(c != 1 for c in form.coefficients.values()) for form in (forms[0], forms[3], *write)):
        return None
    places: list[int | None] = []
    for form in forms:
        own = [d for d in form.coefficients if d in outputs]
        at = [p for p, written in enumerate(write) if own and list(written.coefficients) == own]
        if len(own) > 1 or (own and len(at) != 1):
            return None
        places.append(at[0] if at else None)
    if any(set(forms[k].coefficients) - set(outputs) for k in (0, 3)):
        return None
    return _completed(places)


def _completed(places: list[int | None]) -> _Roles | None:
    """Roles that no dimension has are those of dimensions of one element, in order."""
    left = iter(p for p in range(len(places)) if p not in places)
    made = tuple(next(left) if p is None else p for p in places)
    return made if sorted(made) == list(range(len(places))) else None


def _meets_image(way: Along) -> bool:
    """Whether each window has a pixel of the image."""
    return way.pad < reach(way) and (way.outputs - 1) * way.stride - way.pad < way.size


def _are_filters(
    model: KernelModel,
    statement: KernelStatement,
    filters: Read,
    of: tuple[Mapping[int, int], LinearForm, LinearForm],
    taps: tuple[int, int],
) -> bool:
    """Whether the weights of a channel lie together, and those of a row of taps."""
    forms = _forms(filters.index, statement)
    channel, rows, columns = of
    if forms is None or any(form.constant for form in forms) or filters.indirect:
        return False
    flat: dict[int, int] = {}
    for form, step in zip(forms, model.arrays[filters.operand].strides, strict=True):
        for d, c in form.coefficients.items():
            flat[d] = flat.get(d, 0) + c * step
    expected = dict.fromkeys(channel, prod(taps))
    for form, step in ((rows, taps[1]), (columns, 1)):
        expected |= dict.fromkeys((d for d in form.coefficients if d in statement.reduced), step)
    live = {d for d in statement.reduced if statement.extents[d] > 1}
    return flat == expected and live <= set(expected)


def _tail(model: KernelModel, sums: KernelStatement, roles: _Roles) -> tuple[KernelModel, int]:
    """The kernel without the windows, and the array of their sums in it."""
    statements = [s for s in model.statements if s.target != sums.target]
    arrays, number = list(model.arrays), sums.target
    if arrays[number].kind == "output":
        number = len(arrays)
        arrays.append(arrays[sums.target])
        shape, index = arrays[number].shape, affine_map(4, dims(4))
        copied = Read(number, index, arrays[number].dtype)
        names = tuple(sums.names[: len(shape)])
        statements.insert(0, KernelStatement(shape, names, sums.target, index, copied, None, sums.operation))
    wide = replace(arrays[number], kind="input", dtype="f32")
    statements = [_with_wide(s, number, arrays[number].dtype) for s in statements]
    arrays[number] = wide
    used = {array for s in statements for array, _ in s.accesses()}
    for k, array in enumerate(arrays):
        if k not in used:
            arrays[k] = replace(array, kind="internal", shape=())
    orders = _orders(statements, arrays, {number: roles})
    for k, order in orders.items():
        arrays[k] = replace(arrays[k], shape=tuple(arrays[k].shape[p] for p in order))
    stored = tuple(_reordered(s, orders) for s in statements)
    return replace(model, arrays=tuple(arrays), statements=stored), number


def _with_wide(statement: KernelStatement, number: int, dtype: str) -> KernelStatement:
    """The statement with reads of an array as f32, in which the vector unit computes windows of any type."""

    def change(leaf: Read | Index) -> Scalar:
        is_read = isinstance(leaf, Read) and leaf.operand == number and dtype != "f32"
        return Cast(replace(leaf, dtype="f32"), dtype) if is_read and isinstance(leaf, Read) else leaf

    return replace(statement, body=rewritten(statement.body, change))


def _orders(statements: Iterable[KernelStatement], arrays: list[Array], known: dict[int, _Roles]) -> dict[int, _Roles]:
    """The roles of the dimensions of internal arrays, from statement to statement."""
    orders = dict(known)
    for statement in statements:
        found: dict[int, int] = {}
        for read in reads(statement.body):
            for role, place in enumerate(orders.get(read.operand, ())):
                expr = read.index.results[place]
                if isinstance(expr, AffineDimExpr):
                    found[expr.position] = role
        target, results = statement.target, statement.write.results
        if arrays[target].kind != "internal" or target in orders or len(results) != 4 or not found:
            continue
        at = {found.get(e.position): p for p, e in enumerate(results) if isinstance(e, AffineDimExpr)}
        order = _completed([at.get(role) for role in range(4)])
        if order is not None:
            orders[target] = order
    return orders


def _reordered(statement: KernelStatement, orders: dict[int, _Roles]) -> KernelStatement:
    def index(array: int, old: AffineMap) -> AffineMap:
        order = orders.get(array)
        return old if order is None else affine_map(old.num_dims, [old.results[p] for p in order])

    def change(leaf: Read | Index) -> Scalar:
        return replace(leaf, index=index(leaf.operand, leaf.index)) if isinstance(leaf, Read) else leaf

    return replace(statement, write=index(statement.target, statement.write), body=rewritten(statement.body, change))
