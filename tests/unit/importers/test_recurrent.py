"""RNN, GRU and LSTM in every form, as loops over time: what they give is what ONNX Runtime gives, in C too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from tests.unit.importers.agreement import agreed, names, normal
from tests.unit.importers.models import model, node, tensor

Array = NDArray[Any]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, INPUT, HIDDEN = 7, 2, 3, 5
OPTIONAL = ("B", "sequence_lens", "initial_h", "initial_c", "P")
"""Inputs after X, W and R, in their order."""


def layer(operator: str, given: tuple[str, ...] = (), **attributes: Any) -> tuple[ModelProto, dict[str, Array]]:
    """A model of one layer with all its outputs, and its inputs."""
    steps = attributes.pop("steps", STEPS)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    first = attributes.get("layout", 0)
    gates = GATES[operator] * HIDDEN
    constants = {
        "W": normal(directions, gates, INPUT, seed=1) / 2,
        "R": normal(directions, gates, HIDDEN, seed=2) / 2,
        "B": normal(directions, 2 * gates, seed=3),
        "P": normal(directions, 3 * HIDDEN, seed=4),
        "sequence_lens": np.array([steps, 3], np.int32),
    }
    state = (BATCH, directions, HIDDEN) if first else (directions, BATCH, HIDDEN)
    inputs = {"X": normal(BATCH, steps, INPUT, seed=5) if first else normal(steps, BATCH, INPUT, seed=5)}
    inputs |= {name: normal(*state, seed=6 + i) for i, name in enumerate(("initial_h", "initial_c")) if name in given}
    places = OPTIONAL if operator == "LSTM" else OPTIONAL[:3]
    used = ["X", "W", "R", *(name if name in given else "" for name in places)]
    outputs = ["Y", "Y_h", *(["Y_c"] if operator == "LSTM" else [])]
    made = model(
        [node(operator, used, outputs, hidden_size=HIDDEN, **attributes)],
        [tensor(name, array.shape) for name, array in inputs.items()],
        [tensor(name, None) for name in outputs],
        {name: array for name, array in constants.items() if name in used},
        opset=14,
    )
    return made, inputs


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", list(GATES))
def test_directions(operator: str, direction: str) -> None:
    imported = agreed(*layer(operator, ("B", "initial_h"), direction=direction))
    assert names(imported).count("scf.for") == (2 if direction == "bidirectional" else 1)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", list(GATES))
def test_sequences_of_different_lengths(operator: str, direction: str) -> None:
    agreed(*layer(operator, ("B", "sequence_lens", "initial_h"), direction=direction))


@pytest.mark.parametrize("before", [0, 1])
def test_gru_with_its_reset_before_or_after_the_product(before: int) -> None:
    for given in (("B",), ()):
        agreed(*layer("GRU", given, linear_before_reset=before))


def test_lstm_with_peepholes_clipping_and_initial_states() -> None:
    agreed(*layer("LSTM", ("B", "initial_h", "initial_c", "P"), clip=0.7))


@pytest.mark.parametrize("operator", ["RNN", "GRU"])
def test_clipping(operator: str) -> None:
    agreed(*layer(operator, ("B", "initial_h"), clip=0.4))


def test_lstm_whose_forget_gate_follows_the_input_gate() -> None:
    agreed(*layer("LSTM", ("B",), input_forget=1))


def test_other_activations() -> None:
    agreed(*layer("RNN", ("B",), activations=["Relu"]))
    agreed(*layer("LSTM", (), activations=["HardSigmoid", "Softsign", "Tanh"]))


@pytest.mark.parametrize("steps", [1, 3])
def test_few_steps_are_unrolled(steps: int) -> None:
    assert "scf.for" not in names(agreed(*layer("LSTM", ("B",), steps=steps)))


def test_what_is_not_used_is_not_collected() -> None:
    made, inputs = layer("LSTM", ("B",))
    made.graph.node[0].output[0] = ""
    del made.graph.output[0]
    assert "ms.insert_slice" not in names(agreed(made, inputs))


def test_a_sequence_as_an_input_of_lengths() -> None:
    made, inputs = layer("GRU", ("B", "sequence_lens"))
    (lengths,) = [t for t in made.graph.initializer if t.name == "sequence_lens"]
    made.graph.initializer.remove(lengths)
    made.graph.input.append(tensor("sequence_lens", [BATCH], TensorProto.INT32))
    agreed(made, inputs | {"sequence_lens": np.array([2, STEPS], np.int32)})
