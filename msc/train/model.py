"""`Model`: a network with its loss, optimiser and metrics, trained, evaluated and asked."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np

from msc.amp.levels import build_train_network
from msc.dataset import config
from msc.dataset.base import Dataset
from msc.dataset.iterators import Prefetched
from msc.dataset.values import Row
from msc.frontend import dtypes
from msc.frontend.boundary import elsewhere
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiAttributeError, ApiTypeError, ApiValueError
from msc.frontend.jit import Jitted
from msc.frontend.modes import in_graph_mode
from msc.frontend.parallel import get_auto_parallel_context, is_distributed, is_partitioned
from msc.frontend.process_group import broadcast_from_first, exchanged_by_all, get_group_size
from msc.frontend.reader.libraries import read_as_users
from msc.frontend.settings import unused
from msc.frontend.sharing import gather
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.nn.metrics import Loss, get_metrics
from msc.nn.optim.optimizer import Optimizer
from msc.nn.optim.scaled_steps import TrainOneStepWithLossScaleCell
from msc.nn.optim.steps import TrainOneStepCell, WithEvalCell, WithLossCell
from msc.support.argument_values import described
from msc.support.diagnostics import MscError
from msc.support.other_frameworks import advice_for
from msc.support.wording import a
from msc.train.callback.base import Callbacks, Facts, RunContext
from msc.train.callback.checkpoints import ModelCheckpoint
from msc.train.callback.monitors import LossMonitor, ProgressBar, shows_progress
from msc.train.feeding import batches, one_epoch, tensors
from msc.train.state import Progress, begun, newest, restored


class Model:
    """`Model(network, loss_fn, optimizer, metrics)`: `train`, `fit`, `eval` and `predict`.

    Without `loss_fn` the network gives the loss itself. `metrics` are names, or a dictionary of names and metrics.
    `eval_network` gives what metrics take; `eval_indexes` says which of its outputs are loss, prediction and label.
    Raises MSC0876.
    """

    def __init__(
        self,
        network: Cell,
        loss_fn: Any = None,
        optimizer: Any = None,
        metrics: Any = None,
        eval_network: Cell | None = None,
        eval_indexes: Sequence[int] | None = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        **kwargs: Any,
    ) -> None:
        unused("Model", boost_level=boost_level)
        for name, value, kind in (
            ("network", network, Cell),
            ("optimizer", optimizer, Optimizer),
            ("eval_network", eval_network, Cell),
        ):
            if not isinstance(value, kind) and (value is not None or name == "network"):
                raise ApiTypeError(
                    "MSC0876", f"{name} is {described(value)}; it takes {a(kind.__name__)}", help=advice_for(value)
                )
        if loss_fn is not None and not callable(loss_fn):
            raise ApiTypeError("MSC0876", f"loss_fn is {described(loss_fn)}; it takes a Cell, such as nn.MSELoss()")
        if eval_indexes is not None and len(eval_indexes) != 3:
            raise ApiValueError(
                "MSC0876", "eval_indexes are three numbers: of the loss, the predictions and the labels"
            )
        for name in kwargs:
            if name not in ("loss_scale_manager", "keep_batchnorm_fp32"):
                raise ApiTypeError("MSC0876", f"Model has no argument '{name}'")
        self._network, self._loss, self._optimizer = network, loss_fn, optimizer
        self._eval_indexes = None if eval_indexes is None else tuple(eval_indexes)
        self._metrics = get_metrics(metrics)
        self._train_network = self._training_step(amp_level, kwargs)
        self._eval_network = self._evaluation(eval_network)
        self.sinks = Sinks(self._train_network)

    def _training_step(self, amp_level: str, options: dict[str, Any]) -> Cell:
        """The cell of a step: forward, backward and update, one graph in graph mode."""
        if self._optimizer is not None and (amp_level != "O0" or options):
            return build_train_network(self._network, self._optimizer, self._loss, amp_level, **options)
        network = self._network if self._loss is None else WithLossCell(self._network, self._loss)
        return network if self._optimizer is None else TrainOneStepCell(network, self._optimizer)

    def _evaluation(self, given: Cell | None) -> Cell | None:
        if given is not None:
            return given
        if self._loss is None:
            return None
        self._eval_indexes = (0, 1, 2) if self._eval_indexes is None else self._eval_indexes
        return WithEvalCell(self._network, self._loss)

    def __getattr__(self, name: str) -> Any:
        advice = import_module("msc.mindspore.refusals").member_advice(type(self), name)
        if advice is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        raise ApiAttributeError("MSC0876", f"Model has no attribute '{name}'", help=advice)

    @property
    def train_network(self) -> Cell:
        """The cell of a training step."""
        return self._train_network

    @property
    def predict_network(self) -> Cell:
        """The network."""
        return self._network

    @property
    def eval_network(self) -> Cell | None:
        """The cell of an evaluation."""
        return self._eval_network

    def build(
        self,
        train_dataset: Dataset | None = None,
        valid_dataset: Dataset | None = None,
        sink_size: int = -1,
        epoch: int = 1,
        sink_mode: bool = True,
    ) -> None:
        """Look at the data sets; graphs are compiled in the first step. Raises MSC0876."""
        del sink_size, epoch, sink_mode
        for name, dataset in (("train_dataset", train_dataset), ("valid_dataset", valid_dataset)):
            if dataset is not None:
                self._check_dataset(name, dataset)

    # Training.

    def train(
        self,
        epoch: int,
        train_dataset: Dataset,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
        resume: Any = None,
    ) -> None:
        """Train up to epoch number `epoch`.

        Callbacks are called for each step; with `dataset_sink_mode` for each sink, which is an epoch, or `sink_size`
        steps: then an epoch has as many. In graph mode many steps of a sink are one compiled call, and `net_outputs` is
        the loss of the last. `resume` is a checkpoint of ModelCheckpoint's, or their folder, whose newest
        is taken: training goes on behind it with the same order of rows and the same bits. With an empty folder a run
        begins, so that one program both begins and goes on.
        """
        self._run_training(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, resume)

    def fit(
        self,
        epoch: int,
        train_dataset: Dataset,
        valid_dataset: Dataset | None = None,
        valid_frequency: int | Sequence[int] = 1,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
        resume: Any = None,
    ) -> None:
        """Train, and evaluate after every `valid_frequency` epochs, or after those of a list: `eval_results`."""
        unused("Model.fit", valid_dataset_sink_mode=valid_dataset_sink_mode)
        if valid_dataset is not None:
            self._check_evaluation(valid_dataset)
        validation = None if valid_dataset is None else (valid_dataset, valid_frequency)
        self._run_training(
            epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, resume, validation
        )

    def _run_training(
        self,
        epoch: int,
        dataset: Dataset,
        callbacks: Any,
        sinks: bool,
        sink_size: int,
        initial_epoch: int,
        resume: Any,
        validation: tuple[Dataset, Any] | None = None,
    ) -> None:
        size = self._check_training(epoch, dataset, sink_size, initial_epoch)
        steps = sink_size if sinks and sink_size > 0 else size
        checkpoint = None if resume is None else newest(resume)
        progress = begun() if checkpoint is None else restored(checkpoint, self._train_network, self._optimizer)
        if checkpoint is None:
            progress.steps, progress.steps_of_epoch, progress.epochs_ended = initial_epoch * steps, steps, initial_epoch
        elif progress.steps_of_epoch != steps:
            message = f"its epochs have {progress.steps_of_epoch} steps, those of this run {steps}"
            raise ApiValueError("MSC0879", f"training cannot go on from '{checkpoint}': {message}")
        members = Callbacks(callbacks)
        bar = self._progress_bar(members)
        facts = self._facts(dataset, members, "train", steps)
        facts.update(
            epoch_num=epoch,
            cur_epoch_num=progress.epochs_ended,
            cur_step_num=progress.steps,
            dataset_sink_mode=sinks,
            sink_size=steps if sinks else 1,
            progress=progress,
            callbacks=members,
            net_outputs=progress.loss,
            data_seconds=0.0,
            resumed=checkpoint is not None,
            valid_dataset=None if validation is None else validation[0],
        )
        self._train_network.set_train()
        if is_distributed():
            for parameter in self._train_network.get_parameters():
                parameter.set_data(Tensor(broadcast_from_first(parameter.name, parameter.asnumpy())))
        feed = batches(dataset, progress.seed, progress.steps, size)
        try:
            with closing(feed):
                self._epochs(RunContext(facts), members, feed, validation)
            gather(self._train_network.get_parameters())  # ranks that share parameters part with whole ones
        except BaseException:
            for member in members.members:
                if isinstance(member, ModelCheckpoint):
                    member.on_train_failure(RunContext(facts))
            raise
        finally:
            if bar is not None:
                bar.close()

    def _progress_bar(self, members: Callbacks) -> ProgressBar | None:
        """A bar where a person looks, and nothing else prints the loss."""
        if any(isinstance(member, LossMonitor | ProgressBar) for member in members.members):
            return None
        if not shows_progress(os.environ):
            return None
        bar = ProgressBar()
        members.members.append(bar)
        return bar

    def _facts(self, dataset: Dataset, members: Callbacks, mode: str, steps: int) -> Facts:
        return Facts(
            train_network=self._train_network,
            eval_network=self._eval_network,
            network=self._network,
            loss_fn=self._loss,
            optimizer=self._optimizer,
            metrics=self._metrics,
            train_dataset=dataset if mode == "train" else None,
            valid_dataset=dataset if mode == "eval" else None,
            list_callback=members.members,
            batch_num=steps,
            cur_step_num=0,
            cur_epoch_num=0,
            mode=mode,
            parallel_mode=get_auto_parallel_context("parallel_mode"),
            device_number=get_group_size(),
            dataset_sink_mode=False,
        )

    def _epochs(
        self, context: RunContext, members: Callbacks, feed: Prefetched[Any], validation: tuple[Dataset, Any] | None
    ) -> None:
        facts = context.original_args()
        progress = cast(Progress, facts.progress)
        members.call("on_train_begin", context)
        members.restore(context, progress.callbacks)
        while facts.cur_epoch_num < facts.epoch_num and not context.get_stop_requested():
            facts.cur_epoch_num += 1
            is_whole = progress.steps % facts.batch_num == 0
            if is_whole or facts.resumed:
                members.call("on_train_epoch_begin", context)
            self._epoch(context, members, feed)
            if progress.steps % facts.batch_num:
                break
            facts.eval_results = None
            if validation is not None and _is_evaluated(facts.cur_epoch_num, validation[1]):
                facts.eval_results = self._evaluate(validation[0], members)
                self._train_network.set_train()
            members.call("on_train_epoch_end", context)
            progress.epochs_ended = facts.cur_epoch_num
        members.call("on_train_end", context)

    def _epoch(self, context: RunContext, members: Callbacks, feed: Prefetched[Any]) -> None:
        """The steps of an epoch that are not done yet."""
        facts = context.original_args()
        progress = cast(Progress, facts.progress)
        columns = facts.train_dataset.columns
        last = facts.cur_epoch_num * facts.batch_num
        while progress.steps < last and not context.get_stop_requested():
            members.call("on_train_step_begin", context)
            steps = min(facts.sink_size, last - progress.steps)
            facts.train_dataset_element, facts.net_outputs = self.sinks.run(
                feed, steps, lambda row: tensors(row, columns)
            )
            facts.data_seconds = feed.waited
            progress.steps += steps
            facts.cur_step_num = progress.steps
            members.call("on_train_step_end", context)

    def _check_training(self, epoch: Any, dataset: Any, sink_size: Any, initial_epoch: Any) -> int:
        for name, value, least in (
            ("epoch", epoch, 1),
            ("initial_epoch", initial_epoch, 0),
            ("sink_size", sink_size, -1),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ApiTypeError("MSC0876", f"{name} is {described(value)}; it takes an integer of {least} or more")
        if sink_size == 0:
            raise ApiValueError("MSC0876", "sink_size is 0; it takes -1, a whole epoch, or a number of steps")
        if self._optimizer is None and self._loss is not None:
            raise ApiValueError("MSC0876", "this Model has a loss_fn and no optimizer: there is nothing to train with")
        return self._check_dataset("train_dataset", dataset)

    def _check_dataset(self, name: str, dataset: Any) -> int:
        """The number of batches. Raises MSC0876."""
        if not isinstance(dataset, Dataset):
            help_ = "msc.dataset.GeneratorDataset makes one of any Python object"
            raise ApiTypeError(
                "MSC0876", f"{name} is {described(dataset)}; it takes a data set of msc.dataset", help=help_
            )
        if self._loss is not None and len(dataset.columns) != 2:
            raise ApiValueError(
                "MSC0876",
                f"{name} has the columns {', '.join(map(repr, dataset.columns))}; a network with loss_fn takes two, "
                "data and label",
                help="project leaves columns out; without loss_fn a network that gives the loss takes any columns",
            )
        if self._loss is None and name == "train_dataset":
            self._check_columns(dataset)
        size = dataset.get_dataset_size()
        if size == 0:
            raise ApiValueError("MSC0876", f"{name} has no batches: are there fewer rows than batch_size?")
        return size

    def _check_columns(self, dataset: Dataset) -> None:
        """Raises MSC0876 where a network without loss_fn does not take what the data set gives: it gives the loss."""
        parameters = inspect.signature(self._network.construct).parameters.values()
        required = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        most = len(dataset.columns) if several else len(parameters)
        if not required <= len(dataset.columns) <= most:
            raise ApiTypeError(
                "MSC0876",
                f"this Model has no loss_fn: its network gives the loss of the columns {', '.join(dataset.columns)}, "
                f"but takes {', '.join(p.name for p in parameters) or 'nothing'}",
                help="Model(net, nn.CrossEntropyLoss(), optimizer) has a loss of outputs and labels",
            )

    # Evaluation.

    def eval(self, valid_dataset: Dataset, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """The results of the metrics over a data set, by name."""
        unused("Model.eval", dataset_sink_mode=dataset_sink_mode)
        self._check_evaluation(valid_dataset)
        return self._evaluate(valid_dataset, Callbacks(callbacks))

    def _check_evaluation(self, dataset: Any) -> None:
        if self._eval_network is None or not self._metrics:
            missing = "metrics" if not self._metrics else "loss_fn or eval_network"
            advice = 'as in Model(net, nn.CrossEntropyLoss(), metrics={"accuracy"})'
            message = f"evaluation needs {missing}, which this Model was made without"
            raise ApiValueError("MSC0876", message, help=advice)
        self._check_dataset("valid_dataset", dataset)

    def _evaluate(self, dataset: Dataset, members: Callbacks) -> dict[str, Any]:
        assert self._eval_network is not None
        for metric in self._metrics.values():
            metric.clear()
        facts = self._facts(dataset, members, "eval", dataset.get_dataset_size())
        context, columns = RunContext(facts), dataset.columns
        self._eval_network.set_train(False)
        members.call("on_eval_begin", context)
        members.call("on_eval_epoch_begin", context)
        with closing(one_epoch(dataset, config.seed_of_a_run())) as feed:
            for row in feed:
                facts.cur_step_num += 1
                members.call("on_eval_step_begin", context)
                facts.net_outputs = outputs = self._eval_network(*tensors(row, columns))
                self._measure(of_all_ranks(outputs if isinstance(outputs, tuple) else (outputs,)))
                members.call("on_eval_step_end", context)
        results = {name: metric.eval() for name, metric in self._metrics.items()}
        facts.eval_results = results
        members.call("on_eval_epoch_end", context)
        members.call("on_eval_end", context)
        return results

    def _measure(self, outputs: tuple[Any, ...]) -> None:
        for metric in self._metrics.values():
            if self._eval_indexes is None or metric.indexes is not None:
                metric.update(*outputs)
                continue
            if max(self._eval_indexes) >= len(outputs):
                message = f"eval_indexes are {self._eval_indexes}, and eval_network gives {len(outputs)} outputs"
                raise ApiValueError("MSC0876", message)
            loss, prediction, label = self._eval_indexes
            if isinstance(metric, Loss):
                metric.update(outputs[loss])
            else:
                metric.update(outputs[prediction], outputs[label])

    def predict(self, *predict_data: Any, backend: object = None) -> Any:
        """What the network gives for inputs."""
        unused("Model.predict", backend=backend)
        self._network.set_train(False)
        return self._network(*predict_data)


def of_all_ranks(outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """What evaluation gives on all ranks: the rows of all, and the means of scalars, so that metrics are of all."""
    if not is_distributed():
        return outputs

    def together(number: int, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        found = exchanged_by_all(f"output {number} of evaluation", value.asnumpy())
        joined = np.concatenate(found) if value.ndim else np.mean(found, dtype=np.float64).astype(found[0].dtype)
        return Tensor(joined)

    return tuple(together(number, value) for number, value in enumerate(outputs))


def _is_evaluated(epoch: int, frequency: Any) -> bool:
    if isinstance(frequency, int) and not isinstance(frequency, bool) and frequency > 0:
        return epoch % frequency == 0
    if isinstance(frequency, list | tuple | set):
        return epoch in frequency
    raise ApiTypeError("MSC0876", f"valid_frequency is {described(frequency)}; it takes an integer or a list of epochs")


def __getattr__(name: str) -> Any:
    return elsewhere("msc.train.model", name, ("Model",))


# Many steps in one compiled call: a loop over stacked batches, whose parameters and states stay in the graph.

Converter: TypeAlias = Callable[[Row], tuple[Tensor, ...]]
"""From a batch to the tensors that a step takes."""

MOST_STEPS = 64
MOST_BYTES = 256 << 20
"""What one call is given at most: batches, and bytes of them, which are in memory at once."""
_FEWEST = 8
"""Steps for which a loop is compiled rather than calls made."""


class Sinks:
    """Runs the steps of a sink: compiled loops in graph mode where the step fits in one, single calls otherwise."""

    def __init__(self, step: Cell) -> None:
        self._step = step
        self.loop: Jitted[..., Any] | None = None
        """The compiled loop; None for a step that no loop can hold."""
        if _gives_a_loss(step):
            loop: Any = StepLoop(step)
            self.loop = Jitted(loop, fullgraph=True)

    def run(self, feed: Iterator[Row], steps: int, tensors: Converter) -> tuple[tuple[Tensor, ...], Any]:
        """Take `steps` batches: the inputs and the outputs of the last step."""
        inputs: tuple[Tensor, ...] = ()
        outputs: Any = None
        while steps:
            group = [next(feed)]
            loops = self.loop is not None and in_graph_mode() and not is_partitioned()
            size = chunk(steps, sum(value.nbytes for value in group[0])) if loops else 1
            group += [next(feed) for _ in range(size - 1)]
            alike = all([v.shape for v in row] == [v.shape for v in group[0]] for row in group)
            outputs = self._looped(group, tensors) if size > 1 and alike else None
            if outputs is not None:
                inputs = tensors(group[-1])
            for row in group if outputs is None else ():
                inputs = tensors(row)
                outputs = self._step(*inputs)
            steps -= size
        return inputs, outputs

    def _looped(self, group: list[Row], tensors: Converter) -> Tensor | None:
        """The loss of the last step of a loop; None if no loop can hold the step."""
        assert self.loop is not None
        stacks = tuple(np.stack(values) for values in zip(*group, strict=True))
        try:
            return self.loop(Tensor(len(group), dtypes.int64), *tensors(stacks))
        except MscError as error:
            if error.diagnostics[0].code != "MSC0610":  # of an index that is outside, single calls show in which step
                self.loop = None  # single calls show why, if they cannot be compiled either
            return None


def _gives_a_loss(step: Cell) -> bool:
    """Whether a step is one of the library's that gives the loss alone: what else others do, no loop may leave out."""
    if isinstance(step, TrainOneStepCell):
        return not step.return_grad
    return isinstance(step, TrainOneStepWithLossScaleCell) and not step.returns_state


def chunk(steps: int, size: int) -> int:
    """How many of `steps` steps with batches of `size` bytes a call makes: a divisor, so that one loop is compiled."""
    most = max(min(MOST_STEPS, MOST_BYTES // max(size, 1), steps), 1)
    best = max(n for n in range(1, most + 1) if steps % n == 0)
    if best >= _FEWEST:
        return best
    return most if most >= _FEWEST else 1


@read_as_users
class StepLoop(Cell):
    """The steps of stacked batches [steps, batch, ...], a loop of the graph: the loss of the last one."""

    def __init__(self, step: Cell) -> None:
        super().__init__(auto_prefix=False)
        self.step = step

    def construct(self, steps: Tensor, *stacks: Tensor) -> Tensor:
        i, loss = Tensor(0, dtypes.int64), Tensor(0.0, dtypes.float32)
        while i < steps:
            loss = self._loss(i, stacks)
            i = i + 1
        return loss

    def _loss(self, i: Tensor, stacks: Sequence[Tensor]) -> Tensor:
        loss: Tensor = self.step(*[apply("extract_slice", stack, i) for stack in stacks])
        return (loss if loss.ndim == 0 else loss.mean()).astype(dtypes.float32)
