"""`msc tune` and `--tuned`: a tiny budget, the same results, the same C each time; what was tuned stays tuned."""

from pathlib import Path

import numpy as np
import pytest

import msc
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.driver.reports.benchmark import Workload
from msc.driver.tuner.tuning import Try, searches, tried_table, tune
from msc.driver.verbs.tune import parse_duration
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.tuning.tuned_schedules import TunedSchedule, TuningFile, read_tuning, target_text
from msc.support.diagnostics import MscError
from msc.targets.catalogue import machine_named

MLP = str(Path(__file__).resolve().parents[4] / "samples" / "mlp" / "mlp.mir")
PIXELS = np.random.default_rng(0).random((1, 784), np.float32)
QUICK = Workload({}, warm_up=1, seconds=0.0)


def c_of(options: CompileOptions) -> str:
    return generate_c(compile_model(MLP, options)).source


def assert_same_results(tuned: Path) -> None:
    expected = msc.compile(MLP)(PIXELS)
    np.testing.assert_allclose(msc.compile(MLP, tuned=tuned)(PIXELS), expected, rtol=1e-5, atol=1e-7)


def test_a_tiny_budget_gives_a_file_that_a_compilation_takes(tmp_path: Path) -> None:
    said = list[str]()
    found = tune(MLP, CompileOptions(), QUICK, 1.0, said.append).found
    path = tmp_path / "mlp.tune.json"
    path.write_text(found.to_json(), "utf-8")
    assert read_tuning(path) == found
    assert said[0].endswith("kernels to tune")
    assert_same_results(path)
    assert c_of(CompileOptions(tuned=path)) == c_of(CompileOptions(tuned=path))


def test_the_table_of_what_was_tried() -> None:
    found = searches(MLP, CompileOptions(), QUICK)
    first, *others = found
    first.tries += [Try(1.5, "slow"), Try(None, "wrong"), Try(0.9, "fast")]
    head, *rows = tried_table(found)
    assert head.split()[:2] == ["kernel", "tried"]
    assert rows[0].split() == [first.label, "3", "1", "0.90x", "fast"]
    assert rows[1].split() == ["1.50x", "slow"]
    assert len(rows) == 2 + len(others)


def test_other_plans_give_other_c_and_the_same_results(tmp_path: Path) -> None:
    target = target_text(machine_named("native"))
    entries = [
        TunedSchedule(s.label, s.key, target, 1, 2.0, 1.0, tuple(to_lines(next(s.neighbourhood.of(s.start)))))
        for s in searches(MLP, CompileOptions(), QUICK)
    ]
    assert len(entries) >= 2
    path = tmp_path / "other.json"
    path.write_text(TuningFile(tuple(entries)).to_json(), "utf-8")
    tuned = CompileOptions(tuned=path)
    assert c_of(tuned) == c_of(tuned) != c_of(CompileOptions())
    assert_same_results(path)


def test_the_cache_tells_tuning_files_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(TuningFile(()).to_json(), "utf-8")
    first = msc.compile(MLP, tuned=path).path
    path.write_text(TuningFile((), "0.0.1").to_json(), "utf-8")
    assert first is not None
    with pytest.raises(MscError) as raised:
        msc.compile(MLP, tuned=path)
    assert [d.code for d in raised.value.diagnostics] == ["MSC0410"]


@pytest.mark.parametrize(("text", "seconds"), [("60", 60.0), ("0.5s", 0.5), ("5m", 300.0), ("1h", 3600.0)])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1", "1d", "1e3", "inf"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(MscError, match="MSC0008"):
        parse_duration(text)
