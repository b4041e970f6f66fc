"""Primitives that say their gradient themselves, and hooks that see gradients on their way back."""

# Results are trees of tensors.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from tests.unit.frontend.transforms.tensors import vector

X = vector(0.5, 2.0)


def custom_sine(bprop: Any = None) -> ops.Custom:
    return ops.Custom(np.sin, lambda x: x, lambda x: x, func_type="pyfunc", bprop=bprop)


def test_custom_with_a_bprop(mode: int) -> None:
    sine = custom_sine(lambda x, out, dout: (dout * ops.cos(x),))
    x = X.asnumpy()
    np.testing.assert_allclose(msc.grad(lambda x: sine(x).sum())(X).asnumpy(), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(msc.grad(msc.grad(sine))(X).asnumpy(), -np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(msc.vmap(msc.grad(sine))(X).asnumpy(), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(msc.jvp(sine, X, vector(2.0, 1.0))[1].asnumpy(), np.cos(x) * [2, 1], rtol=1e-6)


def test_custom_without_a_bprop_has_no_gradient(mode: int) -> None:
    sine = custom_sine()
    np.testing.assert_allclose(sine(X).asnumpy(), np.sin(X.asnumpy()), rtol=1e-6)
    with pytest.raises(msc.MscError, match="Custom has no gradient") as caught:
        msc.grad(lambda x: sine(x).sum())(X)
    assert caught.value.diagnostics[0].code == "MSC0856"
    assert msc.grad(lambda x: (ops.stop_gradient(sine(x)) * 0 + x).sum())(X).tolist() == [1.0, 1.0]


class Seventh(ops.Primitive):
    """On arrays, with a gradient of its own."""

    def __init__(self) -> None:
        super().__init__("Seventh")

    def vm_impl(self, x: Any) -> Any:
        return x * x

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * 7,)


class Squared(ops.Primitive):
    """On tensors, with early MindSpore's way to say a gradient."""

    def __init__(self) -> None:
        super().__init__("Squared")

    def construct(self, x: Any) -> Any:
        return x * x

    def get_bprop(self) -> Any:
        def bprop(x: Any, out: Any, dout: Any) -> Any:
            if x.sum() > 0:
                return (dout * x,)
            return (dout * 9,)

        return bprop


def test_primitives_with_gradients_of_their_own(mode: int) -> None:
    assert msc.grad(Seventh())(X).tolist() == [7.0, 7.0]
    assert msc.grad(Squared())(X).tolist() == [0.5, 2.0]
    assert msc.jit(msc.grad(Squared()), fullgraph=True)(-X).tolist() == [9.0, 9.0]


class Tenfold(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * x

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return dout * x * 10


def test_bprop_sees_what_the_cell_was_called_with(mode: int) -> None:
    cell = Tenfold()

    def changed_later(x: Any) -> Any:
        y = x * 1
        z = cell(y)
        y[0] = 5.0
        y += 3
        return z.sum() + y.sum()

    assert msc.grad(changed_later)(vector(1, 2)).tolist() == [10.0, 21.0]


def test_gradients_that_are_changed_on_their_way(mode: int) -> None:
    cut = ops.InsertGradientOf(lambda dx: ops.clip_by_value(dx, -0.1, 0.1))
    assert msc.grad(lambda x: (cut(x) * 5).sum())(X).tolist() == pytest.approx([0.1, 0.1])
    doubled = ops.HookBackward(lambda grads: (grads[0] * 2,))
    assert msc.grad(lambda x: (doubled(x) * 5).sum())(X).tolist() == [10.0, 10.0]
    seen: list[Any] = []
    watching = ops.HookBackward(seen.append)
    assert msc.grad(lambda x: (watching(x) * 5).sum())(X).tolist() == [5.0, 5.0]
    assert len(seen) == 1
    assert float(cut(X)[0]) == 0.5

    def with_hook(x: Any, y: Any) -> Any:
        z = x * y
        z.register_hook(lambda g: g * 2)
        return z * y

    found = msc.grad(with_hook, (0, 1))(vector(1.0), vector(2.0))
    assert [g.tolist() for g in found] == [[8.0], [6.0]]


def test_hooks_of_cells_see_gradients(mode: int) -> None:
    net = nn.SequentialCell(nn.Dense(2, 3, weight_init="ones"), nn.ReLU())
    seen: list[Any] = []
    last = net[1].register_backward_hook(lambda cell, by_input, by_output: seen.append((by_input, by_output)))
    first = net[0].register_backward_hook(lambda cell, by_input, by_output: by_input[0] * 2)
    x = Tensor(np.ones((1, 2), np.float32))
    assert msc.grad(net)(x).tolist() == [[6.0, 6.0]]
    assert len(seen) == 1
    assert [len(part) for part in seen[0]] == [1, 1]
    last.remove()
    before = net[1].register_backward_pre_hook(lambda cell, by_output: by_output[0] * 3)
    assert msc.grad(net)(x).tolist() == [[18.0, 18.0]]
    first.remove()
    before.remove()
    assert msc.grad(net)(x).tolist() == [[3.0, 3.0]]
    weight = msc.grad(net, None, net.trainable_params())(x)[0]
    assert weight.tolist() == [[1.0, 1.0]] * 3


def test_one_gradient_of_many(mode: int) -> None:
    net = nn.Dense(2, 1, weight_init="ones")
    x, y = Tensor([[1.0, 2.0]]), Tensor([[4.0]])
    found = msc.grad(lambda a, b: (net(a) * b).sum(), (0, 1), net.trainable_params(), return_ids=True)(x, y)
    assert msc.get_grad(found, 0).tolist() == [[4.0, 4.0]]
    assert msc.get_grad(found, net.weight).tolist() == [[4.0, 8.0]]
    assert ops.get_grad(msc.grad(ops.square, return_ids=True)(x), 0).tolist() == [[2.0, 4.0]]
    with pytest.raises(msc.MscError, match="there is no gradient by 2"):
        msc.get_grad(found, 2)
