"""Cells and primitives that say their gradient themselves: `bprop(*inputs, out, dout)`, MindSpore's way."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue

from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError
from msc.frontend.reader.calls import read_in, readable
from msc.frontend.reader.session import Session
from msc.frontend.reader.structures import fill
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.gradients import is_float, taken_apart
from msc.frontend.transforms.recording import Recording, recording, variable
from msc.graph.autodiff.reverse import CUSTOM, CustomGradient, Reverse


def call_with_bprop(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `construct` on constants, and note that `bprop` gives the gradient by the inputs."""
    return with_bprop(lambda *given: _called(cell.construct, given, kwargs), cell.bprop, args, type(cell).__name__)


def with_bprop(run: Callable[..., Any], bprop: Callable[..., Any] | None, args: tuple[Any, ...], name: str) -> Any:
    """What `run` gives for constants, with `bprop(*inputs, out, dout)` as its gradient; a gradient without is an error.

    `name` is that of the Cell or primitive.
    """
    with recording() as record:
        template, leaves = taken_apart(args)
        values = [t for t in leaves if isinstance(t.content, Symbol) and is_float(t)]
        if not values:
            return run(*args)
        as_called = fill(template, [Tensor.of(t.content) if isinstance(t.content, Symbol) else t for t in leaves])
        constants = [apply("stop_gradient", t) if any(t is v for v in values) else t for t in leaves]
        result = run(*fill(template, constants))
        form, outputs = taken_apart(result)
        marked = [variable(record, t) if is_float(t) else t for t in outputs]
        markers = [operation_of(record, t) for t, o in zip(marked, outputs, strict=True) if t is not o]
        if markers:
            call = _Call(name, bprop, as_called, marked, form)
            custom = CustomGradient(
                [record.ssa(t) for t in values],
                markers[-1],
                lambda reverse, standing: call.write(reverse, _Standing(record, standing)),
            )
            CUSTOM.update((marker, custom) for marker in markers)
        return fill(form, marked)


@dataclass(frozen=True)
class _Standing:
    """A recording in which other values may stand for those that were recorded."""

    record: Recording
    values: Mapping[SSAValue, SSAValue]

    def ssa(self, tensor: Tensor) -> SSAValue:
        value = self.record.ssa(tensor)
        return self.values.get(value, value)

    def of(self, value: Any) -> Any:
        """A structure with the tensors that stand for its own."""
        if not self.values:
            return value
        template, leaves = taken_apart(value)
        return fill(template, [self._of_tensor(t) for t in leaves])

    def _of_tensor(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor.content, Symbol):
            return tensor
        found = self.values.get(self.record.ssa(tensor))
        return tensor if found is None else self.record.tensor(found)


def operation_of(record: Recording, tensor: Tensor) -> Operation:
    """The operation that gives a tensor of a recording."""
    value = record.ssa(tensor)
    assert isinstance(value, OpResult)
    return value.op


def _called(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function or method of the user's, read if a graph is captured."""
    session, receiver = INSTALLED.builder, getattr(function, "__self__", None)
    plain = getattr(function, "__func__", function)
    if isinstance(session, Session) and isinstance(plain, types.FunctionType):
        source = readable(plain.__code__)
        if source is not None:
            if receiver is not None:
                session.note_outside(receiver)
            return read_in(session, plain, source, (*(() if receiver is None else (receiver,)), *args), kwargs)
    return function(*args, **kwargs)


@dataclass(frozen=True)
class _Call:
    """A call whose gradient `bprop` says: what it was called with, what it gave, and the marked values for that."""

    name: str
    bprop: Callable[..., Any] | None
    args: tuple[Any, ...]
    marked: Sequence[Tensor]
    form: Any

    def write(self, reverse: Reverse, standing: _Standing) -> None:
        """Call `bprop` with what the outputs count, if any does, and give the inputs what it gives."""
        values = [standing.ssa(t) for t in self.marked if is_float(t)]
        if not any(value in reverse.gradients for value in values):
            return
        if self.bprop is None:
            help_ = f"a method or argument bprop of {self.name}, called with inputs, out and dout, says it"
            raise ApiTypeError("MSC0856", f"{self.name} has no gradient", help=help_)
        record = standing.record
        counts = [record.tensor(reverse.of(standing.ssa(t))) if is_float(t) else t for t in self.marked]
        out = standing.of(fill(self.form, self.marked))  # Their gradients are those of second order.
        given = (*standing.of(self.args), out, fill(self.form, counts))
        found = _called(self.bprop, given, {})
        parts = found if isinstance(found, tuple | list) else (found,)
        if len(parts) < len(self.args):
            message = f"bprop of {self.name} gives {len(parts)} gradients for {len(self.args)} inputs"
            raise ApiTypeError("MSC0856", message)
        for argument, part in zip(self.args, parts, strict=False):
            self._give(reverse, standing, argument, part)

    def _give(self, reverse: Reverse, standing: _Standing, argument: Any, part: Any) -> None:
        """Add the gradient by one input, which may be a structure of tensors."""
        _, leaves = taken_apart(argument)
        _, gradients = taken_apart(part)
        for leaf, gradient in zip(leaves, gradients, strict=False):
            if gradient.shape != leaf.shape:
                message = f"bprop of {self.name} gives a gradient of shape {gradient.shape} for {leaf.shape}"
                raise ApiTypeError("MSC0856", message)
            if is_float(leaf) and isinstance(leaf.content, Symbol):
                as_leaf = gradient if gradient.dtype is leaf.dtype else gradient.astype(leaf.dtype)
                reverse.add(standing.ssa(leaf), standing.record.ssa(as_leaf))
