"""Weights under training lie as products read them: the results are those of weights that lie as they are."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msc
from msc.dialects.arrays import Array
from msc.driver.models.interpretation import interpret
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.ir.storage_order import inverse
from msc.runtime.artifact import CompiledModel

UPDATES = {
    "sgd": """%v = ms.sub %w, %g""",
    "momentum": """%s = ms.mul %m, %c
  %a = ms.add %s, %g
  %v = ms.sub %w, %a""",
    "decayed": """%d0 = ms.mul %w, %c
  %s = ms.mul %m, %c
  %a0 = ms.add %s, %g
  %a = ms.add %a0, %d0
  %v = ms.sub %w, %a""",
    "scaled": """%old = ms.square %m
  %sq = ms.square %g
  %a = ms.add %old, %sq
  %root = ms.sqrt %a
  %one = ms.add %root, %c
  %q = ms.div %g, %one
  %v = ms.sub %w, %q""",
}
"""New values of a weight %w, and %a of its state %m, from a gradient %g."""


def model(update: str, rows: int, n: int, k: int) -> str:
    """A layer whose input has no gradient, with its update; the order of the weight's axes is open."""
    w, x, d = f"tensor<{n}x{k}xf32>", f"tensor<{rows}x{k}xf32>", f"tensor<{rows}x{n}xf32>"
    has_state = "%a" in UPDATES[update]
    state, new = (f', %m: {w} {{ms.layout = "any"}}', f", {w} {{ms.updates = 3}}") if has_state else ("", "")
    return f"""func.func @main(%x: {x}, %d: {d}, %w: {w} {{ms.layout = "any"}}{state})
    -> ({d}, {w} {{ms.updates = 2}}{new}) {{
  %y = ms.matmul %x, %w {{transpose_b = true}}
  %c = ms.constant dense<0.5> : tensor<f32>
  %g = ms.matmul %d, %x {{transpose_a = true}}
  {UPDATES[update]}
  func.return %y, %v{", %a" if has_state else ""} : {d}, {w}{f", {w}" if has_state else ""}
}}
"""


def convolution(groups: int, outputs: int, inputs: int) -> str:
    """A convolution with an update whose gradient lies output channels last."""
    w = f"tensor<{outputs}x{inputs}x3x3xf32>"
    x, y = f"tensor<2x{inputs * groups}x9x9xf32>", f"tensor<2x{outputs}x7x7xf32>"
    return f"""func.func @main(%x: {x}, %h: tensor<{inputs}x3x3x{outputs}xf32>, %w: {w} {{ms.layout = "any"}})
    -> ({y}, {w}, {w} {{ms.updates = 2}}) {{
  %y = ms.conv2d %x, %w {{group = {groups}}}
  %r = ms.reverse %w {{axis = [2, 3]}}
  %g = ms.transpose %h {{perm = [3, 0, 1, 2]}}
  %v = ms.sub %w, %g
  func.return %y, %r, %v : {y}, {w}, {w}
}}
"""


def arrays(compiled: CompiledModel) -> list[Array]:
    random = np.random.default_rng(0)
    shapes = [tuple(int(str(n)) for n in t.shape or ()) for t in compiled.inputs]
    values = [random.random(shape, np.float32) - np.float32(0.25) for shape in shapes]
    return [compiled.state(t.name, value) for t, value in zip(compiled.inputs, values, strict=True)]


def after_two_calls(compiled: CompiledModel) -> tuple[Array, ...]:
    given = arrays(compiled)
    compiled.results(*given)
    return tuple(np.array(result) for result in compiled.results(*given))


def expected_after_two_calls(path: Path, compiled: CompiledModel) -> tuple[Array, ...]:
    read, inputs = read_model(str(path), CompileOptions()), arrays(compiled)
    results = interpret(read, inputs)
    places = {t.result: k for k, t in enumerate(compiled.signature.inputs) if t.result is not None}
    for result, k in places.items():
        inputs[k] = results[result]
    return interpret(read, inputs)


def check(text: str, folder: Path) -> CompiledModel:
    path = folder / "model.mir"
    path.write_text(text, "utf-8")
    one, two = (msc.compile(path, march="x86-64-v3", threads=threads, use_cache=False) for threads in (1, 2))
    found = after_two_calls(one)
    for result, right, again in zip(found, expected_after_two_calls(path, one), after_two_calls(two), strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4 * float(np.abs(right).max()))
        np.testing.assert_array_equal(result, again)
    return one


@settings(max_examples=3, deadline=None)
@given(st.sampled_from(sorted(UPDATES)), st.integers(8, 70), st.integers(2, 70), st.integers(2, 70))
def test_updates_of_layers_are_the_interpreters(
    tmp_path_factory: pytest.TempPathFactory, update: str, rows: int, n: int, k: int
) -> None:
    check(model(update, rows, n, k), tmp_path_factory.mktemp("states"))


@settings(max_examples=2, deadline=None)
@given(st.sampled_from([1, 2]), st.integers(1, 20), st.integers(1, 5))
def test_updates_of_convolutions_are_the_interpreters(
    tmp_path_factory: pytest.TempPathFactory, groups: int, outputs: int, inputs: int
) -> None:
    check(convolution(groups, groups * outputs, inputs), tmp_path_factory.mktemp("states"))


@pytest.mark.parametrize("update", sorted(UPDATES))
def test_a_first_layer_and_its_states_lie_transposed(update: str, tmp_path: Path) -> None:
    compiled = check(model(update, 48, 33, 65), tmp_path)
    states = [t for t in compiled.signature.inputs if t.result is not None]
    assert [(t.order, t.shape, t.public_shape) for t in states] == [((1, 0), (65, 33), (33, 65))] * len(states)
    assert compiled.inputs[2].shape == (33, 65)


def test_a_convolution_lies_taps_first(tmp_path: Path) -> None:
    weight = check(convolution(1, 16, 4), tmp_path).signature.inputs[2]
    assert (weight.order, weight.shape) == ((2, 3, 1, 0), (3, 3, 4, 16))


@given(st.permutations(range(5)))
def test_an_order_and_its_inverse_leave_all_in_place(order: list[int]) -> None:
    shape = np.zeros((1, 2, 3, 4, 5))
    assert shape.transpose(order).transpose(inverse(order)).shape == shape.shape
