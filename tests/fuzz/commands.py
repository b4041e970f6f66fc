"""The command line, without Atheris: random options and values of every verb, and the same where little is to be had.

An answer is a fault if it is no exit code of msc's, a traceback, or an internal error.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

Random = np.random.Generator

MODEL = """builtin.module @small attributes {ms.weights = "w.safetensors"} {
  ms.parameter @w : tensor<4x6xf32>
  func.func @main(%x: tensor<?x6xf32> {ms.name = "x", ms.dims = ["n", ""]}) -> (tensor<?x4xf32> {ms.name = "y"}) {
    %w = ms.get_parameter @w : tensor<4x6xf32>
    %0 = ms.dense %x, %w
    func.return %0 : tensor<?x4xf32>
  }
}
"""
_CODES = (0, 1, 2, 130)
_SECONDS = 120
_WORDS = (
    *("", "-1", "0", "1", "2", "nan", "inf", "1e999", "x", "-", "--", ".", "/dev/null", "/dev/full", "m.mir", "out"),
    *("n=2", "n=1..3", "n=0", "n=9999999999", "n=3..1", "x=@x.npy", "x=2x6xf32=1", "x=f32=nan", "y=@m.mir", "=", "@"),
    *("gk", "c", "loop", "so", "bundle", "onnx", "graph", "native", "generic", "neon", "4G", "1K", "1T", "0s", "1h"),
    *("fusion", "fusion,layouts", "all", "changed", "cse", "infer-shapes", "a" * 300, "\udcff", "\n", "é", "MSC0201"),
)
_FILES = (
    "m.mir",
    "m.gk.mir",
    "m.so",
    "w.safetensors",
    "x.npy",
    "none.mir",
    "-",
    ".",
    "/dev/null",
    "m.c",
    "garbage.onnx",
)


@dataclass(frozen=True)
class Trial:
    """A command, and the state of the machine that it meets."""

    words: tuple[str, ...]
    fault: str = "none"


def verbs() -> dict[str, click.Command]:
    """All verbs of msc by name."""
    from msc.driver.cli import VERBS, command

    context = click.Context(command)
    return {name: found for name in VERBS if (found := command.get_command(context, name)) is not None}


def random_trial(random: Random, known: dict[str, click.Command], faults: Sequence[str]) -> Trial:
    """A verb with some of its options, with values of other options, too."""
    name = _one(random, list(known))
    words = [name]
    if random.random() < 0.9:
        words.append("m.mir" if random.random() < 0.6 else _one(random, _FILES))
    if random.random() < 0.7:
        words += ["--dim", "n=2"]
    options = [p for p in known[name].params if isinstance(p, click.Option)]
    for option in [options[int(random.integers(len(options)))] for _ in range(int(random.integers(4))) if options]:
        words.append(_one(random, option.opts))
        if not option.is_flag:
            words.append(_one(random, _WORDS))
    if name in ("bench", "tune"):
        words += ["--seconds", "0"] if name == "bench" else ["--budget", "0"]
    return Trial(tuple(words), _one(random, faults))


def _one(random: Random, items: Sequence[str]) -> str:
    return items[int(random.integers(len(items)))]


FAULTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "no stdout": lambda: os.close(1),
    "no streams": lambda: os.closerange(0, 3),
    "full stdout": lambda: _put(1, "/dev/full", os.O_WRONLY),
    "full stderr": lambda: _put(2, "/dev/full", os.O_WRONLY),
    "small files": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    "no files": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    "few descriptors": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)),
    "no TMPDIR": lambda: os.environ.update(TMPDIR=os.path.abspath("absent")),
    "full TMPDIR": lambda: os.environ.update(TMPDIR="/dev/full"),
    "no cache": lambda: os.environ.update(XDG_CACHE_HOME="/dev/null/x"),
    "no HOME": lambda: os.unsetenv("HOME"),
    "no compiler": lambda: os.environ.update(CC="false"),
    "read-only folder": lambda: os.chmod(".", 0o500),
}
"""What the child process does before it becomes msc."""


def _put(descriptor: int, path: str, flags: int) -> None:
    os.dup2(os.open(path, flags), descriptor)


def answer(trial: Trial, folder: Path) -> str:
    """What msc says, in a word; a fault begins with `fault`."""
    command = [sys.executable, "-m", "msc.driver", *trial.words]
    raw = [word.encode("utf-8", "surrogateescape") for word in command]
    with tempfile.TemporaryFile() as said:
        try:
            result = subprocess.run(
                [os.fsencode(sys.executable), b"-c", _LAUNCH, trial.fault.encode(), *raw[1:]],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "fault: it does not end"
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    if result.returncode not in _CODES:
        return f"fault: exit code {result.returncode}"
    if "Traceback" in text or "Exception ignored" in text or "MSC09" in text:
        return f"fault: {text.strip().splitlines()[0][:100]}"
    return f"{result.returncode} {text[6:13] if text.startswith('error[') else ''}".strip()


_LAUNCH = b"""
import os, sys
from tests.fuzz.commands import FAULTS
fault, arguments = sys.argv[1], sys.argv[2:]
FAULTS[fault]()
os.execv(sys.executable, [sys.executable, *arguments])
"""


def prepare(folder: Path) -> None:
    """The files that commands name."""
    from msc.weights.safetensors_writing import write_safetensors

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "m.mir").write_text(MODEL)
    write_safetensors({"w": np.ones((4, 6), np.float32)}, folder / "w.safetensors")
    np.save(folder / "x.npy", np.ones((2, 6), np.float32))
    (folder / "garbage.onnx").write_bytes(b"\x08\x07garbage")
    (folder / "m.c").write_text("int mine;\n")


def fuzz(kind: str, seconds: float, seed: int, out: Path) -> bool:
    """Try until the time is over; whether there was no fault. Those found are written to `out`."""
    random, known, answers = np.random.default_rng(seed), verbs(), Counter[str]()
    faults = ["none"] if kind == "cli" else [name for name in FAULTS if name != "none"]
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="fuzz-commands-") as parent:
        folder = Path(parent) / "work"
        while time.monotonic() < end:
            prepare(folder)
            trial = random_trial(random, known, faults)
            said = answer(trial, folder)
            folder.chmod(0o700)
            if said.startswith("fault") and not answers[said]:
                out.mkdir(parents=True, exist_ok=True)
                with (out / f"{kind}.txt").open("a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(f"{said}\n    {trial.fault}: {trial.words}\n")
            answers[said] += 1
    for text, count in answers.most_common():
        click.echo(f"{count:8} {text}")
    click.echo(f"{answers.total():8} commands in all")
    return not any(text.startswith("fault") for text in answers)
