"""One graph that several ranks train: losses and parameters are those of one rank, in the interpreter and over MPI."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import nn, ops
from msc.dialects.ranks import current_ranks, exchanged, run_ranks
from msc.frontend.parallel import Layout, reset_auto_parallel_context, set_auto_parallel_context
from msc.interp.meanings import collectives as meanings
from msc.nn.auto_parallel import AutoParallel
from msc.support.diagnostics import MscError
from tests.unit.parallel.programs import mpirun, needs_mpi
from tests.unit.parallel.training import OPTIMIZER_PARALLEL, SEARCHES, Training, program, trained

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("mlp", "dp=2,tp=2", OPTIMIZER_PARALLEL),
    ("gpt", "tp=2", {}),
    ("resnet8", "dp=2", {}),
    *zip(("gpt", "resnet8", "mlp"), ("tp=2", "dp=2", "dp=2,tp=2"), SEARCHES, strict=True),
]


@pytest.mark.parametrize(("network", "mesh", "settings"), CASES)
def test_ranks_train_as_one(network: str, mesh: str, settings: dict[str, Any]) -> None:
    """Tensors are cut by rows, columns and the layout of states; BatchNorm has the statistics of all rows."""
    training = Training(network)
    one = training.step()
    expected = training.run(one, 3)
    losses, parameters = trained(training, 3, mesh, **settings)
    for own, values in zip(losses, parameters, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9)
        for parameter, value in zip(one.get_parameters(), values, strict=True):
            np.testing.assert_allclose(value, parameter.asnumpy(), rtol=1e-9, atol=1e-9, err_msg=parameter.name)


class Clipped(nn.TrainOneStepCell):
    """Gradients are clipped by their norm over all parameters before the update."""

    def construct(self, *inputs: Any) -> Any:
        from msc import value_and_grad

        loss, gradients = value_and_grad(self.network, None, self.weights)(*inputs)
        self.optimizer(ops.clip_by_global_norm(gradients, 0.1))
        return loss


def test_norms_and_overflow_are_of_all_ranks() -> None:
    """A norm over gradients of which each rank has parts; a loss scale that one rank's rows make overflow."""
    clipped = Training("mlp", make=lambda network, optimizer: Clipped(network, optimizer))
    expected = clipped.run(clipped.step(), 3)
    for losses in trained(clipped, 3, "dp=2,tp=2", **OPTIMIZER_PARALLEL)[0]:
        np.testing.assert_allclose(losses, expected, rtol=1e-9)
    scaled = Training(
        "mlp", np.float32, make=lambda network, optimizer: nn.TrainOneStepWithLossScaleCell(
            network, optimizer, nn.DynamicLossScaleUpdateCell(2.0**127, 2, 4), returns_state=False
        )
    )  # fmt: skip
    expected = scaled.run(scaled.step(), 3)
    for losses in trained(scaled, 3, "dp=2")[0]:
        np.testing.assert_allclose(losses, expected, rtol=1e-5)


DP_MP = Layout((2, 2), ("dp", "mp"))


class Sharded(nn.Cell):
    """Two products by weights."""

    def __init__(self, *strategies: Any) -> None:
        super().__init__()
        first, second = strategies or (None, None)
        self.first, self.second = ops.MatMul().shard(first), ops.MatMul().shard(second)
        draw = np.random.default_rng(0)
        self.w, self.v = (msc.Parameter(draw.integers(-4, 4, (8, 8)).astype(np.float32)) for _ in range(2))

    def construct(self, x: Any) -> Any:
        return self.second(self.first(x, self.w), self.v)


X = np.arange(64, dtype=np.float32).reshape(8, 8)


def met(make: Callable[[], object], monkeypatch: pytest.MonkeyPatch, **settings: Any) -> list[str]:
    """The collectives of rank 0 of four, whose result is that of one rank."""
    cell = Sharded()
    expected = X @ cell.w.asnumpy() @ cell.v.asnumpy()
    found: list[str] = []

    def noted(groups: Any, what: str, value: Any) -> Any:
        found.extend([what.split()[0]] if current_ranks().rank == 0 else [])
        return exchanged(groups, what, value)

    monkeypatch.setattr(meanings, "exchanged", noted)
    cells: list[Any] = [make() for _ in range(4)]
    set_auto_parallel_context(**{"parallel_mode": "semi_auto_parallel", "full_batch": True} | settings)
    try:

        def rank(number: int) -> Any:
            called: Any = msc.jit(cells[number], backend="interpreter")
            return called(msc.Tensor(X)).asnumpy()

        for result in run_ranks(4, rank):
            np.testing.assert_array_equal(result, expected)
    finally:
        reset_auto_parallel_context()
    return found


