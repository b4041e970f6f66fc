"""Kernels that are one matrix product with what follows its sums, as the cube takes them: strides by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, prod

from xdsl.ir.affine import AffineExpr

from msc.poly.affine import linear_form
from msc.poly.contraction import Contraction, UnitProduct, unit_product
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Constant, Read, Scalar, reads
from msc.targets.abilities import Role
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import BLOCK_BYTES, DTYPES, FRACTAL

Strides = Mapping[str, int]
"""By axis the elements between two neighbours; axes that an array does not move along are left out."""

CUBE_TYPES = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32", "ui8": "i32"}
"""What the cube multiplies, and the type of its sums."""


@dataclass(frozen=True)
class StridedArray:
    """An array of global memory: by axis the elements between two neighbours, and the first element."""

    array: int
    strides: Strides
    first: int


@dataclass(frozen=True)
class Following:
    """A statement behind the sums: it writes `target`; `inputs` are its reads of global memory."""

    target: int
    body: Scalar
    inputs: Mapping[Read, StridedArray]


@dataclass(frozen=True)
class CubeProduct:
    """`out = after(sum(a * b))`: axes with their extents by role, `n` along the rows of the output."""

    dtype: str
    a: StridedArray
    b: StridedArray
    out: StridedArray
    extents: Mapping[str, int]
    batch: tuple[str, ...]
    m: str
    n: str
    k: tuple[str, ...]
    sums: int
    after: tuple[Following, ...]
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By axis those of the kernel that it stands for, where there are several: the outermost first."""

    def size(self, axis: str) -> int:
        """The extent of an axis; 1 of none."""
        return self.extents.get(axis, 1)

    def parts(self, axis: str) -> tuple[str, ...]:
        """The axes of the kernel that one stands for, the outermost first."""
        return self.joined.get(axis, (axis,))


NONE = ""
"""The axis of a role that has none."""


@dataclass(frozen=True)
class ProductKernel:
    """A kernel as a product: its axes, the product, what follows the sums, and where the result goes."""

    found: UnitProduct
    after: tuple[Following, ...]
    out: StridedArray

    @property
    def extents(self) -> Mapping[str, int]:
        """By axis how many iterations there are."""
        return {axis.name: axis.extent for axis in self.found.axes}

    def role(self, role: Role) -> tuple[str, ...]:
        """The axes of a role."""
        return tuple(axis.name for axis in self.found.of(role))


def outline(model: KernelModel, target: DavinciTarget) -> ProductKernel | None:
    """A kernel as a product of types that the cube has, with element-wise work behind it; None for another."""
    found = unit_product(model, dependences(model))
    if found is None or not _types_fit(model, found.contraction, target):
        return None
    if not all(_begins_sums(model.statements[s], found.contraction) for s in found.before):
        return None
    after, out = _after(model, found), _output(model, found)
    return ProductKernel(found, after, out) if after and out is not None else None


def cube_product(model: KernelModel, target: DavinciTarget) -> CubeProduct | None:
    """A kernel as a product of the cube; None where the cube has no types or no order of axes for it."""
    outlined = outline(model, target)
    if outlined is None:
        return None
    contraction = outlined.found.contraction
    a, b = (
        access_of(model, outlined.found, contraction.statement, read.operand, read.index.results)
        for read in (contraction.a, contraction.b)
    )
    if a is None or b is None:
        return None
    product = CubeProduct(
        contraction.a.dtype, a, b, outlined.out, outlined.extents, outlined.role("batch"), NONE, NONE,
        outlined.role("k"), contraction.target, outlined.after,
    )  # fmt: skip
    return _oriented(product, outlined.role("m"), outlined.role("n"))


def _types_fit(model: KernelModel, contraction: Contraction, target: DavinciTarget) -> bool:
    a, b = contraction.a.dtype, contraction.b.dtype
    sums = model.arrays[contraction.target].dtype
    kinds = [model.arrays[read.operand].kind for read in (contraction.a, contraction.b)]
    if a != b or CUBE_TYPES.get(a) != sums or kinds != ["input", "input"]:
        return False
    return a not in ("f32", "bf16") or target.architecture in ("2201", "3510")


def _begins_sums(statement: KernelStatement, contraction: Contraction) -> bool:
    body = statement.body
    return statement.target == contraction.target and isinstance(body, Constant) and body.value == 0


