"""A few of the commands that `python -m tests.fuzz cli` and `environment` try."""

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.commands import FAULTS, Trial, answer, prepare, random_trial, verbs


@pytest.mark.parametrize("seed", range(3))
def test_random_commands_are_answered(tmp_path: Path, seed: int) -> None:
    prepare(tmp_path / "work")
    said = answer(random_trial(np.random.default_rng(seed), verbs(), ["none"]), tmp_path / "work")
    assert not said.startswith("fault"), said


@pytest.mark.parametrize("fault", ["no streams", "full stdout", "small files"])
def test_commands_with_little_are_answered(tmp_path: Path, fault: str) -> None:
    assert fault in FAULTS
    prepare(tmp_path / "work")
    said = answer(Trial(("opt", "m.mir"), fault), tmp_path / "work")
    assert not said.startswith("fault"), said
