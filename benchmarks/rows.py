"""One row of the benchmark: a model under several engines, in a process of its own.

So no engine meets threads, memory or settings that another model left, and one that ends its process is named and left
out instead of ending the run.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np

from benchmarks.measure import Plan, interleaved, quiet
from benchmarks.model import Array, Model
from benchmarks.models import MODELS
from benchmarks.peers import PEERS, PeerError, Runner
from benchmarks.report import ModelResult, PeerResult
from msc.runtime.machine import multiply_add_rate, rate_at_clock
from msc.support.diagnostics import MscError

START = "spawn"
"""How a row's process starts: a fresh interpreter, which has no threads or engines of this one."""

Progress = Callable[[str], None]
"""Told which engine is being loaded, and `""` when all are."""


def row(name: str, engines: Sequence[str], threads: int, plan: Plan, *, pin: bool, progress: Progress) -> ModelResult:
    """A model under engines, the first of which is the base; without peers where the base can't run it."""
    model = MODELS[name]
    with quiet(threads, pin=pin):
        inputs = list(model.example().values())
        runners, differences, refused = _loaded(engines, model, inputs, threads, progress)
        if engines[0] not in runners:
            return ModelResult(name, 0, 0, threads, [], refused)
        moved = model.weight_bytes + sum(array.nbytes for array in inputs) + runners[engines[0]]().nbytes
        peaks: list[float] = []
        clocks: dict[str, list[float]] = {name: [] for name in runners}
        with multiply_add_rate(threads) as rate, rate_at_clock() as core_rate:
            seconds = interleaved(
                runners,
                plan,
                lambda: peaks.append(rate()),
                lambda name: clocks[name].append(threads * core_rate()),
            )
    found = [
        PeerResult(name, PEERS[name].version() or "", PEERS[name].call, seconds[name], differences[name], clocks[name])
        for name in runners
    ]
    return ModelResult(name, model.multiply_adds, moved, threads, found, refused, peaks)


def _loaded(
    engines: Sequence[str], model: Model, inputs: list[Array], threads: int, progress: Progress
) -> tuple[dict[str, Runner], dict[str, float], dict[str, str]]:
    """The engines that run the model as the base does, their differences from it, and why others do not."""
    runners: dict[str, Runner] = {}
    differences: dict[str, float] = {}
    refused: dict[str, str] = {}
    expected: Array | None = None
    for name in engines:
        progress(name)
        try:
            run = PEERS[name].load(model, inputs, threads)
            result = np.array(run())
            expected = result if expected is None else expected
            differences[name] = _difference(result, expected, model.tolerance)
            runners[name] = run
        except (MscError, PeerError, ImportError, OSError, RuntimeError, ValueError) as error:
            refused[name] = str(error).strip().partition("\n")[0][:300]
    progress("")
    return runners, differences, refused


def _difference(result: Array, expected: Array, tolerance: float) -> float:
    """Largest absolute difference. Raises PeerError where the result is not the same within the tolerance."""
    if result.shape != expected.shape:
        raise PeerError(f"it gives shape {result.shape}, expected {expected.shape}")
    difference = float(np.max(np.abs(result - expected)))
    if not difference <= tolerance * float(np.max(np.abs(expected))):
        raise PeerError(f"its result differs by {difference:.2e}: not the same computation")
    return difference


def isolated_row(name: str, engines: Sequence[str], threads: int, plan: Plan, *, pin: bool) -> ModelResult:
    """As `row`, in a process of its own; again without an engine whose loading ended the process."""
    result, loading, code = _in_process(name, engines, threads, plan, pin)
    if result is not None:
        return result
    reason = f"its process ended with exit code {code}"
    if not loading or loading == engines[0]:
        return ModelResult(name, 0, 0, threads, [], {loading or "one of them": reason})
    rest = isolated_row(name, [engine for engine in engines if engine != loading], threads, plan, pin=pin)
    return replace(rest, refused={**rest.refused, loading: reason})


def _in_process(
    name: str, engines: Sequence[str], threads: int, plan: Plan, pin: bool
) -> tuple[ModelResult | None, str, int | None]:
    """The row, or None with the engine that was being loaded when the process ended, and its exit code."""
    context = multiprocessing.get_context(START)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_row, args=(sender, name, engines, threads, plan, pin))
    process.start()
    sender.close()
    message: object = ""
    loading = ""
    try:
        while not isinstance(message, ModelResult):
            message = receiver.recv()
            loading = message if isinstance(message, str) else loading
    except EOFError:
        message = None
    process.join()
    return message if isinstance(message, ModelResult) else None, loading, process.exitcode


def _send_row(sender: Connection, name: str, engines: Sequence[str], threads: int, plan: Plan, pin: bool) -> None:
    sender.send(row(name, engines, threads, plan, pin=pin, progress=sender.send))
