"""What notebooks show of tensors, models, summaries and runs; the loss of each epoch."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn
from msc.dataset import NumpySlicesDataset
from msc.driver.reports.benchmark import Measurement, summary
from msc.driver.reports.kernel_rates import KernelTime
from msc.train import Model
from msc.train.callback import History

HOSTILE = "<script>alert('x')</script>&\"\x1b[31m"


class Reader(HTMLParser):
    """The elements, nested as they must be, and the texts of their cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th", "pre"):
            self.cells.append(data)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc(x)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def trained(epochs: int = 3, metrics: Any = None) -> History:
    data = NumpySlicesDataset((np.ones((8, 3), np.float32), np.zeros((8, 2), np.float32)), ["x", "y"], shuffle=False)
    net, history = Net(), History()
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.05), metrics)
    model.fit(epochs, data.batch(2), data.batch(4), callbacks=[history]) if metrics else model.train(
        epochs, data.batch(2), callbacks=[history]
    )
    return history


@pytest.mark.parametrize("values", [X, X[0], X[0, 0], np.zeros((2, 2, 2)), np.zeros((100, 100)), np.zeros(0), X > 2])
def test_tensors(values: Any) -> None:
    shown = Reader(Tensor(values)._repr_html_())  # pyright: ignore[reportPrivateUsage]
    cells = [cell for text in shown.cells for cell in text.split()]
    assert values.ndim == 0 or values.size > 400 or len(cells) >= values.size


def test_models_summaries_and_kernels() -> None:
    net = Net()
    compiled = msc.compile(net, Tensor(X))
    assert {"x", "float32", "(2, 3)"} <= set(Reader(compiled._repr_html_()).cells)  # pyright: ignore[reportPrivateUsage]
    summed = msc.summary(net, Tensor(X))
    assert "fc (Dense)" in Reader(summed._repr_html_()).cells  # pyright: ignore[reportPrivateUsage]
    times = (KernelTime(HOSTILE, 1e-6, 1.0),)
    table = Reader(Measurement(summary([1e-6]), 1e-6, times, (None,))._repr_html_())  # pyright: ignore[reportPrivateUsage]
    assert "script" not in table.tags
    assert any("<script>" in cell for cell in table.cells)


def test_users_see_what_they_call() -> None:
    compiled = msc.compile(Net(), Tensor(X))
    names = [name for name in dir(compiled) if not name.startswith("__")]
    assert {"save", "signature", "inputs"} <= set(names)
    assert not {"calls", "profile", "artifact", "ordered", "can_update"} & set(names)
    assert all(hasattr(compiled, name) for name in names)


def test_the_loss_of_each_epoch() -> None:
    history = trained()
    losses = history.history["loss"]
    assert all(type(loss) is float for loss in losses)
    assert len(losses) == len(history.history["net_output"]) == 3
    assert losses[0] > losses[1] > losses[2] > float(history.history["net_output"][2])


def test_the_loss_of_an_evaluation_has_its_own_name() -> None:
    history = trained(2, {"loss": nn.Loss(), "mae": nn.MAE()})
    assert history.curves().keys() == {"loss", "eval_loss", "mae"}
    assert history.history["loss"] != history.history["eval_loss"]


def test_a_table_of_a_run() -> None:
    shown = Reader(trained()._repr_html_())  # pyright: ignore[reportPrivateUsage]
    assert shown.cells[:2] == ["epoch", "loss"]
    assert shown.cells[2::2] == ["1", "2", "3"]


class Axes:
    def __init__(self) -> None:
        self.drawn: dict[str, tuple[Any, Any]] = {}

    def plot(self, x: Any, y: Any, label: str) -> None:
        self.drawn[label] = x, y

    def set_xlabel(self, label: str) -> None:
        self.label = label

    def legend(self) -> None:
        pass


def test_curves_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    history, axes = trained(), Axes()
    assert history.plot(axes) is axes
    assert axes.drawn == {"loss": ([1, 2, 3], history.history["loss"])}
    pyplot: Any = ModuleType("matplotlib.pyplot")
    pyplot.figure = lambda: type("Figure", (), {"add_subplot": lambda self: axes})()
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    assert history.plot() is axes
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(msc.MscError, match="MSC0016"):
        history.plot()
