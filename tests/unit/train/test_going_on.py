"""Runs that go on behind a checkpoint: after SIGKILL at random moments, and at the end of an epoch."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc import nn
from msc.train import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    Model,
    ModelCheckpoint,
    ReduceLROnPlateau,
)
from msc.train.state import newest
from tests.killed_runs.killing import check, whole_run

ROWS = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


@pytest.mark.parametrize("kind", ["shuffled", "fitted", "sinks"])
def test_a_run_that_is_killed_at_random_moments_ends_in_the_same_bits(kind: str, tmp_path: Path) -> None:
    check(kind, tmp_path / "killed", whole_run(kind, tmp_path / "whole"), kills=2, chance=random.Random())


def run(folder: Path, *callbacks: Callback) -> dict[str, bytes]:
    """Fit for six epochs of four steps, from the newest checkpoint on: the parameters that it ends with."""
    msc.set_seed(1)
    net = nn.Dense(3, 1)
    trained = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9), {"loss"})
    rows = ds.NumpySlicesDataset({"x": ROWS, "y": ROWS[:, :1]}, shuffle=True).batch(5)
    trained.fit(6, rows, rows, callbacks=[*callbacks], resume=folder)
    return {p.name: p.asnumpy().tobytes() for p in trained.train_network.get_parameters()}


def killed_before_the_end_of(epoch: int) -> Callback:
    """As if the process ended when the last step of an epoch is saved, and its evaluation would begin."""

    def step_end(context: Any) -> None:
        if context.original_args().cur_step_num == 4 * epoch:
            raise KeyboardInterrupt

    return LambdaCallback(on_train_step_end=step_end)


def plateau() -> list[Callback]:
    return [
        EarlyStopping(patience=2, min_delta=0.5, restore_best_weights=True),
        ReduceLROnPlateau(patience=1, min_delta=0.5, factor=0.5),
    ]


@pytest.mark.parametrize("epoch", [1, 3, 4])
def test_the_end_of_an_epoch_is_made_up_for(epoch: int, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    expected = run(whole, *plateau(), ModelCheckpoint("a", whole))
    with pytest.raises(KeyboardInterrupt):
        run(broken, *plateau(), ModelCheckpoint("a", broken), killed_before_the_end_of(epoch))
    history = History()
    assert run(broken, *plateau(), ModelCheckpoint("a", broken), history) == expected
    assert history.epoch["epoch"] == list(range(epoch, 5))


def test_a_run_that_was_stopped_early_does_not_go_on(tmp_path: Path) -> None:
    config = CheckpointConfig(save_checkpoint_steps=3)
    ended = run(tmp_path, *plateau(), ModelCheckpoint("a", tmp_path, config))
    assert run(tmp_path, *plateau(), ModelCheckpoint("a", tmp_path, config)) == ended


def test_rates_are_saved_after_they_changed_wherever_callbacks_stand(tmp_path: Path) -> None:
    rates = LearningRateScheduler(lambda rate, step: rate / 2)
    run(tmp_path, ModelCheckpoint("a", tmp_path, CheckpointConfig(1, keep_checkpoint_max=1)), rates)
    found = newest(tmp_path)
    assert found is not None
    assert float(msc.load_checkpoint(found)["learning_rate"]) == np.float32(0.05) / 2**24


def test_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    run(tmp_path, ModelCheckpoint("a", tmp_path))
    unfinished, other = tmp_path / ".a-1_2.ckpt.x1y2.tmp", tmp_path / ".b-1_2.ckpt.x1y2.tmp"
    for path in (unfinished, other):
        path.touch()
    run(tmp_path, ModelCheckpoint("a", tmp_path))
    assert not unfinished.exists()
    assert other.exists()


def test_of_files_of_one_tick_of_the_clock_the_newest_step_is_taken(tmp_path: Path) -> None:
    for step in (9, 10, 8):
        path = tmp_path / f"a-1_{step}.ckpt"
        path.touch()
        os.utime(path, ns=(0, 0))
    found = newest(tmp_path)
    assert found is not None
    assert found.name == "a-1_10.ckpt"


STATES = ("epoch_num", "step_num", "random_state", "host_random_state", "dataset_state", "epochs_ended")
DAMAGE: dict[str, Callable[[Any], Any]] = {
    "zeros": np.zeros_like,
    "ones": lambda a: -np.ones_like(a).astype(np.int64),
    "short": lambda a: np.atleast_1d(a)[:-1],
    "long": lambda a: np.concatenate([np.atleast_1d(a)] * 2),
    "floats": lambda a: np.full(a.shape, np.nan, np.float32),
    "booleans": lambda a: np.ones(a.shape, bool),
    "nested": lambda a: a[None],
    "huge": lambda a: np.full(a.shape, np.iinfo(np.int64).max),
    "scalar": lambda a: np.array(3),
}


def code_of(action: Callable[[Path], object], path: Path) -> str:
    """The code of the error that an action ends with, if it does."""
    try:
        action(path)
    except msc.MscError as error:
        return error.diagnostics[0].code
    return ""


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_states_are_refused_by_name(kind: str, tmp_path: Path) -> None:
    """Each of them ends in a run, or in MSC0879 or MSC0831; never in an error of the inside."""
    run(tmp_path, ModelCheckpoint("a", tmp_path, CheckpointConfig(12, keep_checkpoint_max=1)))
    file = newest(tmp_path)
    assert file is not None
    whole = msc.load_checkpoint(file)
    for key in (key for key in STATES if key in whole):
        entries = {**whole, key: msc.Tensor(DAMAGE[kind](np.asarray(whole[key].asnumpy())))}
        damaged = tmp_path / "damaged.ckpt"
        msc.save_checkpoint(entries, damaged)
        assert code_of(run, damaged) in ("", "MSC0879", "MSC0831"), key
