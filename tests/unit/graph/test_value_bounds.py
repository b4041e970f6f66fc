"""Bounds of values, as constant expressions: they hold whatever inputs are, and are exact where masks need it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import OpResult

from msc.dialects.ms.base import MsOp
from msc.graph.emitter import Emitter
from msc.graph.value_bounds import ValueBounds
from msc.ir.entry import find_entry
from tests.unit.graph_kernel.graphs import Array, function, random_inputs, results

ARGUMENTS = "%x: tensor<4x7xf32>, %m: tensor<1x7xi1>, %n: tensor<9x1xi64>"
PLACES = """
%i = ms.iota {shape = [9, 1], dtype = i64}
%j = ms.iota {shape = [1, 7], axis = 1, dtype = i64}
%c = ms.constant dense<[[0.5, 5.0, -2.0, 0.0, 3.0, 3.0, 9.0]]> : tensor<1x7xf32>
%low = ms.constant dense<0xff800000> : tensor<f32>
%zero = ms.constant dense<0.0> : tensor<1xf32>
%t = ms.less %i, %j
%x1 = ms.slice %x {begin = [0, 0], end = [1, 7]}
%u = ms.tanh %x1
"""
VALUES = {
    "constants": "%y = ms.select %t, %c, %low",
    "sums": "%a = ms.select %t, %c, %low\n%y = ms.add %a, %x1",
    "differences": "%a = ms.select %t, %low, %c\n%b = ms.neg %a\n%y = ms.sub %x1, %b",
    "extrema": "%a = ms.maximum %x1, %c\n%y = ms.minimum %a, %zero",
    "a choice by an input": "%y = ms.select %m, %c, %zero",
    "a choice between inputs": "%a = ms.add %c, %low\n%y = ms.select %t, %x1, %a",
    "both": "%a = ms.logical_and %t, %m\n%y = ms.select %a, %c, %low",
    "one or none": "%a = ms.logical_or %t, %m\n%b = ms.logical_not %a\n%y = ms.select %b, %c, %low",
    "rounded": "%a = ms.select %m, %c, %zero\n%b = ms.cast %a {dtype = f16}\n"
    "%d = ms.add %b, %b\n%y = ms.cast %d {dtype = f32}",
    "truths as numbers": "%a = ms.logical_and %t, %m\n%b = ms.cast %a {dtype = f32}\n%y = ms.sub %zero, %b",
    "numbers as truths": "%a = ms.cast %x1 {dtype = i1}\n%y = ms.select %a, %c, %low",
    "integers": "%a = ms.add %n, %j\n%b = ms.less %a, %i\n%y = ms.select %b, %c, %low",
    "moved": "%a = ms.select %m, %c, %zero\n%b = ms.transpose %a {perm = [1, 0]}\n"
    "%y = ms.reshape %b {shape = [1, 7, 1]}",
    "repeated": "%a = ms.select %m, %c, %low\n%b = ms.broadcast_to %a {shape = [2, 7]}\n"
    "%y = ms.expand_dims %b {axis = [0]}",
    "an input moved": "%a = ms.reshape %x1 {shape = [7, 1]}\n%y = ms.add %a, %zero",
    "not known": "%y = ms.mul %u, %c",
}


def bounded(name: str) -> ModuleOp:
    """A function that returns a value and its bounds."""
    module = function(ARGUMENTS, PLACES + VALUES[name])
    entry = find_entry(module)
    assert entry is not None
    last = entry.body.block.last_op
    assert isinstance(last, ReturnOp)
    value = last.arguments[0]
    assert isinstance(value, OpResult)
    assert isinstance(value.op, MsOp)
    emit = Emitter(value.op)
    bounds = ValueBounds(emit).of(value)
    entry.body.block.insert_ops_before(emit.ops, last)
    found = (value, bounds.low, bounds.high)
    entry.body.block.insert_op_before(ReturnOp(*found), last)
    entry.body.block.erase_op(last)
    entry.update_function_type()
    module.verify()
    return module


def bounds_of(name: str, seed: int = 0) -> tuple[Array, ...]:
    module = bounded(name)
    return results(module, random_inputs(module, seed))


@pytest.mark.parametrize("name", VALUES)
def test_every_element_lies_within_its_bounds(name: str) -> None:
    for seed in range(20):
        value, low, high = bounds_of(name, seed)
        assert (low <= value).all()
        assert (value <= high).all()


@pytest.mark.parametrize("name", VALUES)
def test_bounds_do_not_depend_on_inputs(name: str) -> None:
    (_, *first), (_, *second) = bounds_of(name), bounds_of(name, 1)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_constant_is_known_exactly() -> None:
    value, low, high = bounds_of("constants")
    np.testing.assert_array_equal(low, value)
    np.testing.assert_array_equal(high, value)


@pytest.mark.parametrize("name", ["sums", "both"])
def test_what_minus_infinity_hides_stays_hidden(name: str) -> None:
    _, low, high = bounds_of(name)
    hidden = ~np.less(np.arange(9)[:, None], np.arange(7))
    np.testing.assert_array_equal(high == -np.inf, hidden)
    assert (low == -np.inf).all()


def test_nothing_is_known_of_inputs() -> None:
    _, low, high = bounds_of("not known")
    assert (low, high) == (-np.inf, np.inf)
