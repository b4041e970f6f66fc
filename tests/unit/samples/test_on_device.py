"""A step of training as a C program: the losses are those of Python, whatever the number of threads."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "on_device"


def test_a_device_trains_as_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes the steps on one thread, the C program on two, under the address sanitizer."""
    monkeypatch.setattr(sys, "argv", ["step.py", str(tmp_path)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    runpy.run_path(str(SAMPLE / "step.py"), run_name="__main__")
    msc = [sys.executable, "-m", "msc.driver", "compile"]
    subprocess.run([*msc, "step.mir", "-o", "step.c", "--name", "step", "--threads", "2"], cwd=tmp_path, check=True)
    header = (tmp_path / "step.h").read_text("utf-8")
    flags = re.findall(r"cc (-std=.*) -c", header)[0].split()
    sanitizers = ["-fsanitize=address", "-fno-sanitize-recover=all"]
    sources = ["-I.", "step.c", "step_weights.S", str(SAMPLE / "main.c"), "-lm", "-lpthread"]
    subprocess.run(["cc", *flags, *sanitizers, *sources, "-o", "train"], cwd=tmp_path, check=True)
    run = subprocess.run(["./train", "digits.bin"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == (tmp_path / "losses.txt").read_text("utf-8")
    losses = [float(line) for line in run.stdout.splitlines()]
    assert len(losses) == 30
    assert sum(losses[-6:]) < 0.1 * sum(losses[:6])
    assert subprocess.run(["./train", "step.h"], cwd=tmp_path, capture_output=True, check=False).returncode == 1
