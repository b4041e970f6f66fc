"""Arguments that do nothing: what concerns speed is said once, what could change a result is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Model, Tensor, amp, nn, ops
from msc.dataset import Dataset, ImageFolderDataset, NumpySlicesDataset
from msc.frontend import settings
from msc.support import notices
from msc.support.diagnostics import MscError
from msc.train.callback import CheckpointConfig


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_said", set[tuple[str, str]]())


def same(x: Any) -> Any:
    return x


def rows() -> Dataset:
    return NumpySlicesDataset(np.ones((4, 2), np.float32), ["x"])


def model(**options: Any) -> Model:
    return Model(nn.Dense(2, 1), **options)


NOTED: dict[str, Callable[[], Any]] = {
    "device_target": lambda: msc.set_context(device_target="GPU"),
    "save_graphs": lambda: msc.set_context(save_graphs=True),
    "enable_graph_kernel": lambda: msc.set_context(enable_graph_kernel=True),
    "jit_level": lambda: msc.jit(ops.relu, jit_level="O2"),
    "capture_mode": lambda: msc.jit(ops.relu, capture_mode="bytecode"),
    "python_multiprocessing": lambda: rows().batch(2, python_multiprocessing=True),
    "use_locking": lambda: nn.Adam(nn.Dense(2, 1).trainable_params(), use_locking=True),
    "integrated_save": lambda: CheckpointConfig(integrated_save=False),
    "in_strategy": lambda: ops.MatMul().shard(((1, 1), (1, 1))),
    "primitive_target": lambda: ops.MatMul().set_device("Ascend"),
    "func_type": lambda: ops.Custom(same, func_type="hybrid"),
    "dataset_sink_mode": lambda: model(loss_fn=nn.MSELoss(), metrics={"mae"}).eval(
        NumpySlicesDataset((np.ones((2, 2), np.float32), np.ones((2, 1), np.float32)), ["x", "y"]).batch(1),
        dataset_sink_mode=True,
    ),
}

REFUSED: dict[str, Callable[[], Any]] = {
    "boost_level": lambda: model(boost_level="XX"),
    "boost_level O2": lambda: amp.build_train_network(
        nn.Dense(2, 1), nn.SGD(nn.Dense(2, 1).trainable_params(), 0.1), boost_level="O2"
    ),
    "jit_level": lambda: msc.jit(ops.relu, jit_level="O9"),
    "jit_level of a context": lambda: msc.set_context(jit_level="O9"),
    "save_graphs": lambda: msc.set_context(save_graphs="yes"),
    "precompile_only": lambda: msc.set_context(precompile_only=True),
    "in_strategy": lambda: ops.MatMul().shard("nonsense"),
    "primitive_target": lambda: ops.MatMul().set_device("TPU"),
    "callbacks": lambda: rows().map(same, callbacks=[print]),
    "decrypt": lambda: ImageFolderDataset(".", decrypt=print),
    "use_lazy": lambda: nn.Adam(nn.Dense(2, 1).trainable_params(), use_lazy=True),
    "format": lambda: msc.load_checkpoint("x.ckpt", format="pickle"),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_concerns_speed_is_said_once(name: str) -> None:
    with notices.collected() as found:
        NOTED[name]()
        NOTED[name]()
    msc.reset_context()
    assert [(d.code, name in d.message) for d in found] == [("MSC0886", True)]


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_change_a_result_is_refused(name: str) -> None:
    with notices.collected() as found, pytest.raises(MscError, match=rf"MSC0887.*{name.partition(' ')[0]}"):
        REFUSED[name]()
    assert not found


def test_every_setting_of_a_context_works_or_is_in_the_table() -> None:
    from msc.frontend import modes

    names = set(modes._DEFAULTS)  # pyright: ignore[reportPrivateUsage]
    assert names - {"mode", "runtime_num_threads"} <= settings.SETTINGS.keys()
    with notices.collected() as found:
        for name in names - {"mode"}:
            msc.set_context(**{name: msc.get_context(name)})
    assert not found


class Listed(nn.Cell):
    def __init__(self, kind: type) -> None:
        super().__init__()
        self.head = nn.Dense(2, 2)
        self.known = [self.head]
        cells = [nn.Dense(2, 2)]
        self.layers = {"a": cells[0]} if kind is dict else kind(cells)


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_cells_in_plain_collections_are_told_of(kind: type) -> None:
    with notices.collected() as found:
        Listed(kind).trainable_params()
        Listed(kind).trainable_params()
        nn.CellList([nn.Dense(2, 2)]).trainable_params()
    (told,) = found
    assert told.code == "MSC0892"
    assert "Listed.layers" in told.message
    assert ("nn.CellDict" if kind is dict else "nn.CellList") in (told.help or "")


@pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])
def test_optimisers_of_other_networks_are_told_of(mode: int) -> None:
    net, other = nn.Dense(2, 1), nn.Dense(2, 1)
    x, y = Tensor(np.ones((3, 2), np.float32)), Tensor(np.ones((3, 1), np.float32))
    with msc.set_context(mode=mode), notices.collected() as found:
        for weights in (net, other):
            optimizer = nn.SGD(weights.trainable_params(), 0.1)
            step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
            assert not found
            step(x, y)
            step(x, y)
    assert [d.code for d in found] == ["MSC0891"]
