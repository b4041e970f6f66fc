"""What graphs are compiled for: by the context, by `jit`, and by the training of a Model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn
from msc.dataset import NumpySlicesDataset
from msc.driver.artifacts import cell_compilation
from msc.driver.options import CompileOptions
from msc.support import notices
from msc.support.diagnostics import MscError

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CompileOptions]]:
    """The options of each graph that is compiled, in graph mode."""
    found: list[CompileOptions] = []
    compile_module = cell_compilation.compile_module

    def noted(module: Any, weights: Mapping[str, Any], options: CompileOptions, **rest: Any) -> Any:
        found.append(options)
        return compile_module(module, weights, options, **rest)

    monkeypatch.setattr(cell_compilation, "compile_module", noted)
    with notices.collected():
        msc.set_context(mode=msc.GRAPH_MODE)
        yield found
        msc.reset_context()


def test_threads_of_the_context_reach_cells_and_training(seen: list[CompileOptions]) -> None:
    net = nn.Dense(8, 2)
    first = net(Tensor(X)).asnumpy()
    with msc.set_context(runtime_num_threads=2):
        np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), first)
        net(Tensor(X))
        assert [options.threads for options in seen] == [None, 2]
        rows = NumpySlicesDataset((X, np.ones((4, 2), np.float32)), ["x", "y"]).batch(4)
        msc.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, rows)
    assert len(seen) > 2
    assert {options.threads for options in seen[1:]} == {2}


def test_an_ascend_is_simulated(seen: list[CompileOptions]) -> None:
    net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU())
    expected = net(Tensor(X)).asnumpy()
    with msc.set_context(device_target="Ascend"):
        np.testing.assert_allclose(net(Tensor(X)).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert [options.target for options in seen] == ["cpu", "ascend910b1"]


def test_ascend_is_told_of_once() -> None:
    with notices.collected() as found:
        msc.set_context(device_target="Ascend")
        msc.set_context(device_target="Ascend")
    msc.reset_context()
    assert [d.code for d in found] in (["MSC0581"], [])  # another test may have been told


def test_jit_says_what_its_graphs_are_for(seen: list[CompileOptions]) -> None:
    def double(x: Tensor) -> Tensor:
        return x + x

    plain = msc.jit(double)(Tensor(X)).asnumpy()
    machine = msc.jit(threads=2, march="x86-64-v2", backend="ms_backend", jit_level="O1")(double)
    np.testing.assert_array_equal(machine(Tensor(X)).asnumpy(), plain)
    simulated = msc.jit(double, target="ascend910b1", backend=None)
    np.testing.assert_array_equal(simulated(Tensor(X)).asnumpy(), plain)
    assert [(o.target, o.threads, o.march) for o in seen] == [
        ("cpu", None, None),
        ("cpu", 2, "x86-64-v2"),
        ("ascend910b1", None, None),
    ]


@pytest.mark.parametrize(
    ("options", "code"),
    [({"target": "gpu"}, "MSC0506"), ({"threads": -1}, "MSC0008"), ({"march": "i8086"}, "MSC0501")],
)
def test_what_is_not_there_is_refused(seen: list[CompileOptions], options: dict[str, Any], code: str) -> None:
    with pytest.raises(MscError, match=code):
        msc.jit(**options)(msc.ops.relu)(Tensor(X))
    assert not seen


def test_numbers_of_threads() -> None:
    for value in (-1, True, "4", 5000):
        with pytest.raises(ValueError, match="MSC0814"):
            msc.set_context(runtime_num_threads=value)


def test_a_trained_cell_with_open_sizes_is_called_with_its_states() -> None:
    """The parameters that it updates are inputs behind those of the examples, as for known sizes."""
    net = nn.Dense(8, 1)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    y = np.ones((4, 1), np.float32)
    known = msc.compile(step, X, y)
    step_of = msc.compile(step, Tensor(shape=(None, 8), dtype=msc.float32), Tensor(shape=(None, 1), dtype=msc.float32))
    assert len(step_of.inputs) == 2

    def states() -> dict[str, Any]:
        parameters = step.parameters_dict()
        return {t.name: np.array(parameters[t.name].asnumpy()) for t in known.inputs[2:]}

    first, second = states(), states()
    assert first
    names = [t.name for t in known.inputs]
    given = dict(zip(names, (X, y), strict=False))
    assert known(**given, **first) == step_of(X, y, **second)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    with pytest.raises(MscError, match="MSC0601"):
        step_of(X, y)
