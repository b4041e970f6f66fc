"""`grad` and its kin in PyNative and in graph mode, and what they refuse."""

# Results are trees of tensors.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
import msc.numpy as mnp
from msc import Parameter, Tensor, nn, ops
from msc.frontend.modes import PYNATIVE_MODE
from tests.unit.frontend.transforms.tensors import vector


def cube(x: Any) -> Any:
    return x**3


def test_derivatives_of_numbers(mode: int) -> None:
    first = msc.grad(mnp.tanh)
    second = msc.grad(first)
    third = msc.grad(second)
    assert [str(f(2.0)) for f in (first, second, third)] == ["0.070650816", "-0.13621867", "0.25265405"]


def test_positions_weights_and_values(mode: int) -> None:
    net = nn.Dense(2, 1, weight_init=Tensor([[2.0, 3.0]]), bias_init="zeros")
    x, y = Tensor([[1.0, 2.0]]), Tensor([[4.0]])

    def loss(a: Any, b: Any) -> Any:
        return (net(a) * b).sum()

    assert msc.grad(loss)(x, y).tolist() == [[8.0, 12.0]]
    assert [g.tolist() for g in msc.grad(loss, (0, 1))(x, y)] == [[[8.0, 12.0]], [[8.0]]]
    weight, bias = msc.grad(loss, None, net.trainable_params())(x, y)
    assert (weight.tolist(), bias.tolist()) == ([[4.0, 8.0]], [4.0])
    assert msc.grad(loss, None, net.weight)(x, y).tolist() == [[4.0, 8.0]]
    (inputs, weights), named = (
        msc.grad(loss, (1,), net.trainable_params())(x, y),
        msc.grad(loss, 1, net.trainable_params(), return_ids=True)(x, y),
    )
    assert (inputs[0].tolist(), weights[1].tolist()) == ([[8.0]], [4.0])
    assert (named[0][0], [name for name, _ in named[1]]) == (1, ["weight", "bias"])
    value, gradient = msc.value_and_grad(loss)(x, y)
    assert (float(value), gradient.tolist()) == (32.0, [[8.0, 12.0]])
    assert isinstance(net.weight.content, np.ndarray)


def test_has_aux_and_sens(mode: int) -> None:
    def both(x: Any) -> Any:
        return x * x, x + 1

    x = vector(1.0, 2.0)
    gradient, aux = msc.grad(both, has_aux=True)(x)
    assert (gradient.tolist(), aux[0].tolist()) == ([2.0, 4.0], [2.0, 3.0])
    assert msc.grad(both)(x).tolist() == [3.0, 5.0]
    (value, other), gradient = msc.value_and_grad(both, has_aux=True)(x)
    assert (value.tolist(), other.tolist(), gradient.tolist()) == ([1.0, 4.0], [2.0, 3.0], [2.0, 4.0])
    assert msc.grad(cube, sens_param=True)(x, vector(1.0, 0.5)).tolist() == [3.0, 6.0]


def test_grad_operation(mode: int) -> None:
    net = nn.Dense(1, 1, weight_init=Tensor([[2.0]]), has_bias=False)
    x = Tensor([[3.0]])
    assert ops.GradOperation()(net)(x).tolist() == [[2.0]]
    assert [g.tolist() for g in ops.GradOperation(get_all=True)(net)(x)] == [[[2.0]]]
    assert [g.tolist() for g in ops.GradOperation(get_by_list=True)(net, net.trainable_params())(x)] == [[[3.0]]]
    inputs, weights = ops.GradOperation(get_all=True, get_by_list=True)(net)(x)
    assert (inputs[0].tolist(), weights[0].tolist()) == ([[2.0]], [[3.0]])
    assert ops.GradOperation(sens_param=True)(net)(x, Tensor([[5.0]])).tolist() == [[10.0]]


def test_integers_have_zeros(mode: int) -> None:
    def chosen(table: Any, index: Any) -> Any:
        return ops.gather(table, index, 0)

    table, index = msc.grad(chosen, (0, 1))(Tensor(np.ones((4, 2), np.float32)), Tensor([1, 3, 1]))
    assert table.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    assert (index.dtype, index.tolist()) == (msc.int64, [0, 0, 0])