def planned(*plan: Any) -> nn.Cell:
    return Sharded().shard(*plan)


CUTS: list[tuple[Callable[[], object], list[str]]] = [
    (lambda: Sharded(((4, 1), (1, 1)), ((1, 1), (1, 4))), ["ms.all_gather", "ms.all_gather"]),
    (lambda: Sharded(((4, 1), (1, 1)), ((4, 1), (1, 1))), ["ms.all_gather"]),
    (lambda: Sharded((DP_MP("dp", "None"), DP_MP("None", "mp")), (DP_MP("dp", "mp"), DP_MP("mp", "None"))),
     ["ms.all_reduce", "ms.all_gather"]),
    (lambda: planned(((4, 1),)), ["ms.all_gather"]),
    (lambda: planned((None,), (DP_MP(("dp", "mp"), "None"),)), ["ms.all_gather"]),
    (lambda: planned((None,), None, {"self.w": (1, 4), "v": (4, 1)}), ["ms.all_reduce"]),
    (lambda: msc.shard(Sharded(), in_strategy=((1, 4),)), ["ms.all_gather"]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "collectives"), CUTS)
def test_tensors_lie_as_users_say(
    make: Callable[[], object], collectives: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By numbers of parts and by named axes, of operators, cells, functions and parameters."""
    assert met(make, monkeypatch) == collectives


WRONG: list[Callable[[], object]] = [
    lambda: Sharded(((4, 2), (1, 1)), None),
    lambda: Sharded(((4, 1),), None),
    lambda: Sharded(((3, 1), (1, 1)), None),
    lambda: Sharded((Layout((2, 4), ("dp", "mp"))("dp", "mp"), None), None),
    lambda: planned(((4,),)),
    lambda: planned(((4, 1), (1, 1))),
]


@pytest.mark.parametrize("make", WRONG)
def test_what_cannot_be_cut_is_refused(make: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MscError, match="MSC1109"):
        met(make, monkeypatch)


def test_strategies_of_a_search_are_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search found is written, changed and read; marks of users stay."""
    file = tmp_path / "strategies.txt"
    settings = {"parallel_mode": "auto_parallel", "search_mode": "dynamic_programming", "mesh": "a=4"}
    met(lambda: Sharded(((1, 4), (4, 1)), None), monkeypatch, strategy_ckpt_save_file=str(file), **settings)
    first, second = file.read_text().splitlines()[1:]
    assert "[[1, 4], [4, 1]]" in first
    file.write_text(f"{first}\n{second.split()[0]} [[4, 1], [1, 1]]\n")
    found = met(Sharded, monkeypatch, strategy_ckpt_load_file=str(file), **settings)
    assert found == ["ms.reduce_scatter", "ms.all_gather"]
    file.write_text("other [[4]]\n")
    with pytest.raises(MscError, match="MSC1125"):
        met(Sharded, monkeypatch, strategy_ckpt_load_file=str(file), **settings)


def test_auto_parallel_is_its_settings() -> None:
    try:
        net = AutoParallel(nn.Dense(2, 2), parallel_mode="recursive_programming")
        net.hsdp(threshold=0, optimizer_level="level3")
        net.dataset_strategy("full_batch")
        for key, value in (
            ("parallel_mode", "auto_parallel"), ("search_mode", "recursive_programming"), ("full_batch", True),
            ("enable_parallel_optimizer", True),
        ):  # fmt: skip
            assert msc.get_auto_parallel_context(key) == value
        assert net(msc.Tensor(np.ones((1, 2), np.float32))).shape == (1, 2)
        with pytest.raises(MscError, match="MSC0895"):
            AutoParallel(net, "automatic")
    finally:
        reset_auto_parallel_context()


@needs_mpi
def test_a_run_goes_on_with_fewer_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks, each a stage of a pipeline, write whole checkpoints; one rank goes on from the last."""
    monkeypatch.chdir(tmp_path)
    whole = tmp_path / "whole"
    whole.mkdir()
    Path("two.py").write_text(program(1, "dp=1", 2), "utf-8")
    Path("one.py").write_text(program(2, ""), "utf-8")
    ran = mpirun(2, [sys.executable, "two.py"], tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with msc.set_context(mode=msc.GRAPH_MODE):
        runpy.run_path("one.py")
        monkeypatch.chdir(whole)
        runpy.run_path("../one.py")
    with np.load("../1_0.npz") as resumed, np.load("1_0.npz") as expected:
        for name in expected.files:
            np.testing.assert_allclose(resumed[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)