def access_of(
    model: KernelModel, found: UnitProduct, statement: int, array: int, index: Sequence[AffineExpr]
) -> StridedArray | None:
    """The strides of an access of a statement."""
    strides: dict[str, int] = {}
    first = 0
    names = {axis.dims[statement]: axis.name for axis in found.axes if statement in axis.dims}
    for expr, step in zip(index, model.arrays[array].strides, strict=True):
        form = linear_form(expr)
        if form is None:
            return None
        first += form.constant * step
        for d, c in form.coefficients.items():
            if d in names:
                strides[names[d]] = strides.get(names[d], 0) + c * step
    return StridedArray(array, {name: step for name, step in strides.items() if step}, first)


def _after(model: KernelModel, found: UnitProduct) -> tuple[Following, ...] | None:
    made: list[Following] = []
    written: dict[int, Strides] = {}
    for number in (found.contraction.statement, *found.after):
        statement = model.statements[number]
        place = access_of(model, found, number, statement.target, statement.write.results)
        if place is None or (place.first and model.arrays[statement.target].kind == "internal"):
            return None
        written[statement.target] = place.strides
        if number == found.contraction.statement:
            continue
        if statement.combine is not None:
            return None
        inputs: dict[Read, StridedArray] = {}
        for read in reads(statement.body):
            if read.indirect:
                return None
            access = access_of(model, found, number, read.operand, read.index.results)
            if access is None:
                return None
            if model.arrays[read.operand].kind == "input":
                inputs[read] = access
            elif access.first or written.get(read.operand) != access.strides:
                return None
        made.append(Following(statement.target, statement.body, inputs))
    return tuple(made)


def _output(model: KernelModel, found: UnitProduct) -> StridedArray | None:
    """Where the result goes: one array, written once, the last thing that is computed."""
    written = [s for s in found.after if model.arrays[model.statements[s].target].kind == "output"]
    if len(written) != 1 or written[0] != found.after[-1]:
        return None
    statement = model.statements[written[0]]
    return access_of(model, found, written[0], statement.target, statement.write.results)


def _oriented(product: CubeProduct, m: tuple[str, ...], n: tuple[str, ...]) -> CubeProduct | None:
    """The product with n along the rows of its output: A and B change places where m is."""
    swap = any(product.out.strides.get(axis) == 1 for axis in m) and not any(
        product.out.strides.get(axis) == 1 for axis in n
    )
    if swap:
        product, m, n = replace(product, a=product.b, b=product.a), n, m
    product = _merged(product, m, n)
    ms = [axis for axis in m if axis in product.extents]
    ns = [axis for axis in n if axis in product.extents]
    row = next((axis for axis in ns if product.out.strides.get(axis) == 1), NONE)
    if ns and not row:
        return None
    column = max(ms, key=product.size, default=NONE)
    others = (*(x for x in ms if x != column), *(x for x in ns if x != row))
    batch = tuple(axis for axis in product.extents if axis in (*product.batch, *others))
    return replace(product, m=column, n=row, batch=batch)


def _merged(product: CubeProduct, m: tuple[str, ...], n: tuple[str, ...]) -> CubeProduct:
    """Axes of one role that all arrays move along as if they were one, as one: the inner one stands for both."""
    return joined_axes(product, (product.batch, m, n, product.k), _accesses(product))


def joined_axes(
    product: CubeProduct, groups: Sequence[tuple[str, ...]], accesses: Sequence[StridedArray]
) -> CubeProduct:
    """Neighbouring axes of a group that some accesses move along as if they were one, as one."""
    for group in groups:
        kept = [axis for axis in group if axis in product.extents]
        for outer, inner in pairwise(kept):
            if all(_is_one(each, outer, inner, product.extents[inner]) for each in accesses):
                product = _joined(product, outer, inner)
    k = tuple(axis for axis in product.k if axis in product.extents)
    after = tuple(
        replace(each, inputs={read: _restricted(access, product) for read, access in each.inputs.items()})
        for each in product.after
    )
    a, b, out = (_restricted(access, product) for access in (product.a, product.b, product.out))
    return replace(product, k=k, after=after, a=a, b=b, out=out)


def _restricted(access: StridedArray, product: CubeProduct) -> StridedArray:
    """An access by the axes that a product still has."""
    return replace(access, strides={name: step for name, step in access.strides.items() if name in product.extents})


def _accesses(product: CubeProduct) -> list[StridedArray]:
    return [product.a, product.b, *behind(product)]


def behind(product: CubeProduct) -> list[StridedArray]:
    """The output, and what is read behind the sums."""
    return [product.out, *(access for each in product.after for access in each.inputs.values())]


def _is_one(access: StridedArray, outer: str, inner: str, extent: int) -> bool:
    return access.strides.get(outer, 0) == access.strides.get(inner, 0) * extent


