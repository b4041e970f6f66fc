"""Other schedules of a kernel on DaVinci cores, as trees: what tuning tries on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from msc.lowering.ascend.copy_kernels.boxes import boxes_of, index_arrays
from msc.lowering.ascend.copy_kernels.plans import ranked
from msc.lowering.ascend.copy_kernels.trees import tree_of as tree_of_moves
from msc.lowering.ascend.cube_trees import tree_of as tree_of_product
from msc.lowering.ascend.fixpipe_form import fixpipe_form
from msc.lowering.ascend.grouped_channels import have_same_loops, with_group_loops
from msc.lowering.ascend.kernels import KernelRequest
from msc.lowering.ascend.matmul_tiling import MatmulShape, MatmulWishes, matmul_schedule
from msc.lowering.ascend.products import cube_product, matmul_shape, outline
from msc.lowering.ascend.vector_kernels.writer import form_of
from msc.poly.schedule_tree.nodes import Tree
from msc.support.diagnostics import MscError

_BASES = (32, 64, 128, 192, 256)
"""Rows and columns of base tiles that are tried."""
_TILINGS = 24
"""Tilings of a vector kernel, and tiles of a copy, that are tried: the best predicted ones; on every machine."""


def alternatives(request: KernelRequest) -> Iterator[Tree]:
    """The schedules of a product by its base tiles, of a vector kernel by its tiling, or of a copy by its tiles."""
    if len(request.outputs) != 1 or not request.is_static_but_for(index_arrays(request.model)):
        return
    if not request.is_static:
        yield from _of_moves(request)
        return
    model = with_group_loops(request.model)
    product = cube_product(model, request.target)
    shape = None if product is None else matmul_shape(product, model.arrays[request.outputs[0]].dtype)
    if product is None or shape is None:
        yield from _of_vectors(request)
        return
    if not have_same_loops(model, request.model):
        return
    outlined = outline(model, request.target)
    assert outlined is not None
    form = fixpipe_form(product, request.target.buffers.bt) if request.target.features.fixpipe_to_gm else None
    shape = replace(shape, bias=form is not None and form.bias is not None)
    for wishes in _wishes(shape):
        try:
            schedule = matmul_schedule(shape, request.target, wishes)
        except MscError:
            continue
        tree = tree_of_product(model, outlined, product, schedule)
        if tree is not None:
            yield tree


def _wishes(shape: MatmulShape) -> Iterator[MatmulWishes]:
    own = MatmulWishes(unit_flag=True, scalar_cycles=0.0, dealt=True)
    ms, ns = (
        {min(size, -(-extent // by) * by) for size in _BASES}
        for extent, by in zip((shape.m, shape.n), shape.edges, strict=True)
    )
    for m in sorted(ms):
        for n in sorted(ns):
            for k in (shape.step * 2, shape.step * 4, shape.step * 8):
                yield replace(own, base=(m, n, min(k, -(-shape.k // shape.step) * shape.step)))


def _of_vectors(request: KernelRequest) -> Iterator[Tree]:
    form = form_of(request)
    if form is None or not form.is_of_kernel:
        yield from _of_moves(request)
        return
    yield from islice(form.trees(), _TILINGS)


def _of_moves(request: KernelRequest) -> Iterator[Tree]:
    boxes = boxes_of(request.model)
    for plans in ranked(boxes, request.target, _TILINGS) if boxes else ():
        yield tree_of_moves(request.model, plans)
