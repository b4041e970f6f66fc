"""`vmap`, `jacrev` and `jacfwd`: functions of one example on batches, and whole Jacobians as batches of directions."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from msc.frontend.capture import Symbol
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.randomness import same_numbers
from msc.frontend.reader.structures import fill
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.gradients import (
    Recorded,
    as_tensor,
    differentiable_outputs,
    is_number,
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
) -> list[Tensor | None]:
    """What recorded operations give for batches in the place of examples; None for what depends on none."""
    found: dict[Any, Any] = {record.ssa(e): record.ssa(b) for e, b in zip(examples, batches, strict=True)}
    if operations:
        batching = Batching(GradientEmitter(operations[-1], record.insert), size)
        batching.values.update(found)
        with record.refusing():
            batching.run(operations)
        batching.close()
        found = batching.values
    values = [found.get(o.content.ssa) if isinstance(o.content, Symbol) else None for o in outputs]
    return [None if value is None else record.tensor(value) for value in values]


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


def is_several(function: Any) -> bool:
    """Whether it is a list of functions, or a Cell that says that it is one."""
    return isinstance(function, tuple | list) or getattr(type(function), "IS_LIST", False)


@dataclass(frozen=True)
class BatchCall:
    """A function of one example, called on batches along `in_axes`; of several functions, each on its own example."""

    function: Any
    in_axes: Any
    out_axes: Any

    def __call__(self, *args: Any) -> Any:
        axes = self.in_axes if isinstance(self.in_axes, tuple | list) else (self.in_axes,) * len(args)
        if len(axes) != len(args):
            raise ApiValueError("MSC0857", f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments")
        given = tuple(a if axis is None else as_tensor(a) for a, axis in zip(args, axes, strict=True))
        template, leaves = taken_apart(given)
        places = _places(tuple(axes), given)
        with recording() as record:
            batches = [
                None if place is None else _batch(record, leaf, place)
                for leaf, place in zip(leaves, places, strict=True)
            ]
            examples = Examples(record, template, leaves, batches, self._size(batches, axes))
            if is_several(self.function):
                result, found = examples.one_by_one(self._functions(examples.size))
            else:
                result, found = examples.together(self.function)
            return self._arranged(result, found)

    def _functions(self, size: int) -> list[Any]:
        functions = list(self.function)
        if len(functions) != size:
            raise ApiValueError("MSC0857", f"vmap: {len(functions)} functions for a batch of {size}")
        return functions

    def _size(self, batches: Sequence[Tensor | None], axes: Sequence[Any]) -> int:
        sizes = {b.shape[0] for b in batches if b is not None}
        if len(sizes) != 1:
            what = f"batches of {', '.join(map(str, sorted(sizes)))}" if sizes else "no argument with a batch axis"
            raise ApiValueError("MSC0857", f"vmap: {what}, with in_axes {tuple(axes)}")
        return sizes.pop()

    def _arranged(self, result: Any, found: Sequence[tuple[Tensor, bool]]) -> Any:
        """The structure of a result with its batches along `out_axes`."""
        template, _ = taken_apart(result)
        places = _places(self.out_axes, result)
        return fill(template, [_placed(*pair, place) for pair, place in zip(found, places, strict=True)])


def _places(axes: Any, value: Any) -> list[int | None]:
    """The axis of each tensor in a value: one for all, or a structure of them like that of the value."""
    count = len(taken_apart(value)[1])
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes] * count
    pairs: list[tuple[Any, Any]] = []
    if isinstance(axes, tuple | list) and isinstance(value, tuple | list) and len(axes) == len(value):
        pairs = list(zip(axes, value, strict=True))
    elif isinstance(axes, dict) and isinstance(value, dict) and axes.keys() == value.keys():
        pairs = [(axes[key], value[key]) for key in value]
    if pairs:
        return [place for part, item in pairs for place in _places(part, item)]
    raise ApiTypeError("MSC0857", f"vmap: {axes!r} is no axis for each of {count} tensors")


def _batch(record: Recording, leaf: Tensor, place: int) -> Tensor:
    """A tensor with its examples along the first axis."""
    if not -leaf.ndim <= place < leaf.ndim:
        raise ApiValueError("MSC0857", f"vmap: a tensor of shape {leaf.shape} has no axis {place}")
    batch = variable(record, _moved(leaf, place, 0))
    if 0 in batch.shape[:1]:
        raise ApiValueError("MSC0857", f"vmap: a batch of no examples, in a tensor of shape {leaf.shape}")
    return batch


def _placed(tensor: Tensor, is_batch: bool, place: int | None) -> Tensor:
    """A result with its batch along an axis; without an axis, one that is the same for all examples."""
    if place is not None:
        return _moved(tensor, 0, place)
    if is_batch:
        help_ = "out_axes is None only for results that no argument with a batch axis is in"
        raise ApiValueError("MSC0857", f"vmap: a result of shape {tensor.shape} depends on the example", help=help_)
    return _example_of(tensor, 0)


@dataclass(frozen=True)
class Examples:
    """The arguments of a call of `vmap`: `size` examples, in batches along the first axis; None is for all."""

    record: Recording
    template: Any
    leaves: Sequence[Tensor]
    batches: Sequence[Tensor | None]
    size: int

    def _arguments(self, number: int) -> tuple[Any, list[Tensor]]:
        """The arguments for one example, and the tensors in them that others have in other ways."""
        made = [None if b is None else variable(self.record, _example_of(b, number)) for b in self.batches]
        own = [leaf if m is None else m for leaf, m in zip(self.leaves, made, strict=True)]
        return fill(self.template, own), [m for m in made if m is not None]

    def together(self, function: Any) -> tuple[Any, list[tuple[Tensor, bool]]]:
        """The result for one example, and for its tensors those of all, with whether they depend on the example."""
        record = self.record
        args, examples = self._arguments(0)
        last = record.block.last_op
        try:
            with record.one_stands_for_all(examples):
                result = record.call(function, args, {})
        except ElementsDecide:
            return self.one_by_one([function] * self.size)
        _, outputs = taken_apart(result)
        batches = [b for b in self.batches if b is not None]
        found = batched(record, operations_since(record, last), examples, batches, outputs, self.size)
        return result, [
            (_repeated(o, self.size), False) if f is None else (f, True) for o, f in zip(outputs, found, strict=True)
        ]

    def one_by_one(self, functions: Sequence[Any]) -> tuple[Any, list[tuple[Tensor, bool]]]:
        """Functions whose Python branches on the elements of an example run for each of them.

        All draw the same random numbers, as they do together.
        """
        columns: list[list[Tensor]] = []
        result: Any = None
        with same_numbers() as again:
            for number, function in enumerate(functions):
                again()
                result = self.record.call(function, self._arguments(number)[0], {})
                _, outputs = taken_apart(result)
                if columns and [o.shape for o in outputs] != [o.shape for o in columns[0]]:
                    raise ApiValueError("MSC0857", "vmap: the results for two examples differ in their shapes")
                columns.append(outputs)
        return result, [(apply("stack", *rows, axis=0), True) for rows in zip(*columns, strict=True)]


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
            outputs = differentiable_outputs(value)
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
        if not is_number(argument):
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
        (found,) = batched(record, ops, [direction], [basis], [result], size)
        rows = _repeated(result, size) if found is None else found
        if self.forward:
            rows = _moved(rows, 0, -1)
        return apply("reshape", rows, shape=(*output.shape, *argument.shape))
