"""Kernels that are one convolution of images that lie channels last, with packed filters, as the cube takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.ir.affine import AffineExpr

from msc.poly.affine import LinearForm, linear_form
from msc.poly.compute import affine_map
from msc.poly.contraction import Contraction
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Constant, Read, reads, rewritten
from msc.schedule.cube.products import (
    NONE,
    BatchAxis,
    CubeProduct,
    MatmulShape,
    ProductKernel,
    StridedArray,
    behind,
    joined_axes,
)
from msc.targets import davinci_isa as isa
from msc.targets.davinci_isa import DTYPES


@dataclass(frozen=True)
class Along:
    """One axis of an image: `size` pixels; of the output `outputs`, with a filter of `taps`."""

    size: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    pad: int


@dataclass(frozen=True)
class CubeConvolution:
    """`product` has the pixels of an image as m and the output channels of a group as n; its batch: images, groups.

    `channels` of a group lie together; `image` and `filters` are arrays. Filters lie as `[ic1, kh, kw, oc, ic0]`, the
    output channels of all groups one behind the other.
    """

    product: CubeProduct
    image: int
    filters: int
    height: Along
    width: Along
    channels: int
    images: int
    group: str = NONE
    """The axis of the groups."""
    pad_value: int = 0
    """What lies outside of an image."""

    @property
    def parts(self) -> int:
        """How many groups there are."""
        return self.product.size(self.group)

    @property
    def count(self) -> int:
        """How many products of pixels and output channels there are: one for each image and group."""
        return self.images * self.parts

    @property
    def pixel(self) -> int:
        """Elements of a pixel of the image: the channels of all groups."""
        return self.channels * self.parts

    @property
    def c0(self) -> int:
        """Channels of one row of a fractal."""
        return isa.BLOCK_BYTES // DTYPES[self.product.dtype]

    @property
    def groups(self) -> int:
        """Rows of channels of a pixel, the last one filled up."""
        return -(-self.channels // self.c0)

    @property
    def taps(self) -> int:
        """Weights of a filter for one channel."""
        return self.height.taps * self.width.taps

    @property
    def depth(self) -> int:
        """All of k: channels, filled up, for each tap."""
        return self.groups * self.taps * self.c0

    @property
    def pixels(self) -> int:
        """Pixels of an output."""
        return self.height.outputs * self.width.outputs

    @property
    def outputs(self) -> int:
        """Output channels of a group."""
        return self.product.size(self.product.n)


def convolution_shape(convolution: CubeConvolution, out_dtype: str, *, bias: bool) -> MatmulShape:
    """The product that a convolution is for each image and group: pixels by output channels."""
    c = convolution
    image = c.height.size * c.width.size * c.pixel
    steps = {axis: c.product.out.strides.get(axis, 0) for axis in c.product.batch}
    return MatmulShape(
        c.pixels, c.outputs, c.depth, c.product.dtype, out_dtype, transpose_b=True,
        batch=tuple(
            BatchAxis(c.parts, c.channels, c.outputs * c.c0, step)
            if axis == c.group
            else BatchAxis(c.images, image, 0, step)
            for axis, step in steps.items()
        ),
        row_c=c.product.out.strides.get(c.product.m, 0) or c.outputs * c.parts, bias=bias,
    )  # fmt: skip


def rows_of_image(convolution: CubeConvolution, pixels: int) -> int:
    """The most rows of the image that so many neighbouring pixels of the output read."""
    height, width = convolution.height, convolution.width
    outputs = min((pixels - 2) // width.outputs + 2 if pixels > 1 else 1, height.outputs)
    return min((outputs - 1) * height.stride + (height.taps - 1) * height.dilation + 1, height.size)


def convolution(plain: KernelModel, outlined: ProductKernel, outside: int) -> CubeConvolution | None:
    """A kernel without padding as a convolution of the cube; None for another kernel, or where arrays lie otherwise.

    `outside` is what lies beyond an image.
    """
    if len(outlined.role("batch")) > 1:
        return None
    contraction = outlined.found.contraction
    number = contraction.statement
    names = {axis.dims[number]: axis.name for axis in outlined.found.axes if number in axis.dims}
    image = plain.arrays[contraction.a.operand]
    forms = [linear_form(expr) for expr in contraction.a.index.results]
    if len(forms) != 4 or any(form is None for form in forms):
        return None
    extents = plain.statements[number].extents
    n, height, width, channel = (form for form in forms if form is not None)
    ways = [along(form, image.shape[k], extents, contraction.m, contraction.k) for k, form in ((1, height), (2, width))]
    channels = _channels(channel, contraction, extents)
    images = _only(n, contraction.m, extents)
    if any(way is None for way in ways) or channels is None or images is None or images != image.shape[0]:
        return None
    rows, columns = (way for way in ways if way is not None)
    parts = extents[contraction.batch[0]] if contraction.batch else 1
    if channels * parts != image.shape[3] or not _is_packed(plain, outlined, rows, columns, channels):
        return None
    product = _product(outlined, names, n, (height, width))
    if product is None:
        return None
    a, b = contraction.a.operand, contraction.b.operand
    group = next(iter(outlined.role("batch")), NONE)
    return CubeConvolution(product, a, b, rows, columns, channels, images, group, outside)


def along(
    form: LinearForm, size: int, extents: tuple[int, ...], m: tuple[int, ...], k: tuple[int, ...]
) -> Along | None:
    """An axis whose index is `stride * output + dilation * tap - pad`."""
    outputs = [(d, c) for d, c in form.coefficients.items() if d in m]
    taps = [(d, c) for d, c in form.coefficients.items() if d in k]
    if len(outputs) > 1 or len(taps) > 1 or form.constant > 0:
        return None
    output, stride = outputs[0] if outputs else (None, 1)
    tap, dilation = taps[0] if taps else (None, 1)
    reach = max(dilation, -form.constant)
    if not (
        1 <= stride <= isa.LOAD3D_STRIDE and dilation >= 1 and reach <= isa.LOAD3D_REACH and size <= isa.LOAD3D_SIZE
    ):
        return None
    return Along(
        size,
        1 if output is None else extents[output],
        1 if tap is None else extents[tap],
        stride,
        dilation,
        -form.constant,
    )


def _channels(form: LinearForm, contraction: Contraction, extents: tuple[int, ...]) -> int | None:
    """The channels of a group, where an index counts them, group by group."""
    inner = {d: c for d, c in form.coefficients.items() if d not in contraction.batch}
    channels = _only(LinearForm(inner, form.constant), contraction.k, extents)
    steps = [form.coefficients.get(d) for d in contraction.batch]
    return channels if all(step == channels for step in steps) else None


def _only(form: LinearForm, dims: tuple[int, ...], extents: tuple[int, ...]) -> int | None:
    """The extent of the one dimension that an index is; 1 where it is 0."""
    moving = {d: c for d, c in form.coefficients.items() if extents[d] > 1}
    if not moving:
        return 1 if form.constant == 0 else None
    [(d, c), *others] = moving.items()
    return extents[d] if d in dims and c == 1 and not others and not form.constant else None


def _is_packed(model: KernelModel, outlined: ProductKernel, rows: Along, columns: Along, channels: int) -> bool:
    """Whether filters lie as `[ic1, kh, kw, oc, ic0]`: the last element of each dimension is where it should be.

    Output channels are those of all groups.
    """
    contraction = outlined.found.contraction
    c0 = 32 // DTYPES[contraction.a.dtype]
    filters, extents = model.arrays[contraction.b.operand], model.statements[contraction.statement].extents
    oc = prod(extents[d] for d in (*contraction.batch, *contraction.n))
    shape = (-(-channels // c0), rows.taps, columns.taps, oc, c0)
    if filters.shape != shape or len(contraction.n) > 1:
        return False
    results = contraction.b.index.results
    point = [0] * len(extents)
    for d in (*contraction.batch, *contraction.n, *contraction.k):
        point[d] = extents[d] - 1
    last = (channels - 1, rows.taps - 1, columns.taps - 1, oc - 1)
    expected = (last[0] // c0, last[1], last[2], last[3], last[0] % c0)
    return tuple(expr.eval(point, []) for expr in results) == expected


def _product(
    outlined: ProductKernel, names: dict[int, str], images: LinearForm, axes: tuple[LinearForm, LinearForm]
) -> CubeProduct | None:
    """What a convolution has in common with a matrix product: output and epilogue by batch, pixels and channels."""
    contraction = outlined.found.contraction
    pixels = tuple(names[d] for form in axes for d in form.coefficients if d in contraction.m and d in names)
    n = tuple(names[d] for d in contraction.n if d in names)
    batch = tuple(names[d] for d in (*images.coefficients, *contraction.batch) if d in names)
    nowhere = StridedArray(-1, {}, 0)
    product = CubeProduct(
        contraction.a.dtype, nowhere, nowhere, outlined.out, outlined.extents, batch, NONE, NONE,
        outlined.role("k"), contraction.target, outlined.after,
    )  # fmt: skip
    product = joined_axes(product, (pixels,), behind(product))
    left = [axis for axis in pixels if axis in product.extents]
    if len(left) > 1 or (n and product.out.strides.get(n[0]) != 1):
        return None
    return replace(product, m=left[0] if left else NONE, n=n[0] if n else NONE)


def without_padding(model: KernelModel) -> tuple[KernelModel | None, int]:
    """The model with reads beyond the image in place of padding, and what is there; None where that cannot be.

    Bytes may be padded with any number, other types with zeros.
    """
    number = next((k for k, s in enumerate(model.statements) if s.combine == "add"), None)
    if number is None:
        return None, 0
    sums = model.statements[number]
    read = next(iter(reads(sums.body)), None)
    if read is None or model.arrays[read.operand].kind != "internal":
        return model, 0
    writers = [s for s in model.statements if s.target == read.operand]
    copies = [s for s in writers if not isinstance(s.body, Constant)]
    outside = {s.body.value for s in writers if isinstance(s.body, Constant)} or {0}
    if len(copies) != 1 or len(outside) > 1 or (outside != {0} and read.dtype not in ("i8", "ui8")):
        return None, 0
    moved = _moved(read, copies[0])
    if moved is None or any(
        read.operand == r.operand for s in model.statements if s is not sums for r in reads(s.body)
    ):
        return None, 0
    body = rewritten(sums.body, lambda leaf: moved if leaf == read else leaf)
    kept = tuple(replace(s, body=body) if s is sums else s for s in model.statements if s not in writers)
    return replace(model, statements=kept), int(outside.pop())


def _moved(read: Read, copy: KernelStatement) -> Read | None:
    """A read of a padded image as one of the image, which may lie outside of it."""
    if not isinstance(copy.body, Read) or copy.body.indirect:
        return None
    at: list[AffineExpr] = [AffineExpr.constant(0)] * len(copy.extents)
    for expr, index in zip(copy.write.results, read.index.results, strict=True):
        form = linear_form(expr)
        if form is None or len(form.coefficients) > 1 or any(c != 1 for c in form.coefficients.values()):
            return None
        for d in form.coefficients:
            at[d] = index - form.constant
    results = [expr.replace_dims_and_symbols(at, []) for expr in copy.body.index.results]
    return Read(copy.body.operand, affine_map(read.index.num_dims, results), read.dtype)
