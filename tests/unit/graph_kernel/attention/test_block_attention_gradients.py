"""Pass `block-attention-gradients`: gradients as of the whole scores, what is left alone, and memory down to C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

import msc
from msc.graph.autodiff.grad import Grad
from msc.graph.weights.parameters import erase_unused
from msc.graph_kernel.attention.block_attention import BlockAttention
from msc.graph_kernel.attention.block_attention_gradients import BlockAttentionGradients
from tests.unit.graph_kernel.attention.test_block_attention import BETWEEN, SIZES, TARGET, attention
from tests.unit.graph_kernel.graphs import Array, for_machine, function, random_inputs, results, run

PLAIN = "%p = ms.softmax %s"
DROPPED = "%w = ms.softmax %s\n%d = ms.cast %m {dtype = f32}\n%p = ms.mul %w, %d"


def gradient(graph: tuple[str, str]) -> ModuleOp:
    """A function of queries, keys, values, what else a graph takes, and the gradient of its result."""
    return for_machine(run(function(*graph), Grad(inputs=(0, 1, 2), sens=True, value=True)), TARGET)


def blocked(module: ModuleOp) -> ModuleOp:
    return run(module.clone(), BlockAttentionGradients())


def loops(module: ModuleOp) -> int:
    return sum(isinstance(op, ForOp) for op in module.walk())


def followed(graph: tuple[str, str]) -> tuple[str, str]:
    """The attention with work on its result, so that the gradient needs the result."""
    arguments, body = graph
    return arguments, body.replace("%y = ", "%o = ") + "\n%y = ms.tanh %o"


def agrees(graph: tuple[str, str], tolerance: float = 5e-5) -> None:
    """The pass makes loops that give what the gradient gives, but for a share of the largest number of a result.

    Scores are up to 40 here. One of 8 products is off by up to 9 * 40 * 2^-24 = 2e-5, its power by the same factor.

    Where the gradient needs no result of the attention, the loops give both; else `block-attention` takes the first.
    """
    first = blocked(gradient(graph))
    assert loops(first) == loops(run(first, BlockAttention())) > 0
    compare(gradient(graph), [first], tolerance)
    module = gradient(followed(graph))
    first = blocked(module)
    second = run(first, BlockAttention())
    assert 0 < loops(first) < loops(second)
    compare(module, [first, second], tolerance)


def compare(module: ModuleOp, candidates: list[ModuleOp], tolerance: float) -> None:
    inputs = random_inputs(module)
    for whole, *others in zip(*(results(m, inputs) for m in (module, *candidates)), strict=True):
        wide = whole.astype(np.float64)
        for found in others:
            np.testing.assert_allclose(found.astype(np.float64), wide, rtol=0, atol=tolerance * np.abs(wide).max())


@pytest.mark.parametrize("name", BETWEEN)
def test_gradients_are_those_of_the_whole(name: str) -> None:
    more, between = BETWEEN[name]
    agrees(attention(between, more, 128, 333))


@pytest.mark.parametrize("size", SIZES)
def test_blocks_need_not_divide_queries(size: tuple[int, int]) -> None:
    more, between = BETWEEN["bias of heads, weights of queries"]
    agrees(attention(between, more, *size))


def test_keys_and_values_may_stand_in_columns() -> None:
    agrees(attention(PLAIN, columns=True))


@pytest.mark.parametrize(("dtype", "tolerance"), [("f64", 1e-12), ("f16", 1e-2), ("bf16", 1e-1)])
def test_every_float_adds_up_in_f32_at_least(dtype: str, tolerance: float) -> None:
    agrees(attention(PLAIN, rows=256, dtype=dtype, keys=640), tolerance)


def test_a_mask_of_bits_stays_one() -> None:
    """As dropout writes it: a block of it is widened where it is read, and no wide mask exists."""
    graph = attention(DROPPED, ", %m: tensor<2x3xROWSxKEYSxi1>", 128, 333)
    agrees(graph)
    module = run(blocked(gradient(followed(graph))), BlockAttention())
    erase_unused(module)
    assert not [op for op in module.walk() if any(str(r.type) == "tensor<2x3x128x333xf32>" for r in op.results)]


@pytest.mark.parametrize(
    "graph",
    [
        attention(PLAIN, rows=32, keys=64),
        attention(PLAIN, rows=7, keys=8192),
        attention("%p = ms.relu %s"),
        attention("%p = ms.softmax %s {axis = 2}"),
        attention("%t = ms.tril %s\n%p = ms.softmax %t"),
    ],
)
def test_what_fits_and_other_work_stays(graph: tuple[str, str]) -> None:
    assert loops(blocked(gradient(graph))) == 0


def test_a_bias_whose_gradient_sums_over_the_batch_stays() -> None:
    arguments, body = attention("%t = ms.add %s, %b\n%p = ms.softmax %t", ", %b: tensor<3xROWSxKEYSxf32>")
    module = run(function(arguments, body), Grad(inputs=(0, 3), sens=True, value=True))
    assert loops(blocked(for_machine(module, TARGET))) == 0


def test_sizes_that_calls_decide_stay() -> None:
    arguments, body = attention(PLAIN)
    module = for_machine(function(arguments.replace("2x3x", "?x3x").replace("2x1x", "?x1x"), body), TARGET)
    assert loops(blocked(module)) == 0


def program(folder: Path, rows: int, threads: int) -> msc.CompiledModel:
    """The gradient of an attention of two heads."""
    shape = f"tensor<2x{rows}x16xf32>"
    arguments = f"%q: {shape}, %k: {shape}, %v: {shape}"
    body = "%s = ms.batch_matmul %q, %k {transpose_b = true}\n%p = ms.softmax %s\n%y = ms.batch_matmul %p, %v"
    module = run(function(arguments, body), Grad(inputs=(0, 1, 2), sens=True, value=True))
    (path := folder / "gradient.mir").write_text(str(module))
    return msc.compile(path, threads=threads)


def test_long_sequences_never_have_all_scores_in_memory(tmp_path: Path) -> None:
    rows = 2048
    one, two = (program(tmp_path, rows, threads) for threads in (1, 2))
    assert one.signature.workspace_bytes < rows * rows
    rng = np.random.default_rng(0)
    q, k, v, sens = (rng.standard_normal((2, rows, 16)).astype(np.float32) for _ in range(4))
    found = one(q, k, v, sens)
    for first, second in zip(found, two(q, k, v, sens), strict=True):
        assert np.array_equal(first, second)
    for value, expected in zip(found, derivatives(q, k, v, sens), strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def derivatives(q: Array, k: Array, v: Array, sens: Array) -> list[Array]:
    """The attention and its gradients, in f64."""
    scores = q.astype(np.float64) @ k.transpose(0, 2, 1)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    of_weights = sens @ v.transpose(0, 2, 1).astype(np.float64)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))
    turned = [of_scores.transpose(0, 2, 1), weights.transpose(0, 2, 1)]
    return [weights @ v, of_scores @ k, turned[0] @ q, turned[1] @ sens]
