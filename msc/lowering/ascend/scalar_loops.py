"""Kernels of the scalar unit: the cycles of the busiest core, which runs the loops of the kernel's function."""

from __future__ import annotations

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import KernelBuilder
from msc.lowering.ascend.kernels import CoreUnit, KernelRequest
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.scalar_loops import ScalarLoops


def _form(request: KernelRequest) -> ScalarLoops:
    return ScalarLoops(request.model, request.target)


def _written(request: KernelRequest, form: ScalarLoops, tree: Tree) -> DavinciKernelOp:
    share = form.share(tree)
    builder = KernelBuilder(request.name, request.target, "vector", share.cores, ())
    builder.emit("scalar_work", cycles=max(1, round(form.cycles * share.part)))
    return builder.finish()


UNIT = CoreUnit("the scalar unit", _form, _written)
