"""Cells around a network: batches in parts, one parameter, gradients, a layer along time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msc import ops
from msc.frontend.capture import in_pass
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parallel import has_stages, is_partitioned, ranks_of_a_stage
from msc.frontend.parameter import Parameter
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.api import GradOperation, jvp, vjp
from msc.nn.arguments import positive
from msc.nn.cell import Cell
from msc.support.argument_values import described
from msc.support.diagnostics import did_you_mean

__all__ = [
    "GradAccumulationCell",
    "Jvp",
    "MicroBatchInterleaved",
    "ParameterUpdate",
    "PipelineCell",
    "TimeDistributed",
    "VirtualDatasetCellTriple",
    "Vjp",
    "WithGradCell",
]  # fmt: skip


class _InParts(Cell):
    """A network whose batch is taken in parts, one after the other: the sum of what it gives. Raises MSC0824."""

    def __init__(self, network: Cell, parts: int) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApiTypeError("MSC0824", f"{type(self).__name__}: network is {described(network)}; it is a Cell")
        positive(type(self).__name__, parts=parts)
        self.network, self._parts = network, parts

    def construct(self, *inputs: Any) -> Any:
        total = None
        for i in range(self._parts):
            with in_pass(micro=i if has_stages() else None):
                given = [self._part(x, i) for x in inputs]
                result = self.network(*given)
                total = result if total is None else ops.add(total, result)
        return total

    def _part(self, x: Tensor, number: int) -> Tensor:
        if x.shape[0] % self._parts:
            raise ApiValueError("MSC0201", f"a batch of {x.shape[0]} does not divide into {self._parts} parts")
        size = x.shape[0] // self._parts
        ranks = ranks_of_a_stage() if is_partitioned() else 1
        if ranks > 1 and size % ranks == 0:  # each rank takes a part of its own rows
            rows = ops.reshape(x, (ranks, self._parts, size // ranks, *x.shape[1:]))
            return ops.reshape(ops.narrow(rows, 1, number, 1), (size, *x.shape[1:]))
        return ops.narrow(x, 0, number * size, size)


class PipelineCell(_InParts):
    """A network that takes its batch in `micro_size` parts, and gives the sum of what they give.

    With `set_auto_parallel_context(pipeline_stages=...)` ranks compute the stages that `stage_config` gives the cells,
    or their attribute `pipeline_stage`, part after part. Raises MSC0824 for cells that are not there.
    """

    def __init__(
        self,
        network: Cell,
        micro_size: int,
        stage_config: Mapping[str, int] | None = None,
        segment_config: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(network, micro_size)
        self.micro_size, self.stage_config, self.segment_config = micro_size, stage_config, segment_config
        cells = dict(network.cells_and_names())
        for name, stage in (stage_config or {}).items():
            if name not in cells:
                message = f"PipelineCell: stage_config names '{name}', which is no cell of the network"
                raise ApiValueError("MSC0824", message, help=did_you_mean(name, cells))
            cells[name].pipeline_stage = stage


class GradAccumulationCell(_InParts):
    """A network that takes its batch in `micro_size` parts: the sum of what it gives."""

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(network, micro_size)
        self.micro_size = micro_size


class MicroBatchInterleaved(_InParts):
    """A network that takes its batch in `interleave_num` parts: the sum of what it gives."""

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, interleave_num)
        self.interleave_num = interleave_num


class VirtualDatasetCellTriple(Cell):
    """A network as it is: one process has all rows of a batch."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, a: Any, b: Any, c: Any) -> Any:
        return self._backbone(a, b, c)


class ParameterUpdate(Cell):
    """Gives a parameter the tensor that it is called with. Raises MSC0807."""

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApiTypeError("MSC0807", f"ParameterUpdate changes a Parameter, not {described(param)}")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        ops.assign(self._param, x)
        return x


class WithGradCell(Cell):
    """The gradients of a network with a loss, or of one that gives the loss, by its trainable parameters."""

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss_fn, self.sens = network, loss_fn, sens
        self.grad = GradOperation(get_by_list=True, sens_param=sens is not None)

    def construct(self, *inputs: Any) -> Any:
        network, loss = self.network, self.loss_fn

        def with_loss(*given: Any) -> Any:
            return network(*given) if loss is None else loss(network(*given[:-1]), given[-1])

        sens = () if self.sens is None else (self.sens,)
        return self.grad(with_loss, network.trainable_params())(*inputs, *sens)


class Jvp(Cell):
    """What a function gives and its change along directions: inputs, then the tuple of directions."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *inputs: Any) -> Any:
        *given, directions = inputs
        return jvp(self.fn, tuple(given), directions if isinstance(directions, tuple) else (directions,))


class Vjp(Cell):
    """What a function gives and the gradients by its inputs, with what its results count as the last argument."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *inputs: Any) -> Any:
        *given, counts = inputs
        result, pull = vjp(self.fn, *given)
        gradients = pull(counts)
        return result, gradients[0] if isinstance(gradients, tuple) and len(given) == 1 else gradients


class TimeDistributed(Cell):
    """A layer at each entry of the axis `time_axis`; `reshape_with_axis` says which axis the time is joined with."""

    def __init__(self, layer: Any, time_axis: int, reshape_with_axis: int | None = None) -> None:
        super().__init__()
        unused("TimeDistributed", reshape_with_axis=reshape_with_axis)
        self.layer, self.time_axis = layer, time_axis

    def construct(self, inputs: Tensor) -> Tensor:
        return ops.stack([self.layer(x) for x in ops.unbind(inputs, self.time_axis)], self.time_axis)
