"""Pipelines: stages compute micro-batches in the order of a schedule, and train what one rank does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from msc import nn
from msc.dialects.ranks import current_ranks
from msc.interp.meanings import collectives
from msc.support.diagnostics import MscError
from tests.unit.parallel.training import OPTIMIZER_PARALLEL, Training, trained


def pipelined(name: str, micro: int, stages: Sequence[str]) -> Training:
    """A training whose cells are on stages, in their order."""
    config = {cell: stage for stage, cells in enumerate(stages) for cell in cells.split()}
    return Training(
        name, make=lambda network, optimizer: nn.TrainOneStepCell(nn.PipelineCell(network, micro, config), optimizer)
    )


MLP = ("_backbone.0 _backbone.1", "_backbone.2")
CASES: list[tuple[str, int, tuple[str, ...], str, dict[str, Any]]] = [
    ("mlp", 4, MLP, "dp=1", {}),
    ("mlp", 2, MLP, "dp=2", {"pipeline_config": {"pipeline_scheduler": "gpipe"}}),
    ("mlp", 2, MLP, "dp=2", OPTIMIZER_PARALLEL),
    ("gpt", 2, ("_backbone.layer", "_backbone.head"), "tp=2", {}),
    ("lenet5", 4, ("_backbone.conv1", "_backbone.conv2", "_backbone.fc1 _backbone.fc2", "_backbone.fc3"), "dp=1", {}),
]


@pytest.mark.parametrize(("network", "micro", "stages", "mesh", "settings"), CASES)
def test_stages_train_as_one(
    network: str, micro: int, stages: tuple[str, ...], mesh: str, settings: dict[str, Any]
) -> None:
    training = pipelined(network, micro, stages)
    one = training.step()
    expected = training.run(one, 3)
    losses, parameters = trained(training, 3, mesh, pipeline_stages=len(stages), **settings)
    for own, values in zip(losses, parameters, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-12)
        for parameter, value in zip(one.get_parameters(), values, strict=True):
            np.testing.assert_allclose(value, parameter.asnumpy(), rtol=1e-9, atol=1e-9, err_msg=parameter.name)


@pytest.mark.parametrize(("schedule", "most"), [("1f1b", 2), ("gpipe", 4)])
def test_micro_batches_in_flight(schedule: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many micro-batches the first stage has given whose gradient has not come back."""
    flight = [0]
    real = collectives.sent

    def noted(sources: Sequence[int], receivers: Sequence[int], what: str, value: Any) -> Any:
        if current_ranks().rank == 0 and value.ndim == 2:
            flight.append(flight[-1] + (1 if list(sources) == [0] else -1))
        return real(sources, receivers, what, value)

    monkeypatch.setattr(collectives, "sent", noted)
    config = {"pipeline_scheduler": schedule}
    trained(pipelined("mlp", 4, MLP), 1, "dp=1", pipeline_stages=2, pipeline_config=config)
    assert len(flight) == 9
    assert flight[-1] == 0
    assert max(flight) == most


def test_gradients_are_accumulated() -> None:
    """Each rank takes parts of its own rows, and what it computes is the sum over all parts of all rows."""
    training = Training(
        "mlp", make=lambda network, optimizer: nn.TrainOneStepCell(nn.GradAccumulationCell(network, 2), optimizer)
    )
    expected = training.run(training.step(), 3)
    for losses in trained(training, 3, "dp=2")[0]:
        np.testing.assert_allclose(losses, expected, rtol=1e-12)


def test_wrong_stages_are_refused() -> None:
    with pytest.raises(MscError, match="MSC1110"):
        trained(pipelined("mlp", 2, ("_backbone.0", "", "_backbone.2")), 1, "dp=1", pipeline_stages=2)
    with pytest.raises(MscError, match="MSC0824"):
        pipelined("mlp", 2, ("first",)).step()
