"""The statements that the schedule of a kernel names."""

from __future__ import annotations

from msc.analysis.kernel_model import kernel_model, output_positions
from msc.analysis.target import target_of
from msc.dialects import gk
from msc.poly.model import KernelModel
from msc.schedule.cube.kernels import cube_kernel
from msc.schedule.vector_unit.strategy import tiled_kernel
from msc.targets.davinci import DavinciTarget


def scheduled_model(kernel: gk.KernelOp) -> KernelModel:
    """The model whose statements and dimensions a schedule names, on the machine of the kernel's module.

    Units of Ascend read beyond images in place of padding: its statements are none of theirs.
    """
    model, cores = kernel_model(kernel), target_of(kernel).cores
    if not isinstance(cores, DavinciTarget) or model.sizes:
        return model
    found = cube_kernel(model, cores) or tiled_kernel(model, output_positions(kernel), cores)
    return model if found is None else found.model
