"""What msc's own tiles reach on the simulator: products, what follows them, convolutions."""

from __future__ import annotations

import pytest

from msc.backends.simulation.case_files import library_schedule
from msc.codegen.davinci.simulate import simulate_kernel
from msc.lowering.ascend.builder import KernelBuilder
from msc.lowering.ascend.convolution import ConvolutionWriter
from msc.lowering.ascend.fused_matmul import fused_matmul_kernel
from msc.lowering.ascend.matmul import matmul_kernel
from msc.schedule.cube.convolutions import Along, CubeConvolution, convolution_shape
from msc.schedule.cube.products import CubeProduct, MatmulShape, StridedArray
from msc.schedule.cube.windows import convolution_schedules
from msc.sim.result import SimulationResult
from msc.targets.davinci import davinci_target

B1 = davinci_target("ascend910b1")


def mac_ratio(result: SimulationResult) -> float:
    figures = result.to_json()
    assert isinstance(figures["mac_ratio"], float)
    return figures["mac_ratio"]


def test_a_wide_product() -> None:
    """640 tiles on 24 cores: none takes more than 27, so that the cubes are busy from the launch to the end."""
    shape = MatmulShape(4096, 5120, 4096)
    result = simulate_kernel(matmul_kernel(shape, library_schedule(shape, B1), B1))
    assert mac_ratio(result) >= 0.86
    assert result.busy_us("mac") / result.task_us >= 0.84


@pytest.mark.parametrize(
    ("shape", "most"),
    [
        pytest.param(MatmulShape(1000, 1000, 1000), 17.5, id="columns end within a tile"),
        pytest.param(MatmulShape(1024, 1024, 1024, "f32", "f32"), 36.0, id="few cores would have two large tiles"),
    ],
)
def test_products_of_few_tiles(shape: MatmulShape, most: float) -> None:
    schedule = library_schedule(shape, B1, scalar_cycles=0.0)
    assert simulate_kernel(matmul_kernel(shape, schedule, B1)).task_us <= most


def test_small_base_tiles_do_not_wait_for_their_packets() -> None:
    """Packets of eight base tiles: MTE1's queue holds fewer, so the next packet is asked for before them."""
    shape = MatmulShape(512, 512, 8192)
    schedule = library_schedule(shape, B1, base=(128, 128, 64), turns=True, scalar_cycles=0.0)
    assert schedule.packets[0] == 8
    result = simulate_kernel(matmul_kernel(shape, schedule, B1))
    assert result.busy_us("mte2") / result.aicore_us >= 0.92


def test_a_product_and_the_same_with_gelu() -> None:
    shape = MatmulShape(4096, 4096, 5120)
    schedule = library_schedule(shape, B1)
    alone = simulate_kernel(matmul_kernel(shape, schedule, B1))
    fused = simulate_kernel(fused_matmul_kernel(shape, schedule, B1, "gelu"))
    assert mac_ratio(alone) >= 0.80
    assert fused.task_us <= 1.02 * alone.task_us


def test_a_large_product() -> None:
    """B^T lies along k, as A does: the base tile with less to load over the slower path is chosen."""
    shape = MatmulShape(8192, 8192, 8192, transpose_b=True)
    assert library_schedule(shape, B1).base == (256, 128, 64)
    assert mac_ratio(simulate_kernel(matmul_kernel(shape, library_schedule(shape, B1), B1))) >= 0.86


@pytest.mark.parametrize(("size", "channels"), [(56, 64), (28, 128), (14, 256), (7, 512)])
def test_convolutions_of_resnet50(size: int, channels: int) -> None:
    along = Along(size, size, 3, 1, 1, 1)
    out = StridedArray(2, {"n": size * size * channels, "ow": channels, "oc": 1}, 0)
    extents = {"n": 32, "oc": channels, "ow": size * size, "ic": channels, "kh": 3, "kw": 3}
    nowhere = StridedArray(-1, {}, 0)
    product = CubeProduct("f16", nowhere, nowhere, out, extents, ("n",), "ow", "oc", ("ic", "kh", "kw"), 0, ())
    convolution = CubeConvolution(product, 0, 1, along, along, channels, 32)
    schedule = convolution_schedules(convolution, B1, "f16", bias=False)[0]
    image = 32 * size * size * channels
    arguments = [("f16", image), ("f16", convolution.depth * channels), ("f16", image)]
    builder = KernelBuilder("convolution", B1, "cube", schedule.cores, arguments)
    ConvolutionWriter(builder, convolution_shape(convolution, "f16", bias=False), schedule, convolution).write()
    assert mac_ratio(simulate_kernel(builder.finish())) >= 0.60
