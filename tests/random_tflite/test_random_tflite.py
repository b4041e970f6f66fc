"""A slice of the random operators: each maker of floats and of integers, some of them as C."""

from __future__ import annotations

import pytest

from msc.targets.catalogue import machine_named
from tests.random_tflite import boards
from tests.random_tflite.checking import problems
from tests.random_tflite.drawing import MAKERS
from tests.unit.targets import bare_metal

COMPILED = ("network",)
"""Each operator's C is tested elsewhere."""


@pytest.mark.parametrize("is_quantised", [False, True], ids=["floats", "integers"])
@pytest.mark.parametrize("name", MAKERS)
def test_operators_equal_tflm(name: str, is_quantised: bool) -> None:
    for seed in range(3):
        compiles = is_quantised and name in COMPILED and seed == 0
        assert list(problems(name, seed, is_quantised=is_quantised, compiles=compiles)) == []


@pytest.mark.parametrize("march", ["cortex-m0plus", "cortex-m55", "rv32imc"])
def test_a_network_on_a_board_gives_the_bytes_of_tflm(march: str) -> None:
    board = machine_named(march).boards[0]
    bare_metal.tools_or_skip(board.compiler, board.emulator)
    assert list(boards.differences("network", 1, [march])) == []
