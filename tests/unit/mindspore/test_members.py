"""What subclasses of the library's classes, written for MindSpore, touch; and module paths as attributes."""

from __future__ import annotations

import pkgutil
import sys
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
