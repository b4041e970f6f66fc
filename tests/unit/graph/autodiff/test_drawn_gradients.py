"""No function gives a wrong gradient without an error: some drawn functions; `python -m tests.drawn_gradients` is all.

What NumPy computes outside of graphs has a gradient of its own, of all orders, or refuses one.
"""

# Functions of tables are of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from tests.drawn_gradients.calls import Call, calls, functions
from tests.drawn_gradients.compare import wrong

SOME = list(functions())[::23]

SQUARE = np.array([[3.0, 0.5, -0.2], [0.3, 2.5, 0.7], [-0.4, 0.1, 4.0]])
TALL = np.array([[3.0, 0.5], [0.3, 2.5], [-0.4, 0.1]])
LINE = np.array([0.3, 0.1, 0.9, 0.5, 0.7])
FACTORS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "inverse": (ops.inverse, SQUARE),
    "det": (ops.det, SQUARE),
    "slogdet": (ops.slogdet, SQUARE),
    "cholesky": (lambda x: ops.cholesky((x + x.T) / 2), SQUARE),
    "solve": (lambda x: ops.solve(x, x[:, :2]), SQUARE),
    "eigh": (lambda x: ops.square(ops.eigh((x + x.T) / 2)[1]), SQUARE),
    "qr": (ops.qr, TALL),
    "wide qr": (lambda x: ops.qr(x.T), TALL),
    "svd": (lambda x: ops.svd(x, compute_uv=False), TALL),
    "pinv": (ops.pinv, TALL),
    "lu": (ops.lu, TALL),
    "wide lu": (lambda x: ops.lu(x.T), TALL),
    "orgqr": (lambda x: ops.orgqr(x, x[0] / 3), TALL),
    "quantile": (lambda x: ops.quantile(x * x, Tensor([0.4, 0.9], msc.float64), 0), LINE),
    "nanquantile": (lambda x: ops.nanquantile(x * x, 0.3), LINE),
    "masked_select": (lambda x: ops.masked_select(x * x, x > 0.4), LINE),
}


@pytest.mark.parametrize(("name", "function"), SOME, ids=[name for name, _ in SOME])
def test_drawn_derivatives_are_those_of_differences_or_refused(name: str, function: Callable[..., Any]) -> None:
    for call in calls(name, function):
        assert wrong(call) is None


@pytest.mark.parametrize("name", FACTORS)
def test_factors_have_derivatives_of_second_order(name: str) -> None:
    function, array = FACTORS[name]
    assert wrong(Call(name, function, (Tensor(array),), (0,))) is None


@pytest.mark.parametrize("transform", [msc.grad, msc.value_and_grad, msc.jacrev, msc.jacfwd])
@pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])
def test_what_numpy_computes_without_a_gradient_refuses_one(transform: Any, mode: int) -> None:
    with msc.set_context(mode=mode), pytest.raises(msc.MscError, match="MSC0856"):
        transform(lambda x: ops.geqrf(x)[0].sum())(Tensor(SQUARE))


def test_a_gradient_that_a_cell_says_is_differentiated_through_its_result() -> None:
    class Exponential(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return ops.exp(x)

        def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
            del x
            return (out * dout,)

    assert wrong(Call("exponential", Exponential(), (Tensor(LINE),), (0,)), 3) is None
