"""Calls are inlined: the results stay, and what would grow without bound is refused before anything is copied."""

import numpy as np
import pytest

from msc.driver.passes.registry import new_context
from msc.graph.inline_calls import InlineCalls
from msc.interp import evaluate
from msc.ir.reading import parse_module
from msc.support.diagnostics import MscError

TYPE = "tensor<3xf32>"


def doubling(levels: int) -> str:
    """A function that calls the one below it twice, down to one that adds one."""
    head = f"func.func @f0(%x: {TYPE}) -> {TYPE} {{\n%o = ms.constant dense<1.0> : tensor<f32>\n%y = ms.add %x, %o\n"
    text = head + f"func.return %y : {TYPE}\n}}\n"
    for level in range(1, levels + 1):
        call = f"func.call @f{level - 1}"
        name = "main" if level == levels else f"f{level}"
        text += (
            f"func.func @{name}(%x: {TYPE}) -> {TYPE} {{\n%a = {call}(%x) : ({TYPE}) -> {TYPE}\n"
            f"%b = {call}(%a) : ({TYPE}) -> {TYPE}\nfunc.return %b : {TYPE}\n}}\n"
        )
    return text


def test_results_stay() -> None:
    context = new_context()
    module = parse_module(context, doubling(4), "f.mir")
    x = np.arange(3, dtype=np.float32)
    before = evaluate(module, [x], {})
    InlineCalls().apply(context, module)
    module.verify()
    np.testing.assert_array_equal(evaluate(module, [x], {})[0], before[0])
    np.testing.assert_array_equal(before[0], x + 16)


def test_calls_that_multiply_are_refused() -> None:
    context = new_context()
    module = parse_module(context, doubling(64), "f.mir")
    with pytest.raises(MscError, match="MSC0413"):
        InlineCalls().apply(context, module)
