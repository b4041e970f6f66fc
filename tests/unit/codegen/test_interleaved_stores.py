"""Vectors whose lanes alternate in memory, stored side by side behind their loop; what may not be moved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.codegen.c import emit_c
from msc.interp import evaluate_loops
from msc.runtime.artifact import CompiledModel

Parse = Callable[[str], ModuleOp]
Compile = Callable[..., CompiledModel]

TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8, "i1": np.bool_}


def rows_text(element: str, lanes: int, count: int, body: str) -> str:
    """A module that writes the rows of `x` in turn; `body` is what an iteration does with row %a."""
    x, y = f"memref<{count}x{lanes}x{element}>", f"memref<{count * lanes + 1}x{element}>"
    vector = f"vector<{lanes}x{element}>"
    body = body.replace("VECTOR", vector).replace("COUNT", str(count)).replace("Y", y)
    return f"""builtin.module @test {{
      func.func @k(%x: {x}, %y: {y}) attributes {{loop.outputs = 1 : i64}} {{
        loop.for %i = 0 to {count} unroll "i" {{
          %a = loop.load %x[%i, 0] : {x}, {vector}
          {body}
        }}
        func.return
      }}
      func.func @main(%x: {x}, %y: {y} {{ms.role = "output"}}) {{
        loop.for %n = 0 to {count * lanes + 1} "n" {{
          %a = loop.load %x[0, 0] : {x}
          loop.store %a, %y[%n] : {element}, {y}
        }}
        func.call @k(%x, %y) : ({x}, {y}) -> ()
        func.return
      }}
    }}"""


STORED = "loop.store %a, %y[%i + 1] lanes [COUNT] : VECTOR, Y"


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(
    ("element", "lanes"), [("f32", 16), ("f32", 4), ("f64", 2), ("i32", 8), ("i8", 32), ("i1", 16)]
)
def test_what_is_stored(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, element: str, lanes: int, count: int
) -> None:
    module = module_of(rows_text(element, lanes, count, STORED))
    assert f"store_interleaved_{count}" in emit_c(module).source
    x = rng.integers(-100, 100, (count, lanes)).astype(TYPES[element])
    (expected,) = evaluate_loops(module, [x], {})
    np.testing.assert_array_equal(expected[1:], x.T.reshape(-1))
    np.testing.assert_array_equal(compiled(module)(x), expected)


@pytest.mark.parametrize(
    ("count", "body"),
    [
        (3, STORED),
        (2, "%b = loop.load %y[0] : Y\nloop.store %b, %y[%i] : f32, Y\n" + STORED),
        (2, "loop.store %a, %y[1] lanes [COUNT] : VECTOR, Y"),
        (2, "loop.store %a, %y[%i] lanes [COUNT] part 5 : VECTOR, Y"),
    ],
)
def test_what_stays_in_its_loop(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, count: int, body: str
) -> None:
    module = module_of(rows_text("f32", 8, count, body))
    assert "store_interleaved" not in emit_c(module).source
    x = rng.integers(-100, 100, (count, 8)).astype(np.float32)
    (expected,) = evaluate_loops(module, [x], {})
    np.testing.assert_array_equal(compiled(module)(x), expected)
