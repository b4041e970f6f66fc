"""`vmap` over structures, shared arguments, results that no example is in, and lists of cells."""

# Results are trees of tensors.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from tests.unit.frontend.transforms.tensors import vector


def test_axes_are_structures(mode: int) -> None:
    def scaled(pair: Any, shift: Any) -> Any:
        return pair[0] * pair[1] + shift, {"shift": shift}

    shift = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    call = msc.vmap(scaled, in_axes=((0, None), 1), out_axes=(1, 0))
    found, named = call((vector(1, 2, 3), vector(5)), shift)
    np.testing.assert_array_equal(found.asnumpy(), np.array([5.0, 10, 15]) + shift.asnumpy())
    np.testing.assert_array_equal(named["shift"].asnumpy(), shift.asnumpy().T)
    by_key = msc.vmap(lambda d, n: d["a"] * n + d["b"], in_axes=({"a": 0, "b": None}, None))
    assert by_key({"a": vector(1, 2), "b": vector(1)}, 3.0).tolist() == [[4.0], [7.0]]


def test_results_that_are_arguments(mode: int) -> None:
    assert msc.vmap(lambda x: x)(vector(1, 2)).tolist() == [1.0, 2.0]
    doubled, shared = msc.vmap(lambda x, y: (x * 2, y), in_axes=(0, None), out_axes=(0, None))(vector(1, 2), vector(5))
    assert (doubled.tolist(), shared.tolist()) == ([2.0, 4.0], [5.0])
    assert msc.vmap(lambda x, y: y, in_axes=(0, None))(vector(1, 2), vector(5)).tolist() == [[5.0], [5.0]]


def test_each_cell_on_its_own_example(mode: int) -> None:
    cells = [nn.Dense(3, 2) for _ in range(3)]
    x = np.random.default_rng(0).normal(size=(3, 4, 3)).astype(np.float32)
    expected = np.stack([cell(Tensor(a)).asnumpy() for cell, a in zip(cells, x, strict=True)])
    for given in (cells, nn.CellList(cells)):
        np.testing.assert_allclose(msc.vmap(given)(Tensor(x)).asnumpy(), expected, atol=1e-6)
    np.testing.assert_allclose(msc.vmap(cells, out_axes=1)(Tensor(x)).asnumpy(), expected.transpose(1, 0, 2), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: msc.vmap(ops.sin, out_axes=None)(vector(1, 2)), "depends on the example"),
        (lambda: msc.vmap([ops.sin])(vector(1, 2)), "1 functions for a batch of 2"),
        (lambda: msc.vmap(ops.sin, in_axes="a")(vector(1)), "'a' is no axis for each of 1 tensors"),
        (lambda: msc.vmap(ops.sin, in_axes=True)(vector(1)), "True is no axis"),
        (lambda: msc.vmap(ops.sin)(3.0), "a tensor of shape () has no axis 0"),
        (lambda: msc.vmap(lambda p: p[0], in_axes=((0, 0, 0),))((vector(1), vector(1))), "for each of 2 tensors"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(msc.MscError) as caught:
        call()
    assert caught.value.diagnostics[0].code == "MSC0857"
    assert message in str(caught.value)


def test_a_list_of_no_functions() -> None:
    with pytest.raises(msc.MscError, match="MSC0856"):
        msc.vmap([])
