"""Callbacks that show or keep how a run goes."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.support.notebooks import html_table
from msc.train.callback.base import Callback, RunContext, count, loss_of, refuse, say


class LossMonitor(Callback):
    """Prints the loss every `per_print_times` steps. Raises MSC0880 for a loss that is no number."""

    def __init__(self, per_print_times: int = 1) -> None:
        self._period = count("per_print_times", per_print_times, 0)
        self._printed = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        self._printed = run_context.original_args().cur_step_num or 0

    def on_train_step_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        loss = loss_of(facts.net_outputs)
        if loss is None:
            return
        step = (facts.cur_step_num - 1) % facts.batch_num + 1
        if not math.isfinite(loss):
            raise ApiValueError(
                "MSC0880",
                f"the loss is {loss} in epoch {facts.cur_epoch_num}, step {step}",
                help="try a smaller learning rate, or gradients clipped with ops.clip_by_global_norm",
            )
        if self._period and facts.cur_step_num - self._printed >= self._period:
            self._printed = facts.cur_step_num
            say(f"epoch: {facts.cur_epoch_num} step: {step}, loss is {loss:g}")

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        if facts.eval_results:
            results = ", ".join(f"{name}: {value}" for name, value in facts.eval_results.items())
            say(f"epoch: {facts.cur_epoch_num}, evaluation: {results}")

    def on_eval_begin(self, run_context: RunContext) -> None:
        pass

    on_eval_step_end = on_eval_epoch_end = on_eval_end = on_eval_begin


class TimeMonitor(Callback):
    """Prints the time of each epoch, and of a step of it; `data_size` is how many steps that is.

    With `data_time` also how long steps waited for data, and which share of the time that is.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        if not isinstance(data_time, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("data_time", data_time, "True or False")
        self._shows_data = data_time
        self._waited = 0.0
        self._steps = None if data_size is None else count("data_size", data_size)
        self._begun = 0.0

    def epoch_begin(self, run_context: RunContext) -> None:
        self._begun = time.perf_counter()
        self._waited = run_context.original_args().data_seconds or 0.0

    def epoch_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        spent = (time.perf_counter() - self._begun) * 1000
        steps = self._steps or facts.batch_num or 1
        mode = "Eval" if facts.mode == "eval" else "Train"
        waited = ((facts.data_seconds or 0.0) - self._waited) * 1000
        of_data = f" (data time: {waited / steps:5.3f} ms, {waited / max(spent, 1e-9):.0%})" if self._shows_data else ""
        say(f"{mode} epoch time: {spent:5.3f} ms, per step time: {spent / steps:5.3f} ms{of_data}")


class History(Callback):
    """Keeps, for each epoch, the mean loss of its steps, what the last one gave, and the results of the evaluation.

    `history` has them by name: "loss" as floats, "net_output", and the metrics; a metric "loss" is "eval_loss" there.
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] = {"epoch": []}
        self._losses: list[float] = []

    def begin(self, run_context: RunContext) -> None:
        if run_context.original_args().mode != "eval":
            self.history, self.epoch, self._losses = {}, {"epoch": []}, []

    def step_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        loss = None if facts.mode == "eval" else loss_of(facts.net_outputs)
        if loss is not None:
            self._losses.append(loss)

    def epoch_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        if facts.mode == "eval":
            return
        self.epoch["epoch"].append(facts.cur_epoch_num)
        outputs = facts.net_outputs
        kept = outputs.asnumpy().copy() if isinstance(outputs, Tensor) else outputs
        evaluated = {"eval_loss" if name == "loss" else name: v for name, v in (facts.eval_results or {}).items()}
        mean = {"loss": math.fsum(self._losses) / len(self._losses)} if self._losses else {}
        self._losses = []
        for name, value in ({**mean, "net_output": kept} | evaluated).items():
            self.history.setdefault(name, []).append(value)

    def curves(self) -> dict[str, list[float]]:
        """What is one number for each epoch: losses and metrics."""
        curves: dict[str, list[float]] = {}
        for name, values in self.history.items():
            numbers = [number for number in map(_number, values) if number is not None]
            if name != "net_output" and len(numbers) == len(values):
                curves[name] = numbers
        return curves

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves over the epochs on `ax`, or new axes of Matplotlib, which are returned. Raises MSC0016."""
        if ax is None:
            try:
                ax = import_module("matplotlib.pyplot").figure().add_subplot()
            except ImportError:
                raise ApiValueError("MSC0016", "plots need Matplotlib", help="pip install matplotlib") from None
        for name, values in self.curves().items():
            epochs = self.epoch["epoch"][-len(values) :]
            ax.plot(epochs, values, label=name)
        ax.set_xlabel("epoch")
        ax.legend()
        return ax

    def _repr_html_(self) -> str:
        """What notebooks show: a row for each epoch."""
        curves, epochs = self.curves(), self.epoch["epoch"]
        columns = [["", *(f"{value:.6g}" for value in values)] for values in curves.values()]
        rows = [(epoch, *(c[max(0, k + len(c) - len(epochs))] for c in columns)) for k, epoch in enumerate(epochs)]
        return html_table("History", ("epoch", *curves), rows)


def _number(value: Any) -> float | None:
    """A value that is one number; None for any other."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 and array.dtype.kind in "fiub" else None


class LambdaCallback(Callback):
    """Calls functions of the run's context: `on_train_step_end=lambda run_context: ...` and the like."""

    def __init__(
        self,
        on_train_epoch_begin: Callable[..., Any] | None = None,
        on_train_epoch_end: Callable[..., Any] | None = None,
        on_train_step_begin: Callable[..., Any] | None = None,
        on_train_step_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        on_eval_epoch_begin: Callable[..., Any] | None = None,
        on_eval_epoch_end: Callable[..., Any] | None = None,
        on_eval_step_begin: Callable[..., Any] | None = None,
        on_eval_step_end: Callable[..., Any] | None = None,
        on_eval_begin: Callable[..., Any] | None = None,
        on_eval_end: Callable[..., Any] | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name.startswith("on_") and value is not None}
        for name, function in given.items():
            if not callable(function):
                refuse(name, function, "a function of the run's context")
        self.__dict__.update(given)


_MUCH_WAITING = 0.2
"""The share of the time that steps wait for data from which a progress bar tells it."""


class ProgressBar(Callback):
    """A bar on the terminal: epoch, step, loss, time left. It is there by default; `MSC_PROGRESS=0` turns it off."""

    def __init__(self) -> None:
        self._begun = 0.0
        self._bar: Any = None
        self._task: Any = None

    def on_train_begin(self, run_context: RunContext) -> None:
        progress, console = import_module("rich.progress"), import_module("rich.console")
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("loss {task.fields[loss]}{task.fields[data]}"),
            progress.TimeRemainingColumn(),
            console=console.Console(stderr=True),
            transient=True,
        )
        facts = run_context.original_args()
        total = facts.batch_num * facts.epoch_num
        self._task = self._bar.add_task("training", total=total, completed=facts.cur_step_num or 0, loss="-", data="")
        self._bar.start()
        self._begun = time.perf_counter()

    def on_train_step_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        loss = loss_of(facts.net_outputs)
        text = f"epoch {facts.cur_epoch_num} of {facts.epoch_num}"
        shown = "-" if loss is None else f"{loss:.4g}"
        share = (facts.data_seconds or 0.0) / max(time.perf_counter() - self._begun, 1e-9)
        data = f", {share:.0%} waiting for data" if share > _MUCH_WAITING else ""
        self._bar.update(self._task, completed=facts.cur_step_num, description=text, loss=shown, data=data)

    def on_train_end(self, run_context: RunContext) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def on_eval_begin(self, run_context: RunContext) -> None:
        pass

    on_eval_step_end = on_eval_epoch_end = on_eval_end = on_eval_begin


def shows_progress(environment: Any) -> bool:
    """Whether a person looks at standard error, and did not say that there be no progress."""
    stream: Any = sys.stderr
    terminal = stream is not None and not stream.closed and stream.isatty()
    return terminal and environment.get("MSC_PROGRESS") != "0" and environment.get("TERM") != "dumb"
