"""Kernels of the scalar unit: the cycles of the busiest core, which runs the loops of the kernel's function."""

from __future__ import annotations

from functools import partial

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import KernelBuilder
from msc.lowering.ascend.kernels import KernelRequest, written_by_tree
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.scalar_loops import ScalarLoops


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel of scalar units. Raises MSC0408 for a schedule that they cannot follow."""
    form = ScalarLoops(request.model, request.target)
    return written_by_tree(request, form, partial(_written, request, form), "the scalar unit")


def _written(request: KernelRequest, form: ScalarLoops, tree: Tree) -> DavinciKernelOp:
    share = form.share(tree)
    builder = KernelBuilder(request.name, request.target, "vector", share.cores, ())
    builder.emit("scalar_work", cycles=max(1, round(form.cycles * share.part)))
    return builder.finish()
