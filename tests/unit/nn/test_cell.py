"""Cells: names of parameters, attributes, what they say when they are used in a wrong way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn
from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.dispatch import apply
from msc.frontend.initializers import initializer


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, has_bias=True)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.relu(self.conv(x))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.scale = Parameter(Tensor([2.0]), name="s")
        self.fc = nn.Dense(32, 3, activation="relu")

    def construct(self, x: Tensor) -> Tensor:
        return self.fc(nn.Flatten()(self.block(x) * self.scale))


def test_parameters_are_named_after_their_place() -> None:
    net = Net()
    assert list(net.parameters_dict()) == ["s", "block.conv.weight", "block.conv.bias", "fc.weight", "fc.bias"]
    places = [name for name, _ in net.cells_and_names()]
    assert places == ["", "block", "block.conv", "block.relu", "fc", "fc.activation"]
    assert list(net.name_cells()) == ["block", "fc"]
    assert net.get_sub_cell("block.conv") is net.block.conv


def test_a_cell_computes() -> None:
    assert Net()(Tensor(np.ones((2, 1, 4, 4), np.float32))).shape == (2, 3)


def test_training_reaches_all_cells() -> None:
    net = Net().set_train()
    assert all(cell.training for _, cell in net.cells_and_names())


class Forgetful(nn.Cell):
    def __init__(self) -> None:
        self.relu = nn.ReLU()


@pytest.mark.parametrize(
    ("code", "help_", "expression"),
    [
        ("MSC0820", "construct", lambda: nn.Cell()(1)),
        ("MSC0821", "did you mean 'block'?", lambda: Net().blok),
        ("MSC0822", None, lambda: nn.Cell().insert_param_to_cell("a.b", Parameter(1.0))),
        ("MSC0823", "super().__init__()", Forgetful),
        ("MSC0824", "bias_init", lambda: nn.Dense(2, 3, "normal", "zeros", "relu")),  # pyright: ignore[reportArgumentType]
        ("MSC0825", "did you mean 'relu'?", lambda: nn.Dense(2, 3, activation="rellu")),
        ("MSC0808", "did you mean 'normal'?", lambda: initializer("normall", (2,))),
        ("MSC0813", None, lambda: nn.Conv2d(1, 1, (1, 2, 3))),
        ("MSC0201", None, lambda: Net()(Tensor(np.ones((2, 1, 4, 5), np.float32)))),
    ],
)
def test_mistakes(code: str, help_: str | None, expression: object) -> None:
    assert callable(expression)
    with pytest.raises(msc.MscError) as caught:
        expression()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.location is not None
    assert diagnostic.location.file == __file__
    assert help_ is None or help_ in (diagnostic.help or "")


def test_a_symbolic_tensor_has_no_elements() -> None:
    symbol = Tensor.of(Symbol(None, msc.float32, (2,)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(msc.MscError, match="MSC0802"):
        bool(symbol)
    assert INSTALLED.builder is None
    with pytest.raises(msc.MscError, match="MSC0802"):
        apply("relu", symbol)


def test_names_that_are_not_there() -> None:
    modules: Any = (msc, nn, msc.ops)
    for module, name, near in zip(
        modules, ("Parametr", "Conv2D", "reluu"), ("Parameter", "Conv2d", "relu"), strict=True
    ):
        with pytest.raises(AttributeError, match="MSC0832") as caught:
            getattr(module, name)
        assert f"did you mean '{near}'?" in str(caught.value)
    assert not hasattr(nn, "Momentums")
