"""`jit`: what is compiled, what is compiled again, and what `jit.explain` says of it."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import MscError, Parameter, Tensor, nn, ops
from msc.support.codes import CODES

X = np.array([1.0, 2.0, 3.0], np.float32)


def interpreted(function: Any) -> Any:
    return msc.jit(function, backend="interpreter")


def test_in_place_operators_rebind() -> None:
    def f(x: Any) -> Any:
        y = x
        y += 1
        return y - x

    x = Tensor(X)
    for run in (f, interpreted(f), msc.jit(f)):
        np.testing.assert_array_equal(run(x).asnumpy(), np.ones(3))
        np.testing.assert_array_equal(x.asnumpy(), X)


def test_one_compile_for_each_signature() -> None:
    f = interpreted(lambda x, k: x * k)
    for argument in (Tensor(X), Tensor(X + 1), Tensor(np.ones((2, 2), np.float32))):
        assert f(argument, 2).shape == argument.shape
    f(Tensor(X), 3)
    assert msc.jit.explain(f).count("compiled: for") == 2
    assert len([line for line in msc.jit.explain(f).split("\n") if line.startswith("recompiled")]) >= 1


scale = 2.0


def test_a_global_that_changes_is_noticed() -> None:
    global scale
    f = interpreted(lambda x: x * scale)
    np.testing.assert_array_equal(f(Tensor(X)).asnumpy(), X * 2)
    scale = 3.0
    np.testing.assert_array_equal(f(Tensor(X)).asnumpy(), X * 3)
    assert "recompiled: the global 'scale' has changed" in msc.jit.explain(f)


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(X, name="weight")
        self.by = 2.0

    def construct(self, x: Any) -> Any:
        return ops.relu(x * self.weight) * self.by


def test_a_cell_in_graph_mode() -> None:
    net = Scaled()
    with msc.set_context(mode=msc.GRAPH_MODE):
        np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), X * X * 2)
        net.by = 3.0
        np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), X * X * 3)
        net.weight.set_data(Tensor(X + 1))
        np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), X * (X + 1) * 3)
    text = msc.jit.explain(net)
    assert "the attribute 'by' of a Scaled has changed" in text
    assert "the value of parameter 'weight' has changed" in text


def test_a_method_and_nested_jit() -> None:
    class Model:
        k = 3

        @msc.jit
        def run(self, x: Any) -> Any:
            return inner(x) * self.k

    inner = interpreted(lambda x: x + 1)
    np.testing.assert_array_equal(Model().run(Tensor(X)).asnumpy(), (X + 1) * 3)


def test_mutable_numbers_are_arguments() -> None:
    f = interpreted(lambda x, k: x * k + k)
    for k in (2, 5):
        np.testing.assert_array_equal(f(Tensor(X), msc.mutable(k)).asnumpy(), X * k + k)
    assert "recompiled" not in msc.jit.explain(f)


def test_the_numbers_of_graph_mode_are_explained() -> None:
    codes = "MSC0840 MSC0841 MSC0842 MSC0843 MSC0844 MSC0845 MSC0846 MSC0847 MSC0848 MSC0849".split()
    assert all(CODES[code].explanation for code in codes)


@pytest.mark.parametrize("wrong", [3, None.__class__()])
def test_jit_takes_functions(wrong: Any) -> None:
    if wrong is None:
        assert callable(msc.jit(wrong))
        return
    with pytest.raises(TypeError, match="MSC0814"):
        msc.jit(wrong)
    with pytest.raises(MscError, match="MSC0814"):
        msc.jit(lambda x: x, backend="gpu")


class WithLayers(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.SequentialCell(nn.BatchNorm2d(2), nn.Dropout(p=0.5))

    def construct(self, x: Any) -> Any:
        return self.layers(x)


def test_training_and_attributes_of_layers_are_noticed() -> None:
    net = WithLayers()
    compiled = interpreted(net)
    x = Tensor(np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2))
    for training in (False, True, False):
        net.set_train(training)
        net.layers[1].set_train(False)
        np.testing.assert_allclose(compiled(x).asnumpy(), WithLayers.construct(net, x).asnumpy(), rtol=1e-5, atol=1e-6)
    net.layers[0] = nn.ReLU()
    np.testing.assert_array_equal(compiled(x).asnumpy(), x.asnumpy())


def test_a_parameter_that_changes_between_calls_becomes_an_argument() -> None:
    """It is a constant at first, which is faster; after its first change the graph takes whatever it is."""
    weight = Parameter(Tensor([1.0, 2.0]), name="weight")
    scale: Any = msc.jit(lambda x: x * weight, backend="interpreter")
    for number in range(20):
        weight.set_data(Tensor([1.0, float(number)]))
        assert scale(Tensor([1.0, 1.0])).tolist() == [1.0, number]
    assert "not compiled" not in msc.jit.explain(scale)
    assert sum(map(len, scale._entries.values())) == 2

    weight.varies = True
    other: Any = msc.jit(lambda x: x + weight, backend="interpreter")
    for number in range(3):
        weight.set_data(Tensor([0.0, float(number)]))
        assert other(Tensor([1.0, 1.0])).tolist() == [1.0, 1.0 + number]
    assert sum(map(len, other._entries.values())) == 1
