"""`Callback`: what is called while a model is trained and evaluated, and what it can ask and stop."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from msc.frontend.boundary import Published
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.process_group import is_first_rank
from msc.frontend.tensor import Tensor, concrete
from msc.support.argument_values import described


class Facts(dict[str, Any]):
    """What is known of a run, by name or as attributes; what is not known is None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """What callbacks get: facts about the run, and a way to stop it."""

    def __init__(self, original_args: Any) -> None:
        self._facts: Facts = original_args if isinstance(original_args, Facts) else Facts(original_args)
        self._stops = False

    def original_args(self) -> Any:
        """The facts: `cur_epoch_num` and `cur_step_num` from 1 on, `batch_num` steps an epoch, `net_outputs`, ...

        Also `epoch_num`, `train_network`, `network`, `optimizer`, `loss_fn`, `train_dataset`, `valid_dataset`,
        `eval_results`, `metrics`, `mode`, `dataset_sink_mode`, `sink_size`, `latest_ckpt_file`.
        """
        return self._facts

    def request_stop(self) -> None:
        """End the run after this step, or after this epoch."""
        self._stops = True

    def get_stop_requested(self) -> bool:
        """Whether somebody asked to end the run."""
        return self._stops


class Callback(Published):
    """Base. `begin`, `epoch_begin`, `step_begin`, `step_end`, `epoch_end`, `end` are called in training and evaluation.

    Those named `on_train_...` and `on_eval_...` are called in one of them, and by default call the former. In sink mode
    a step is all that one sink holds.
    """

    CHANGES_TRAINING: ClassVar[bool] = False
    """Whether it changes parameters, such as the rate: ModelCheckpoint saves after it, wherever it stands."""

    def __init__(self) -> None:
        """A callback without arguments."""

    def begin(self, run_context: RunContext) -> None:
        """The run begins."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """An epoch begins."""

    def step_begin(self, run_context: RunContext) -> None:
        """A step begins."""

    def step_end(self, run_context: RunContext) -> None:
        """A step has ended."""

    def epoch_end(self, run_context: RunContext) -> None:
        """An epoch has ended."""

    def end(self, run_context: RunContext) -> None:
        """The run has ended."""

    def state_to_save(self) -> Mapping[str, Any]:
        """The numbers and tensors without which a run that goes on would end otherwise; a checkpoint holds them."""
        return {}

    def restore_state(self, run_context: RunContext, state: Mapping[str, Tensor]) -> None:
        """A run goes on behind a checkpoint that holds this state; training has begun."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Training begins."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """An epoch of training begins."""
        self.epoch_begin(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """A step of training begins."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """A step of training has ended."""
        self.step_end(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """An epoch of training has ended, and its evaluation if `fit` makes one."""
        self.epoch_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Training has ended."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """An evaluation begins."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """The pass of an evaluation begins."""
        self.epoch_begin(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """A batch of an evaluation begins."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """A batch of an evaluation has ended."""
        self.step_end(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """The pass of an evaluation has ended."""
        self.epoch_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """An evaluation has ended."""
        self.end(run_context)


class Saving(Callback):
    """Base of callbacks that write parameters."""


CALLBACK_PREFIX = "callback."
"""With this begin the names of states of callbacks in checkpoints."""


class Callbacks(Callback):
    """Several callbacks, called in their order."""

    def __init__(self, callbacks: Any) -> None:
        is_one = isinstance(callbacks, Callback | type)
        given: Any = [] if callbacks is None else [callbacks] if is_one else callbacks
        if not isinstance(given, Iterable):
            refuse("callbacks", given, "a Callback or a list of them")
        self.members: list[Callback] = []
        for member in cast("Iterable[Any]", given):
            if isinstance(member, type):
                refuse("callbacks", member, f"objects: write {cast(Any, member).__name__}()")
            if not isinstance(member, Callback):
                refuse("callbacks", member, "Callbacks")
            self.members.append(member)
        self._save_behind_changes()

    def _save_behind_changes(self) -> None:
        last = max((place for place, member in enumerate(self.members) if member.CHANGES_TRAINING), default=-1)
        front, rest = self.members[: last + 1], self.members[last + 1 :]
        self.members = [*sorted(front, key=lambda member: isinstance(member, Saving)), *rest]

    def states(self) -> dict[str, Any]:
        """What all of them save, by names that say whose it is."""
        return {key + name: value for key, member in self._named() for name, value in member.state_to_save().items()}

    def restore(self, context: RunContext, states: Mapping[str, Tensor]) -> None:
        """Give each the state that it saved, if it did."""
        for key, member in self._named():
            state = {name.removeprefix(key): value for name, value in states.items() if name.startswith(key)}
            if state:
                member.restore_state(context, state)

    def _named(self) -> Iterator[tuple[str, Callback]]:
        """The members by their class and their number among those of it."""
        seen: Counter[str] = Counter()
        for member in self.members:
            name = type(member).__name__
            yield f"{CALLBACK_PREFIX}{name}.{seen[name]}.", member
            seen[name] += 1

    def call(self, moment: str, context: RunContext) -> None:
        """Call the method of a name, such as `on_train_begin`, of each."""
        for member in self.members:
            getattr(member, moment)(context)


def refuse(name: str, value: object, wanted: str) -> NoReturn:
    """Raise MSC0878 for an argument."""
    raise ApiTypeError("MSC0878", f"{name} is {described(value)}; it takes {wanted}")


def wrong(message: str, advice: str | None = None) -> NoReturn:
    """Raise MSC0878."""
    raise ApiValueError("MSC0878", message, help=advice)


def say(text: str) -> None:
    """Print a line, on the first rank."""
    if is_first_rank():
        print(text, flush=True)


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer of `least` or more. Raises MSC0878."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        refuse(name, value, f"an integer of {least} or more")
    return value


def loss_of(outputs: Any) -> float | None:
    """The loss among what a step gives: the first tensor, its mean if it has more elements than one."""
    first = outputs[0] if isinstance(outputs, tuple | list) and outputs else outputs
    if not isinstance(first, Tensor | np.ndarray | float | int):
        return None
    array = concrete(first, "a loss") if isinstance(first, Tensor) else np.asarray(first)
    return float(np.mean(array.astype(np.float64))) if array.size else None


def monitored(facts: Any, monitor: str) -> float:
    """What a callback monitors: `loss`, or a metric of the evaluation, with or without `eval_`. Raises MSC0878."""
    results = facts.eval_results or {}
    for name in (monitor, monitor.removeprefix("eval_")):
        if name in results and (name != "loss" or monitor.startswith("eval_")):
            return float(np.mean(np.asarray(results[name], np.float64)))
    if monitor == "loss":
        loss = loss_of(facts.net_outputs)
        if loss is not None:
            return loss
    known = ", ".join(f"'eval_{n}'" if n == "loss" else f"'{n}'" for n in results) or "none: Model.fit evaluates"
    wrong(f"monitor is {monitor!r}, and the results of the evaluation are {known}", "or monitor 'loss', of training")
