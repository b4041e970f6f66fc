"""The benchmark framework: its models compute what they should, its figures are what they say."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.arena import logged_bytes
from benchmarks.compile_time import measured, steps_of
from benchmarks.exported import NAMES
from benchmarks.measure import Plan, Spread, interleaved, ratios
from benchmarks.memory import memory, table
from benchmarks.model import Array, Model
from benchmarks.models import MODELS, QUANTISED
from benchmarks.peers import PEERS, Peer, Runner
from benchmarks.report import ModelResult, PeerResult
from benchmarks.rows import isolated_row


def test_a_spread_is_the_median_and_its_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(2.0, 3.0, 4.0)


def test_steps_are_read_from_the_timing_table() -> None:
    lines = ["stage     step    ms", "loop      cse    1200.00", "loop             1200.00 in all", "total   1200.00"]
    assert steps_of("\n".join(lines)) == {"loop cse": 1.2}


def test_a_compile_time_has_every_stage_and_the_c_compiler(tmp_path: Path) -> None:
    model = tmp_path / "relu.mir"
    relu = "  %y = ms.relu %x : (tensor<4xf32>) -> tensor<4xf32>\n  func.return %y : tensor<4xf32>\n"
    model.write_text(f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{relu}}}\n")
    row = measured("relu", model, 1, 1)
    assert set(row.stages) == {"graph", "opt", "gk", "loop", "c", "artifact"}
    assert 0 < sum(row.stages.values()) < row.wall
    assert row.cpu > row.steps["artifact so"] / 2
    assert 0 < row.c_compilers < row.cpu


def test_a_ratio_is_taken_inside_each_round() -> None:
    assert ratios([2.0, 20.0, 200.0], [1.0, 10.0, 100.0]) == Spread(2.0, 2.0, 2.0)


def test_every_engine_takes_a_turn_in_every_round() -> None:
    calls = {"a": 0, "b": 0}

    def runner(name: str) -> Runner:
        def run() -> Array:
            calls[name] += 1
            return np.zeros(1, np.float32)

        return run

    times = interleaved({name: runner(name) for name in calls}, Plan(rounds=3, seconds_per_turn=1e-5))
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 3, "b": 3}
    assert min(calls.values()) >= 3 * 2


def test_multiply_adds_of_lenet5() -> None:
    convolutions = 6 * 28 * 28 * 25 + 16 * 10 * 10 * 150
    assert MODELS["lenet5"].multiply_adds == convolutions + 400 * 120 + 120 * 84 + 84 * 10


def test_the_command_measures_and_writes_json(tmp_path: Path) -> None:
    path = tmp_path / "out" / "result.json"
    result = CliRunner().invoke(main, ["lenet5", "--peers", "ort,ort-bound", "--rounds", "2", "--json", str(path)])
    assert result.exit_code == 0, result.output
    row = json.loads(path.read_text())["results"][0]
    assert [(peer["name"], len(peer["seconds"])) for peer in row["peers"]] == [("ort", 2), ("ort-bound", 2)]
    assert len(row["peaks"]) == 2
    assert min(row["peaks"]) > 0
    assert all(len(peer["clocks"]) == 2 and min(peer["clocks"]) > 0 for peer in row["peers"])
    assert "of peak" in result.output
    assert "at its clock" in result.output


class _Ending(Peer):
    """An engine that takes its process with it."""

    name, package, call = "ending", "onnxruntime", "none"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        os._exit(7)


@pytest.fixture
def _ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine, known in processes that are forked: a fresh interpreter would not have it."""
    monkeypatch.setitem(PEERS, "ending", _Ending())
    monkeypatch.setattr("benchmarks.rows.START", "fork")


@pytest.mark.usefixtures("_ending")
def test_an_engine_that_ends_its_process_is_named_and_left_out() -> None:
    result = isolated_row("mlp", ["ort", "ending", "ort-bound"], 1, Plan(rounds=1), pin=False)
    assert [peer.name for peer in result.peers] == ["ort", "ort-bound"]
    assert result.refused == {"ending": "its process ended with exit code 7"}


@pytest.mark.usefixtures("_ending")
def test_a_run_goes_on_when_the_base_fails(tmp_path: Path) -> None:
    arguments = ["mlp", "lenet5", "--peers", "ending,ort", "--rounds", "1", "--json", str(tmp_path / "result.json")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "mlp, 1 thread: not measured" in result.output
    assert "lenet5, 1 thread: not measured" in result.output


_WRITTEN_HERE = [n for n in MODELS if n not in (*NAMES, *QUANTISED) and not n.startswith(("matmul", "conv"))]


@pytest.mark.parametrize("name", _WRITTEN_HERE)
def test_results_depend_on_the_inputs(name: str) -> None:
    """A network whose result hardly depends on its input would agree with any engine."""
    model = MODELS[name]
    session: Any = importlib.import_module("onnxruntime").InferenceSession(str(model.onnx))
    first, other = (session.run(None, inputs)[0] for inputs in (model.example(), _others(model)))
    assert np.abs(first - other).max() > 1e-3 * np.abs(first).max()


def _others(model: Model) -> dict[str, Array]:
    generator = np.random.default_rng(1)
    return {name: generator.random(value.shape, np.float32) for name, value in model.example().items()}


def test_the_base_is_compared_with_the_best_other_engine() -> None:
    base, slow, fast = (PeerResult(name, "1", "", [s, s], 0.0) for name, s in (("a", 2.0), ("b", 8.0), ("c", 3.0)))
    result = ModelResult("m", 1, 1, 1, [base, slow, fast])
    assert (result.best_other, result.advantage) == (fast, 1.5)


def test_an_unknown_engine_is_named() -> None:
    result = CliRunner().invoke(main, ["lenet5", "--peers", "orrt"])
    assert result.exit_code == 2
    assert "unknown engine 'orrt'" in result.output


def test_the_arena_is_what_its_log_adds_up_to() -> None:
    log = "Reserving 4096\nExtended allocation by 1048576 bytes.\nTotal\nExtended allocation by 256 bytes.\n"
    assert logged_bytes(log) == 1048576 + 256


def test_a_call_takes_less_than_the_arena() -> None:
    found = memory("lenet5")
    assert 0 < found.workspace + found.results < found.requested < found.arena
    assert "| `lenet5` |" in table([found])


def test_engines_agree_on_a_quantised_model_within_its_tolerance() -> None:
    result = isolated_row(
        "autoencoder-int8", ["msc-f32", "msc", "ort"], 1, Plan(rounds=1, seconds_per_turn=1e-5), pin=False
    )
    assert [peer.name for peer in result.peers] == ["msc-f32", "msc", "ort"], result.refused
    assert b"QuantizeLinear" in MODELS["autoencoder-int8"].onnx.read_bytes()
