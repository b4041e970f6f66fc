"""`check_indices`: compiled models that look at their indices first, on request."""

from __future__ import annotations

import numpy as np
import pytest

import msc
from msc.support import notices
from msc.support.diagnostics import MscError

TABLE = np.arange(20, dtype=np.float32).reshape(5, 4)
GATHER = """
func.func @main(%x: tensor<5x4xf32> {{ms.name = "x"}}, %i: tensor<{shape}x{dtype}> {{ms.name = "i"{dims}}})
    -> (tensor<{shape}x4xf32> {{ms.name = "y"}}) {{
  %y = ms.gather %x, %i {{axis = 0}} : (tensor<5x4xf32>, tensor<{shape}x{dtype}>) -> tensor<{shape}x4xf32>
  func.return %y : tensor<{shape}x4xf32>
}}
"""


@pytest.mark.parametrize("dtype", ["i32", "i64", "i8"])
def test_an_index_outside_is_refused(dtype: str) -> None:
    text = GATHER.format(shape="2x3", dtype=dtype, dims="")
    model, plain = msc.compile(text, check_indices=True), msc.compile(text)
    given = np.array([[0, -5, 4], [1, 2, 3]], {"i32": np.int32, "i64": np.int64, "i8": np.int8}[dtype])
    np.testing.assert_array_equal(model(TABLE, given), TABLE[given])
    np.testing.assert_array_equal(model(TABLE, given), plain(TABLE, given))
    for wrong in (5, -6):
        given[1, 2] = wrong
        plain(TABLE, given)
        with pytest.raises(MscError, match=rf"MSC0610.*'i'.*{wrong} at \[1, 2\]"):
            model(TABLE, given)


def test_only_what_a_call_gives_is_looked_at() -> None:
    text = GATHER.format(shape="?", dtype="i32", dims=', ms.dims = ["n"]')
    model = msc.compile(text, check_indices=True, dims={"n": (1, 64)})
    given = np.full(64, 9, np.int32)
    given[:3] = 4, 0, 2
    np.testing.assert_array_equal(model(TABLE, given[:3].copy()), TABLE[[4, 0, 2]])
    with pytest.raises(MscError, match=r"MSC0610.*9 at \[3\]"):
        model(TABLE, given[:4].copy())


def test_indices_that_the_model_computes_are_told_of() -> None:
    text = """
func.func @main(%x: tensor<5xf32> {ms.name = "x"}, %i: tensor<3xi64> {ms.name = "i"})
    -> (tensor<3xf32> {ms.name = "y"}) {
  %j = ms.mul %i, %i : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %y = ms.gather %x, %j {axis = 0} : (tensor<5xf32>, tensor<3xi64>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}
"""
    with notices.collected() as found:
        msc.compile(text, check_indices=True, use_cache=False)
    assert [d.code for d in found] == ["MSC0893"]
