"""The schedule of a kernel on the cube, and others that tuning tries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msc.poly.schedule_tree.nodes import ScheduleError, Tree
from msc.schedule.cube.kernels import CubeKernel
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.tiles import product_schedule
from msc.schedule.cube.trees import CubeSchedule, schedule_in, tree_of
from msc.schedule.cube.windows import convolution_schedules
from msc.schedule.forms import Unlike
from msc.support.diagnostics import MscError
from msc.targets.davinci import DavinciTarget

_BASES = (32, 64, 128, 192, 256)
"""Rows and columns of base tiles that are tried."""


@dataclass(frozen=True)
class CubeForm:
    """A product, or a convolution, as the cube runs it."""

    kernel: CubeKernel
    target: DavinciTarget

    def trees(self) -> Iterator[Tree]:
        """The tree of the fewest predicted cycles, if any fits."""
        kernel = self.kernel
        try:
            chosen = product_schedule(kernel.shape, self.target) if kernel.windows is None else self._convolutions()[0]
        except MscError:
            return
        yield tree_of(kernel, chosen)

    def neighbours(self) -> Iterator[Tree]:
        """Trees with other base tiles."""
        if self.kernel.windows is not None:
            yield from (tree_of(self.kernel, schedule) for schedule in self._convolutions())
            return
        for base in _bases(self.kernel.shape):
            try:
                yield tree_of(self.kernel, product_schedule(self.kernel.shape, self.target, base))
            except MscError:
                continue

    def _convolutions(self) -> Sequence[CubeSchedule]:
        assert self.kernel.windows is not None
        shape = self.kernel.shape
        return convolution_schedules(self.kernel.windows, self.target, shape.out_dtype, bias=shape.bias)

    def schedule(self, tree: Tree) -> CubeSchedule:
        """What a tree says. Raises Unlike."""
        try:
            return schedule_in(tree, self.kernel, self.target)
        except ScheduleError as problem:
            raise Unlike(str(problem)) from problem

    def reasons(self, tree: Tree) -> Sequence[str]:
        """The base tiles and the cores of a tree."""
        schedule = self.schedule(tree)
        base = " x ".join(map(str, schedule.base))
        return [f"base tiles of {base} (m, n, k) on {schedule.cores} of {self.target.cores.cube} cube cores"]


def _bases(shape: MatmulShape) -> Iterator[tuple[int, int, int]]:
    ms, ns = (
        {min(size, -(-extent // by) * by) for size in _BASES}
        for extent, by in zip((shape.m, shape.n), shape.edges, strict=True)
    )
    for m in sorted(ms):
        for n in sorted(ns):
            for k in (shape.step * 2, shape.step * 4, shape.step * 8):
                yield m, n, min(k, -(-shape.k // shape.step) * shape.step)
