"""Fuzz msc: `python -m tests.fuzz onnx --minutes 10`, or another of `_TARGETS`. Needs the extra `fuzz`.

Atheris (libFuzzer) keeps what reaches new code and changes it further, in bytes or by the target's own mutator. Every
answer must be a result or an MscError, within `SECONDS` of CPU time and `MEMORY_BYTES`. What is not is written to a
file, and the run goes on; it fails at the end. A file given as INPUT is run alone, without Atheris.
`cli` and `environment` run random command lines, each as a process of its own, and need no Atheris.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

from tests.fuzz.target import Target
from tests.memory_limit import memory_limit
from tests.time_limit import OutOfTime, time_limit

MEMORY_BYTES = 3 << 30
"""Beyond what msc and its libraries have when they are loaded."""
SECONDS = 20
_BACKSTOP_SECONDS = 300
"""Wall time after which libFuzzer ends a run that no signal reaches, inside a library."""

_TARGETS = {
    "onnx": ("tests.fuzz.onnx_models", "OnnxModels"),
    "onnx-c": ("tests.fuzz.onnx_programs", "OnnxPrograms"),
    "tflite": ("tests.fuzz.tflite_models", "TfliteModels"),
    "mir": ("tests.fuzz.mir_texts", "MirTexts"),
    "scf": ("tests.fuzz.edited_stages", "EditedGraphs"),
    "loop": ("tests.fuzz.edited_stages", "EditedLoops"),
    "api": ("tests.fuzz.api_arguments", "ApiArguments"),
    "library": ("tests.fuzz.library_calls", "LibraryCalls"),
    "artifact": ("tests.fuzz.artifacts", "Artifacts"),
}
_COMMANDS = ("cli", "environment")
"""Random command lines, without Atheris: each is a process of its own."""
_INTERNAL = "MSC09"
"""The first letters of the codes that say that msc itself is wrong."""


def load(name: str) -> Target:
    """A target; msc is imported with it, not before, so that it can be instrumented."""
    module, target = _TARGETS[name]
    return cast(Target, getattr(import_module(module), target)())


def answer(target: Target, data: bytes) -> str:
    """What msc says of an input: what it made, or the code of its error. Raises whatever is a fault."""
    from msc.support.diagnostics import MscError

    try:
        return target.run(data)
    except MscError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        if error.diagnostics[0].code.startswith(_INTERNAL):
            raise
        return error.diagnostics[0].code


class Session:
    """One run of the fuzzer: what was answered, and until when it goes on."""

    def __init__(self, target: Target, corpus: Path, out: Path, minutes: float) -> None:
        self._target = target
        self._corpus = corpus
        self._out = out
        self._end = time.monotonic() + 60 * minutes
        self._answers: Counter[str] = Counter()

    def one_input(self, data: bytes) -> None:
        """Run an input, keep it if it is a fault; at the end of the time report and leave."""
        if time.monotonic() > self._end:
            self._finish()
        try:
            with time_limit(SECONDS, signal.ITIMER_VIRTUAL):
                text = answer(self._target, data)
        except (Exception, SystemExit, OutOfTime) as error:
            text = f"fault: {type(error).__name__}: {str(error).partition(chr(10))[0][:100]}"
            if self._answers[text] == 0:
                self._keep(data, type(error).__name__)
        self._answers[text] += 1

    def _keep(self, data: bytes, kind: str) -> None:
        (self._out / f"{kind}-{sha256(data).hexdigest()[:12]}").write_bytes(data)

    def _finish(self) -> None:
        for text, count in self._answers.most_common():
            click.echo(f"{count:8} {text}")
        click.echo(f"{sum(self._answers.values()):8} inputs in all")
        shutil.rmtree(self._corpus)
        sys.stdout.flush()
        os._exit(1 if any(text.startswith("fault") for text in self._answers) else 0)


def _mutator(target: Target, atheris: Any) -> Callable[[bytes, int, int], bytes]:
    def mutate(data: bytes, maximum: int, seed: int) -> bytes:
        random = np.random.default_rng(seed)
        changed = target.damaged(data, random, lambda old: cast(bytes, atheris.Mutate(old, maximum)))
        return changed[:maximum]

    return mutate


@click.command()
@click.argument("name", metavar="TARGET", type=click.Choice([*_TARGETS, *_COMMANDS]))
@click.argument("file", metavar="[INPUT]", required=False, type=click.Path(path_type=Path, exists=True))
@click.option("--minutes", default=10.0, show_default=True)
@click.option("--seconds", type=float, help="The same in seconds.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(1))
@click.option("--out", default="fuzz-findings", show_default=True, type=click.Path(path_type=Path))
def main(name: str, file: Path | None, minutes: float, seconds: float | None, seed: int, out: Path) -> None:
    """Fuzz a target until the time is over; exit 1 if there was a fault."""
    minutes = minutes if seconds is None else seconds / 60
    if name in _COMMANDS:
        from tests.fuzz.commands import fuzz

        sys.exit(0 if fuzz(name, 60 * minutes, seed, out) else 1)
    if file is not None:
        target = load(name)
        with memory_limit(MEMORY_BYTES):
            click.echo(answer(target, file.read_bytes()))
        return
    try:
        atheris: Any = import_module("atheris")
    except ImportError as error:
        raise click.ClickException("fuzzing needs Atheris: pip install -e '.[fuzz]'") from error
    with atheris.instrument_imports(include=["msc", "xdsl"]):
        target = load(name)
        corpus = Path(tempfile.mkdtemp(prefix="msc-fuzz-"))
        for number, data in enumerate(target.seeds()):
            (corpus / f"{number:05}").write_bytes(data)
    out.mkdir(parents=True, exist_ok=True)
    session = Session(target, corpus, out, minutes)
    limits = [f"-timeout={_BACKSTOP_SECONDS}", f"-report_slow_units={_BACKSTOP_SECONDS}", "-rss_limit_mb=0"]
    arguments = [sys.argv[0], f"-seed={seed}", *limits, "-max_len=32768"]
    atheris.Setup(
        [*arguments, f"-artifact_prefix={out}/", str(corpus)],
        session.one_input,
        custom_mutator=_mutator(target, atheris),
    )
    with memory_limit(MEMORY_BYTES):
        atheris.Fuzz()


if __name__ == "__main__":
    main()
