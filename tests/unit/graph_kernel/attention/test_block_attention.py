"""Pass `block-attention`: the same results for every scale and mask, what is left alone, and memory down to C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.scf import ForOp

import msc
from msc.dialects.ms.movement import TransposeOp
from msc.graph.weights.parameters import erase_unused
from msc.graph_kernel.attention.block_attention import BlockAttention
from tests.unit.graph_kernel.graphs import Array, for_machine, function, random_inputs, results, run

TARGET = "x86-64-v3"
SIZES = [(96, 320), (256, 333), (101, 320), (179, 179), (16, 2048)]
"""Queries and keys, of six heads: more scores than the target's L2 takes, with blocks that divide and not."""

BETWEEN = {
    "plain": ("", "%p = ms.softmax %s"),
    "scale and mask of keys": (
        ", %c: tensor<f32>, %m: tensor<2x1x1xKEYSxf32>",
        "%t = ms.mul %s, %c\n%u = ms.add %t, %m\n%p = ms.softmax %u",
    ),
    "mask of queries and keys": (
        ", %m: tensor<ROWSxKEYSxf32>",
        "%t = ms.add %m, %s\n%p = ms.softmax %t {axis = 3}",
    ),
    "chosen by a condition": (
        ", %m: tensor<1x1xROWSxKEYSxi1>, %c: tensor<f32>",
        "%t = ms.select %m, %s, %c\n%p = ms.softmax %t",
    ),
    "bias of heads, weights of queries": (
        ", %b: tensor<3xROWSxKEYSxf32>, %m: tensor<ROWSx1xf32>",
        "%t = ms.sub %s, %b\n%w = ms.softmax %t\n%p = ms.mul %w, %m",
    ),
    "weights of keys, then of queries": (
        ", %b: tensor<3xROWSxKEYSxf32>, %m: tensor<2x1x1x1xf32>",
        "%w = ms.softmax %s\n%x = ms.mul %b, %w\n%p = ms.div %x, %m",
    ),
    "queries left out": (
        ", %m: tensor<ROWSx1xi1>",
        "%z = ms.constant dense<0.0> : tensor<1xf32>\n%w = ms.softmax %s\n%p = ms.select %m, %z, %w",
    ),
    "a cap": ("", "%t = ms.tanh %s\n%p = ms.softmax %t"),
}


def attention(
    between: str, more: str = "", rows: int = 96, keys: int = 320, *, columns: bool = False, dtype: str = "f32"
) -> tuple[str, str]:
    """Arguments and body of a graph; keys are of one head for all, and with `columns` one a column, as are values."""
    k, v = (f"8x{keys}", f"4x{keys}") if columns else (f"{keys}x8", f"{keys}x4")
    arguments = f"%q: tensor<2x3x{rows}x8xf32>, %k: tensor<2x1x{k}xf32>, %v: tensor<2x3x{v}xf32>{more}"
    flags = ("", " {transpose_b = true}") if columns else (" {transpose_b = true}", "")
    body = f"%s = ms.batch_matmul %q, %k{flags[0]}\n{between}\n%y = ms.batch_matmul %p, %v{flags[1]}"
    arguments, body = (text.replace("ROWS", str(rows)).replace("KEYS", str(keys)) for text in (arguments, body))
    return arguments.replace("f32", dtype), body.replace("f32", dtype)


def loops(graph: tuple[str, str]) -> int:
    return sum(isinstance(op, ForOp) for op in run(for_machine(function(*graph), TARGET), BlockAttention()).walk())


def agrees(graph: tuple[str, str], tolerance: float = 2e-6) -> None:
    """The pass makes loops that give what the graph gives, but for a share of the largest result."""
    assert loops(graph) > 0
    module = function(*graph)
    inputs = random_inputs(module)
    blocked = run(for_machine(function(*graph), TARGET), BlockAttention())
    for expected, found in zip(results(module, inputs), results(blocked, inputs), strict=True):
        wide = expected.astype(np.float64)
        np.testing.assert_allclose(found.astype(np.float64), wide, rtol=tolerance, atol=tolerance * np.abs(wide).max())


