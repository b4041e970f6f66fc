"""Other schedules of a kernel on DaVinci cores, as trees: what tuning tries on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msc.lowering.ascend.kernels import KernelRequest
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.copies.boxes import boxes_of, index_arrays
from msc.schedule.copies.strategy import Copies
from msc.schedule.cube.kernels import cube_kernel
from msc.schedule.cube.strategy import alternatives as of_cube
from msc.schedule.vector_unit.strategy import tiled_kernel

_TILINGS = 24
"""Tilings of a vector kernel, and tiles of a copy, that are tried: the best predicted ones; on every machine."""


def alternatives(request: KernelRequest) -> Iterator[Tree]:
    """The schedules of a product by its base tiles, of a vector kernel by its tiling, or of a copy by its tiles."""
    if len(request.outputs) != 1 or not request.is_static_but_for(index_arrays(request.model)):
        return
    if not request.is_static:
        yield from _of_moves(request)
        return
    kernel = cube_kernel(request.model, request.target)
    yield from _of_vectors(request) if kernel is None else of_cube(kernel, request.target)


def _of_vectors(request: KernelRequest) -> Iterator[Tree]:
    form = tiled_kernel(request.model, request.outputs, request.target)
    if form is None:
        yield from _of_moves(request)
        return
    yield from islice(form.trees(), _TILINGS)


def _of_moves(request: KernelRequest) -> Iterator[Tree]:
    boxes = boxes_of(request.model)
    if boxes:
        yield from Copies(request.model, boxes, request.target).trees()
