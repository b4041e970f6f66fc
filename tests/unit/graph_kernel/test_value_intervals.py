"""Intervals of computed values: they hold every element of every box, and are exact where masks need it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from msc.graph_kernel.hoist_parameters import HoistParameters
from msc.graph_kernel.value_intervals import NEVER, ValueIntervals
from tests.unit.graph_kernel.graphs import function, main_of, results, run

PLACES = """
%i = ms.iota {shape = [9, 1], dtype = i64}
%j = ms.iota {shape = [1, 7], axis = 1, dtype = i64}
%c = ms.constant dense<[[1, 5, -2, 0, 3, 3, 9]]> : tensor<1x7xi64>
%low = ms.constant dense<0xff800000> : tensor<f32>
%zero = ms.constant dense<0.0> : tensor<1xf32>
%one = ms.constant dense<1.5> : tensor<f32>
"""
VALUES = {
    "sums": "%y = ms.add %i, %c",
    "differences": "%y = ms.sub %c, %i",
    "products": "%d = ms.sub %j, %c\n%y = ms.mul %i, %d",
    "extrema": "%a = ms.maximum %i, %c\n%y = ms.minimum %a, %j",
    "less": "%m = ms.less %i, %c\n%y = ms.cast %m {dtype = f32}",
    "less or equal": "%m = ms.less_equal %i, %j\n%y = ms.cast %m {dtype = i64}",
    "greater": "%m = ms.greater %i, %j\n%n = ms.logical_not %m\n%y = ms.cast %n {dtype = i32}",
    "equal": "%m = ms.equal %i, %j\n%n = ms.not_equal %c, %j\n%o = ms.logical_or %m, %n\n%y = ms.cast %o {dtype = f32}",
    "both": "%m = ms.less_equal %j, %i\n%n = ms.less %c, %j\n%o = ms.logical_and %m, %n\n%y = ms.cast %o {dtype = i64}",
    "wrapped": "%a = ms.mul %c, %j\n%b = ms.cast %a {dtype = i8}\n%y = ms.mul %b, %b",
    "rounded": "%a = ms.constant dense<2049> : tensor<i64>\n%b = ms.add %i, %a\n%y = ms.cast %b {dtype = f16}",
    "a choice": "%m = ms.less %i, %j\n%y = ms.select %m, %low, %zero",
    "a triangle": "%a = ms.broadcast_to %one {shape = [9, 7]}\n%y = ms.tril %a {diagonal = -2}",
    "the other triangle": "%a = ms.broadcast_to %one {shape = [9, 7]}\n%b = ms.neg %a\n%y = ms.triu %b {diagonal = 1}",
    "turned": "%a = ms.sub %i, %j\n%y = ms.transpose %a {perm = [1, 0]}",
    "as rows": "%a = ms.reshape %i {shape = [9]}\n%b = ms.reshape %j {shape = [7, 1]}\n%y = ms.add %a, %b",
    "joined": "%a = ms.sub %i, %j\n%y = ms.reshape %a {shape = [21, 3]}",
    "not known": "%a = ms.cast %i {dtype = f32}\n%b = ms.sin %a\n%y = ms.add %b, %j2",
}


def module_of(body: str) -> ModuleOp:
    return function("", PLACES + body.replace("%j2", "%zero"))


def returned(module: ModuleOp) -> SSAValue:
    return main_of(module).body.block.last_op.operands[0]


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_every_element_of_a_box_lies_in_its_interval(name: str, derived: bool) -> None:
    module = module_of(VALUES[name])
    (array,) = results(module, [])
    made = run(module, HoistParameters()) if derived else module
    intervals, rng = ValueIntervals(made), np.random.default_rng(0)
    for _ in range(200):
        corners = [sorted(int(n) for n in rng.integers(0, size, 2)) for size in array.shape]
        part = array[tuple(slice(a, b + 1) for a, b in corners)]
        low, high = intervals.of(returned(made), tuple((a, b) for a, b in corners))
        assert low <= part.min() <= part.max() <= high


def test_masks_are_known_exactly() -> None:
    module = module_of(VALUES["a choice"])
    intervals = ValueIntervals(module)
    assert intervals.of(returned(module), ((0, 2), (3, 6))) == NEVER
    assert intervals.of(returned(module), ((5, 8), (0, 5))) == (0, 0)
    assert intervals.of(returned(module), ((0, 8), (0, 0))) == (0, 0)
    low, high = intervals.of(returned(module), ((0, 2), (0, 6)))
    assert (low, high) == (-np.inf, 0)


def test_nothing_is_known_of_inputs_and_stored_parameters() -> None:
    module = function("%x: tensor<4xf32>", "%w = ms.get_parameter @w : tensor<4xf32>\n%y = ms.add %x, %w",
                      "ms.parameter @w : tensor<4xf32>")  # fmt: skip
    assert ValueIntervals(module).of(returned(module), ((0, 3),)) == (-np.inf, np.inf)
