"""Canonicalisation: which rules apply, which must not, and that special values stay bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.graph.simplify.canonicalize_ms import CanonicalizeMs
from tests.unit.graph_kernel.graphs import Array, function, main_of, random_inputs, results, run

F = "%x: tensor<4x6xf32>"


def constant(value: str, type_: str = "f32") -> str:
    return f"%c = ms.constant dense<{value}> : tensor<{type_}>\n"


def names(module: ModuleOp) -> list[str]:
    return [op.name.removeprefix("ms.") for op in main_of(module).body.block.ops if op.name.startswith("ms.")]


def special(array: Array) -> Array:
    """The array with the values that IEEE arithmetic treats apart."""
    if array.dtype.kind == "f":
        values = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38, -1.5]
        array.reshape(-1)[: min(8, array.size)] = values[: array.size]
    return array


def canonical(arguments: str, body: str) -> list[str]:
    """The operations after the pass, which computes the same bits."""
    module = function(arguments, body)
    after = run(module, CanonicalizeMs())
    inputs = [special(array) for array in random_inputs(module)]
    (expected,), (actual,) = results(module, inputs), results(after, inputs)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    if expected.dtype.kind == "f":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])
    return names(after)


GONE = [
    (F, constant("-0.0") + "%y = ms.add %x, %c"),
    (F, constant("-0.0") + "%y = ms.add %c, %x"),
    (F, constant("0.0") + "%y = ms.sub %x, %c"),
    (F, constant("1.0", "6xf32") + "%y = ms.mul %x, %c"),
    (F, constant("1.0") + "%y = ms.div %x, %c"),
    (F, constant("1.0") + "%y = ms.pow %x, %c"),
    ("%x: tensor<4xi32>", constant("0", "i32") + "%y = ms.add %x, %c"),
    ("%x: tensor<4xi32>", constant("1", "i32") + "%y = ms.floor_div %x, %c"),
    (F, "%a = ms.neg %x\n%y = ms.neg %a"),
    (F, "%y = ms.identity %x"),
    (F, "%y = ms.maximum %x, %x"),
    (F, "%y = ms.cast %x {dtype = f32}"),
    (F, "%a = ms.cast %x {dtype = f64}\n%y = ms.cast %a {dtype = f32}"),
    ("%x: tensor<4xui8>", "%a = ms.cast %x {dtype = i16}\n%y = ms.cast %a {dtype = ui8}"),
    (F, "%a = ms.transpose %x\n%y = ms.transpose %a"),
    (F, "%y = ms.transpose %x {perm = [0, 1]}"),
    (F, "%a = ms.reshape %x {shape = [24]}\n%y = ms.reshape %a {shape = [4, 6]}"),
    (F, "%a = ms.expand_dims %x {axis = [0]}\n%y = ms.squeeze %a {axis = [0]}"),
    (F, "%y = ms.broadcast_to %x {shape = [4, -1]}"),
    (F, "%y = ms.concat %x {axis = 1}"),
    (F, "%y = ms.slice %x {begin = [0, 0], end = [4, 9]}"),
    (F, "%y = ms.pad %x {pad = [0, 0, 0, 0]}"),
    (F, "%y = ms.tile %x {multiples = [1, 1]}"),
    ("%x: tensor<1x4xf32>", "%y = ms.reverse %x {axis = [0]}"),
    (F, constant("true", "i1") + "%b = ms.exp %x\n%y = ms.select %c, %x, %b"),
]


@pytest.mark.parametrize(("arguments", "body"), GONE)
def test_nothing_is_left(arguments: str, body: str) -> None:
    assert canonical(arguments, body) == []


SIMPLER = [
    (F, constant("8.0") + "%y = ms.div %x, %c", ["constant", "mul"]),
    (F, constant("2.0") + "%y = ms.pow %x, %c", ["square"]),
    (F, constant("-1.0") + "%y = ms.pow %x, %c", ["reciprocal"]),
    (F, "%a = ms.relu %x\n%y = ms.relu %a", ["relu"]),
    (F, "%a = ms.floor %x\n%y = ms.round %a", ["floor"]),
    (F, "%a = ms.neg %x\n%y = ms.abs %a", ["abs"]),
    (F, "%a = ms.abs %x\n%y = ms.square %a", ["square"]),
    (F, "%a = ms.reshape %x {shape = [24]}\n%y = ms.reshape %a {shape = [2, 12]}", ["reshape"]),
    (F, "%a = ms.reshape %x {shape = [4, 1, 6]}\n%y = ms.transpose %a {perm = [1, 0, 2]}", ["reshape"]),
    ("%x: tensor<2x3x4xf32>", "%a = ms.transpose %x {perm = [1, 2, 0]}\n%y = ms.transpose %a", ["transpose"]),
    ("%x: tensor<4x1xf32>", "%y = ms.reduce_max %x {axis = [1]}", ["reshape"]),
    (f"{F}, %b: tensor<6xf32>", "%a = ms.broadcast_to %b {shape = [4, 6]}\n%y = ms.add %x, %a", ["add"]),
    (f"{F}, %z: tensor<5x6xf32>", "%a = ms.transpose %z\n%y = ms.matmul %x, %a", ["matmul"]),
    (
        "%x: tensor<2x6x4xf32>",
        ("%a = ms.transpose %x {perm = [0, 2, 1]}\n%y = ms.batch_matmul %a, %x"),
        ["batch_matmul"],
    ),
    (
        F,
        constant("[1.0, 2.0]", "2xf32") + ("%a = ms.exp %c\n%b = ms.reduce_sum %a\n%y = ms.add %x, %b"),
        ["constant", "add"],
    ),
]


@pytest.mark.parametrize(("arguments", "body", "left"), SIMPLER)
def test_simpler(arguments: str, body: str, left: list[str]) -> None:
    assert canonical(arguments, body) == left


KEPT = [
    (F, constant("0.0") + "%y = ms.add %x, %c"),
    (F, constant("-0.0") + "%y = ms.sub %x, %c"),
    (F, constant("0.0") + "%y = ms.mul %x, %c"),
    (F, "%y = ms.sub %x, %x"),
    (F, constant("3.0") + "%y = ms.div %x, %c"),
    (F, constant("1.0e-40") + "%y = ms.div %x, %c"),
    (F, constant("0.5") + "%y = ms.pow %x, %c"),
    (F, constant("1.0", "2x1x1xf32") + "%y = ms.mul %x, %c"),
    (F, "%a = ms.cast %x {dtype = f16}\n%y = ms.cast %a {dtype = f32}"),
    ("%x: tensor<4xi8>", "%a = ms.neg %x\n%y = ms.abs %a"),
    ("%x: tensor<4x1xf32>", "%y = ms.reduce_sum %x {axis = [1]}"),
    ("%x: tensor<1x6xf32>", "%a = ms.broadcast_to %x {shape = [4, 6]}\n%y = ms.exp %a"),
]


@pytest.mark.parametrize(("arguments", "body"), KEPT)
def test_kept(arguments: str, body: str) -> None:
    assert canonical(arguments, body) == names(function(arguments, body))


def test_an_index_outside_is_left_for_run_time() -> None:
    body = (
        "%c = ms.constant dense<[1.0]> : tensor<1xf32>\n"
        "%i = ms.constant dense<[7]> : tensor<1xi64>\n%y = ms.gather %c, %i"
    )
    assert names(run(function("", body), CanonicalizeMs())) == ["constant", "constant", "gather"]


def test_large_results_are_not_folded() -> None:
    body = constant("[1.0, 2.0]", "2xf32") + "%y = ms.broadcast_to %c {shape = [1000, 2]}"
    assert names(run(function("", body), CanonicalizeMs())) == ["constant", "broadcast_to"]
