"""What subclasses of the library's classes, written for MindSpore, touch; and module paths as attributes."""

from __future__ import annotations

import pkgutil
import sys
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from msc.mindspore import paths


class _Plain(nn.Optimizer):
    def __init__(self, parameters: Any) -> None:
        super().__init__(0.1, parameters, 0.5)

    def construct(self, gradients: Any) -> Any:
        gradients = self.decay_weight(gradients)
        for i, (p, g) in enumerate(zip(self._parameters, gradients, strict=True)):
            if self.optim_filter[i]:
                ops.assign_sub(p, (self.get_lr()[i] if self.is_group_lr else self.get_lr()) * g)
        return self.broadcast_params(True)


@pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])
def test_an_optimizer_of_a_program(mode: int) -> None:
    p = Parameter(Tensor([1.0, 2.0], msc.float32), name="w")
    optimizer = _Plain([p])
    with msc.set_context(mode=mode):
        for _ in range(2):
            optimizer((Tensor([1.0, 1.0], msc.float32),))
    wanted = np.array([1.0, 2.0])
    for _ in range(2):
        wanted = wanted - 0.1 * (1 + 0.5 * wanted)
    np.testing.assert_allclose(p.asnumpy(), wanted, 1e-6)


MADE: dict[str, Any] = {
    "LayerNorm": lambda: nn.LayerNorm((4,)),
    "Dense": lambda: nn.Dense(2, 3),
    "Conv2d": lambda: nn.Conv2d(2, 3, 3),
    "Optimizer": lambda: nn.Adam(nn.Dense(2, 3).trainable_params(), weight_decay=0.1),
    "TrainOneStepCell": lambda: nn.TrainOneStepCell(nn.Dense(2, 3), nn.Adam(nn.Dense(2, 3).trainable_params())),
}


@pytest.mark.parametrize("name", MADE)
def test_members_are_there_and_may_be_replaced(name: str) -> None:
    cell = MADE[name]()
    members = [m for kind in type(cell).__mro__ for m in vars(kind).get("MEMBERS", ())]
    assert members
    for member in members:
        getattr(cell, member)
        setattr(cell, member, None)
        assert getattr(cell, member) is None


