"""Programs of any number of threads give the same bits: sums, whatever forms they take, and what is fused with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msc
from tests.unit.compiled.effort import EFFORT
from tests.unit.schedule.sums.test_sum_order import SUMS, convolution, matmul, module

THREADS = (1, 2, 4)
MARCHES = ("native", "x86-64-v3")


def attention(keys: int) -> str:
    """Of 4 heads, in blocks where the scores are many."""
    rows = f"4x{keys}x64xf32"
    return module(
        f"%a: tensor<{rows}>, %b: tensor<{rows}>, %c: tensor<{rows}>",
        rows,
        "%s = ms.batch_matmul %a, %b {transpose_b = true}",
        "%p = ms.softmax %s",
        "%y = ms.batch_matmul %p, %c",
    )


MODELS = {
    "sums in blocks": SUMS["in blocks with one thread"],
    "rows a page apart": SUMS["rows a page apart"],
    "one row": SUMS["one row"],
    "columns and rows that fill no tile": matmul(37, 3000, 43, transposed=True),
    "one element": matmul(1, 9000, 1),
    "a convolution": convolution(256, 256, 14),
    "a convolution of many channels": convolution(200, 30, 17),
    "a convolution of a small image": convolution(512, 64, 7),
    "columns": SUMS["columns"],
    "rows": SUMS["rows"],
    "a scalar": module(
        "%a: tensor<900x333xf32>", "f32", "%q = ms.mul %a, %a", "%y = ms.reduce_mean %q {axis = [0, 1]}"
    ),
    "a softmax": module("%a: tensor<512x2000xf32>", "512x2000xf32", "%y = ms.softmax %a"),
    "a product and a softmax": module(
        "%a: tensor<500x300xf32>, %b: tensor<300x400xf32>", "500x400xf32", "%p = ms.matmul %a, %b", "%y = ms.softmax %p"
    ),
    "a product and a transposition": module(
        "%a: tensor<16x2048xf32>, %b: tensor<2048x2048xf32>",
        "2048x16xf32",
        "%p = ms.matmul %a, %b",
        "%e = ms.sigmoid %p",
        "%y = ms.transpose %e {perm = [1, 0]}",
    ),
    "a norm": module(
        "%a: tensor<300x1500xf32>, %b: tensor<1500xf32>, %c: tensor<1500xf32>",
        "300x1500xf32",
        "%y = ms.layer_norm %a, %b, %c",
    ),
    "attention": attention(128),
    "attention in blocks": attention(1024),
}


def differing(folder: Path, text: str, march: str) -> list[int]:
    """The numbers of threads that give other bits than one thread."""
    path = folder / "net.mir"
    path.write_text(text, encoding="utf-8")
    results = dict[int, bytes]()
    for threads in THREADS:
        model = msc.compile(path, march=march, threads=threads, use_cache=False)
        rng = np.random.default_rng(0)
        values = [rng.standard_normal(tensor.shape, np.float32) for tensor in model.signature.inputs]
        results[threads] = np.asarray(model(*values)).tobytes()
    return [threads for threads, result in results.items() if result != results[1]]


@pytest.mark.parametrize("march", MARCHES)
@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(name: str, march: str, tmp_path: Path) -> None:
    assert not differing(tmp_path, MODELS[name], march)


@EFFORT
@given(
    rows=st.integers(1, 70),
    terms=st.integers(1, 70) | st.integers(1000, 5000),
    columns=st.integers(1, 300),
    transposed=st.booleans(),
    march=st.sampled_from(MARCHES),
)
def test_threads_change_no_bit_of_a_product(
    tmp_path_factory: pytest.TempPathFactory, rows: int, terms: int, columns: int, transposed: bool, march: str
) -> None:
    folder = tmp_path_factory.mktemp("product")
    assert not differing(folder, matmul(rows, terms, columns, transposed), march)
