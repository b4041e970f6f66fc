"""Callbacks that act on how a run goes: they stop it, or change the learning rate."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msc.frontend import dtypes
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.train.callback.base import Callback, RunContext, count, monitored, refuse, say, wrong


class _Watching(Callback):
    """Base: whether what is monitored gets better, after each epoch of training."""

    CHANGES_TRAINING: ClassVar[bool] = True

    def __init__(self, monitor: str, mode: str, min_delta: float, patience: int, verbose: bool) -> None:
        if not isinstance(monitor, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("monitor", monitor, "'loss' or the name of a metric")
        if mode not in ("auto", "min", "max"):
            refuse("mode", mode, "'auto', 'min' or 'max'")
        if isinstance(min_delta, bool) or not isinstance(min_delta, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("min_delta", min_delta, "a number")
        self.monitor, self.patience = monitor, count("patience", patience, 0)
        grows = mode == "max" or (
            mode == "auto" and any(word in monitor for word in ("acc", "F1", "precision", "recall"))
        )
        self._sign = 1.0 if grows else -1.0
        self._delta, self._verbose = abs(float(min_delta)), verbose

    def on_train_begin(self, run_context: RunContext) -> None:
        self._best, self._waited = -math.inf, 0

    def state_to_save(self) -> Mapping[str, Any]:
        return {"best": Tensor(self._best, dtypes.float64), "waited": self._waited}

    def restore_state(self, run_context: RunContext, state: Mapping[str, Tensor]) -> None:
        self._best, self._waited = float(state["best"]), int(state["waited"])

    def _got_better(self, run_context: RunContext) -> bool:
        now = self._sign * monitored(run_context.original_args(), self.monitor)
        if now - self._delta > self._best:
            self._best, self._waited = now, 0
            return True
        self._waited += 1
        return False

    def on_eval_begin(self, run_context: RunContext) -> None:
        pass

    on_eval_epoch_end = on_eval_step_end = on_eval_end = on_eval_begin


class EarlyStopping(_Watching):
    """Ends training when what is monitored did not get better for more than `patience` epochs.

    `baseline` is what it must be better than at first; `restore_best_weights` goes back to the best epoch.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta, patience, verbose)
        self._baseline, self._restores = baseline, bool(restore_best_weights)
        self.stopped_epoch = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        super().on_train_begin(run_context)
        if self._baseline is not None:
            self._best = self._sign * self._baseline
        self._kept: list[tuple[Parameter, Tensor]] = []
        self.stopped_epoch = 0

    def state_to_save(self) -> Mapping[str, Any]:
        kept = {f"kept.{parameter.name}": value for parameter, value in self._kept}
        return {**super().state_to_save(), "stopped_epoch": self.stopped_epoch, **kept}

    def restore_state(self, run_context: RunContext, state: Mapping[str, Tensor]) -> None:
        super().restore_state(run_context, state)
        parameters = run_context.original_args().train_network.get_parameters()
        named = ((parameter, f"kept.{parameter.name}") for parameter in parameters)
        self._kept = [(parameter, Tensor(state[key].asnumpy())) for parameter, key in named if key in state]
        self.stopped_epoch = int(state["stopped_epoch"])
        if self.stopped_epoch:
            run_context.request_stop()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        if self._got_better(run_context):
            if self._restores:
                self._kept = [(p, Tensor(p.asnumpy())) for p in facts.train_network.get_parameters()]
            return
        if self._waited > self.patience:
            self.stopped_epoch = facts.cur_epoch_num
            run_context.request_stop()
            for parameter, value in self._kept:
                parameter.set_data(value)

    def on_train_end(self, run_context: RunContext) -> None:
        if self.stopped_epoch and self._verbose:
            say(f"Epoch {self.stopped_epoch}: training ends, {self.monitor} does not get better")


class ReduceLROnPlateau(_Watching):
    """Multiplies the learning rate by `factor` when what is monitored did not get better for `patience` epochs."""

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta, patience, verbose)
        if not 0 < factor < 1:
            wrong(f"factor is {factor}; it must be between 0 and 1")
        self._factor, self._cooldown, self._least = factor, count("cooldown", cooldown, 0), min_lr

    def on_train_begin(self, run_context: RunContext) -> None:
        super().on_train_begin(run_context)
        self._resting = 0
        run_context.original_args().optimizer.changeable_rate()

    def state_to_save(self) -> Mapping[str, Any]:
        return {**super().state_to_save(), "resting": self._resting}

    def restore_state(self, run_context: RunContext, state: Mapping[str, Tensor]) -> None:
        super().restore_state(run_context, state)
        self._resting = int(state["resting"])

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        if self._resting:
            self._resting -= 1
            self._waited = 0
        if self._got_better(run_context) or self._waited < max(self.patience, 1) or self._resting:
            return
        rate = run_context.original_args().optimizer.changeable_rate()
        lower = max(float(rate) * self._factor, self._least)
        if lower < float(rate):
            rate.set_data(lower)
            self._resting, self._waited = self._cooldown, 0
            if self._verbose:
                say(f"the learning rate is {lower:g} from here on")


class LearningRateScheduler(Callback):
    """Sets the learning rate after each step: `learning_rate_function(rate, step)` gives the next one."""

    CHANGES_TRAINING: ClassVar[bool] = True

    def __init__(self, learning_rate_function: Callable[[float, int], Any]) -> None:
        if not callable(learning_rate_function):
            refuse("learning_rate_function", learning_rate_function, "a function of the rate and the step")
        self._function = learning_rate_function

    def on_train_begin(self, run_context: RunContext) -> None:
        run_context.original_args().optimizer.changeable_rate()

    def on_train_step_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        rate = facts.optimizer.changeable_rate()
        found = self._function(float(rate), facts.cur_step_num)
        value = float(found)
        if not (math.isfinite(value) and value >= 0):
            wrong(f"learning_rate_function gives {value} in step {facts.cur_step_num}; a rate is 0 or more")
        if value != float(rate):
            rate.set_data(value)

    def on_eval_begin(self, run_context: RunContext) -> None:
        pass

    on_eval_step_end = on_eval_epoch_end = on_eval_end = on_eval_begin
