"""`Map`, `HyperMap` and `MultitypeFuncGraph`."""

# Results are trees of tensors.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE

MODES = pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
NUMBER: Any = 3
scaled = ops.MultitypeFuncGraph("scaled")


@scaled.register("Number", "Tensor")
def _scaled_by_number(scale: Any, x: Any) -> Any:
    return x * scale


@scaled.register("Tensor", "Tensor")
def _scaled_by_tensor(scale: Any, x: Any) -> Any:
    if x.sum() > 2:
        return x * scale * 10
    return x * scale


def test_structures() -> None:
    pairs = ((Tensor(1.0), (Tensor(2.0), Tensor(3.0))), [Tensor(4.0)])
    found = ops.HyperMap(lambda a, b: a + b)(pairs, pairs)
    assert (float(found[0][0]), float(found[0][1][1]), float(found[1][0])) == (2.0, 6.0, 8.0)
    assert ops.Map()(lambda a, b: a * b, (1, 2), [3, 4]) == (3, 8)
    order: list[int] = []
    assert ops.Map(lambda n: order.append(n) or n, reverse=True)((1, 2)) == (1, 2)
    assert order == [2, 1]


@MODES
def test_the_first_function_that_fits(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.map = ops.HyperMap()

        def construct(self, x: Any, y: Any) -> Any:
            by_tensor = self.map(ops.partial(scaled, Tensor(2.0, msc.float32)), (x, y))
            return by_tensor, self.map(ops.partial(scaled, 3), (x, y))

    with msc.set_context(mode=mode):
        by_tensor, by_number = Net()(Tensor([1.0]), Tensor([2.0, 2.0]))
    assert [t.tolist() for t in (*by_tensor, *by_number)] == [[2.0], [40.0, 40.0], [3.0], [6.0, 6.0]]


class Accumulated(nn.Cell):
    """Gradients of some calls added up before the optimiser runs, as MindSpore's tutorial has it."""

    def __init__(self, optimizer: nn.Optimizer, steps: int) -> None:
        super().__init__()
        self.optimizer, self.steps = optimizer, steps
        self.sums = optimizer.parameters.clone(prefix="sum", init="zeros")
        self.zeros = optimizer.parameters.clone(prefix="zeros", init="zeros")
        self.counter = Parameter(Tensor(1, msc.int32), name="counter")
        self.map = ops.HyperMap()

    def construct(self, gradients: Any) -> Any:
        self.map(ops.assign_add, self.sums, gradients)
        steps: Any = self.counter % self.steps
        if steps == 0:
            self.optimizer(self.sums)
            self.map(ops.assign, self.sums, self.zeros)
        ops.assign_add(self.counter, Tensor(1, msc.int32))
        return True


@MODES
def test_accumulated_gradients_are_those_of_the_full_batch(mode: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 3)).astype(np.float32), rng.integers(0, 2, 16).astype(np.int32)
    parts, whole = (nn.Dense(3, 2, weight_init="ones", bias_init="zeros") for _ in range(2))
    loss = nn.CrossEntropyLoss()
    with msc.set_context(mode=mode):
        update = Accumulated(nn.Momentum(parts.trainable_params(), 0.1, 0.9), 4)
        gradient = msc.grad(lambda a, b: loss(parts(a), b) / 4, None, parts.trainable_params())
        step = msc.jit(lambda a, b: update(gradient(a, b))) if mode == GRAPH_MODE else None
        for k in range(0, 16, 4):
            a, b = Tensor(x[k : k + 4]), Tensor(y[k : k + 4])
            _ = update(gradient(a, b)) if step is None else step(a, b)
        optimizer = nn.Momentum(whole.trainable_params(), 0.1, 0.9)
        optimizer(msc.grad(lambda a, b: loss(whole(a), b), None, whole.trainable_params())(Tensor(x), Tensor(y)))
    np.testing.assert_allclose(parts.weight.asnumpy(), whole.weight.asnumpy(), atol=1e-6)
    assert not np.allclose(parts.weight.asnumpy(), 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.Map()(3, (1,)), "takes a function and one sequence"),
        (lambda: ops.HyperMap(ops.add)((1, 2), (1,)), "sequences of equal length"),
        (lambda: scaled("a", "b"), r"no function for arguments \(str, str\)"),
        (lambda: ops.MultitypeFuncGraph("f").register("Tensr"), "there is no kind 'Tensr'"),
        (lambda: ops.InsertGradientOf(NUMBER), "takes a function, not a int"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(msc.MscError, match=message) as caught:
        call()
    assert caught.value.diagnostics[0].code == "MSC0811"
