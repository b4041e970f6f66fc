"""Reverse mode: from the gradients of values to those of what they were computed from, one operation after the other.

`Reverse` walks a block backwards. It holds a gradient for each value that something asks for (`active`: what depends
on the variables, through floats, or integers too), adds up what the uses of a value give, and asks for the rule of each
operation: a formula of the table, the derivative of its compute definition, or, of a composite one without a formula,
those of its expansion. Loops and branches have rules of their own (`control_flow`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from msc.dialects.element_types import dtype_name
from msc.dialects.ms.base import BasicOp, MsOp
from msc.dialects.ms.elementwise import StopGradientOp
from msc.dialects.ms.quantisation import DequantizeOp, QuantizeOp
from msc.graph.autodiff.derived import derived_gradient
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import gradient
from msc.graph.emitter import CompositeEmitter
from msc.graph.expand.expanders import expander
from msc.ir.locations import set_location, source_location
from msc.ir.typed import tensor_type
from msc.poly.adjoint import NoAdjoint
from msc.poly.derivative import is_float, is_number
from msc.support.diagnostics import Diagnostic, MscError

Control: TypeAlias = "Callable[[Reverse, Operation], None]"


@dataclass(frozen=True)
class CustomGradient:
    """A gradient that somebody else writes, such as the `bprop` of a Cell, once all outputs have theirs."""

    inputs: Sequence[SSAValue]
    last: Operation
    """The last of the operations that give the outputs."""
    write: Callable[[Reverse, Mapping[SSAValue, SSAValue]], None]
    """Writes it; in a copy of the operations, the mapping says which values stand for the first ones."""
    through_emitter: bool = False
    """Whether all of it is written through the emitter of the walk, so that it may stand in a branch or a loop."""


CUSTOM: WeakKeyDictionary[Operation, CustomGradient] = WeakKeyDictionary()
"""Operations that give outputs whose gradients are not those of the operations before them."""


def is_variable(value: SSAValue) -> bool:
    """Whether a value can have a gradient: a tensor of floats."""
    return has_gradient(value.type)


def has_gradient(type_: Attribute) -> bool:
    """Whether a type is one of tensors of floats."""
    return isinstance(type_, TensorType) and is_float(
        dtype_name(tensor_type(cast(Attribute, type_)).element_type) or "i1"
    )


def is_of_numbers(type_: Attribute) -> bool:
    """Whether a type is one of tensors of floats or integers."""
    return isinstance(type_, TensorType) and is_number(
        dtype_name(tensor_type(cast(Attribute, type_)).element_type) or "i1"
    )


class Reverse:
    """Gradients of values while they are collected, from last to first."""

    def __init__(self, emit: GradientEmitter, active: set[SSAValue]) -> None:
        self.emit = emit
        self.active = active
        """The values that depend on a variable; others get no gradient."""
        self.gradients: dict[SSAValue, SSAValue] = {}

    def add(self, value: SSAValue, part: SSAValue | None) -> None:
        """A use of a value gives a part of its gradient."""
        if part is not None and value in self.active:
            self.gradients[value] = self.emit.added(self.gradients.get(value), part)

    def of(self, value: SSAValue) -> SSAValue:
        """The gradient of a value that has been collected; zeros if nothing depends on it."""
        found = self.gradients.get(value)
        return self.emit.zeros(value.type) if found is None else found

    def run(self, ops: Iterable[Operation]) -> None:
        """Walk operations of a block, given from first to last, backwards."""
        for op in reversed(list(ops)):
            custom = CUSTOM.get(op)
            if custom is not None:
                self._write(op, custom)
            elif any(r in self.gradients for r in op.results) and any(v in self.active for v in uses(op)):
                self.emit.op = op
                self._differentiate(op)

    def _write(self, op: Operation, custom: CustomGradient) -> None:
        if op is custom.last and any(v in self.active for v in custom.inputs):
            self.emit.op = op
            custom.write(self, {})

    def _differentiate(self, op: Operation) -> None:
        if isinstance(op, MsOp):
            parts = self.parts(op, [self.of(r) for r in op.results])
            for operand, part in zip(op.operands, parts, strict=True):
                self.add(operand, part)
            return
        from msc.graph.autodiff.control_flow import CONTROL

        control = CONTROL.get(op.name)
        if control is None:
            raise refusal(op, f"{op.name} has no gradient")
        control(self, op)

    def parts(self, op: MsOp, gradients: Sequence[SSAValue]) -> Sequence[SSAValue | None]:
        """What the operands of an operation get for the gradients of its results."""
        emit = self.emit
        emit.wanted = frozenset(k for k, v in enumerate(op.operands) if v in self.active)
        rule = gradient.get(type(op))
        if rule is not None:
            return rule(op, emit, *gradients)
        if not op.is_basic:
            return self._of_expansion(op, gradients)
        assert isinstance(op, BasicOp)
        try:
            return derived_gradient(op, emit, gradients)
        except NoAdjoint as error:
            if not any(map(is_variable, op.results)):
                return [None] * len(op.operands)
            raise refusal(op, f"{op.name} has no gradient: {error}") from None

    def _of_expansion(self, op: MsOp, gradients: Sequence[SSAValue]) -> Sequence[SSAValue | None]:
        """Those of the basic operations that a composite one is, which are computed once more."""
        expand = expander.get(type(op))
        if expand is None:
            raise refusal(op, f"{op.name} has no gradient")
        writer = CompositeEmitter(op)
        value = expand(op, writer)
        made = writer.finished(value)
        for new in made:
            set_location(new, op.location)
            self.emit.insert(new)
        inner = Reverse(self.emit, {v for v in op.operands if v in self.active})
        inner.gradients[value] = gradients[0]
        inner.active |= activity(made, inner.active)
        inner.run(made)
        self.emit.op = op
        found: list[SSAValue | None] = []
        for k, operand in enumerate(op.operands):
            found.append(inner.gradients.get(operand) if operand not in op.operands[:k] else None)
        return found


def activity(ops: Iterable[Operation], variables: Collection[SSAValue]) -> set[SSAValue]:
    """The values among the results of operations, in order, that depend on variables through tensors of floats.

    If one of the variables is of integers, they may depend on it through tensors of integers. If none is, they depend
    through quantised values that are dequantised, too.
    """
    active = set(variables)
    counts = has_gradient if all(map(is_variable, active)) else is_of_numbers
    for op in ops:
        if isinstance(op, StopGradientOp):
            continue
        custom = CUSTOM.get(op)
        if isinstance(op, QuantizeOp | DequantizeOp) and any(v in active for v in op.operands):
            active.add(op.result)
        elif any(v in active and counts(v.type) for v in (uses(op) if custom is None else custom.inputs)):
            active.update(r for r in op.results if counts(r.type))
    return active


def uses(op: Operation) -> Iterable[SSAValue]:
    """The operands of an operation and what its regions use from outside."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands


def captured(op: Operation) -> list[SSAValue]:
    """What the regions of an operation use that is defined outside of it, each once, in order of first use."""
    inside = {v for region in op.regions for block in region.blocks for v in _defined(block)}
    used = (v for region in op.regions for inner in region.walk() for v in inner.operands)
    return list(dict.fromkeys(v for v in used if v not in inside))


def _defined(block: Block) -> Iterable[SSAValue]:
    yield from block.args
    for op in block.ops:
        yield from op.results
        for region in op.regions:
            for inner in region.blocks:
                yield from _defined(inner)


def refusal(op: Operation, message: str, help_: str | None = None) -> MscError:
    """The error of what cannot be differentiated."""
    return MscError(Diagnostic("MSC0414", message, source_location(op), help=help_))
