"""What goes wrong while data are read and written: the error comes, nothing hangs, and nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc.dataset import text, transforms


class OddError(Exception):
    """A user's own."""


ERRORS = (ValueError, OddError, MemoryError, KeyboardInterrupt, SystemExit, StopIteration, KeyError, AttributeError)
PLACES = ("source", "map", "later function", "per_batch_map", "filter", "tokenizer", "length")


def failing(draw: random.Random, place: str, error: type[BaseException]) -> ds.Dataset:
    """A pipeline of which something fails in one row."""
    count, workers = draw.randint(5, 500), draw.choice([1, 2, 4])
    bad = draw.randrange(count // 2 + 1)

    def check(k: Any) -> Any:
        if int(k) == bad:
            raise error
        return k

    class Rows:
        def __len__(self) -> int:
            return count

        def __getitem__(self, k: int) -> Any:
            return (check(np.int64(k)),)

    def rows() -> Iterator[Any]:
        yield from ((check(np.int64(k)),) for k in range(count))

    def as_text(k: Any) -> Any:
        return np.asarray(str(k))

    def tokens(line: str) -> list[str]:
        return [str(check(line))]

    def group(values: list[Any], _: Any) -> Any:
        return ([check(k) for k in values],)

    if place == "source":
        data = ds.GeneratorDataset(draw.choice([Rows(), rows]), ["x"], shuffle=False, num_parallel_workers=workers)
    else:
        data = ds.NumpySlicesDataset({"x": np.arange(count)}, shuffle=False)
    functions: dict[str, Any] = {
        "map": [check],
        "later function": [transforms.TypeCast(msc.int64), check],
        "tokenizer": [as_text, text.PythonTokenizer(tokens), text.ToNumber(msc.int64)],
    }
    if place in functions:
        data = data.map(functions[place], "x", num_parallel_workers=workers)
    if place == "filter":
        data = data.filter(lambda k: check(k) >= 0, "x")
    if place == "per_batch_map":
        return data.batch(4, per_batch_map=group)
    if place == "length":
        return data.bucket_batch_by_length(["x"], [5], [4, 4], lambda k: int(check(k)) % 9)
    return data.batch(4) if draw.random() < 0.5 else data


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads that a test starts, and those that they start: those of other tests may live on, as the one that
    writes checkpoints does.
    """
    test, threads, start = threading.current_thread(), list[threading.Thread](), threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        if threading.current_thread() in [test, *threads]:
            threads.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    return threads


@pytest.mark.parametrize("place", PLACES)
def test_an_error_comes_and_threads_end(place: str, started: list[threading.Thread]) -> None:
    """Of whatever kind it is and wherever it is raised; even if somebody keeps it."""
    draw = random.Random(place)
    for error in ERRORS:
        data = failing(draw, place, error)
        expected = RuntimeError if error is StopIteration else error
        with pytest.raises(expected) as kept:
            list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
        assert started
        for thread in started:  # Those that a thread starts come after it, before it ends.
            thread.join(100)
            assert not thread.is_alive(), (thread.name, error, kept)
        started.clear()


SLOW = """
import os, sys, time, numpy as np, msc.dataset as ds
def slow(x):
    os.write(1, b"row\\n")  # At once: what threads print may be mixed.
    time.sleep(100)
    return x
data = ds.NumpySlicesDataset({"x": np.arange(100)}).map(slow, "x", num_parallel_workers=int(sys.argv[1])).batch(2)
next(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("workers", [1, 3])
def test_an_interrupt_ends_the_program_whatever_its_threads_do(workers: int) -> None:
    command = [sys.executable, "-c", SLOW, str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "row\n"
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=50)
    assert program.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert errors.strip().endswith("KeyboardInterrupt")


FULL = """
import resource, signal, sys, numpy as np, msc, msc.dataset as ds
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
small, large = (ds.NumpySlicesDataset({"x": np.zeros((n, 100), "f4")}) for n in (3, 100_000))
small.save(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 25, 1 << 25))
try:
    large.save(sys.argv[1])
except msc.MscError as error:
    print(error.diagnostics[0].code)
print(ds.MindDataset(sys.argv[1]).get_dataset_size())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_full_disk_leaves_what_there_was(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "a.mindrecord")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.split() == ["MSC1311", "3"], done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mindrecord", "a.mindrecord.db"]


def test_rows_that_fail_leave_no_file(tmp_path: Path) -> None:
    def fail(x: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ds.NumpySlicesDataset({"x": np.arange(3)}).map(fail, "x").save(str(tmp_path / "a"))
    assert not list(tmp_path.iterdir())
