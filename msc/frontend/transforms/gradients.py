"""`grad`, `value_and_grad`, `GradOperation`, `vjp` and `jvp`: derivatives of functions and Cells."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from msc.frontend import dtypes, settings
from msc.frontend.capture import Symbol
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.reader.structures import Flattening, Template, fill
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.recording import Recording, operations_since, recording, standing_for, variable
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.reverse import Reverse, activity
from msc.support.wording import a


def taken_apart(value: Any) -> tuple[Template, list[Tensor]]:
    """The structure of a value, and the tensors in it; one that occurs twice counts twice."""
    flat = Flattening(lambda v: (v, _same) if isinstance(v, Tensor) else None, each_time=True)
    return flat.template(value), flat.leaves


def _same(value: Any) -> Any:
    return value


def is_float(tensor: Tensor) -> bool:
    """Whether a tensor has real numbers."""
    return tensor.dtype.category == dtypes.FLOAT


def is_number(tensor: Tensor) -> bool:
    """Whether a tensor has derivatives: real numbers, and integers, whose derivatives are rounded to their type."""
    return tensor.dtype.category != dtypes.BOOLEAN


@dataclass
class Recorded:
    """A call that was recorded: the operations, what it was called with as values of its own, and what it gave."""

    record: Recording
    result: Any
    arguments: list[Any]
    """The arguments that are differentiated, with variables for their tensors."""
    weights: list[Tensor]
    operations: list[Operation]
    reached: list[bool] = field(default_factory=list[bool])
    """Which of the variables that were asked for last the outputs depend on."""

    def gradients(
        self, outputs: Sequence[Tensor], seeds: Sequence[Tensor], variables: Sequence[Tensor]
    ) -> list[Tensor]:
        """The gradients by variables of outputs that count `seeds`; of booleans they are zeros."""
        found = pulled_back(self.record, self.operations, outputs, seeds, variables)
        self.reached = [g is not None for g in found]
        return [zeros_like(v) if g is None else g for v, g in zip(variables, found, strict=True)]


def zeros_like(tensor: Tensor) -> Tensor:
    """Zeros of the type of a tensor."""
    return Tensor.of(np.zeros(tensor.shape, tensor.dtype.numpy))


def pulled_back(
    record: Recording,
    operations: Sequence[Operation],
    outputs: Sequence[Tensor],
    seeds: Sequence[Tensor],
    variables: Sequence[Tensor],
) -> list[Tensor | None]:
    """What recorded operations give back to variables; None where nothing depends on one."""
    values: list[SSAValue | None] = [
        v.content.ssa if isinstance(v.content, Symbol) and is_number(v) else None for v in variables
    ]
    known = [v for v in values if v is not None]
    if not known or not operations:
        return [None] * len(variables)
    emit = GradientEmitter(operations[-1], record.insert)
    reverse = Reverse(emit, activity(operations, known))
    for output, seed in zip(outputs, seeds, strict=True):
        reverse.add(record.ssa(output), record.ssa(seed))
    with record.refusing():
        reverse.run(operations)
    found = [None if v is None else reverse.gradients.get(v) for v in values]
    return [None if g is None else record.tensor(g) for g in found]


def recorded(
    record: Recording,
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    positions: Sequence[int],
    weights: Sequence[Parameter] = (),
) -> Recorded:
    """Call a function with variables at some positions and for some weights."""
    last = record.block.last_op
    given = list(args)
    for position in positions:
        template, leaves = taken_apart(given[position])
        given[position] = fill(template, [variable(record, t) if is_number(t) else t for t in leaves])
    values = [variable(record, weight) for weight in weights]
    with standing_for(record, weights, values):
        result = _standing(record.call(function, given, kwargs), weights, values)
    return Recorded(record, result, [given[p] for p in positions], values, operations_since(record, last))


def _standing(result: Any, weights: Sequence[Parameter], values: Sequence[Tensor]) -> Any:
    """A result, with the values that stand for parameters in place of the parameters themselves."""
    stand_ins = {id(w): v for w, v in zip(weights, values, strict=True) if w.content is v.content}
    template, leaves = taken_apart(result)
    if not any(id(leaf) in stand_ins for leaf in leaves):
        return result
    return fill(template, [stand_ins.get(id(leaf), leaf) for leaf in leaves])


def differentiable_outputs(value: Any) -> list[Tensor]:
    """The tensors of floats in a result, or of integers if it has none. Raises MSC0856 where there is no tensor."""
    _, leaves = taken_apart(value)
    if not leaves:
        raise ApiTypeError(
            "MSC0856", f"a function that is differentiated gives {a(type(value).__name__)}, not a tensor"
        )
    return [t for t in leaves if is_float(t)] or [t for t in leaves if is_number(t)]


def ones_like(tensor: Tensor) -> Tensor:
    """Ones of the type of a tensor."""
    return Tensor.of(np.ones(tensor.shape, tensor.dtype.numpy))


def as_tensor(value: Any) -> Any:
    """A Python number as a tensor of Float32; all else as it is."""
    if isinstance(value, np.ndarray):
        return Tensor(value)
    number = isinstance(value, bool | int | float) and not isinstance(value, bool)
    return Tensor(float(value), dtypes.float32) if number else value


@dataclass(frozen=True)
class GradientCall:
    """The gradient of `function`, with the options of `grad`. It runs where it is called: on a tape or in a graph."""

    function: Any
    positions: tuple[int, ...] | None
    single: bool
    """Whether the position was given as a number: the result is the gradient itself, not a tuple of one."""
    weights: tuple[Parameter, ...] | None
    single_weight: bool = False
    has_aux: bool = False
    return_ids: bool = False
    with_value: bool = False
    with_sens: bool = False
    all_inputs: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, sens = (args[:-1], args[-1]) if self.with_sens else (args, None)
        positions = tuple(range(len(args))) if self.all_inputs else self.positions or ()
        for position in positions:
            if not 0 <= position < len(args):
                raise ApiValueError(
                    "MSC0856", f"grad_position is {position}, but the function was called with {len(args)} arguments"
                )
        given = [as_tensor(a) if k in positions else a for k, a in enumerate(args)]
        with recording() as record:
            call = recorded(record, self.function, given, kwargs, positions, self.weights or ())
            return self._finished(record, call, sens, positions)

    def _finished(self, record: Recording, call: Recorded, sens: Any, positions: Sequence[int]) -> Any:
        result = call.result
        value, aux = result, ()
        if self.has_aux:
            if not isinstance(result, tuple) or len(result) < 2:
                raise ApiTypeError("MSC0856", "with has_aux a function gives its value and something else: a tuple")
            value, aux = result[0], result[1:]
        outputs = differentiable_outputs(value)
        seeds = list(map(ones_like, outputs)) if sens is None else self._given_seeds(sens, outputs)
        template, leaves = taken_apart(call.arguments)
        found = call.gradients(outputs, seeds, [*leaves, *call.weights])
        if self.weights and not any(call.reached[len(leaves) :]):
            _tell_of_strangers(self.weights)
        arguments = fill(template, found[: len(leaves)])
        gradients = self._arranged(arguments, found[len(leaves) :], positions)
        if self.with_value:
            return result, gradients
        return (gradients, aux) if self.has_aux else gradients

    def _given_seeds(self, sens: Any, outputs: Sequence[Tensor]) -> list[Tensor]:
        _, given = taken_apart(as_tensor(sens))
        seeds = [_filled(s, o) for s, o in zip(given, outputs, strict=True)] if len(given) == len(outputs) else given
        if len(seeds) != len(outputs) or any(s.shape != o.shape for s, o in zip(seeds, outputs, strict=False)):
            shapes = ", ".join(str(o.shape) for o in outputs)
            raise ApiValueError("MSC0856", f"sens has a tensor for each result, of the same shape: {shapes}")
        return [s if s.dtype is o.dtype else s.astype(o.dtype) for s, o in zip(seeds, outputs, strict=True)]

    def _arranged(self, arguments: Sequence[Any], weights: Sequence[Tensor], positions: Sequence[int]) -> Any:
        """Gradients as MindSpore gives them: by inputs, by weights, or a pair of both."""
        inputs: Any = [(p, g) for p, g in zip(positions, arguments, strict=True)] if self.return_ids else arguments
        inputs = inputs[0] if self.single and positions else tuple(inputs)
        if self.weights is None:
            return inputs
        named: Any = tuple(weights)
        if self.return_ids:
            named = tuple((w.name, g) for w, g in zip(self.weights, weights, strict=True))
        named = named[0] if self.single_weight else named
        return (inputs, named) if positions else named


def _tell_of_strangers(weights: Sequence[Parameter]) -> None:
    first = weights[0].name
    settings.tell_once(
        ("weights", first),
        "MSC0891",
        f"the result does not depend on the weights that it is differentiated by, as '{first}': their gradients are 0",
        help="are they of another network? Make the optimiser of net.trainable_params() of the one that is trained",
    )


def _filled(seed: Tensor, output: Tensor) -> Tensor:
    """A number counts for all elements."""
    return seed if seed.shape == output.shape or seed.ndim else apply("broadcast_to", seed, shape=output.shape)


def jvp(function: Any, inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """The value of a function and its derivative in the direction `v`: a tensor, or a tuple with one for each input.

    Forward mode is reverse mode of reverse mode: what the gradient gives back is linear in what it is given.
    With `has_aux` what the function gives beside its value comes third.
    """
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    directions = v if isinstance(v, tuple) else (v,)
    if len(args) != len(directions):
        raise ApiValueError("MSC0856", f"jvp: {len(args)} inputs, but {len(directions)} directions")
    given = [as_tensor(a) for a in args]
    with recording() as record:
        call = recorded(record, function, given, {}, range(len(given)))
        value, aux = (call.result[0], call.result[1:]) if has_aux else (call.result, ())
        tangent = pushed_forward(record, call, value, [as_tensor(d) for d in directions])
        return (value, tangent, aux) if has_aux else (value, tangent)


def pushed_forward(record: Recording, call: Recorded, value: Any, directions: Sequence[Any]) -> Any:
    """The derivative of a recorded call in a direction, in the structure of its value."""
    template, outputs = taken_apart(value)
    floats = [t for t in outputs if is_float(t)] or [t for t in outputs if is_number(t)]
    _, variables = taken_apart(call.arguments)
    _, wanted = taken_apart(list(directions))
    last = record.block.last_op
    dual = [variable(record, zeros_like(t)) for t in floats]
    given_back = pulled_back(record, call.operations, floats, dual, variables)
    ops = operations_since(record, last)
    pairs = [(g, d) for g, d in zip(given_back, wanted, strict=True) if g is not None]
    found = pulled_back(record, ops, [g for g, _ in pairs], [_like(d, g) for g, d in pairs], dual)
    kept = set(map(id, floats))
    tangents = iter([zeros_like(t) if f is None else f for t, f in zip(floats, found, strict=True)])
    return fill(template, [next(tangents) if id(t) in kept else zeros_like(t) for t in outputs])


def _like(direction: Tensor, gradient: Tensor) -> Tensor:
    if direction.shape != gradient.shape:
        raise ApiValueError("MSC0856", f"a direction of shape {direction.shape} for an input of shape {gradient.shape}")
    return direction if direction.dtype is gradient.dtype else direction.astype(gradient.dtype)


def vjp(function: Any, *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """The value of a function, and the function that pulls back: from what the value counts to gradients by inputs.

    With `weights` it gives a pair, of gradients by inputs and by weights. It computes the value anew.
    """
    result = _plain_call(function, inputs)
    value, aux = (result[0], result[1:]) if has_aux else (result, ())

    def pull_back(*sens: Any) -> Any:
        names = None if weights is None else weights_of(weights)
        call = GradientCall(
            function, tuple(range(len(inputs))), False, names, has_aux=has_aux, with_sens=True, with_value=True
        )
        return call(*inputs, sens[0] if len(sens) == 1 else sens)[1]

    return (value, pull_back, aux) if has_aux else (value, pull_back)


def _plain_call(function: Any, inputs: Sequence[Any]) -> Any:
    with recording() as record:
        return record.call(function, [as_tensor(a) for a in inputs], {})


def weights_of(weights: Any) -> tuple[Parameter, ...]:
    """Parameters that are given one or many. Raises MSC0856."""
    found = (weights,) if isinstance(weights, Parameter) else tuple(weights)
    for weight in found:
        if not isinstance(weight, Parameter):
            raise ApiTypeError("MSC0856", f"weights are Parameters, not {a(type(weight).__name__)}")
    return found