def apart(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """How far two computations of an attention in f32 may be from each other, a bound for each query.

    With u = 2^-24, a score of d products and its mask is off by at most (d + 1) u times what they add up to in
    magnitude (Higham 2002, 3.1), say by e. A power of it then is by a factor of exp(e), and a weight, which is divided
    by a sum of such powers, by one of exp(2 e). Powers, sums of n of them (2 sqrt(n) u: Higham and Mary, 2019) and the
    division round, too. Results are means of values by these weights. Two may be off in opposite directions.
    """
    unit, (keys, size) = 2.0**-24, k.shape[-2:]
    magnitudes = np.abs(q.astype(np.float64)) @ np.abs(k).swapaxes(-1, -2) + np.where(
        np.isfinite(mask), np.abs(mask), 0
    )
    error = (size + 1) * unit * magnitudes.max(axis=-1, keepdims=True)
    return 2 * np.abs(v).max() * (np.expm1(2 * error) + (2 * np.sqrt(keys) + 8) * unit)


@pytest.mark.parametrize("name", BETWEEN)
def test_results_are_those_of_the_whole(name: str) -> None:
    more, between = BETWEEN[name]
    agrees(attention(between, more, 128, 333))


@pytest.mark.parametrize("size", SIZES)
def test_blocks_need_not_divide_queries_and_keys(size: tuple[int, int]) -> None:
    more, between = BETWEEN["bias of heads, weights of queries"]
    agrees(attention(between, more, *size))


def test_keys_and_values_may_stand_in_columns() -> None:
    agrees(attention("%p = ms.softmax %s", columns=True))


@pytest.mark.parametrize(("dtype", "tolerance"), [("f64", 1e-12), ("f16", 1e-2), ("bf16", 1e-1)])
def test_every_float_is_summed_in_f32_at_least(dtype: str, tolerance: float) -> None:
    agrees(attention("%p = ms.softmax %s", rows=256, dtype=dtype, keys=640), tolerance)


@pytest.mark.parametrize(
    "between",
    [
        "%p = ms.relu %s",
        "%p = ms.softmax %s {axis = 2}",
        "%t = ms.tril %s\n%p = ms.softmax %t",
        "%w = ms.softmax %s\n%p = ms.add %w, %s",
        "%w = ms.softmax %s\n%p = ms.exp %w",
    ],
)
def test_other_work_between_the_products_stays(between: str) -> None:
    assert loops(attention(between)) == 0


GUARD = "%z = ms.constant dense<0.0> : tensor<f32>\n%w = ms.softmax %t\n%n = ms.is_nan %w\n%p = ms.select %n, %z, %w"


def test_a_guard_makes_queries_that_see_no_key_zeros() -> None:
    """As torch writes attention with a boolean mask: one that hides all keys gives NaN, which is replaced."""
    masked = attention("%t = ms.add %s, %m\n" + GUARD, ", %m: tensor<ROWSxKEYSxf32>", 128, 333)
    assert loops(masked) > 0
    module = function(*masked)
    *inputs, mask = random_inputs(module)
    mask[[3, 64, 127]] = -np.inf
    (expected,) = results(module, [*inputs, mask])
    (found,) = results(run(for_machine(module, TARGET), BlockAttention()), [*inputs, mask])
    assert not expected[..., [3, 64, 127], :].any()
    assert np.all(np.abs(found - expected) <= apart(inputs[0], inputs[1], inputs[2], mask))


@pytest.mark.parametrize(
    "guard",
    [
        GUARD.replace("ms.is_nan %w", "ms.is_nan %t"),
        GUARD.replace("dense<0.0>", "dense<1.0>"),
        GUARD.replace("%z, %w", "%w, %z"),
    ],
)
def test_other_choices_behind_a_softmax_stay(guard: str) -> None:
    assert loops(attention("%t = ms.tanh %s\n" + guard)) == 0


def test_keys_may_be_transposed_under_other_batch_axes() -> None:
    """Transposed as `[heads, keys, size]` and scaled: keys are read as they lie, and only results are transposed."""
    body = (
        "%a = ms.reshape %k {shape = [6, 640, 8]}\n%b = ms.transpose %a {perm = [0, 2, 1]}\n"
        "%c = ms.reshape %b {shape = [2, 3, 8, 640]}\n%h = ms.constant dense<0.5> : tensor<1xf32>\n%d = ms.mul %c, %h\n"
        "%s = ms.batch_matmul %q, %d\n%p = ms.softmax %s\n%y = ms.batch_matmul %p, %v"
    )
    arguments = "%q: tensor<2x3x256x8xf32>, %k: tensor<2x3x640x8xf32>, %v: tensor<2x3x640x4xf32>"
    agrees((arguments, body))
    blocked = run(for_machine(function(arguments, body), TARGET), BlockAttention())
    erase_unused(blocked)
    assert [op.shape(0) for op in blocked.walk() if isinstance(op, TransposeOp)] == [(4, 64)]


def test_few_queries_stay() -> None:
    assert loops(attention("%p = ms.softmax %s", rows=7, keys=8192)) == 0


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
    assert program.signature.workspace_bytes < rows * rows // 64
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, rows, 16)).astype(np.float32) for _ in range(3))
    mask = np.where(np.arange(rows) < rows - 100, 0, -np.inf).astype(np.float32)[None]
    np.testing.assert_allclose(program(q, k, v, mask), expected(q, k, v, mask), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 8])
def test_a_bias_of_each_head_is_read_in_place(tmp_path: Path, heads: int) -> None:
    """However many keys there are: nothing of its size is in the workspace, and the loops are one function."""
    shape = f"tensor<{heads}x1024x16xf32>"
    arguments = f"%q: {shape}, %k: {shape}, %v: {shape}, %m: tensor<{heads}x1024x1024xf32>"
    body = (
        "%s = ms.batch_matmul %q, %k {transpose_b = true}\n%t = ms.add %s, %m\n%p = ms.softmax %t\n"
        "%y = ms.batch_matmul %p, %v"
    )
    module = function(arguments, body)
    (path := tmp_path / "bias.mir").write_text(str(module))
    program = msc.compile(path)
    assert program.signature.workspace_bytes < 1 << 16
    inputs = random_inputs(module)
    (whole,) = results(module, inputs)
    assert np.all(np.abs(program(*inputs) - whole) <= apart(*inputs))


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
