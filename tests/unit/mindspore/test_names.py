"""Names of MindSpore's that programs import: internal ones, and those whose work is refused in words."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from msc.mindspore import internals, names
from msc.mindspore.refusals import MEMBERS, REFUSED
from msc.train import dataset_helper, serialization
from msc.train.callback.base import Facts, RunContext


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_imported_and_tells_when_it_is_used(name: str) -> None:
    value: Any = names.find(name)

    class Derived(value): ...

    with pytest.raises(msc.MscError, match="MSC0898") as raised:
        Derived()(1)
    assert raised.value.diagnostics[0].help
    assert not hasattr(msc, name) or name not in msc.__all__


def _public_names() -> dict[str, list[str]]:
    """The names of MindSpore's modules, and of its classes, whose keys begin with a star."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("public_names.txt").read_text("utf-8").splitlines()[1:]:
        if line.startswith(" "):
            found[next(reversed(found))] += line.split()
        else:
            found[line.removesuffix(":")] = []
    return found


PUBLIC = _public_names()


@pytest.mark.parametrize("module", [key for key in PUBLIC if not key.startswith("*")])
def test_every_public_name_is_there_or_says_what_is_instead(module: str) -> None:
    """What is refused is among the values: `test_what_is_refused_is_imported_and_tells_when_it_is_used`."""
    here = import_module(module)
    assert [name for name in PUBLIC[module] if getattr(here, name, None) is None and name != "type_none"] == []


def _objects() -> dict[str, Any]:
    net = nn.Dense(2, 3)
    return {
        "Cell": net,
        "Tensor": Tensor([[1.0]]),
        "Parameter": net.weight,
        "ParameterTuple": msc.ParameterTuple([net.weight]),
        "Model": msc.train.Model(net),
        "Optimizer": nn.SGD(net.trainable_params()),
        "Callback": msc.train.Callback(),
        "RunContext": RunContext(Facts()),
    }


@pytest.mark.parametrize("kind", [key[1:] for key in PUBLIC if key.startswith("*")])
def test_every_member_is_there_or_says_what_is_instead(kind: str) -> None:
    value = _objects()[kind]
    for name in PUBLIC[f"*{kind}"]:
        if f"{kind}.{name}" in MEMBERS:
            with pytest.raises(AttributeError) as raised:
                getattr(value, name)
            assert MEMBERS[f"{kind}.{name}"] in str(raised.value)
        else:
            assert hasattr(value, name), name


def test_each_table_names_what_there_is() -> None:
    for name in names.ALIASES:
        assert names.find(name) is not None
    for name in internals.__all__:
        assert names.find(name) is getattr(internals, name)
    assert names.find("no_such_name") is None
    with pytest.raises(AttributeError, match="MSC0832"):
        import_module("msc.ops").no_such_name  # noqa: B018


def test_a_network_in_parts_and_its_gradient() -> None:
    net = nn.Dense(3, 2)
    x = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    whole = net(x).asnumpy()
    for made in (nn.PipelineCell(net, 2), nn.MicroBatchInterleaved(net, 2)):
        np.testing.assert_allclose(made(x).asnumpy(), whole[:2] + whole[2:], 1e-6)
    with pytest.raises(msc.MscError, match="MSC0201"):
        nn.PipelineCell(net, 3)(x)
    (weight, _) = nn.WithGradCell(net, nn.MSELoss())(x, Tensor(np.zeros((4, 2), np.float32)))
    wanted = (whole / 4).T @ x.asnumpy()
    np.testing.assert_allclose(weight.asnumpy(), wanted, 1e-5)


def test_a_batch_a_step_from_a_data_set() -> None:
    data = msc.dataset.NumpySlicesDataset({"x": np.arange(8, dtype=np.float32)}, shuffle=False).batch(4)
    rows = [row[0].tolist() for row in dataset_helper.DatasetHelper(data, dataset_sink_mode=False)]
    assert rows == [[0, 1, 2, 3], [4, 5, 6, 7]]
    helper = dataset_helper.DatasetHelper(data, sink_size=3)
    net = dataset_helper.connect_network_with_dataset(nn.ReLU(), helper)
    assert [net(*row).tolist()[0] for row in helper] == [0, 4, 0]


def test_a_gradient_is_scaled_as_programs_for_overflow_do() -> None:
    scaled = internals.grad_scale(Tensor(4.0), Tensor([2.0, 8.0]))
    assert scaled.tolist() == [0.5, 2.0]
    assert int(internals._grad_overflow(Tensor([1.0, float("inf")]))) == 1


@pytest.mark.parametrize("name", ["_rnn_tanh_cell", "_gru_cell", "_lstm_cell"])
def test_a_step_as_a_function_is_that_of_the_cell(name: str) -> None:
    kind = {"_rnn_tanh_cell": nn.RNNCell, "_gru_cell": nn.GRUCell, "_lstm_cell": nn.LSTMCell}[name]
    cell: Any = kind(3, 2)
    x, h = ops.ones((2, 3)), ops.ones((2, 2))
    state = (h, h) if name == "_lstm_cell" else h
    found = getattr(internals, name)(x, state, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    wanted = cell(x, state)
    pairs: Any = zip(found, wanted, strict=True) if name == "_lstm_cell" else [(found, wanted)]
    for a, b in pairs:
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 1e-6)


def test_checkpoints_in_both_forms(tmp_path: Any) -> None:
    net = nn.Dense(3, 2)
    msc.save_checkpoint(net, str(tmp_path / "net"))
    assert (tmp_path / "net.ckpt").read_bytes()[8:9] != b"{"
    serialization.ckpt_to_safetensors(tmp_path, tmp_path / "out", name_map={"weight": "w"})
    found = msc.load_checkpoint(tmp_path / "out" / "net.safetensors")
    assert found["w"].asnumpy().tolist() == net.weight.asnumpy().tolist()
    p = Parameter(Tensor([1.0]), name="p")
    nn.ParameterUpdate(p)(Tensor([3.0]))
    assert p.tolist() == [3.0]


def test_the_state_of_random_numbers_comes_again() -> None:
    library: Any = msc
    state = library.get_rng_state()
    first = ops.rand(3).tolist()
    library.set_rng_state(state)
    assert ops.rand(3).tolist() == first
