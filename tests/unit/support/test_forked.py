"""Work that forked processes share: the same results, whatever becomes of the processes."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from msc.support import forked
from msc.support.diagnostics import Diagnostic, MscError

JOBS = list(range(16))


@pytest.fixture(autouse=True)
def several_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four processors, and no threads of the test runner: they hold no locks that the jobs take."""
    monkeypatch.setattr(forked, "_processors", lambda: 4)
    monkeypatch.setattr(forked, "_may_fork", lambda: True)


def square(job: int) -> forked.Lines:
    return [[str(job * job)]]


def wherever(job: int) -> forked.Lines:
    """Takes long enough for every process to have a part."""
    threading.Event().wait(0.02)
    return [[str(job), str(os.getpid())]]


def _children() -> set[int]:
    """Processes of this one, those that ended and nobody waited for included."""
    return {child.pid for child in psutil.Process().children()}


def test_every_job_has_its_result() -> None:
    assert forked.results(square, JOBS) == {job: square(job) for job in JOBS}


def test_several_processes_take_part() -> None:
    found = forked.results(wherever, JOBS)
    assert [found[job][0][0] for job in JOBS] == [str(job) for job in JOBS]
    assert len({found[job][0][1] for job in JOBS}) > 1


def test_only_jobs_at_given_positions_are_done_while_the_caller_finds_more(tmp_path: Path) -> None:
    def odd() -> Iterator[int]:
        yield 1
        while not (tmp_path / "1").exists():  # another process does it before there are more
            threading.Event().wait(0.001)
        yield from JOBS[3::2]

    def noted(job: int) -> forked.Lines:
        (tmp_path / str(job)).touch()
        return square(job)

    assert forked.results(noted, JOBS, odd()) == {job: square(job) for job in JOBS[1::2]}


def test_few_jobs_are_not_worth_a_process() -> None:
    assert forked.results(square, JOBS[:4]) == {}


def test_on_one_processor_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "_processors", lambda: 1)
    assert forked.results(square, JOBS) == {}


def test_processors_of_helpers_count_as_free_until_they_were_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(forked, "_may_fork", lambda: True)
    asked: list[int] = []

    def two(own: int) -> int:
        asked.append(own)
        return 2

    monkeypatch.setattr(forked, "free_processors", two)
    with forked.begun(lambda: []) as result, forked.begun(lambda: []):
        assert result is not None
        result()
        with forked.begun(lambda: []):
            pass
    forked.results(square, JOBS)
    forked.results(square, JOBS)
    assert asked == [0, 1, 1, 0, 0]


def test_threads_of_the_program_forbid_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(forked, "_processors", lambda: 4)
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        assert forked.results(square, JOBS) == {}
    finally:
        ended.set()
        other.join()


def test_jobs_of_a_process_that_dies_are_left_out() -> None:
    here = os.getpid()

    def dying(job: int) -> forked.Lines:
        if os.getpid() != here:
            os._exit(1)
        return wherever(job)

    found = forked.results(dying, JOBS)
    assert found
    assert {texts[0][1] for texts in found.values()} == {str(here)}


def test_a_job_that_is_refused_is_left_to_the_caller() -> None:
    def refusing(job: int) -> forked.Lines:
        if job == 5:
            raise MscError(Diagnostic("MSC0900", "no"))
        return wherever(job)

    assert 5 not in forked.results(refusing, JOBS)


def test_what_warns_in_another_process_is_left_to_the_caller() -> None:
    here = os.getpid()

    def warning(job: int) -> forked.Lines:
        if os.getpid() != here:
            warnings.warn("said", RuntimeWarning, stacklevel=1)
        return wherever(job)

    assert {texts[0][1] for texts in forked.results(warning, JOBS).values()} == {str(here)}


def test_an_interruption_ends_the_processes() -> None:
    here = os.getpid()

    def interrupted(job: int) -> forked.Lines:
        if os.getpid() == here:
            raise KeyboardInterrupt
        threading.Event().wait(60)
        return square(job)

    before = _children()
    with pytest.raises(KeyboardInterrupt):
        forked.results(interrupted, JOBS)
    assert _children() <= before


def test_what_is_begun_runs_in_another_process() -> None:
    with forked.begun(lambda: [[str(os.getpid())]]) as result:
        assert result is not None
        found = result()
    assert found is not None
    assert found[0][0] != str(os.getpid())


def test_what_is_begun_and_refused_has_no_result() -> None:
    def refusing() -> forked.Lines:
        raise MscError(Diagnostic("MSC0900", "no"))

    with forked.begun(refusing) as result:
        assert result is not None
        assert result() is None


def test_on_one_processor_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "_processors", lambda: 1)
    with forked.begun(lambda: [["done"]]) as result:
        assert result is None


def test_who_leaves_early_ends_what_is_begun() -> None:
    before = _children()

    def interrupted() -> None:
        with forked.begun(lambda: [[str(threading.Event().wait(60))]]):
            assert _children() > before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert _children() <= before


def test_what_is_begun_stands_aside_while_jobs_are_done(tmp_path: Path) -> None:
    steps = tmp_path / "steps"

    def stepping() -> forked.Lines:
        for _ in range(100):
            with steps.open("a") as file:
                file.write("x")
            time.sleep(0.01)
        return [["all"]]

    def counting(job: int) -> forked.Lines:
        """Longer than it takes to notice, then the steps at both ends of some time."""
        time.sleep(0.3)
        before = steps.stat().st_size
        time.sleep(0.1)
        return [[str(steps.stat().st_size - before)]]

    with forked.begun(stepping) as result:
        while not steps.exists():
            time.sleep(0.001)
        found = forked.results(counting, JOBS)
        assert result is not None
        assert result() == [["all"]]
    assert {texts[0][0] for texts in found.values()} == {"0"}
    assert steps.stat().st_size == 100
