"""The schedule of a kernel on the cube, and others that tuning tries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.cube.kernels import CubeKernel
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.tiles import product_schedule
from msc.schedule.cube.trees import tree_of
from msc.schedule.cube.windows import convolution_schedules
from msc.support.diagnostics import MscError
from msc.targets.davinci import DavinciTarget

_BASES = (32, 64, 128, 192, 256)
"""Rows and columns of base tiles that are tried."""
_CONVOLUTIONS = 24
"""Schedules of a convolution that are tried: the best predicted ones."""


def cube_schedule(kernel: CubeKernel, target: DavinciTarget) -> tuple[Tree, str]:
    """The schedule of the fewest predicted cycles, and why. Raises MSC1021 where none fits."""
    shape = kernel.shape
    if kernel.windows is None:
        chosen = product_schedule(shape, target)
    else:
        chosen = convolution_schedules(kernel.windows, target, shape.out_dtype, bias=shape.bias)[0]
    base = " x ".join(map(str, chosen.base))
    reason = f"base tiles of {base} (m, n, k) on {chosen.cores} of {target.cores.cube} cube cores"
    return tree_of(kernel, chosen), reason


def alternatives(kernel: CubeKernel, target: DavinciTarget) -> Iterator[Tree]:
    """Schedules with other base tiles."""
    shape = kernel.shape
    if kernel.windows is not None:
        found = convolution_schedules(kernel.windows, target, shape.out_dtype, bias=shape.bias)
        yield from (tree_of(kernel, schedule) for schedule in islice(found, _CONVOLUTIONS))
        return
    for base in _bases(shape):
        try:
            yield tree_of(kernel, product_schedule(shape, target, base))
        except MscError:
            continue


def _bases(shape: MatmulShape) -> Iterator[tuple[int, int, int]]:
    ms, ns = (
        {min(size, -(-extent // by) * by) for size in _BASES}
        for extent, by in zip((shape.m, shape.n), shape.edges, strict=True)
    )
    for m in sorted(ms):
        for n in sorted(ns):
            for k in (shape.step * 2, shape.step * 4, shape.step * 8):
                yield m, n, min(k, -(-shape.k // shape.step) * shape.step)
