"""Kernels of grouped convolutions: channels of arrays and loops become groups and the channels of each."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from msc.poly.affine import linear_form
from msc.poly.contraction import contractions
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Index, Read, Scalar, reads, rewritten


def with_group_loops(model: KernelModel) -> KernelModel:
    """The model in which a grouped product, and each statement behind it, writes `[groups, channels of a group]`.

    A grouped convolution writes channel `g * size + c` of an array; statements behind it have one loop over all
    channels. Arrays that are written keep their elements, as arrays of one more dimension. The same model where there
    is no such product, or where a statement reads the channels otherwise than one by one.
    """
    found = contractions(model)
    if len(found) != 1 or len(found[0].batch) != 1:
        return model
    contraction = found[0]
    sums = model.statements[contraction.statement]
    group = contraction.batch[0]
    joined = {p: split for p, e in enumerate(sums.write.results) if (split := _joined(e, group, sums)) is not None}
    if len(joined) != 1:
        return model
    [(position, (groups, size))] = joined.items()
    split = _Split(contraction.target, position, groups, size)
    statements = list(model.statements[: contraction.statement + 1])
    for statement in model.statements[contraction.statement + 1 :]:
        made = split.loops(statement)
        if made is None:
            return model
        statements.append(made)
    stored = [split.stored(statement) for statement in statements]
    if any(statement is None for statement in stored):
        return model
    arrays = tuple(split.array(number, array) for number, array in enumerate(model.arrays))
    return replace(model, arrays=arrays, statements=tuple(s for s in stored if s is not None))


def _joined(expr: AffineExpr, group: int, sums: KernelStatement) -> tuple[int, int] | None:
    """Groups and channels of one, where an index is `g * size + c` over all of both."""
    form = linear_form(expr)
    if form is None or form.constant or group not in form.coefficients:
        return None
    size, inner = form.coefficients[group], [d for d in form.coefficients if d != group]
    if size == 1 or len(inner) != 1 or form.coefficients[inner[0]] != 1 or sums.extents[inner[0]] != size:
        return None
    return sums.extents[group], size


class _Split:
    """Follows the dimension of joined channels from array to array, and splits the loop over it."""

    def __init__(self, array: int, position: int, groups: int, size: int) -> None:
        self.places, self.groups, self.size = {array: position}, groups, size

    def loops(self, statement: KernelStatement) -> KernelStatement | None:
        """The statement with two loops, if it has one; None where it does not read the channels one by one."""
        dims = {
            read.index.results[self.places[read.operand]]
            for read in reads(statement.body)
            if read.operand in self.places
        }
        if len(dims) != 1 or statement.combine is not None or statement.bounds:
            return None
        (expr,) = dims
        written = [p for p, e in enumerate(statement.write.results) if e == expr]
        if len(written) != 1:
            return None
        self.places[statement.target] = written[0]
        if not isinstance(expr, AffineDimExpr):
            return statement
        d = expr.position
        if statement.extents[d] != self.groups * self.size:
            return None
        extents, names = statement.extents, statement.names
        return replace(
            statement,
            extents=(*extents[:d], self.groups, self.size, *extents[d + 1 :]),
            names=(*names[:d], "g", names[d], *names[d + 1 :]),
            write=self._map(statement.write, d),
            body=self._body(statement.body, d),
        )

    def array(self, number: int, array: Array) -> Array:
        """An array with a dimension for groups and one for their channels, if it is written."""
        position = self.places.get(number)
        if position is None:
            return array
        shape = array.shape
        return replace(array, shape=(*shape[:position], self.groups, self.size, *shape[position + 1 :]))

    def stored(self, statement: KernelStatement) -> KernelStatement | None:
        """The statement on these arrays; None where an index is no `g * size + c`."""
        indices = {(array, index): self._index(array, index) for array, index in statement.accesses()}
        if any(index is None for index in indices.values()):
            return None

        def change(leaf: Read | Index) -> Scalar:
            made = indices[leaf.operand, leaf.index] if isinstance(leaf, Read) else None
            return leaf if made is None or not isinstance(leaf, Read) else replace(leaf, index=made)

        write = indices[statement.target, statement.write]
        assert write is not None
        return replace(statement, write=write, body=rewritten(statement.body, change))

    def _index(self, array: int, index: AffineMap) -> AffineMap | None:
        position = self.places.get(array)
        if position is None:
            return index
        form = linear_form(index.results[position])
        steps = {} if form is None or form.constant else {c: d for d, c in form.coefficients.items()}
        if set(steps) != {1, self.size}:
            return None
        split = (AffineExpr.dimension(steps[self.size]), AffineExpr.dimension(steps[1]))
        return AffineMap(index.num_dims, 0, (*index.results[:position], *split, *index.results[position + 1 :]))

    def _map(self, index: AffineMap, d: int) -> AffineMap:
        at = [AffineExpr.dimension(k if k < d else k + 1) for k in range(index.num_dims)]
        at[d] = AffineExpr.dimension(d) * self.size + AffineExpr.dimension(d + 1)
        return AffineMap(index.num_dims + 1, 0, tuple(e.replace_dims_and_symbols(at, []) for e in index.results))

    def _body(self, body: Scalar, d: int) -> Scalar:
        def change(leaf: Read | Index) -> Scalar:
            if isinstance(leaf, Read):
                return replace(leaf, index=self._map(leaf.index, d))
            return leaf

        return rewritten(body, change)
