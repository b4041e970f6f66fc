"""Networks with their loss, and one step of training, as cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msc import ops
from msc.frontend import dtypes
from msc.frontend.parallel import get_auto_parallel_context, shares_gradients
from msc.frontend.parameter import ParameterTuple
from msc.frontend.process_group import HCCL_WORLD_COMM_GROUP, get_group_size, group_ranks, refused
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.api import GradOperation, value_and_grad
from msc.nn.cell import Cell
from msc.nn.optim.optimizer import Optimizer
from msc.ops.collectives import all_reduced

__all__ = [
    "DistributedGradReducer", "ForwardValueAndGrad", "PipelineGradReducer", "TrainOneStepCell", "WithEvalCell",
    "WithLossCell",
]  # fmt: skip


class WithLossCell(Cell):
    """A network and a loss: from data and label to the loss."""

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network without the loss."""
        return self._backbone


class WithEvalCell(Cell):
    """A network and a loss: from data and label to the loss, what the network gives, and the label."""

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Any, label: Any) -> Any:
        outputs = self._network(data)
        return self._loss_fn(outputs, label), outputs, label


class ForwardValueAndGrad(Cell):
    """A network with its gradients: from inputs to what it gives, and the gradients as `GradOperation` gives them.

    By the first input, by all (`get_all`), or by `weights` (`get_by_list`); by both, a pair. With `sens_param` the last
    input is what the results count.
    """

    def __init__(
        self,
        network: Cell,
        weights: Any = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.weights = network, weights
        self.sens_param = sens_param
        self._gradient = GradOperation(get_all, get_by_list, sens_param)(network, weights)

    def construct(self, *inputs: Any) -> Any:
        given = inputs[:-1] if self.sens_param else inputs
        return self.network(*given), self._gradient(*inputs)


class DistributedGradReducer(Cell):
    """The sums, or means, of the gradients of all ranks of a group. Raises MSC0895 for another degree than its size."""

    def __init__(
        self,
        parameters: Any,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        size = len(group_ranks(group, "DistributedGradReducer"))
        if degree not in (None, size):
            raise refused(f"DistributedGradReducer: degree is {degree}", f"degree is get_group_size(), {size}")
        self.param_count, self.mean, self.degree = len(list(parameters)), bool(mean), size
        self.fusion_type, self.group = fusion_type, group

    def construct(self, grads: Any) -> Any:
        return tuple(all_reduced(grads, self.mean, self.group))


def taken_together(gradients: Any) -> Any:
    """The gradients of all ranks, as `set_auto_parallel_context` says: summed, or the mean with `gradients_mean`."""
    if not shares_gradients():
        return gradients
    return tuple(all_reduced(gradients, get_auto_parallel_context("gradients_mean")))


def with_loss(loss: Any, gradients: Any) -> tuple[Any, Any]:
    """The mean loss of all ranks, which have as many examples each, and their gradients taken together."""
    if not shares_gradients():
        return loss, gradients
    if get_auto_parallel_context("gradients_mean"):
        *gradients, loss = all_reduced([*gradients, loss], True)
        return loss, tuple(gradients)
    return all_reduced([loss], True)[0], taken_together(gradients)


class PipelineGradReducer(DistributedGradReducer):
    """The same for the stages of a pipeline, of which there is one."""

    def __init__(self, parameters: Any, scale_sense: float = 1.0, opt_shard: Any = None) -> None:
        super().__init__(parameters)
        if opt_shard or self.degree > 1:
            raise refused("PipelineGradReducer: opt_shard needs several devices", "leave it out")
        self.scale_sense = scale_sense

    def construct(self, grads: Any) -> Any:
        return tuple(g / self.scale_sense for g in grads)


class TrainOneStepCell(Cell):
    """One step of training: from the inputs of a network that gives a loss to the loss, with the parameters updated.

    `sens` is what the loss counts, 1 by default: the scale of the loss. With `return_grad` the gradients follow it.
    A subclass with a `construct` of its own has `network`, `optimizer`, `weights`, `sens`, `grad` (a `GradOperation` by
    the weights, with sens) and `grad_reducer`.
    """

    MEMBERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "allreduce": lambda _: ops.AllReduce(),
        "base": lambda _: Tensor(1, dtypes.float32),
        "cast": lambda _: ops.Cast(),
        "degree": lambda _: get_group_size(),
        "hyper_map": lambda _: ops.HyperMap(),
        "is_distributed": lambda _: shares_gradients(),
        "less_equal": lambda _: ops.LessEqual(),
        "map_": lambda _: ops.Map(),
        "mean": lambda _: False,
        "reduce_sum": lambda _: ops.ReduceSum(),
    }

    def __init__(
        self, network: Cell, optimizer: Optimizer, sens: float | None = None, return_grad: bool = False
    ) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights: ParameterTuple = optimizer.parameters
        self.sens = 1.0 if sens is None else float(sens)
        self._is_scaled = sens is not None
        self.return_grad = return_grad
        self._differentiated = value_and_grad(network, None, optimizer.parameters, sens_param=sens is not None)
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.reducer_flag = shares_gradients()

    def grad_reducer(self, gradients: Any) -> Any:
        """The gradients of all ranks taken together."""
        return taken_together(gradients)

    def construct(self, *inputs: Any) -> Any:
        sens = (Tensor(self.sens),) if self._is_scaled else ()
        loss, gradients = with_loss(*self._differentiated(*inputs, *sens))
        self.optimizer(gradients)
        if not self.return_grad:
            return loss
        return loss, {p.name: g for p, g in zip(self.weights, gradients, strict=True)}
