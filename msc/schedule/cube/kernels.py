"""Kernels that the cube runs, as it computes them: a product of matrices, whose axes and statements a schedule names.

A convolution is a product of `pixels` by `taps of channels`: its rows are windows of an image, as load3d takes them
from L1 to L0A. So its pixels are one axis, and its channels and taps are one, in the order in which filters lie; what
lies beyond an image is padding. (im2col; CUTLASS: implicit GEMM.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir.affine import AffineExpr, AffineMap

from msc.poly.compute import affine_map
from msc.poly.contraction import UnitProduct
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.remembered import remembered
from msc.poly.scalar import Apply, Cast, Index, Read, Scalar, rewritten
from msc.poly.schedule_tree.nodes import Axis
from msc.schedule.cube.convolutions import CubeConvolution, convolution, convolution_shape, without_padding
from msc.schedule.cube.fixpipe_form import FixpipeForm, fixpipe_form
from msc.schedule.cube.grouped_channels import with_group_loops
from msc.schedule.cube.products import CubeProduct, MatmulShape, cube_product, matmul_shape, outline
from msc.targets.davinci import DavinciTarget


@dataclass(frozen=True)
class CubeKernel:
    """A kernel of the cube: `model` has the statements that its schedule runs, `a` and `b` are operands as arrays.

    `form` is what follows the sums, where the Fixpipe does that.
    """

    model: KernelModel
    product: CubeProduct
    shape: MatmulShape
    form: FixpipeForm | None
    windows: CubeConvolution | None
    axes: tuple[Axis, ...]
    batch: tuple[str, ...]
    m: str
    n: str
    k: str
    statement: int
    a: int
    b: int

    def extent(self, axis: str) -> int:
        """The iterations of an axis; 1 of none."""
        return next((each.extent for each in self.axes if each.name == axis), 1)

    @property
    def sums(self) -> int:
        """The array of the sums."""
        return self.model.statements[self.statement].target


@remembered
def _found(model: KernelModel) -> dict[str, CubeKernel | None]:
    """By machine the kernel of a model on its cube."""
    del model
    return {}


def cube_kernel(model: KernelModel, target: DavinciTarget) -> CubeKernel | None:
    """A kernel as the cube computes it; None for one that is no product, or that this cube does not take."""
    known = _found(model)
    if target.name not in known:
        known[target.name] = _cube_kernel(model, target)
    return known[target.name]


def _cube_kernel(model: KernelModel, target: DavinciTarget) -> CubeKernel | None:
    outputs = [array.dtype for array in model.arrays if array.kind == "output"]
    if model.sizes or len(outputs) != 1:
        return None
    grouped = with_group_loops(model)
    product = cube_product(grouped, target)
    shape = None if product is None else matmul_shape(product, outputs[0])
    if product is not None and shape is not None:
        outlined = outline(grouped, target)
        assert outlined is not None
        return _of_product(grouped, outlined.found, product, shape, target)
    plain, outside = without_padding(grouped)
    outlined = outline(plain, target) if plain is not None else None
    windows = convolution(plain, outlined, outside) if plain is not None and outlined is not None else None
    if plain is None or outlined is None or windows is None:
        return None
    return _of_windows(plain, outlined.found, windows, outputs[0], target)


def _form(product: CubeProduct, target: DavinciTarget) -> FixpipeForm | None:
    return fixpipe_form(product, target.buffers.bt) if target.features.fixpipe_to_gm else None


def _of_product(
    model: KernelModel, found: UnitProduct, product: CubeProduct, shape: MatmulShape, target: DavinciTarget
) -> CubeKernel:
    form = _form(product, target)
    shape = replace(shape, bias=form is not None and form.bias is not None)
    contraction, axes = found.contraction, found.axes
    if product.joined:
        named = [name for name in product.extents if name in (*product.batch, product.m, product.n, *product.k)]
        model, axes = _Joining(model, found, {name: product.parts(name) for name in named}).joined()
    k = product.k[0] if product.k else "k"
    if not product.k:
        model, axes = _with_k(model, contraction.statement, axes)
    if product.a.array != contraction.a.operand:
        statements = list(model.statements)
        sums = statements[contraction.statement]
        statements[contraction.statement] = replace(sums, body=_exchanged(sums.body))
        model = replace(model, statements=tuple(statements))
    return CubeKernel(
        model, product, shape, form, None, axes, product.batch, product.m, product.n, k, contraction.statement,
        product.a.array, product.b.array,
    )  # fmt: skip


def _with_k(model: KernelModel, number: int, axes: tuple[Axis, ...]) -> tuple[KernelModel, tuple[Axis, ...]]:
    """A product of columns by rows with a k of one iteration."""
    sums = model.statements[number]
    count = len(sums.extents) + 1

    def change(leaf: Read | Index) -> Scalar:
        return replace(leaf, index=AffineMap(count, 0, leaf.index.results)) if isinstance(leaf, Read) else leaf

    new = replace(
        sums, extents=(*sums.extents, 1), names=(*sums.names, "k"), body=rewritten(sums.body, change),
        write=AffineMap(count, 0, sums.write.results), bounds=(),
    )  # fmt: skip
    statements = tuple(new if each is sums else each for each in model.statements)
    return replace(model, statements=statements), (*axes, Axis("k", 1, {number: count - 1}))


def _exchanged(body: Scalar) -> Scalar:
    """A product with its operands in the other order."""
    if isinstance(body, Cast):
        return replace(body, arg=_exchanged(body.arg))
    assert isinstance(body, Apply)
    return Apply(body.op, body.args[::-1])


def _of_windows(
    model: KernelModel, found: UnitProduct, windows: CubeConvolution, out_dtype: str, target: DavinciTarget
) -> CubeKernel:
    product, contraction = windows.product, found.contraction
    form = _form(product, target)
    shape = convolution_shape(windows, out_dtype, bias=form is not None and form.bias is not None)
    joined = {
        _name(product.batch) or "n": tuple(part for axis in product.batch for part in product.parts(axis)),
        _name(product.parts(product.m)) or "pixel": product.parts(product.m) if product.m else (),
        product.n or "oc": (product.n,) if product.n else (),
    }
    model, axes = _Joining(model, found, joined).of_windows(windows, _name(product.k) or "k")
    batch, m, n, k = (axis.name for axis in axes)
    batches = (batch,) if shape.count > 1 else ()
    axes = tuple(axis for axis in axes if axis.name != batch or batches)
    return CubeKernel(
        model, product, shape, form, windows, axes, batches, m, n, k, contraction.statement, windows.image,
        windows.filters,
    )  # fmt: skip


def _name(axes: Sequence[str]) -> str:
    return "_".join(axis for axis in axes if axis)


class _Joining:
    """Writes the statements of a kernel over axes that stand for several of its dimensions each, row by row."""

    def __init__(self, model: KernelModel, found: UnitProduct, joined: Mapping[str, tuple[str, ...]]) -> None:
        self._model, self._found, self._joined = model, found, joined
        self._extents = {axis.name: axis.extent for axis in found.axes}
        self._written = {statement.target for statement in model.statements}
        sums = {axis.name for axis in found.of("k")}
        self._points = [name for name, parts in joined.items() if sums.isdisjoint(parts)]

    def _size(self, name: str) -> int:
        return prod(self._extents[part] for part in self._joined.get(name, (name,)))

    def joined(self) -> tuple[KernelModel, tuple[Axis, ...]]:
        """The model of a product, and the axes of its statements: a reduction is of its sums alone."""
        names = {s: [x for x in self._joined if self._runs(x, s)] for s in range(len(self._model.statements))}
        statements = [self._statement(s, each, names[s]) for s, each in enumerate(self._model.statements)]
        return replace(self._model, arrays=tuple(self._arrays()), statements=tuple(statements)), self._axes(names)

    def of_windows(self, windows: CubeConvolution, k: str) -> tuple[KernelModel, tuple[Axis, ...]]:
        """The model of a convolution as a product, and its axes: batch, m, n and `k`."""
        names = {s: list(self._joined) for s in range(len(self._model.statements))}
        made = [self._statement(s, each, names[s]) for s, each in enumerate(self._model.statements)]
        sums = self._found.contraction.statement
        names[sums] = [*names[sums], k]
        self._extents[k] = windows.depth
        made[sums] = _sums(made[sums], windows, k)
        arrays = self._arrays()
        arrays[windows.filters] = replace(
            arrays[windows.filters], shape=(windows.depth, windows.outputs * windows.parts)
        )
        model = replace(self._model, arrays=tuple(arrays), statements=tuple(made))
        return model, self._axes(names)

    def _arrays(self) -> list[Array]:
        """The arrays, of which those that are written have an element for each point of the sums."""
        shape = tuple(map(self._size, self._points))
        return [
            replace(array, shape=shape) if number in self._written else array
            for number, array in enumerate(self._model.arrays)
        ]

    def _axes(self, names: Mapping[int, Sequence[str]]) -> tuple[Axis, ...]:
        order = dict.fromkeys(name for each in names.values() for name in each)
        return tuple(
            Axis(name, self._size(name), {s: each.index(name) for s, each in names.items() if name in each})
            for name in order
        )

    def _runs(self, name: str, number: int) -> bool:
        """Whether a statement has the dimensions of an axis."""
        known = {axis.name for axis in self._found.axes if number in axis.dims}
        return all(part in known for part in self._joined[name])

    def _statement(self, number: int, statement: KernelStatement, names: Sequence[str]) -> KernelStatement:
        dims = {axis.name: axis.dims[number] for axis in self._found.axes if number in axis.dims}
        at: list[AffineExpr] = [AffineExpr.constant(0)] * len(statement.extents)
        for place, name in enumerate(names):
            inner = 1
            for part in reversed(self._joined[name]):
                digit: AffineExpr = AffineExpr.dimension(place)
                digit = digit // inner if inner > 1 else digit
                inner *= self._extents[part]
                at[dims[part]] = digit % self._extents[part] if inner < self._size(name) else digit

        def moved(index: AffineMap) -> AffineMap:
            return affine_map(len(names), [e.replace_dims_and_symbols(at, []) for e in index.results])

        def change(leaf: Read | Index) -> Scalar:
            if isinstance(leaf, Index):
                return replace(leaf, expr=leaf.expr.replace_dims_and_symbols(at, []))
            return replace(leaf, index=here if leaf.operand in self._written else moved(leaf.index))

        here = affine_map(len(names), [AffineExpr.dimension(names.index(name)) for name in self._points])

        return replace(
            statement, extents=tuple(map(self._size, names)), names=tuple(names), write=here,
            body=rewritten(statement.body, change), bounds=(),
        )  # fmt: skip


def _sums(statement: KernelStatement, windows: CubeConvolution, k: str) -> KernelStatement:
    """The sums over all of k, which lies as filters do: `[ic1, kh, kw, ic0]`."""
    image, height, width = AffineExpr.dimension(0), windows.height, windows.width
    pixel, output, place = (AffineExpr.dimension(d) for d in (1, 2, 3))
    group: AffineExpr = AffineExpr.constant(0)
    if windows.parts > 1:  # the groups of an image are neighbours in the batch
        group, image = image % windows.parts, image // windows.parts
    tap, c0 = place // windows.c0, windows.c0
    row = pixel // width.outputs * height.stride + tap // width.taps % height.taps * height.dilation + -height.pad
    column = pixel % width.outputs * width.stride + tap % width.taps * width.dilation + -width.pad
    channel = group * windows.channels + tap // windows.taps * c0 + place % c0
    maps = {
        windows.image: affine_map(4, [image, row, column, channel]),
        windows.filters: affine_map(4, [place, group * windows.outputs + output]),
    }

    def change(leaf: Read | Index) -> Scalar:
        return replace(leaf, index=maps[leaf.operand]) if isinstance(leaf, Read) else leaf

    return replace(
        statement, extents=(*statement.extents, windows.depth), names=(*statement.names, k),
        body=rewritten(statement.body, change), write=AffineMap(4, 0, statement.write.results),
    )  # fmt: skip
