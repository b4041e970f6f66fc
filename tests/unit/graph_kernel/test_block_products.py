"""Pass `block-products`: the same results as the whole product, what is left alone, and down to C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.scf import ForOp

import msc
from msc.graph_kernel.block_products import BlockProducts
from tests.unit.graph_kernel.graphs import for_machine, function, random_inputs, results, run

TARGET = "x86-64-v3"
"""Its L2 of 512 KiB keeps 128 rows of 1024 elements."""


def product(rows: int, steps: int, columns: int, flags: str = "", dtype: str = "f32") -> tuple[str, str]:
    a, b = (f"{steps}x{rows}" if "transpose_a" in flags else f"{rows}x{steps}"), f"{steps}x{columns}"
    b = f"{columns}x{steps}" if "transpose_b" in flags else b
    return f"%a: tensor<{a}x{dtype}>, %b: tensor<{b}x{dtype}>", f"%y = ms.matmul %a, %b{flags}"


def loops(graph: tuple[str, str], threads: int = 1) -> int:
    return sum(
        isinstance(op, ForOp) for op in run(for_machine(function(*graph), TARGET, threads), BlockProducts()).walk()
    )


@pytest.mark.parametrize(
    ("rows", "steps", "columns"), [(9, 256, 1024), (15, 496, 512), (64, 144, 1024), (31, 544, 768)]
)
def test_results_are_those_of_the_whole(rows: int, steps: int, columns: int) -> None:
    graph = product(rows, steps, columns)
    assert loops(graph) == 1
    inputs = random_inputs(function(*graph))
    (whole,) = results(function(*graph), inputs)
    (found,) = results(run(for_machine(function(*graph), TARGET), BlockProducts()), inputs)
    np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-5 * float(np.abs(whole).max()))


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (product(8, 256, 1024), "one register tile reads all rows"),
        (product(128, 256, 1024), "the right operand is packed"),
        (product(65, 256, 1024), "the sums take much of L2"),
        (product(12, 128, 1024), "L2 keeps all rows"),
        (product(12, 256, 1000), "rows share few sets"),
        (product(12, 257, 1024), "no block divides a prime"),
        (product(12, 256, 1024, " {transpose_a = true}"), "the left operand lies the other way round"),
        (product(12, 1024, 1024, " {transpose_b = true}"), "the right operand lies the other way round"),
        (product(12, 256, 1024, dtype="f64"), "f64 is summed as it is"),
    ],
)
def test_other_products_are_left_alone(graph: tuple[str, str], why: str) -> None:
    assert loops(graph) == 0, why


def test_threads_have_work_enough_between_two_blocks() -> None:
    assert [loops(product(rows, 256, 1024), 2) for rows in (12, 47, 48, 64)] == [0, 0, 1, 1]


@pytest.mark.parametrize(("rows", "threads"), [(12, 1), (48, 2)])
def test_results_are_right_down_to_c(rows: int, threads: int, tmp_path: Path) -> None:
    arguments, body = product(rows, 256, 1024)
    result = f"tensor<{rows}x1024xf32>"
    model = tmp_path / "product.mir"
    model.write_text(f"func.func @main({arguments}) -> {result} {{\n{body}\nfunc.return %y : {result}\n}}", "utf-8")
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, np.float32) for shape in ((rows, 256), (256, 1024)))
    for without in ((), ("recurrences",), ("products",)):
        run = msc.compile(model, march=TARGET, threads=threads, without=without, use_cache=False)
        np.testing.assert_allclose(run(a, b), a @ b, rtol=1e-4, atol=1e-4)
