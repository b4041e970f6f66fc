"""`Model`: what is called when, what callbacks do, and runs that go on where others were killed."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc import Tensor, nn
from msc.train import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    Model,
    ModelCheckpoint,
    ReduceLROnPlateau,
    TimeMonitor,
)
from tests.unit.train.linear_model import ROWS, TARGETS, data, model


class Dropped(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.last = nn.Dense(3, 8), nn.Dropout(p=0.3), nn.Dense(8, 1)

    def construct(self, x: Any) -> Any:
        return self.last(self.drop(self.first(x)))


class Events(Callback):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def begin(self, run_context: Any) -> None:
        self.seen.append("begin")

    def epoch_begin(self, run_context: Any) -> None:
        self.seen.append("epoch_begin")

    def step_end(self, run_context: Any) -> None:
        facts = run_context.original_args()
        self.seen.append((facts.mode, facts.cur_epoch_num, facts.cur_step_num))

    def epoch_end(self, run_context: Any) -> None:
        self.seen.append("epoch_end")

    def end(self, run_context: Any) -> None:
        self.seen.append("end")


def weights(trained: Model) -> list[bytes]:
    return [p.asnumpy().tobytes() for p in trained.train_network.get_parameters()]


def test_moments_come_in_order() -> None:
    events = Events()
    model().train(1, data(batch=10), callbacks=events)
    assert events.seen == ["begin", "epoch_begin", ("train", 1, 1), ("train", 1, 2), "epoch_end", "end"]


def test_a_sink_is_a_step_to_callbacks() -> None:
    for options, expected in (
        ({}, [("train", 1, 4), ("train", 2, 8)]),
        ({"sink_size": 3}, [("train", 1, 3), ("train", 2, 6)]),
    ):
        events = Events()
        trained = model()
        trained.train(2, data(), callbacks=events, dataset_sink_mode=True, **options)
        assert [e for e in events.seen if isinstance(e, tuple)] == expected
        steps = expected[-1][-1]
        assert int(trained.train_network.parameters_dict()["global_step"]) == steps


def test_sinks_take_the_same_steps_as_epochs() -> None:
    plain, sunk = model(net=Dropped), model(net=Dropped)
    for trained, epochs, options in ((plain, 3, {}), (sunk, 2, {"dataset_sink_mode": True, "sink_size": 6})):
        msc.set_seed(3)
        trained.train(epochs, data(shuffle=True), **options)
    assert int(sunk.train_network.parameters_dict()["global_step"]) == 12
    assert weights(plain) == weights(sunk)


def test_fit_evaluates() -> None:
    history, events = History(), Events()
    model().fit(4, data(), data(batch=10), 2, callbacks=[history, events])
    assert history.epoch["epoch"] == [1, 2, 3, 4]
    assert len(history.history["mse"]) == 2
    assert [e for e in events.seen if isinstance(e, tuple) and e[0] == "eval"] == [("eval", 0, 1), ("eval", 0, 2)] * 2


def test_without_a_loss_the_network_gives_it() -> None:
    net = nn.Dense(3, 1)

    class WithLoss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, x: Any, y: Any, w: Any) -> Any:
            return (((self.net(x) - y) ** 2) * w).mean()

    rows = ds.NumpySlicesDataset({"x": ROWS, "y": TARGETS, "w": np.ones((20, 1), np.float32)}).batch(10)
    cell = WithLoss()
    before = float(cell(Tensor(ROWS), Tensor(TARGETS), Tensor(1.0)))
    Model(cell, optimizer=nn.Adam(cell.trainable_params(), 0.1)).train(3, rows)
    assert float(cell(Tensor(ROWS), Tensor(TARGETS), Tensor(1.0))) < before


def test_what_monitors_print(capsys: pytest.CaptureFixture[str]) -> None:
    model().fit(1, data(), data(), callbacks=[LossMonitor(2), TimeMonitor()])
    out = capsys.readouterr().out
    assert re.findall(r"epoch: 1 step: (\d), loss is [\d.]+", out) == ["2", "4"]
    assert re.search(r"Train epoch time: .* ms, per step time: .* ms", out)
    assert re.search(r"epoch: 1, evaluation: loss: [\d.]+, mse", out)


def test_time_monitor_shows_what_data_take(capsys: pytest.CaptureFixture[str]) -> None:
    def slow(*columns: Any) -> Any:
        time.sleep(0.02)
        return columns

    late = data().map(slow, data().columns)
    model().train(1, late, callbacks=[TimeMonitor(data_time=True)])
    shares = re.findall(r"data time: ([\d.]+) ms, (\d+)%", capsys.readouterr().out)
    assert len(shares) == 1
    assert float(shares[0][0]) > 0
    with pytest.raises(msc.MscError, match="data_time is 1"):
        TimeMonitor(data_time=1)  # pyright: ignore[reportArgumentType]


def test_a_loss_that_is_no_number_ends_the_run() -> None:
    with pytest.raises(msc.MscError, match=r"the loss is (inf|nan) in epoch") as error:
        model(rate=1e30).train(3, data(), callbacks=LossMonitor(0))
    assert error.value.diagnostics[0].code == "MSC0880"


def test_stopping_and_rates(capsys: pytest.CaptureFixture[str]) -> None:
    history = History()
    stop = EarlyStopping("loss", patience=1, min_delta=1e9, restore_best_weights=True, verbose=True)
    trained = model()
    trained.train(9, data(), callbacks=[history, stop])
    assert stop.stopped_epoch == 3
    assert history.epoch["epoch"] == [1, 2, 3]
    assert "training ends" in capsys.readouterr().out
    first = model()
    first.train(1, data())
    assert weights(first) == weights(trained)

    rates: list[float] = []
    keep = LambdaCallback(on_train_step_end=lambda c: rates.append(float(c.original_args().optimizer.get_lr())))
    model().train(1, data(), callbacks=[LearningRateScheduler(lambda rate, step: rate / 2), keep])
    np.testing.assert_allclose(rates, [0.025, 0.0125, 0.00625, 0.003125], rtol=1e-6)
    fitted = model()
    fitted.fit(4, data(), data(), callbacks=ReduceLROnPlateau(patience=1, min_delta=1e9, factor=0.5, min_lr=0.02))
    assert float(fitted.train_network.parameters_dict()["learning_rate"]) == pytest.approx(0.02)


def test_stop_is_asked_for() -> None:
    events = Events()
    stop = LambdaCallback(on_train_step_end=lambda c: c.request_stop())
    model().train(5, data(), callbacks=[events, stop])
    assert [e for e in events.seen if isinstance(e, tuple)] == [("train", 1, 1)]
    assert events.seen[-1] == "end"


def test_checkpoints_are_named_and_kept(tmp_path: Path) -> None:
    config = CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2, append_info=[{"best": 0.5}])
    writer = ModelCheckpoint("net", tmp_path, config)
    model().train(2, data(), callbacks=writer)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-2_2.ckpt", "net-2_4.ckpt"]
    assert writer.latest_ckpt_file_name == str(tmp_path / "net-2_4.ckpt")
    found = msc.load_checkpoint(tmp_path / "net-2_4.ckpt")
    assert (int(found["epoch_num"]), int(found["step_num"]), float(found["best"])) == (2, 8, 0.5)
    assert {"weight", "bias", "moments.weight", "global_step"} <= found.keys()
    model().train(1, data(), callbacks=ModelCheckpoint("net", tmp_path, CheckpointConfig(0)))
    assert (tmp_path / "net_1-1_4.ckpt").exists()
    net = nn.Dense(3, 1)
    only = CheckpointConfig(saved_network=net)
    model().train(1, data(batch=20), callbacks=ModelCheckpoint("only", tmp_path, only))
    assert list(msc.load_checkpoint(tmp_path / "only-1_1.ckpt")) == ["weight", "bias"]


def seeded() -> None:
    msc.set_seed(7)


def run(folder: Path | None, epochs: int = 4, stop_at: int = 0, rate: Any = 0.05) -> Model:
    """A run with dropout, random order and a changing rate; with a folder it goes on from its newest checkpoint."""
    trained = model(net=Dropped, rate=rate)
    seeded()
    callbacks: list[Any] = [LearningRateScheduler(lambda r, step: r * 0.9)]
    if folder is not None:
        callbacks.append(ModelCheckpoint("run", folder, CheckpointConfig(3)))

    def killed(context: Any) -> None:
        if context.original_args().cur_step_num == stop_at:
            raise KeyboardInterrupt

    callbacks.append(LambdaCallback(on_train_step_end=killed))
    pictures = data(shuffle=True, batch=4).map(lambda x: x + np.float32(0.01), "x", num_parallel_workers=3)
    trained.train(epochs, pictures, callbacks=callbacks, resume=folder)
    return trained


@pytest.mark.parametrize("stop_at", [1, 10])
def test_a_run_that_was_killed_goes_on_with_the_same_bits(tmp_path: Path, stop_at: int) -> None:
    ds.config.set_seed(11)
    whole = run(None)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stop_at=stop_at)
    again = run(tmp_path)
    assert weights(again) == weights(whole)
    assert again.train_network.parameters_dict().keys() == whole.train_network.parameters_dict().keys()


PROGRAM = """
import sys, numpy as np, msc, msc.dataset as ds
from msc import nn
from msc.train import Callback, CheckpointConfig, Model, ModelCheckpoint
class Slow(Callback):
    def step_end(self, run_context):
        print(run_context.original_args().cur_step_num, flush=True)
        if sys.argv[2] == "wait" and run_context.original_args().cur_step_num == 8:
            sys.stdin.read()
