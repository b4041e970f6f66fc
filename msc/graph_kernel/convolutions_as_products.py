"""Pass `convolutions-as-products`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.properties import REWRITES_GRAPH
from msc.dialects.element_types import element_type
from msc.dialects.ms.convolution import ConvolutionOp, WeightedWindowOp
from msc.dialects.ms.generic import ComputeOp, statements_text
from msc.dialects.ms.linear import MatmulOp
from msc.dialects.ms.movement import SliceOp, TransposeOp, copy_statement
from msc.dialects.ms.transposed_convolution import TransposedConvolutionOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.convolution import with_bias
from msc.graph.graph_loops import put_in_place
from msc.poly.adjoint import summed
from msc.poly.compute import Statement, affine_map, dims
from msc.poly.scalar import Read


@dataclass(frozen=True)
class ConvolutionsAsProducts(ModulePass):
    """Compute convolutions of small images as products of the weight as it lies in memory and patches of the image.

    Takes: a graph. Gives: in place of a convolution of f32 in one group, whose weight is no constant, a product of
    the weight `[oc, ic k...]` and the patches `[ic k..., n o...]` (im2col, Chellapilla et al. 2006); in place of a
    transposed one, the product of the image `[n i..., ic]` and the weight `[ic, oc k...]`, whose elements are
    added up where windows overlap (col2im). A weight that changes has no layout of its own between calls: without this
    pass it is packed, for a transposed convolution transposed and reversed too, in each call. The gradient of the
    weight is such a convolution as well, and comes out as the weight lies, so that an update joins the product.
    Left alone: constant weights, which are packed once; images whose patches are not much smaller than weight and
    result, or fill no vector; all where calls decide sizes. Keeps: the meaning; sums are rounded in another order.
    """

    name = "convolutions-as-products"
    contract = REWRITES_GRAPH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        constancy = Constancy()
        for found in [o for o in op.walk() if isinstance(o, ConvolutionOp | TransposedConvolutionOp)]:
            if _is_plain(found) and _pays(found) and not constancy.of(found.weight):
                emit = Emitter(found)
                y = _product(found, emit) if isinstance(found, ConvolutionOp) else _transposed_product(found, emit)
                put_in_place(emit, with_bias(y, found.bias, found.SPATIAL + 2, emit), "convolution")


def _is_plain(op: WeightedWindowOp) -> bool:
    return op.int_("group") == 1 and op.dtype(0) == "f32" and op.properties.get("dtype") is None


def _pays(op: WeightedWindowOp) -> bool:
    """Whether writing and reading the patches costs little beside the weight and the result."""
    outer, inner, *kernel = op.shape(1)
    image = op.spatial() if isinstance(op, TransposedConvolutionOp) else op.output_spatial()
    steps, columns = inner * prod(kernel), op.shape(0)[0] * prod(image)
    return PATCHES_BESIDE * steps * columns <= outer * (steps + columns)


PATCHES_BESIDE = 2
"""How many times as large as the patches weight and result together must be: patches are written and read, which
doubles their bytes.
"""


def _product(op: ConvolutionOp, emit: Emitter) -> SSAValue:
    outputs, inputs, *kernel = op.shape(1)
    n, _, *image = op.result_shape()
    box = (inputs, *kernel, n, *image)
    channel, *taps, batch = (d := dims(len(box)))[: len(kernel) + 2]
    read = (batch, channel, *op.taps(d[len(kernel) + 2 :], taps))
    x = emit.pad_spatial(op.x, op.padding())
    patches = _computed(emit, x, box, [copy_statement(box, d, read, "f32")])
    steps = inputs * prod(kernel)
    weight = emit.reshape(op.weight, (outputs, steps))
    y = emit(MatmulOp, weight, emit.reshape(patches, (steps, n * prod(image))))
    return emit(TransposeOp, emit.reshape(y, (outputs, n, *image)), perm=[1, 0, *range(2, 2 + op.SPATIAL)])


def _transposed_product(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    inputs, outputs, *kernel = op.shape(1)
    n, _, *image = op.shape(0)
    rows = emit(TransposeOp, op.x, perm=[0, *range(2, 2 + op.SPATIAL), 1])
    left = emit.reshape(rows, (n * prod(image), inputs))
    product = emit(MatmulOp, left, emit.reshape(op.weight, (inputs, outputs * prod(kernel))))
    box = (n, *image, outputs, *kernel)
    begin, found = [b for b, _ in op.padding()], op.transposed_spatial()
    reach = [(size - 1) * w.stride + w.span for size, w in zip(image, op.windows(), strict=True)]
    whole = (n, outputs, *(max(r, b + size) for r, b, size in zip(reach, begin, found, strict=True)))
    y = _computed(emit, emit.reshape(product, box), whole, summed([_overlap(op, box)], whole, "f32"))
    end = (n, outputs, *(b + size for b, size in zip(begin, found, strict=True)))
    return y if end == whole and not any(begin) else emit(SliceOp, y, begin=[0, 0, *begin], end=list(end))


def _overlap(op: TransposedConvolutionOp, box: Sequence[int]) -> Statement:
    """Each element of windows `[n, i..., c, k...]` is added to the one of the image `[n, c, o...]` that it meets."""
    d = dims(len(box))
    image, kernel = d[1 : 1 + op.SPATIAL], d[2 + op.SPATIAL :]
    place = affine_map(len(box), (d[0], d[1 + op.SPATIAL], *op.taps(image, kernel)))
    names = ("n", *op.axis_names("i"), "c", *op.axis_names("k"))
    return Statement(tuple(box), names, place, Read(0, affine_map(len(box), d), "f32"), "add", accumulate=True)


def _computed(emit: Emitter, x: SSAValue, shape: Sequence[int], statements: Sequence[Statement]) -> SSAValue:
    text = statements_text(statements)
    return emit(ComputeOp, x, shape=list(shape), dtype=element_type("f32"), statements=text)
