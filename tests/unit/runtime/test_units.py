"""Several compilers at once: how C is divided among them, and what ends them."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from threading import Thread, main_thread

import numpy as np
import pytest
from numpy.typing import NDArray

from msc.runtime.build import BuildOptions, build
from msc.runtime.program import CProgram
from msc.runtime.units import SplitSource
from msc.support.diagnostics import MscError

Array = NDArray[np.float32]

KERNELS = tuple(f"/* {'x' * length} */ void k{length}(void) {{}}\n" for length in range(100, 9000, 300))
SPLIT = SplitSource("/* opening */\n", KERNELS, "/* closing */\n")
SLEEPER = """#!/bin/sh
case "$*" in
    --version) echo fake 1.0; exit;;
    *"-x c"*) exit;;
esac
touch '{started}'
(sleep 5; touch '{survivor}')
"""
"""A compiler that leaves its work to a child, as gcc does; if that outlives it there will be a file."""


def test_every_kernel_is_in_one_unit_and_units_are_of_one_length() -> None:
    units = SPLIT.units(4)
    assert all(unit.startswith(SPLIT.opening) for unit in units)
    assert all(sum(piece in unit for unit in units) == 1 for piece in (*KERNELS, SPLIT.closing))
    lengths = [len(unit) for unit in units]
    assert max(lengths) - min(lengths) < max(map(len, KERNELS))


@pytest.mark.parametrize(
    ("split", "processors", "count"),
    [(SPLIT, 1, 1), (SPLIT, 2, 12), (SplitSource("", KERNELS[:3], ""), 8, 1), (SplitSource("", (), ""), 8, 1)],
)
def test_dividing_must_pay(split: SplitSource, processors: int, count: int) -> None:
    assert split.count(processors) == count


@pytest.fixture
def divided(program: CProgram) -> CProgram:
    return replace(program, split=SPLIT)


@pytest.fixture
def survivor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a compiler leaves that goes on after the build; the only compiler."""
    path, compiler = tmp_path / "survivor", tmp_path / "cc"
    compiler.write_text(SLEEPER.format(survivor=path, started=tmp_path / "started"))
    compiler.chmod(0o755)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return path


@pytest.fixture
def interruptible() -> Generator[None]:
    """Interrupts raise, also where the tests were started in the background, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_compilers(
    divided: CProgram, weights: dict[str, Array], survivor: Path, tmp_path: Path
) -> None:
    """And what they have started; no file is left."""
    folder = tmp_path / "temporary"

    def interrupt() -> None:
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        build(divided, weights, "so", tmp_path / "x.so", BuildOptions(processors=2))
    assert not survivor.exists()
    assert list(folder.iterdir()) == []


def test_the_first_error_ends_the_other_compilers(
    divided: CProgram, weights: dict[str, Array], survivor: Path, tmp_path: Path
) -> None:
    compiler = tmp_path / "cc"
    fails = 'case "$*" in *_1.c) echo not C >&2; exit 1;; esac\n'
    compiler.write_text(compiler.read_text().replace("touch ", f"{fails}touch ", 1))
    with pytest.raises(MscError, match=r"MSC0503(.|\n)*not C(.|\n)*scale_1.c"):
        build(divided, weights, "so", tmp_path / "x.so", BuildOptions(processors=2))
    assert not survivor.exists()
