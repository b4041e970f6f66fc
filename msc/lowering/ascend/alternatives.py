"""Other schedules of a kernel on DaVinci cores, as trees: what tuning tries on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from msc.lowering.ascend.cube_trees import tree_of as tree_of_product
from msc.lowering.ascend.kernels import Request
from msc.lowering.ascend.matmul_tiling import MatmulShape, MatmulWishes, matmul_schedule
from msc.lowering.ascend.products import cube_product, matmul_shape, outline
from msc.lowering.ascend.vector_kernels.axes import axes_of
from msc.lowering.ascend.vector_kernels.tiling import UB_DTYPES, fits, tilings
from msc.lowering.ascend.vector_kernels.trees import tree_of as tree_of_tiling
from msc.poly.schedule_tree.nodes import Tree
from msc.support.diagnostics import MscError

_BASES = (32, 64, 128, 192, 256)
"""Rows and columns of base tiles that are tried."""
_TILINGS = 24
"""Tilings of a vector kernel that are tried, the best predicted ones."""


def alternatives(request: Request) -> Iterator[Tree]:
    """The schedules of a product by its base tiles, or of a vector kernel by its tiling."""
    if not request.is_static or len(request.outputs) != 1:
        return
    product = cube_product(request.model, request.target)
    shape = None if product is None else matmul_shape(product, request.model.arrays[request.outputs[0]].dtype)
    if product is None or shape is None:
        yield from _of_vectors(request)
        return
    outlined = outline(request.model, request.target)
    assert outlined is not None
    for wishes in _wishes(shape):
        try:
            schedule = matmul_schedule(shape, request.target, wishes)
        except MscError:
            continue
        tree = tree_of_product(request.model, outlined, product, schedule)
        if tree is not None:
            yield tree


def _wishes(shape: MatmulShape) -> Iterator[MatmulWishes]:
    own = MatmulWishes(unit_flag=True, scalar_cycles=0.0)
    ms, ns = ({min(size, -(-extent // 16) * 16) for size in _BASES} for extent in (shape.m, shape.n))
    for m in sorted(ms):
        for n in sorted(ns):
            for k in (shape.step * 2, shape.step * 4, shape.step * 8):
                yield replace(own, base=(m, n, min(k, -(-shape.k // shape.step) * shape.step)))


def _of_vectors(request: Request) -> Iterator[Tree]:
    model, target = request.model, request.target
    axes = axes_of(model) if all(array.dtype in UB_DTYPES for array in model.arrays) and model.statements else None
    if axes is None:
        return
    fitting = (t for t in tilings(model, request.outputs, axes, target) if fits(model, axes, t, target))
    for tiling in islice(fitting, _TILINGS):
        tree = tree_of_tiling(model, axes, tiling)
        if tree is not None:
            yield tree
