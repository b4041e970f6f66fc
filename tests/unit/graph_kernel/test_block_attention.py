"""Pass `block-attention`: the same results for every scale and mask, what is left alone, and memory down to C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.scf import ForOp

import msc
from msc.graph_kernel.block_attention import BlockAttention
from tests.unit.graph_kernel.graphs import Array, function, random_inputs, results, run

TARGET = "x86-64-v3"
ROWS, KEYS = 96, 320
"""Of six heads: 737 KB of scores, more than the target's second cache."""

BETWEEN = {
    "plain": ("", "%p = ms.softmax %s"),
    "scale and mask of keys": (
        f", %c: tensor<f32>, %m: tensor<2x1x1x{KEYS}xf32>",
        "%t = ms.mul %s, %c\n%u = ms.add %t, %m\n%p = ms.softmax %u",
    ),
    "mask of queries and keys": (
        f", %m: tensor<{ROWS}x{KEYS}xf32>",
        "%t = ms.add %m, %s\n%p = ms.softmax %t {axis = 3}",
    ),
    "chosen by a condition": (
        f", %m: tensor<1x1x{ROWS}x{KEYS}xi1>, %c: tensor<f32>",
        "%t = ms.select %m, %s, %c\n%p = ms.softmax %t",
    ),
    "bias of heads, weights dropped": (
        f", %b: tensor<3x{ROWS}x{KEYS}xf32>, %m: tensor<{ROWS}x1xf32>",
        "%t = ms.sub %s, %b\n%w = ms.softmax %t\n%p = ms.mul %w, %m",
    ),
}


def attention(between: str, more: str = "", rows: int = ROWS, axis: str = "") -> tuple[str, str]:
    """Arguments and body of a graph; keys are of one head for all."""
    arguments = f"%q: tensor<2x3x{rows}x8xf32>, %k: tensor<2x1x{KEYS}x8xf32>, %v: tensor<2x3x{KEYS}x4xf32>{more}"
    body = f"%s = ms.batch_matmul %q, %k {{transpose_b = true}}\n{between}\n%y = ms.batch_matmul %p, %v"
    return arguments, body


def loops(graph: tuple[str, str]) -> int:
    return sum(isinstance(op, ForOp) for op in run(function(*graph), BlockAttention(TARGET)).walk())


@pytest.mark.parametrize("name", BETWEEN)
def test_results_are_those_of_the_whole(name: str) -> None:
    more, between = BETWEEN[name]
    module = function(*attention(between, more))
    blocked = run(module, BlockAttention(TARGET))
    assert sum(isinstance(op, ForOp) for op in blocked.walk()) == 3
    inputs = random_inputs(module)
    for expected, found in zip(results(module, inputs), results(blocked, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_rows_without_a_divisor_stay() -> None:
    assert loops(attention("%p = ms.softmax %s", rows=101)) == 0


@pytest.mark.parametrize(
    "between",
    [
        "%p = ms.relu %s",
        "%p = ms.softmax %s {axis = 2}",
        "%t = ms.tril %s\n%p = ms.softmax %t",
        "%w = ms.softmax %s\n%p = ms.add %w, %s",
    ],
)
def test_other_work_between_the_products_stays(between: str) -> None:
    assert loops(attention(between)) == 0


def compiled(folder: Path, rows: int, mask: str) -> msc.CompiledModel:
    """Attention of one head with a mask that is added."""
    shape = f"tensor<1x{rows}x16xf32>"
    arguments = f"%q: {shape}, %k: {shape}, %v: {shape}, %m: tensor<{mask}xf32>"
    body = "\n".join(
        (
            "%s = ms.batch_matmul %q, %k {transpose_b = true}",
            "%t = ms.add %s, %m",
            "%p = ms.softmax %t",
            "%y = ms.batch_matmul %p, %v",
        )
    )
    path = folder / "attention.mir"
    path.write_text(str(function(arguments, body)))
    return msc.compile(path)


def expected(q: Array, k: Array, v: Array, mask: Array) -> Array:
    scores = q.astype(np.float64) @ k.transpose(0, 2, 1) + mask
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v


def test_long_sequences_never_have_all_scores_in_memory(tmp_path: Path) -> None:
    rows = 4096
    program = compiled(tmp_path, rows, f"1x{rows}")
    assert program.signature.workspace_bytes < rows * rows
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, rows, 16)).astype(np.float32) for _ in range(3))
    mask = np.where(np.arange(rows) < rows - 100, 0, -np.inf).astype(np.float32)[None]
    np.testing.assert_allclose(program(q, k, v, mask), expected(q, k, v, mask), rtol=1e-4, atol=1e-5)


def test_causal_masks_and_rows_that_see_nothing(tmp_path: Path) -> None:
    """A row of -inf alone is NaN, as in the model, and spoils no other row of its block."""
    rows = 1024
    program = compiled(tmp_path, rows, f"{rows}x{rows}")
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, rows, 16)).astype(np.float32) for _ in range(3))
    mask = np.triu(np.full((rows, rows), -np.inf, np.float32), 1)
    mask[77] = -np.inf
    found = program(q, k, v, mask)
    assert np.isnan(found[0, 77]).all()
    np.testing.assert_allclose(found, expected(q, k, v, mask), rtol=1e-4, atol=1e-5)