def _joined(product: CubeProduct, outer: str, inner: str) -> CubeProduct:
    extents = {name: size for name, size in product.extents.items() if name != outer}
    extents[inner] *= product.extents[outer]
    joined = {**product.joined, inner: tuple(name for axis in (outer, inner) for name in product.parts(axis))}
    return replace(product, extents=extents, joined=joined)


@dataclass(frozen=True)
class BatchAxis:
    """One dimension of many products: how many there are, and how far apart the operands of two neighbours lie."""

    extent: int
    a: int
    b: int
    c: int


@dataclass(frozen=True)
class MatmulShape:
    """C[m, n] = A[m, k] B[k, n]; `transpose_*` say that an operand is stored the other way round.

    `bias` says that one is added in the cube. `batch` repeats the product, the outermost dimension first.
    `row_*` are the elements between two stored rows, where
    rows lie further apart than they are long. With `fractal`, A and B lie in columns of 32 bytes (NZ), which `row_*`
    then count the rows of.
    """

    m: int
    n: int
    k: int
    dtype: str = "f16"
    out_dtype: str = "f16"
    transpose_a: bool = False
    transpose_b: bool = False
    batch: tuple[BatchAxis, ...] = ()
    row_a: int | None = None
    row_b: int | None = None
    row_c: int | None = None
    bias: bool = False
    fractal: bool = False

    @property
    def elements(self) -> tuple[int, int, int]:
        """What A, B and C hold, without a batch; an operand in NZ has whole fractals."""
        sides = ((self.m, self.k, self.transpose_a), (self.k, self.n, self.transpose_b))
        a, b = (self._stored(*((n, m) if turned else (m, n))) for m, n, turned in sides)
        return a, b, self.m * self.n

    def _stored(self, rows: int, columns: int) -> int:
        if not self.fractal:
            return rows * columns
        return ceil(rows / FRACTAL) * FRACTAL * ceil(columns / self.c0) * self.c0

    @property
    def rows(self) -> tuple[int, int, int]:
        """Elements between two stored rows of A, of B and of C; of an operand in NZ its rows, in whole fractals."""
        if self.fractal:
            a, b = self.k if self.transpose_a else self.m, self.n if self.transpose_b else self.k
            return ceil(a / FRACTAL) * FRACTAL, ceil(b / FRACTAL) * FRACTAL, self.n
        a, b = self.m if self.transpose_a else self.k, self.k if self.transpose_b else self.n
        return self.row_a or a, self.row_b or b, self.row_c or self.n

    @property
    def count(self) -> int:
        """How many products there are."""
        return prod(each.extent for each in self.batch)

    @property
    def sum_dtype(self) -> str:
        """The type of L0C."""
        return "i32" if DTYPES[self.dtype] == 1 else "f32"

    @property
    def c0(self) -> int:
        """Elements of 32 bytes."""
        return BLOCK_BYTES // DTYPES[self.dtype]

    @property
    def step(self) -> int:
        """What base tiles are multiples of along k: fractals that are turned come in squares."""
        return max(FRACTAL, self.c0)

    @property
    def edges(self) -> tuple[int, int]:
        """What the rows and columns of base tiles are multiples of: squares of bytes that are turned have 32."""
        return self.step if self.transpose_a else FRACTAL, FRACTAL if self.transpose_b else self.step


def matmul_shape(product: CubeProduct, out_dtype: str) -> MatmulShape | None:
    """The product of two matrices in rows, repeated over its batch; None for one that is none, as a convolution."""
    if len(product.k) > 1:
        return None
    k = product.k[0] if product.k else NONE
    a = _rows(product.a, product.m, k, product)
    b = _rows(product.b, product.n, k, product)
    row_c = product.out.strides.get(product.m, 0) or product.size(product.n)
    if a is None or b is None:
        return None
    batch = tuple(
        BatchAxis(product.size(x), *(each.strides.get(x, 0) for each in (product.a, product.b, product.out)))
        for x in product.batch
    )
    return MatmulShape(
        product.size(product.m), product.size(product.n), product.size(k), product.dtype, out_dtype,
        a[0], not b[0], batch, a[1], b[1], row_c,
    )  # fmt: skip


def _rows(access: StridedArray, outer: str, k: str, product: CubeProduct) -> tuple[bool, int] | None:
    """Whether an operand is stored with k along the count of its rows, and how far its rows are apart."""
    along, across = access.strides.get(k, 0), access.strides.get(outer, 0)
    if along == 1 or (not k and across != 1) or (product.size(k) == 1 and across != 1):
        return False, across or product.size(k)
    if across == 1 or (product.size(outer) == 1 and along):
        return True, along
    return None