net = nn.SequentialCell(nn.Dense(3, 4), nn.Dropout(p=0.5), nn.Dense(4, 1))
x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
rows = ds.NumpySlicesDataset({"x": x, "y": x[:, :1]}).batch(4)
model = Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))
saved = ModelCheckpoint("k", sys.argv[1], CheckpointConfig(1))
model.train(3, rows, callbacks=[saved, Slow()], resume=sys.argv[1])
"""


def test_a_process_that_is_killed_leaves_whole_files_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    with subprocess.Popen([*command, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "8":
            pass
        process.send_signal(signal.SIGKILL)
    assert "k-2_3.ckpt" in {path.name for path in folder.iterdir()}
    for path in folder.iterdir():
        assert int(msc.load_checkpoint(path)["step_num"]) <= 8
    done = subprocess.run([*command, "go"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(step) for step in range(9, 16)]


def test_part_is_loaded_and_part_stays() -> None:
    net, other = Dropped(), Dropped()
    parts = {name: p for name, p in net.parameters_dict().items() if name.startswith("first.")}
    assert msc.load_param_into_net(other, parts) == (["last.weight", "last.bias"], [])
    for parameter in other.first.get_parameters():
        parameter.requires_grad = False
    before = [p.asnumpy() for p in other.get_parameters()]
    Model(other, nn.MSELoss(), nn.SGD(other.trainable_params(), 0.1)).train(1, data())
    after = [p.asnumpy() for p in other.get_parameters()]
    assert [(a == b).all() for a, b in zip(before, after, strict=True)] == [True, True, False, False]


def wrong_resume(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "a.ckpt"
    if kind == "foreign":
        msc.save_checkpoint(nn.Dense(3, 1), file)
    elif kind != "absent":
        model().train(1, data(), callbacks=ModelCheckpoint("a", tmp_path, CheckpointConfig(0)))
        file = tmp_path / "a-1_4.ckpt"
    model(net=Dropped if kind == "other" else None).train(2, data(batch=4 if kind == "steps" else 5), resume=file)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("absent", "there is no such file"),
        ("foreign", "it has no 'epoch_num'"),
        ("other", "it has no parameter 'first.weight'"),
        ("steps", "its epochs have 4 steps, those of this run 5"),
    ],
)
def test_checkpoints_from_which_no_run_goes_on(tmp_path: Path, kind: str, words: str) -> None:
    with pytest.raises(msc.MscError, match=words) as error:
        wrong_resume(tmp_path, kind)
    assert error.value.diagnostics[0].code == "MSC0879"


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        (lambda: Model(3), "MSC0876", "network is 3; it takes a Cell"),
        (lambda: Model(nn.Dense(1, 1), optimizer=3), "MSC0876", "optimizer is 3"),
        (lambda: model().train(1, [1]), "MSC0876", "a data set of msc.dataset"),
        (lambda: model().train(0, data()), "MSC0876", "epoch is 0"),
        (lambda: model().train(1, data(), sink_size=0), "MSC0876", "sink_size is 0"),
        (lambda: model().train(1, data().project("x")), "MSC0876", "takes two, data and label"),
        (lambda: model().train(1, data().batch(9, drop_remainder=True)), "MSC0876", "no batches"),
        (lambda: Model(nn.Dense(1, 1), nn.MSELoss()).train(1, data()), "MSC0876", "nothing to train with"),
        (lambda: Model(nn.Dense(3, 1)).eval(data()), "MSC0876", "evaluation needs metrics"),
        (lambda: Model(nn.Dense(3, 1), metrics={"mse"}).eval(data()), "MSC0876", "needs loss_fn or eval_network"),
        (lambda: model().fit(1, data(), data(), 0), "MSC0876", "valid_frequency is 0"),
        (lambda: model().train(1, data().map(lambda y: "a", "y")), "MSC0876", "holds strings"),
        (lambda: Model(nn.Dense(1, 1), eval_indexes=[1]), "MSC0876", "three numbers"),
        (lambda: model().train(1, data(), callbacks=[3]), "MSC0878", "callbacks is 3"),
        (lambda: model().train(1, data(), callbacks=TimeMonitor), "MSC0878", r"write TimeMonitor\(\)"),
        (lambda: model().train(1, data(), callbacks=EarlyStopping("acc")), "MSC0878", "monitor is 'acc'"),
        (lambda: CheckpointConfig(-1), "MSC0878", "save_checkpoint_steps is -1"),
        (lambda: ModelCheckpoint("a/b"), "MSC0878", "prefix is 'a/b'"),
        (lambda: ReduceLROnPlateau(factor=2), "MSC0878", "factor is 2"),
        (lambda: LearningRateScheduler(3), "MSC0878", "learning_rate_function is 3"),
        (
            lambda: model(rate=[0.1, 0.2]).train(1, data(), callbacks=LearningRateScheduler(lambda r, s: r)),
            "MSC0858",
            "no single number",
        ),
    ],
)
def test_mistakes(wrong: Any, code: str, words: str) -> None:
    with pytest.raises(msc.MscError, match=words) as error:
        wrong()
    assert error.value.diagnostics[0].code == code


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_function_on_batch_after_batch() -> None:
    data = ds.NumpySlicesDataset({"x": np.arange(6, dtype=np.float32)}, shuffle=False).batch(2)
    seen: list[list[float]] = []

    def step(x: Any) -> Any:
        seen.append(x.tolist())
        return x.sum()

    sink = msc.train.data_sink(step, data, 2)
    assert [float(sink()), float(sink())] == [5.0, 1.0]
    assert seen == [[0, 1], [2, 3], [4, 5], [0, 1]]
    for wrong, words in ((3, "takes a data set"), (data, "an integer of 1 or more")):
        with pytest.raises(msc.MscError, match=words):
            msc.train.data_sink(step, wrong, 0)


def test_a_bar_shows_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("MSC_PROGRESS", raising=False)
    shown: list[bool] = []
    for callbacks, environment in (([], "1"), ([LossMonitor(0)], "1"), ([], "0")):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("MSC_PROGRESS", environment)
        model().train(2, data(), callbacks=callbacks)
        shown.append("epoch 2 of 2" in terminal.getvalue())
    assert shown == [True, False, False]
