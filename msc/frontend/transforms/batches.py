"""`vmap`, `jacrev` and `jacfwd`: functions of one example on batches, and whole Jacobians as batches of directions."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from msc.frontend.capture import Symbol
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.reader.structures import fill
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.gradients import (
    Recorded,
    as_tensor,
    differentiable_outputs,
    is_float,
    pulled_back,
    pushed_forward,
    recorded,
    taken_apart,
    zeros_like,
)
from msc.frontend.transforms.recording import Recording, operations_since, recording, variable
from msc.frontend.transforms.tape import ElementsDecide
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.batching import Batching


def batched(
    record: Recording,
    operations: Sequence[Operation],
    examples: Sequence[Tensor],
    batches: Sequence[Tensor],
    outputs: Sequence[Tensor],
    size: int,
) -> list[Tensor]:
    """What recorded operations give for batches in the place of examples; what depends on none is repeated."""
    if not operations:
        found: dict[Any, Any] = {}
    else:
        batching = Batching(GradientEmitter(operations[-1], record.insert), size)
        for example, batch in zip(examples, batches, strict=True):
            batching.values[record.ssa(example)] = record.ssa(batch)
        with record.refusing():
            batching.run(operations)
        batching.close()
        found = batching.values
    results: list[Tensor] = []
    for output in outputs:
        value = found.get(output.content.ssa) if isinstance(output.content, Symbol) else None
        repeated = value is None
        results.append(_repeated(output, size) if repeated else record.tensor(value))
    return results


def _repeated(tensor: Tensor, size: int) -> Tensor:
    return apply("broadcast_to", apply("expand_dims", tensor, axis=(0,)), shape=(size, *tensor.shape))


def _moved(tensor: Tensor, source: int, target: int) -> Tensor:
    """The tensor with one axis at another place. Raises MSC0857 for a place that it does not have."""
    for axis in (source, target):
        if not -tensor.ndim <= axis < tensor.ndim:
            raise ApiValueError("MSC0857", f"vmap: a result of shape {tensor.shape} with the batch has no axis {axis}")
    source, target = source % tensor.ndim, target % tensor.ndim
    if source == target:
        return tensor
    order = [k for k in range(tensor.ndim) if k != source]
    order.insert(target, source)
    return apply("transpose", tensor, perm=tuple(order))


def _example_of(batch: Tensor, number: int) -> Tensor:
    begin, end = (number, *[0] * (batch.ndim - 1)), (number + 1, *batch.shape[1:])
    return apply("reshape", apply("slice", batch, begin=begin, end=end), shape=batch.shape[1:])


@dataclass(frozen=True)
class BatchCall:
    """A function of one example, called on batches along `in_axes`."""

    function: Any
    in_axes: Any
    out_axes: Any

    def __call__(self, *args: Any) -> Any:
        axes = self.in_axes if isinstance(self.in_axes, tuple | list) else (self.in_axes,) * len(args)
        if len(axes) != len(args):
            raise ApiValueError("MSC0857", f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments")
        with recording() as record:
            batches: list[Tensor] = []
            examples: list[Tensor] = []
            given = [self._example(record, a, axis, batches, examples) for a, axis in zip(args, axes, strict=True)]
            size = self._size(batches, axes)
            last = record.block.last_op
            try:
                with record.one_stands_for_all(examples):
                    result = record.call(self.function, given, {})
            except ElementsDecide:
                template, found = self._one_by_one(record, args, axes, batches, size)
            else:
                template, outputs = taken_apart(result)
                found = batched(record, operations_since(record, last), examples, batches, outputs, size)
            places = [0] * len(found) if self.out_axes is None else _spread(self.out_axes, len(found))
            return fill(template, [_moved(t, 0, place) for t, place in zip(found, places, strict=True)])

    def _one_by_one(
        self, record: Recording, args: Sequence[Any], axes: Sequence[Any], batches: Sequence[Tensor], size: int
    ) -> tuple[Any, list[Tensor]]:
        """A function whose Python branches on the elements of an example runs for each of them."""
        columns: list[list[Tensor]] = []
        template: Any = None
        for number in range(size):
            waiting = iter(batches)
            given = [a if axis is None else self._taken(a, waiting, number) for a, axis in zip(args, axes, strict=True)]
            template, outputs = taken_apart(record.call(self.function, given, {}))
            if columns and [o.shape for o in outputs] != [o.shape for o in columns[0]]:
                raise ApiValueError("MSC0857", "vmap: the results for two examples differ in their shapes")
            columns.append(outputs)
        return template, [apply("stack", *rows, axis=0) for rows in zip(*columns, strict=True)]

    def _taken(self, argument: Any, batches: Iterator[Tensor], number: int) -> Any:
        template, leaves = taken_apart(as_tensor(argument))
        return fill(template, [_example_of(next(batches), number) for _ in leaves])

    def _example(
        self, record: Recording, argument: Any, axis: Any, batches: list[Tensor], examples: list[Tensor]
    ) -> Any:
        """An argument for one example; its tensors with a batch axis are noted."""
        if axis is None:
            return argument
        template, leaves = taken_apart(as_tensor(argument))
        axes = _spread(axis, len(leaves))
        made: list[Tensor] = []
        for leaf, place in zip(leaves, axes, strict=True):
            if not -leaf.ndim <= place < leaf.ndim:
                raise ApiValueError("MSC0857", f"vmap: a tensor of shape {leaf.shape} has no axis {place}")
            batch = variable(record, _moved(leaf, place, 0))
            if 0 in batch.shape[:1]:
                raise ApiValueError("MSC0857", f"vmap: a batch of no examples, in a tensor of shape {leaf.shape}")
            batches.append(batch)
            examples.append(variable(record, _example_of(batch, 0)))
            made.append(examples[-1])
        return fill(template, made)

    def _size(self, batches: Sequence[Tensor], axes: Sequence[Any]) -> int:
        sizes = {b.shape[0] for b in batches}
        if len(sizes) != 1:
            what = f"batches of {', '.join(map(str, sorted(sizes)))}" if sizes else "no argument with a batch axis"
            raise ApiValueError("MSC0857", f"vmap: {what}, with in_axes {tuple(axes)}")
        return sizes.pop()


def _spread(axes: Any, count: int) -> list[int]:
    found = list(axes) if isinstance(axes, tuple | list) else [axes] * count
    if len(found) != count or not all(isinstance(a, int) for a in found):
        raise ApiTypeError("MSC0857", f"vmap: {axes!r} is no axis for each of {count} tensors")
    return found


@dataclass(frozen=True)
class JacobianCall:
    """All derivatives of the value of a function by its arguments: shapes of results in front, then of arguments."""

    function: Any
    positions: tuple[int, ...]
    single: bool
    has_aux: bool
    forward: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for position in self.positions:
            if not 0 <= position < len(args):
                raise ApiValueError("MSC0856", f"grad_position is {position}, but there are {len(args)} arguments")
        given = [as_tensor(a) if k in self.positions else a for k, a in enumerate(args)]
        with recording() as record:
            call = recorded(record, self.function, given, kwargs, self.positions)
            value, aux = (call.result[0], call.result[1:]) if self.has_aux else (call.result, ())
            outputs = differentiable_outputs(record, value)
            template, _ = taken_apart(value)
            jacobians = [self._of_output(record, call, output) for output in outputs]
            found = fill(template, jacobians) if len(jacobians) != 1 else jacobians[0]
            return (found, aux) if self.has_aux else found

    def _of_output(self, record: Recording, call: Recorded, output: Tensor) -> Any:
        template, variables = taken_apart(call.arguments)
        made = [self._jacobian(record, call, output, v) for v in variables]
        found = fill(template, made)
        return found[0] if self.single else tuple(found)

    def _jacobian(self, record: Recording, call: Recorded, output: Tensor, argument: Tensor) -> Tensor:
        if not is_float(argument):
            return Tensor.of(np.zeros((*output.shape, *argument.shape), argument.dtype.numpy))
        last = record.block.last_op
        one = argument if self.forward else output
        direction = variable(record, zeros_like(one))
        size = prod(one.shape)
        basis = Tensor.of(np.eye(size, dtype=one.dtype.numpy).reshape(size, *one.shape))
        if self.forward:
            of_one = Recorded(call.record, call.result, [argument], [], call.operations)
            result = pushed_forward(record, of_one, output, [direction])
        else:
            (found,) = pulled_back(record, call.operations, [output], [direction], [argument])
            result = zeros_like(argument) if found is None else found
        ops = operations_since(record, last)
        (rows,) = batched(record, ops, [direction], [basis], [result], size)
        if self.forward:
            rows = _moved(rows, 0, -1)
        return apply("reshape", rows, shape=(*output.shape, *argument.shape))
