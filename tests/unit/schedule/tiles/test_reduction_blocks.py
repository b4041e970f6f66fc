"""K-blocking: where operands outgrow L2 a loop over blocks of the reduction is outside, and sums stay right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msc
from msc.analysis.kernel_model import kernel_dependences, kernel_model
from msc.cost.prediction import KernelCost
from msc.dialects.gk import KernelOp
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.reports.explanations import explain_model
from msc.schedule.strategy import decided_loops
from msc.schedule.tiles import reduction_blocks
from msc.targets.catalogue import machine_named

TARGET = "x86-64-v3"
"""Its L2 of 512 KiB keeps 128 rows of 1024 elements."""


def product(folder: Path, rows: int, steps: int, columns: int) -> Path:
    model = folder / f"product_{rows}_{steps}_{columns}.mir"
    arguments, result = f"%a: tensor<{rows}x{steps}xf32>, %b: tensor<{steps}x{columns}xf32>", f"{rows}x{columns}xf32"
    body = f"  %y = ms.matmul %a, %b\n  func.return %y : tensor<{result}>"
    text = f"func.func @main({arguments}) -> tensor<{result}> {{\n{body}\n}}"
    model.write_text(text, "utf-8")
    return model


def schedule(model: Path, *without: str, threads: int = 1) -> list[str]:
    kernels = explain_model(str(model), CompileOptions(march=TARGET, threads=threads, without=without))
    return list(next(kernel for kernel in kernels if "matmul" in kernel.label).schedule)


def blocks(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if "for k tile" in line]


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((16, 2048, 2048), "rows of the right operand lie a page apart"),
        ((256, 8192, 384), "a panel of the copied operand outgrows L2"),
    ],
)
def test_reductions_are_in_blocks(shape: tuple[int, int, int], why: str, tmp_path: Path) -> None:
    lines = schedule(product(tmp_path, *shape))
    (at,) = blocks(lines)
    assert "place t0 in register" in "\n".join(lines[at:]) or "place t1 in register" in "\n".join(lines[at:]), why
    assert not blocks(schedule(product(tmp_path, *shape), "reduction-blocks", "sums"))


@pytest.mark.parametrize(
    ("shape", "why"), [((16, 64, 512), "L2 holds all"), ((256, 512, 512), "L2 holds what a tile of rows reads")]
)
def test_others_are_one_loop(shape: tuple[int, int, int], why: str, tmp_path: Path) -> None:
    assert not blocks(schedule(product(tmp_path, *shape))), why


def test_the_copy_of_an_operand_is_made_in_each_block(tmp_path: Path) -> None:
    """So that it takes the stack and not the workspace: a block of it is as large as what a block reads."""
    lines = schedule(product(tmp_path, 256, 8192, 384))
    text = "\n".join(lines[blocks(lines)[0] :])
    assert text.index("place t0 in stack") < text.index("run S0") < text.index("place t1 in register")


def test_blocks_are_inside_the_loop_that_threads_share(tmp_path: Path) -> None:
    lines = schedule(product(tmp_path, 16, 2048, 2048), "sums", threads=2)
    (at,) = blocks(lines)
    assert any("parallel" in line for line in lines[:at])


@pytest.mark.parametrize(
    ("rows", "steps", "columns", "threads"), [(13, 512, 1024, 1), (16, 2048, 2048, 2), (256, 8192, 384, 1)]
)
def test_sums_are_those_of_the_whole(rows: int, steps: int, columns: int, threads: int, tmp_path: Path) -> None:
    model = product(tmp_path, rows, steps, columns)
    a, b = (np.random.default_rng(0).integers(-4, 5, s).astype(np.float32) for s in ((rows, steps), (steps, columns)))
    for without in ((), ("reduction-blocks",)):
        run = msc.compile(model, march=TARGET, threads=threads, without=without, use_cache=False)
        np.testing.assert_array_equal(run(a, b), a @ b)


@pytest.mark.parametrize("shape", [(16, 2048, 2048), (256, 8192, 384), (37, 1000, 129)])
def test_blocks_make_no_sum_itself_cheaper(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """So what a sum takes without blocks is a bound."""
    module = compile_model(str(product(tmp_path, *shape)), CompileOptions(march=TARGET), "gk").module
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp) and "matmul" in op.label.data)
    model, target = kernel_model(kernel), machine_named(TARGET)
    tree = decided_loops(model, kernel_dependences(kernel), target, 1, [], blocks=False).tree
    cost = KernelCost(model, target)
    (number,) = (k for k, statement in enumerate(model.statements) if statement.reduced)
    loops = reduction_blocks._shape(model, tree, number, ())  # pyright: ignore[reportPrivateUsage]
    assert loops is not None
    assert loops.sizes
    for at in loops.outer:
        for size in loops.sizes:
            blocked = cost.instructions(loops.blocked(at, size), 1, {number})
            assert blocked >= cost.instructions(tree, 1, {number})
