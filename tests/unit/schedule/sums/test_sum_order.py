"""In which order schedules add up: the same for any number of threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from msc.analysis.kernel_model import kernel_model
from msc.dialects.gk import KernelOp
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Read, apply
from msc.poly.schedule_tree.text import from_lines
from msc.schedule.schedule_kernels import ScheduleKernels, schedule_of
from msc.schedule.sums.sum_order import Order, SumLoop, sum_orders
from tests.covering import each
from tests.schedules.records import layers

TARGETS = ("x86-64-v3", "x86-64-v4", "znver4", "cascadelake", "neon")
THREADS = (1, 2, 8)
LAYERS = (
    "dense 1x1000x2048",
    "matmul 37x41x29 of two inputs",
    "batch_matmul 12x128x128x64, transposed",
    "conv 3x3, 128 to 128 of 56x56, stride 2",
    "conv 3x3, 104 channels in 13 groups of 25x25",
    "depthwise 5x5, 672 of 14x14",
    "mean of pixels",
    "softmax of 1536 rows of 128",
    "add and layer norm of 197 rows of 768",
)


def products() -> KernelModel:
    """A product of 64 x 1536 by 1536 x 96, with sums that begin at zero and are stored."""
    m, n, k = dims(3)
    arrays = (Array((64, 1536), "f32", "input"), Array((1536, 96), "f32", "input"), Array((64, 96), "f32", "internal"))
    reads = (Read(i, affine_map(3, index), "f32") for i, index in enumerate(((m, k), (k, n))))
    sums = KernelStatement((64, 96, 1536), ("m", "n", "k"), 2, affine_map(3, (m, n)), apply("mul", *reads), "add", 0)
    return KernelModel(arrays, (sums,), ("ms.matmul",))


def steps(*lines: str) -> Sequence[Order]:
    """The order of the sums of a tree with these lines."""
    axes = ["axis m 64: S0.0", "axis n 96: S0.1", "axis k 1536: S0.2", "place t0 in stack"]
    return sum_orders(products(), from_lines([*axes, *lines]))[0]


PLAIN = steps("for m, n, k", "  run S0")


def test_loops_beside_a_sum_do_not_count() -> None:
    assert [order for _, order in PLAIN] == [(SumLoop(2, 1),)]
    assert steps("for k, n tile 32, m tile 8, m unroll, n vector", "  run S0") == PLAIN
    assert steps("for k tile 96, n tile 32, m, k, n vector", "  run S0") == PLAIN
    assert steps("for n parallel, m, k tile 100, k", "  run S0") == PLAIN


def test_partial_sums_count() -> None:
    lines = ["for m, n", "  for k tile {}", "    place t0 in register partial", "    for k", "      run S0"]
    blocks = [steps(*(line.format(size) for line in lines)) for size in (256, 192)]
    assert blocks[0] == (((), (SumLoop(2, 256, partial=True), SumLoop(2, 1))),)
    assert blocks[0] != blocks[1]
    around = ["for k tile 768, m, n", "  place t0 in register", *lines[1:]]
    assert steps(*(line.format(256) for line in around)) == blocks[0]
    cut = ["for k tile 384, m, n", "  place t0 in register", *lines[1:]]
    assert steps(*(line.format(256) for line in cut)) != blocks[0]


def test_lanes_along_a_sum_count() -> None:
    lanes = steps("for m, n, k vector", "  run S0")
    assert lanes == (((), (SumLoop(2, 1, vector=True),)),)
    assert steps("for k tile 96, m, n, k vector", "  run S0") not in (lanes, PLAIN)


def test_parts_of_the_results_are_told_apart() -> None:
    parts = steps(
        "for m", "  head n to 64", "    for n, k", "      run S0", "  tail n from 64", "    for n, k", "      run S0"
    )
    assert [[region.tail for region in regions] for regions, _ in parts] == [[False], [True]]


def found(model: Path, march: str, threads: int) -> set[tuple[object, ...]]:
    """How the kernels of a model add up: for each sum the extents of its loops, with the steps along them."""
    compilation = compile_model(str(model), CompileOptions(march=march, threads=threads), "gk")
    ScheduleKernels().apply(compilation.model.context, compilation.module)
    kernels = (op for op in compilation.module.walk() if isinstance(op, KernelOp))
    return {order for kernel in kernels for order in orders_of(kernel)}


def orders_of(kernel: KernelOp) -> Iterator[tuple[object, ...]]:
    """For each sum of a kernel the extents of its loops, with the steps along them."""
    model = kernel_model(kernel)
    for number, orders in sum_orders(model, schedule_of(kernel)).items():
        extents = model.statements[number].extents
        yield from (tuple((extents[s.dim], s.size, s.vector, s.partial) for s in order) for _, order in orders)


def module(arguments: str, result: str, *lines: str) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"func.func @main({arguments}) -> tensor<{result}> {{\n{body}\n  func.return %y : tensor<{result}>\n}}"


def matmul(m: int, k: int, n: int, transposed: bool = False) -> str:
    right = f"{n}x{k}" if transposed else f"{k}x{n}"
    line = f"%y = ms.matmul %a, %b {{transpose_b = {str(transposed).lower()}}}"
    return module(f"%a: tensor<{m}x{k}xf32>, %b: tensor<{right}xf32>", f"{m}x{n}xf32", line)


def convolution(channels: int, outputs: int, size: int) -> str:
    image, weight = f"1x{channels}x{size}x{size}xf32", f"{outputs}x{channels}x3x3xf32"
    line = '%y = ms.conv2d %a, %b {pad_mode = "same"}'
    return module(f"%a: tensor<{image}>, %b: tensor<{weight}>", f"1x{outputs}x{size}x{size}xf32", line)


SUMS = {
    "in blocks with one thread": matmul(256, 1536, 384),
    "rows a page apart": matmul(16, 2048, 2048),
    "one row": matmul(1, 4096, 1024),
    "of a transposed operand": matmul(16, 2048, 2048, transposed=True),
    "tail along the rows": matmul(7, 5000, 33),
    "of a product that another kernel transposes": module(
        "%a: tensor<16x2048xf32>, %b: tensor<2048x2048xf32>",
        "2048x16xf32",
        "%p = ms.matmul %a, %b",
        "%e = ms.exp %p",
        "%y = ms.transpose %e {perm = [1, 0]}",
    ),
    "columns": module("%a: tensor<4096x1024xf32>", "1024xf32", "%y = ms.reduce_sum %a {axis = 0}"),
    "rows": module("%a: tensor<100x5000xf32>", "100xf32", "%y = ms.reduce_sum %a {axis = 1}"),
    "by Winograd's algorithm": convolution(64, 64, 28),
    "of Winograd's algorithm, by the cost": convolution(16, 16, 32),
    "many channels": convolution(300, 16, 9),
}


@pytest.mark.parametrize(("name", "march"), each([*SUMS, *LAYERS], TARGETS))
def test_threads_change_no_order(name: str, march: str, tmp_path: Path) -> None:
    path = tmp_path / "net.mir"
    path.write_text(SUMS[name] if name in SUMS else layers()[name], encoding="utf-8")
    alone, *several = (found(path, march, threads) for threads in THREADS)
    assert alone
    assert all(each == alone for each in several)


def test_long_sums_are_partial_ones_wherever_they_lie(tmp_path: Path) -> None:
    """A row of sums that registers do not hold, too."""
    path = tmp_path / "net.mir"
    path.write_text(SUMS["columns"], encoding="utf-8")
    assert found(path, "x86-64-v4", 1) == {((4096, 256, False, True), (4096, 1, False, False))}
