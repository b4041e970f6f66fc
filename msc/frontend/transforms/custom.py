"""Cells that say their gradient themselves: `bprop(*inputs, out, dout)`, MindSpore's way."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
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
from msc.frontend.transforms.recording import Recording, recording
from msc.graph.autodiff.reverse import CUSTOM, Custom, Reverse


def call_with_bprop(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `construct` on constants, and note that `bprop` gives the gradient by the inputs."""
    with recording() as record:
        template, leaves = taken_apart(args)
        values = [t for t in leaves if isinstance(t.content, Symbol) and is_float(t)]
        constants = [apply("stop_gradient", t) if any(t is v for v in values) else t for t in leaves]
        result = _method(cell, "construct", fill(template, constants), kwargs)
        form, outputs = taken_apart(result)
        marked = [apply("identity", t) if isinstance(t.content, Symbol) and is_float(t) else t for t in outputs]
        given = fill(form, marked)
        markers = [operation_of(record, t) for t, o in zip(marked, outputs, strict=True) if t is not o]
        if values and markers:
            custom = Custom(
                [record.ssa(t) for t in values],
                markers[-1],
                lambda reverse, standing: _write(
                    reverse, _Standing(record, standing), cell, args, result, marked, form
                ),
            )
            CUSTOM.update((marker, custom) for marker in markers)
        return given


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


def _method(cell: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A method of the user's, read if a graph is captured."""
    function = getattr(type(cell), name)
    session = INSTALLED.builder
    if isinstance(session, Session) and isinstance(function, types.FunctionType):
        source = readable(function.__code__)
        if source is not None:
            session.note_outside(cell)
            return read_in(session, function, source, (cell, *args), kwargs)
    return getattr(cell, name)(*args, **kwargs)


def _write(
    reverse: Reverse,
    standing: _Standing,
    cell: Any,
    args: tuple[Any, ...],
    out: Any,
    marked: Sequence[Tensor],
    form: Any,
) -> None:
    """Call `bprop` with what the outputs count, and give the inputs what it gives."""
    record = standing.record
    counts = [record.tensor(reverse.of(standing.ssa(t))) if is_float(t) else t for t in marked]
    found = _method(cell, "bprop", (*standing.of(args), standing.of(out), fill(form, counts)), {})
    parts = found if isinstance(found, tuple) else (found,)
    if len(parts) < len(args):
        name = type(cell).__name__
        raise ApiTypeError("MSC0856", f"bprop of {name} gives {len(parts)} gradients for {len(args)} inputs")
    for argument, part in zip(args, parts, strict=False):
        _, leaves = taken_apart(argument)
        _, gradients = taken_apart(part)
        for leaf, gradient in zip(leaves, gradients, strict=False):
            if gradient.shape != leaf.shape:
                message = f"bprop of {type(cell).__name__} gives a gradient of shape {gradient.shape} for {leaf.shape}"
                raise ApiTypeError("MSC0856", message)
            if is_float(leaf) and isinstance(leaf.content, Symbol):
                as_leaf = gradient if gradient.dtype is leaf.dtype else gradient.astype(leaf.dtype)
                reverse.add(standing.ssa(leaf), record.ssa(as_leaf))