def test_stop_gradient_and_outside_values(mode: int) -> None:
    outside = vector(3.0)
    assert msc.grad(lambda x: ops.stop_gradient(x) * x)(vector(2.0)).tolist() == [2.0]
    assert msc.grad(lambda x: x.detach() * 2)(vector(2.0)).tolist() == [0.0]

    def confused(x: Any) -> Any:
        return x * msc.grad(lambda y: x + y)(vector(1.0))

    assert msc.grad(confused)(outside).tolist() == [1.0]
    assert msc.grad(lambda x: msc.grad(lambda y: x * y)(x))(outside).tolist() == [1.0]


class Scaled(nn.Cell):
    def construct(self, x: Any, y: Any) -> Any:
        return x * y

    def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
        return dout * 100, out + y


def test_a_cell_that_says_its_gradient(mode: int) -> None:
    cell = Scaled()
    x, y = Tensor(2.0, msc.float32), Tensor(3.0, msc.float32)
    assert [float(g) for g in msc.grad(cell, (0, 1))(x, y)] == [100.0, 9.0]
    assert float(cell(x, y)) == 6.0
    assert float(msc.grad(lambda a: cell(a * 2, a) * 3)(x)) == 2 * 300.0 + 8.0 + 2.0


def test_jacobians_and_directions(mode: int) -> None:
    x = vector(1.0, 2.0)
    expected = np.diag([3.0, 12.0])
    assert np.array_equal(msc.jacrev(cube)(x).asnumpy(), expected)
    assert np.array_equal(msc.jacfwd(cube)(x).asnumpy(), expected)
    value, tangent = msc.jvp(cube, x, vector(1.0, 0.5))
    assert (value.tolist(), tangent.tolist()) == ([1.0, 8.0], [3.0, 6.0])
    value, pull_back = msc.vjp(cube, x)
    assert pull_back(vector(1.0, 0.5))[0].tolist() == [3.0, 6.0]


def softmax_of_product(x: Any, w: Any) -> Any:
    return ops.softmax(ops.matmul(ops.sin(x), w), -1)


@pytest.mark.parametrize("position", [0, 1])
def test_forward_and_reverse_agree(mode: int, position: int) -> None:
    rng = np.random.default_rng(1)
    x, w = (Tensor(rng.normal(size=shape)) for shape in ((2, 3), (3, 4)))
    forward = msc.jacfwd(softmax_of_product, position)(x, w).asnumpy()
    reverse = msc.jacrev(softmax_of_product, position)(x, w).asnumpy()
    assert forward.shape == (2, 4, *(x, w)[position].shape)
    np.testing.assert_allclose(forward, reverse, atol=1e-14)


def test_vmap(mode: int) -> None:
    rng = np.random.default_rng(2)
    a, b = Tensor(rng.normal(size=(5, 2, 3))), Tensor(rng.normal(size=(3, 4)))
    found = msc.vmap(softmax_of_product, in_axes=(0, None))(a, b).asnumpy()
    single = np.stack([softmax_of_product(Tensor(x), b).asnumpy() for x in a.asnumpy()])
    np.testing.assert_allclose(found, single, rtol=1e-12)
    along_last = msc.vmap(softmax_of_product, in_axes=(2, None), out_axes=-1)(Tensor(a.asnumpy().transpose(1, 2, 0)), b)
    np.testing.assert_allclose(along_last.asnumpy(), single.transpose(1, 2, 0), rtol=1e-12)
    per_example = msc.vmap(msc.grad(lambda x: (ops.cos(x) * x).sum()))(a).asnumpy()
    np.testing.assert_allclose(per_example, np.cos(a.asnumpy()) - a.asnumpy() * np.sin(a.asnumpy()), rtol=1e-12)


