"""Pass `block-attention` under masks known before a call: what no query of a block sees is not computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation

import msc
from msc.dialects.ms.elementwise import SelectOp
from msc.dialects.ms.linear import MatmulOp
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph_kernel.attention.block_attention import BlockAttention
from msc.interp import evaluate
from tests.unit.graph_kernel.graphs import Array, for_machine, function, random_inputs, results, run

TARGET = "x86-64-v3"
LOW = "%low = ms.constant dense<0xff800000> : tensor<1xf32>\n%zero = ms.constant dense<0.0> : tensor<f32>\n"
PLACES = (
    "%i = ms.iota {shape = [ROWS, 1], dtype = i64}\n"
    "%j = ms.iota {shape = [1, KEYS], axis = 1, dtype = i64}\n"
    "%d = ms.constant dense<OFFSET> : tensor<1x1xi64>\n%a = ms.add %i, %d\n"
)
TRUTHS = "%yes = ms.constant dense<true> : tensor<i1>\n%all = ms.broadcast_to %yes {shape = [ROWS, KEYS]}\n"
MASKS = {
    "a triangle chooses": TRUTHS + "%m = ms.tril %all {diagonal = OFFSET}\n%t = ms.select %m, %s, %low",
    "a triangle that is left out chooses": TRUTHS
    + "%m = ms.triu %all {diagonal = BEYOND}\n%n = ms.logical_not %m\n%t = ms.select %n, %s, %low",
    "a triangle is added": "%inf = ms.broadcast_to %low {shape = [ROWS, KEYS]}\n"
    "%m = ms.triu %inf {diagonal = BEYOND}\n%t = ms.add %s, %m",
    "places are compared": PLACES + "%m = ms.less %a, %j\n%f = ms.select %m, %low, %zero\n%t = ms.add %f, %s",
    "places are compared the other way round": PLACES
    + "%m = ms.greater_equal %a, %j\n%f = ms.cast %m {dtype = i1}\n%t = ms.select %f, %s, %low",
    "a window": PLACES + "%m = ms.less_equal %j, %a\n%w = ms.constant dense<40> : tensor<i64>\n%b = ms.sub %a, %w\n"
    "%n = ms.greater %j, %b\n%f = ms.logical_and %m, %n\n%t = ms.select %f, %s, %low",
}
LOWEST = "dense<0xff800000>", "dense<0xff7fffff>"
"""Minus infinity and the smallest number."""
SIZES = [(256, 256, 0), (128, 256, 128), (179, 179, 0), (256, 160, -70), (96, 256, 3)]
"""Queries, keys, and how many keys more than its own number a query sees."""


def causal(mask: str, rows: int, keys: int, offset: int, heads: int = 6, lowest: str = LOWEST[0]) -> ModuleOp:
    """A function of queries, keys and values under a mask."""
    arguments = f"%q: tensor<{heads}x{rows}x8xf32>, %k: tensor<{heads}x{keys}x8xf32>, %v: tensor<{heads}x{keys}x4xf32>"
    body = f"{LOW}%s = ms.batch_matmul %q, %k {{transpose_b = true}}\n{MASKS[mask]}\n%p = ms.softmax %t\n"
    body += "%y = ms.batch_matmul %p, %v"
    for name, value in (("ROWS", rows), ("KEYS", keys), ("OFFSET", offset), ("BEYOND", offset + 1)):
        body = body.replace(name, str(value))
    return function(arguments, body.replace(LOWEST[0], lowest))


def blocked(module: ModuleOp) -> ModuleOp:
    """Work on masks as derived parameters, as it comes to the pass, then blocks."""
    return run(for_machine(module, TARGET), HoistParameters(), BlockAttention())


def products(module: ModuleOp, inputs: list[Array], weights: dict[str, Array] | None = None) -> int:
    """How many products of matrices run."""
    count = 0

    def observe(op: Operation, _: tuple[Array, ...]) -> None:
        nonlocal count
        count += isinstance(op, MatmulOp)

    evaluate(module, inputs, weights or {}, observer=observe)
    return count


@pytest.mark.parametrize("lowest", LOWEST)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mask", ["a triangle chooses", "places are compared"])
def test_results_are_those_of_the_whole(mask: str, size: tuple[int, int, int], lowest: str) -> None:
    """Queries that see no key give NaN under infinities, and the mean of all values under a number."""
    module = causal(mask, *size, lowest=lowest)
    inputs = random_inputs(module)
    (expected,), (found,) = results(module, inputs), results(blocked(module), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lowest", LOWEST)
@pytest.mark.parametrize("mask", MASKS)
def test_hidden_blocks_are_not_computed(mask: str, lowest: str) -> None:
    """Of four blocks of queries the first sees one block of keys, the last all four: ten blocks, two products each.

    Of a window that ends in the block in front of the diagonal's a query sees these two.
    """
    module = causal(mask, 256, 256, 0, lowest=lowest)
    inputs = random_inputs(module)
    loops = blocked(module)
    assert products(loops, inputs) == 6 * (7 if mask == "a window" else 10) * 2
    (expected,), (found,) = results(module, inputs), results(loops, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_only_blocks_on_the_diagonal_are_masked() -> None:
    """The mask is read by one of the two loops over keys."""
    loops = [op for op in blocked(causal("a triangle chooses", 256, 256, 0)).walk() if isinstance(op, ForOp)]
    innermost = [loop for loop in loops if not any(isinstance(op, ForOp) for op in loop.body.walk())]
    assert [any(isinstance(op, SelectOp) for op in loop.body.walk()) for loop in innermost] == [False, True]


DATA = {
    "chosen": ("i1", "%low = ms.constant dense<LOWEST> : tensor<1xf32>\n%t = ms.select %m, %s, %low"),
    "added": ("f32", "%t = ms.add %s, %m"),
    "added with one of an input": ("f32", "%n = ms.add %m, %x\n%t = ms.add %n, %s"),
    "chosen with one of an input": (
        "i1",
        "%low = ms.constant dense<LOWEST> : tensor<1xf32>\n%z = ms.constant dense<0.0> : tensor<f32>\n"
        "%c = ms.greater_equal %x, %z\n%n = ms.logical_and %c, %m\n%t = ms.select %n, %s, %low",
    ),
}


def given(how: str, lowest: float, seen: Array) -> tuple[ModuleOp, dict[str, Array]]:
    """Attention of six heads under a mask that is a parameter, and what that holds."""
    dtype, between = DATA[how]
    rows, keys = seen.shape
    arguments = f"%q: tensor<6x{rows}x8xf32>, %k: tensor<6x{keys}x8xf32>, %v: tensor<6x{keys}x4xf32>"
    arguments += f", %x: tensor<1x{keys}xf32>"
    body = f"%m = ms.get_parameter @m : tensor<{rows}x{keys}x{dtype}>\n"
    body += "%s = ms.batch_matmul %q, %k {transpose_b = true}\n" + between.replace(
        "LOWEST", "0xff800000" if np.isinf(lowest) else "0xff7fffff"
    )
    body += "\n%p = ms.softmax %t\n%y = ms.batch_matmul %p, %v"
    data = seen if dtype == "i1" else np.where(seen, 0, lowest).astype(np.float32)
    return function(arguments, body, f"ms.parameter @m : tensor<{rows}x{keys}x{dtype}>"), {"m": data}


@pytest.mark.parametrize("lowest", [-np.inf, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("how", DATA)
def test_masks_may_be_data(how: str, lowest: float) -> None:
    """Of four blocks of keys are seen: the second; the first three, by one query none; the first two, the same.

    A number hides all keys or none from a query that sees none, and none where an input may hide the others.
    """
    seen = np.zeros((192, 256), np.bool_)
    seen[:64, 64:100] = seen[64:128, :192] = seen[129:, :70] = True
    seen[90] = False
    module, weights = given(how, lowest, seen)
    inputs = random_inputs(module)
    inputs[3] = np.where(np.arange(256) == 65, lowest, 0).astype(np.float32)[None]
    loops = run(for_machine(module, TARGET), BlockAttention())
    (expected,), (found,) = (results(program, inputs, weights) for program in (module, loops))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    blocks = 1 + 3 + 2 if np.isinf(lowest) else 4 + 4 + 4 if "input" in how else 1 + 4 + 4
    assert products(loops, inputs, weights) == 6 * blocks * 2


def test_threads_and_c_give_what_the_interpreter_gives(tmp_path: Path) -> None:
    module = causal("places are compared", 1100, 1100, 0, heads=2)
    path = tmp_path / "causal.mir"
    path.write_text(str(module))
    inputs = random_inputs(module)
    (expected,) = results(module, inputs)
    alone, shared = (msc.compile(path, threads=threads)(*inputs) for threads in (1, 2))
    np.testing.assert_allclose(alone, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(alone, shared)