def test_members_compute_what_the_layer_does() -> None:
    rng = np.random.default_rng(0)
    image, rows = Tensor(rng.random((1, 2, 5, 5)).astype(np.float32)), Tensor(rng.random((3, 4)).astype(np.float32))
    conv, norm, dense = nn.Conv2d(2, 3, 3, stride=2), nn.LayerNorm((4,), 1, 1), nn.Dense(4, 2)
    np.testing.assert_allclose(conv.conv2d(image, conv.weight).asnumpy(), conv(image).asnumpy(), 1e-5, 1e-6)
    np.testing.assert_allclose(
        norm.layer_norm(rows, norm.gamma, norm.beta)[0].asnumpy(), norm(rows).asnumpy(), 1e-5, 1e-6
    )
    own = dense.bias_add(dense.matmul(rows, dense.weight), dense.bias)
    np.testing.assert_allclose(own.asnumpy(), dense(rows).asnumpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("path", sorted(paths.PATHS))
def test_a_path_is_a_module_and_an_attribute(path: str) -> None:
    module = import_module(path)
    value: Any = msc
    for name in path.split(".")[1:]:
        value = getattr(value, name)
    assert value is module or vars(sys.modules[path]) is vars(module)
    assert getattr(module, "__all__", ()) == getattr(import_module(paths.PATHS[path]), "__all__", ())


@pytest.mark.parametrize("package", ["nn", "ops", "numpy", "common", "train"])
def test_modules_with_files_are_attributes(package: str) -> None:
    module: Any = getattr(msc, package)
    for found in pkgutil.iter_modules(module.__path__):
        assert hasattr(module, found.name)


def test_cells_take_any_truth_value() -> None:
    class Net(nn.Cell):
        def __init__(self, given: Any) -> None:
            super().__init__(given)
            self.body = nn.Dense(2, 3)

    assert [p.name for p in Net(Net).trainable_params()] == ["body.weight", "body.bias"]
    assert [p.name for p in Net(None).trainable_params()] == ["weight", "bias"]


def test_the_state_of_a_cell_is_a_dictionary() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Dense(2, 3)
            self.body.register_buffer("seen", Tensor([1.0, 2.0], msc.float32))
            self.register_buffer("hidden", Tensor([5.0], msc.float32), persistent=False)

        def construct(self, x: Tensor) -> Tensor:
            return self.body(x) * self.hidden

    net, other = Net(), Net()
    assert list(net.state_dict()) == ["body.weight", "body.bias", "body.seen"]
    assert [name for name, _ in net.named_buffers()] == ["hidden", "body.seen"]
    net.body.seen.fill_(7.0)
    assert other.load_state_dict(net.state_dict()) == ([], [])
    assert other.get_buffer("body.seen").tolist() == [7, 7]
    assert other.body.weight.asnumpy().tolist() == net.body.weight.asnumpy().tolist()
    assert other.load_state_dict({"new": Tensor([1.0])}, strict=False)[1] == ["new"]
    with pytest.raises(msc.MscError, match="MSC0821"):
        other.load_state_dict({})
    x = ops.ones((1, 2))
    np.testing.assert_allclose(net.compile_and_run(x).asnumpy(), other(x).asnumpy(), 1e-6)
    assert net.to(msc.float16).body.weight.dtype is msc.float16
    assert net.add_flags(fast=True).get_flags() == {"fast": True}


@pytest.mark.parametrize(
    ("kind", "given", "here"),
    [
        ("Adam", {"lr": 0.1}, "learning_rate"),
        ("Adam", {"betas": (0.9, 0.99)}, "beta1 and beta2"),
        ("Dense", {"bias": False}, "has_bias"),
        ("Conv2d", {"groups": 2}, "group "),
    ],
)
def test_an_argument_of_another_name_says_the_name_here(kind: str, given: dict[str, Any], here: str) -> None:
    with pytest.raises(TypeError, match=f"is {here}"):
        getattr(nn, kind)([], **given)


def test_methods_in_place_and_of_shapes() -> None:
    x = Tensor(np.array([[3.0, 1, 2], [6, 5, 4]], np.float32))
    assert x.sum_to_size(1, 3).tolist() == [[9, 6, 6]]
    assert x.resize(1, 2).tolist() == [[3, 1]]
    assert (x.stride(), x.device, x.get_bytes()[:4]) == ([3, 1], "CPU", b"\x00\x00@@")
    assert x.index_put((Tensor([0, 0]), Tensor([1, 1])), Tensor([7.0, 1]), True).tolist()[0] == [3, 9, 2]
    assert Tensor([3, 1, 3]).unique_with_pad(0)[0].tolist() == [3, 1, 0]
    y = x
    assert x.remainder_(2) is y
    assert y.tolist() == [[1, 1, 0], [0, 1, 0]]
    assert y.scatter_(1, Tensor([[0]]), Tensor([[5.0]]), reduce="add").tolist()[0] == [6, 1, 0]
    assert 0 <= float(y.uniform_().min()) <= float(y.max()) < 1


OF_MINDSPORE: dict[str, tuple[Any, list[float]]] = {
    "ASGD": (
        partial(nn.ASGD, learning_rate=0.1, t0=1.0, weight_decay=0.01),
        [1.03844, 0.52338, -0.56815, -0.96593, -0.72953, 0.11288, 1.03844, -2.21346],
    ),
    "Rprop": (
        partial(nn.Rprop, learning_rate=0.1),
        [1.01, 0.2483, -0.49815, -0.69799, -0.56564, -0.25314, 1.01, -2.74416],
    ),
    "LazyAdam": (
        partial(nn.LazyAdam, learning_rate=0.1, use_nesterov=True),
        [1.07697, 0.05623, -0.39569, -0.69646, -0.48535, -0.37131, 1.07697, -2.71186],
    ),
    "AdaFactor": (
        partial(nn.AdaFactor, weight_decay=0.1),
        [0.99954, 0.53757, -0.41489, -0.97902, -0.6487, 0.27854, 0.99585, -1.99738],
    ),
    "AdaFactor with a rate": (
        partial(nn.AdaFactor, learning_rate=0.01, relative_step=False, beta1=0.0),
        [1.00753, 0.54754, -0.42649, -0.97516, -0.65689, 0.28056, 1.00822, -2.02885],
    ),
}
"""Parameters after five steps that MindSpore 2.10 gives."""


@pytest.mark.parametrize("name", OF_MINDSPORE)
def test_steps_are_those_of_mindspore(name: str) -> None:
    make, wanted = OF_MINDSPORE[name]
    start = np.cos(np.arange(6, dtype=np.float32)).reshape(2, 3), np.array([1, -2], np.float32)
    parameters = [Parameter(Tensor(value), name=f"p{k}") for k, value in enumerate(start)]
    optimizer = make(parameters)
    for k in range(5):
        optimizer(tuple(Tensor(np.sin(p.asnumpy() * 3 + k).astype(np.float32)) for p in parameters))
    np.testing.assert_allclose([v for p in parameters for v in p.asnumpy().ravel()], wanted, atol=3e-5)


def test_lars_scales_gradients_to_parameters() -> None:
    p = Parameter(Tensor([3.0, 4.0], msc.float32), name="p")
    nn.LARS(nn.SGD([p], 0.1, weight_decay=0.5), epsilon=0.0, coefficient=0.01)((Tensor([0.6, 0.8], msc.float32),))
    trust = 0.01 * 5 / (1 + 0.5 * 5)
    np.testing.assert_allclose(p.asnumpy(), np.array([3, 4]) - 0.1 * trust * np.array([2.1, 2.8]), 1e-6)
