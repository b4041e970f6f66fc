"""Products of bf16 through C, two at a time: by the machine's instruction, and as C for machines without it."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import msc
from msc.driver.cli import command
from tests.unit.compiled.effort import EFFORT

PAIRS = """
base = "generic"

[unit.pairs]
computes = "c[n] += a[n, k] * b[n, k]"
shape = { n = 4, k = 2 }
a = { types = ["bf16"] }
b = { types = ["bf16"] }
c = { types = ["f32"] }
cycles = 1
latency = 4
"""
ROUNDING = 2.0**-8
"""Of bf16, relative: half a unit in the last place."""
Array = NDArray[np.float64]


@pytest.fixture(scope="session")
def portable(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A machine that any processor is, and is said to have the instruction."""
    path = tmp_path_factory.mktemp("machines") / "pairs.toml"
    path.write_text(PAIRS, encoding="utf-8")
    return str(path)


def _narrow(values: Array) -> NDArray[np.generic]:
    return values.astype(ml_dtypes.bfloat16)


def _checked(text: str, march: str, operands: list[Array], expected: Array, most: Array) -> None:
    """That a model gives the expected values; sums of the absolute terms are `most`."""
    result = msc.compile(text, march=march)(*map(_narrow, operands))
    got: Array = np.asarray(result, np.float64)
    assert np.all(np.abs(got - expected) <= ROUNDING * np.abs(expected) + 1e-5 * most)


def _operand(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return _narrow(rng.standard_normal(shape)).astype(np.float64)


def _product(m: int, k: int, n: int, left: bool, right: bool) -> tuple[str, list[tuple[int, ...]]]:
    a, b = ((k, m) if left else (m, k)), ((n, k) if right else (k, n))
    types = [f"tensor<{rows}x{columns}xbf16>" for rows, columns in (a, b, (m, n))]
    flags = f"{{transpose_a = {str(left).lower()}, transpose_b = {str(right).lower()}}}"
    text = (
        f"func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{\n"
        f"%y = ms.matmul %a, %b {flags}\nfunc.return %y : {types[2]}\n}}\n"
    )
    return text, [a, b]


@given(st.integers(1, 40), st.integers(1, 90), st.integers(1, 70), st.booleans(), st.booleans(), st.booleans())
@EFFORT
def test_products(portable: str, m: int, k: int, n: int, left: bool, right: bool, native: bool) -> None:
    text, (a, b) = _product(m, k, n, left, right)
    rng = np.random.default_rng(m * k * n)
    x, y = _operand(rng, a), _operand(rng, b)
    first, second = x.T if left else x, y.T if right else y
    most = np.abs(first) @ np.abs(second)
    _checked(text, "native" if native else portable, [x, y], first @ second, most)


@pytest.mark.parametrize("march", ["native", "portable"])
def test_long_sums(portable: str, march: str) -> None:
    """Blocks of a long sum have an even length, and the sums are as exact as those of one product at a time."""
    text, (a, b) = _product(7, 5003, 48, False, False)
    rng = np.random.default_rng(1)
    x, y = _operand(rng, a), _operand(rng, b)
    _checked(text, portable if march == "portable" else march, [x, y], x @ y, np.abs(x) @ np.abs(y))


def _correlation(patches: Array, weight: Array) -> Array:
    return np.asarray(np.einsum("nchwij,ocij->nohw", patches, weight), np.float64)


@pytest.mark.parametrize("march", ["native", "portable"])
@pytest.mark.parametrize("channels", [3, 16])
def test_convolutions(portable: str, march: str, channels: int) -> None:
    text = (
        f"func.func @main(%x: tensor<2x{channels}x9x9xbf16>, %w: tensor<24x{channels}x3x3xbf16>) -> "
        "tensor<2x24x7x7xbf16> {\n%y = ms.conv2d %x, %w\nfunc.return %y : tensor<2x24x7x7xbf16>\n}\n"
    )
    rng = np.random.default_rng(channels)
    x, w = _operand(rng, (2, channels, 9, 9)), _operand(rng, (24, channels, 3, 3))
    patches = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    expected, most = _correlation(patches, w), _correlation(np.abs(patches), np.abs(w))
    _checked(text, portable if march == "portable" else march, [x, w], expected, most)


def test_infinities_and_nan(portable: str) -> None:
    text, _ = _product(2, 6, 16, False, False)
    x, y = np.ones((2, 6)), np.ones((6, 16))
    x[0, 3], x[1, 4] = np.inf, np.nan
    for march in ("native", portable):
        got: Array = np.asarray(msc.compile(text, march=march)(_narrow(x), _narrow(y)), np.float64)
        assert np.isposinf(got[:1]).all()
        assert np.isnan(got[1:]).all()


@pytest.mark.parametrize(
    ("march", "there"), [("znver4", True), ("cooperlake", True), ("sapphirerapids", True), ("cascadelake", False)]
)
def test_the_instruction_is_in_the_c_of_machines_that_have_it(tmp_path: Path, march: str, there: bool) -> None:
    text, _ = _product(8, 64, 64, False, False)
    (tmp_path / "product.mir").write_text(text, encoding="utf-8")
    target = tmp_path / "product.c"
    result = CliRunner().invoke(
        command, ["compile", str(tmp_path / "product.mir"), "--march", march, "-o", str(target)]
    )
    assert result.exit_code == 0, result.output
    assert ("vdpbf16ps_f32x16(load" in target.read_text(encoding="utf-8")) is there