EXAMPLES: dict[str, Callable[[Any], Any]] = {
    "layers": lambda x: ops.relu(ops.conv2d(x, Tensor(np.ones((2, 1, 2, 2)), msc.float64))),
    "pools": lambda x: ops.max_pool2d(x, 2) + ops.avg_pool2d(x, 2, 2),
    "sums": lambda x: x.sum(axis=(1, 2)) - x.max() + ops.cumsum(x, 3).mean(axis=3),
    "moves": lambda x: ops.concat([x[:, :, 1:3], ops.flip(x, (3,))[:, :, :1]], 2).transpose(0, 2, 1, 3),
    "rows": lambda x: ops.layer_norm(x, (4,), Tensor(np.ones(4)), Tensor(np.ones(4)))[0],
    "places": lambda x: ops.gather(x, Tensor([0, 2, 0]), 2) + x.argmax(3).astype(msc.float64)[..., None][:, :, :3],
    "splits": lambda x: ops.split(x, 2, 3)[1] * ops.split(x, 2, 3)[0],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_vmap_is_the_function_on_each_example(mode: int, name: str) -> None:
    function = EXAMPLES[name]
    batch = np.random.default_rng(3).normal(size=(3, 1, 1, 4, 4))
    found = msc.vmap(function)(Tensor(batch)).asnumpy()
    with msc.set_context(mode=PYNATIVE_MODE):
        expected = np.stack([function(Tensor(x)).asnumpy() for x in batch])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def doubled_up_to_ten(x: Any) -> Any:
    while x.sum() < 10:
        x = x * 2
    return x


def magnitude(x: Any) -> Any:
    return x * 1 if x.sum() > 0 else -x


def nested(x: Any) -> Any:
    return msc.vmap(magnitude)(x) * doubled_up_to_ten(x)


@pytest.mark.parametrize("function", [doubled_up_to_ten, magnitude, nested])
@pytest.mark.parametrize("wrapped", [lambda f: f, msc.jit], ids=["called", "jit"])
def test_vmap_where_each_example_takes_its_own_way(mode: int, function: Any, wrapped: Any) -> None:
    batch = np.random.default_rng(5).uniform(0.5, 4, size=(4, 3, 2)) * np.array([1, -1, 1]).reshape(3, 1)
    batch[:, 1] /= 8
    found = wrapped(msc.vmap(function))(Tensor(batch)).asnumpy()
    np.testing.assert_array_equal(found, np.stack([function(Tensor(x)).asnumpy() for x in batch]))
    slopes = msc.vmap(msc.grad(lambda x: function(x).sum()))(Tensor(batch)).asnumpy()
    np.testing.assert_allclose(slopes, [msc.grad(lambda x: function(x).sum())(Tensor(x)).asnumpy() for x in batch])


def test_vmap_undoes_what_a_run_that_is_given_up_has_written(mode: int) -> None:
    calls = msc.Parameter(Tensor(0.0, msc.float64), name="calls")

    def counted(x: Any) -> Any:
        ops.assign_add(calls, Tensor(1.0, msc.float64))
        return magnitude(x)

    msc.vmap(counted)(Tensor(np.array([[1.0, 2.0], [-3.0, 1.0], [2.0, 2.0]])))
    assert calls.asnumpy() == 3.0


def test_control_flow_of_python(mode: int) -> None:
    def powers(x: Any) -> Any:
        y = x
        for _ in range(3):
            y = y * x if y.sum() > 0 else y - x
        return y

    assert msc.grad(powers)(vector(2.0)).tolist() == [32.0]
    assert msc.grad(powers)(vector(-2.0)).tolist() == [4.0]


def test_a_loop_that_a_tensor_ends(mode: int) -> None:
    def powers(x: Any) -> Any:
        y = x
        while y < 10:
            y = y * x
        return y

    found = [float(msc.grad(powers)(Tensor(v, msc.float32))) for v in (2.0, 3.0)]
    assert found == [32.0, 27.0]
    with pytest.raises(msc.MscError, match="how often it runs at most"):
        msc.jit(msc.grad(powers), fullgraph=True)(Tensor(2.0, msc.float32))


def test_parameters_that_are_assigned(mode: int) -> None:
    class Counted(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter(Tensor([2.0]), name="scale")
            self.calls = Parameter(Tensor([0.0]), name="calls", requires_grad=False)

        def construct(self, x: Any) -> Any:
            ops.assign(self.calls, self.calls + 1)
            return x * self.scale

    net = Counted()
    for _ in range(3):
        assert msc.grad(net, None, net.trainable_params())(vector(5.0))[0].tolist() == [5.0]
    assert (net.calls.asnumpy().tolist(), net.scale.asnumpy().tolist()) == ([3.0], [2.0])


def test_tensors_that_occur_twice(mode: int) -> None:
    def both(x: Any) -> Any:
        y = x * x
        return y, y

    assert msc.grad(both)(vector(3.0)).tolist() == [12.0]
    one = vector(1.0)
    assert msc.grad(both, sens_param=True)(vector(3.0), (one, one)).tolist() == [12.0]
    assert msc.jvp(lambda x, y: x * y, (vector(3.0), vector(4.0)), (one, one))[1].tolist() == [7.0]


def test_a_parameter_as_result(mode: int) -> None:
    class Given(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter(Tensor([2.0, 3.0]), name="scale")

        def construct(self, x: Any) -> Any:
            return {"scale": self.scale, "product": self.scale * x}

    net = Given()
    assert msc.grad(net, None, net.trainable_params())(vector(5.0, 7.0))[0].tolist() == [6.0, 8.0]


def test_a_gradient_that_leaves_the_graph_restores_parameters() -> None:
    class Loops(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter(Tensor([2.0]), name="scale")

        def construct(self, x: Any, n: Any) -> Any:
            k = 0
            while k < n:
                k += 1
                x = x * 0.5 if x.max() > 8 else x * self.scale
            y = self.scale
            for _ in range(2):
                if x.sum() > 0:
                    y += x
            return y

    net = Loops()
    gradient = msc.jit(msc.grad(net, 0, net.trainable_params()))
    by_input, (by_scale,) = gradient(vector(3.0), Tensor(2))
    assert (by_input.tolist(), by_scale.tolist(), net.scale.asnumpy().tolist()) == ([8.0], [25.0], [2.0])


def test_inside_of_jit() -> None:
    @msc.jit(fullgraph=True)
    def step(x: Any) -> Any:
        return msc.grad(lambda v: (v * v * v).sum())(x) + msc.vmap(msc.grad(cube))(x)

    assert step(vector(1.0, 2.0)).tolist() == [6.0, 24.0]
    assert "compiled" in msc.jit.explain(step)


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (lambda: msc.grad(3), "MSC0856", "takes a function or a Cell, not a int"),
        (lambda: msc.grad(cube, None), "MSC0856", "nothing to differentiate by"),
        (lambda: msc.grad(cube, -1), "MSC0856", "a number from 0 on"),
        (lambda: msc.grad(cube, 2)(vector(1.0)), "MSC0856", "called with 1 arguments"),
        (lambda: msc.grad(lambda x: "a")(vector(1.0)), "MSC0856", "gives a str, not a tensor"),
        (lambda: msc.grad(cube, 0, ["w"]), "MSC0856", "weights are Parameters, not a str"),
        (lambda: msc.grad(cube, has_aux=True)(vector(1.0)), "MSC0856", "a tuple"),
        (lambda: msc.grad(cube, sens_param=True)(vector(1.0), vector(1.0, 2.0)), "MSC0856", "of the same shape"),
        (lambda: msc.jvp(cube, vector(1.0), (vector(1.0), vector(1.0))), "MSC0856", "1 inputs, but 2 directions"),
        (lambda: msc.jvp(cube, vector(1.0), vector(1.0, 2.0)), "MSC0856", "a direction of shape (2,)"),
        (lambda: msc.vmap(cube, in_axes=(0, 0))(vector(1.0)), "MSC0857", "2 entries for 1 arguments"),
        (lambda: msc.vmap(cube, in_axes=1)(vector(1.0)), "MSC0857", "has no axis 1"),
        (lambda: msc.vmap(cube, in_axes=None)(vector(1.0)), "MSC0857", "no argument with a batch axis"),
        (lambda: msc.jit(msc.vmap(doubled_up_to_ten), fullgraph=True)(vector(1.0, 2.0)), "MSC0415", "scf.while"),
        (lambda: msc.vmap(cube, out_axes=2)(vector(1.0)), "MSC0857", "has no axis 2"),
        (lambda: msc.vmap(lambda x, y: x + y)(vector(1.0), vector(1.0, 2.0)), "MSC0857", "batches of 1, 2"),
    ],
)
def test_mistakes(call: Callable[[], Any], code: str, message: str) -> None:
    with pytest.raises(msc.MscError) as caught:
        call()
    assert caught.value.diagnostics[0].code == code
    assert message in str(caught.value)
