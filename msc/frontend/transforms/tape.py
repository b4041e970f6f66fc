"""What PyNative mode records while a function is transformed: operations that run at once, in a block of the graph.

A value of the tape has elements, so that Python's `if`, `print` and `float()` work as they do without it.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from msc.dialects.element_types import dtype_name
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.shapes import shape_of
from msc.dialects.ms.values import known
from msc.frontend.capture import Property, Symbol
from msc.frontend.changes import Changes
from msc.frontend.dtypes import DType, by_name
from msc.frontend.errors import at_user_line
from msc.frontend.immediate import built
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.graph.autodiff.reverse import CUSTOM
from msc.interp.control import CONTROL
from msc.interp.graph import Evaluator, Symbols
from msc.interp.registry import evaluate_op
from msc.interp.scalars import SCALARS
from msc.ir.typed import tensor_type as type_of
from msc.support.arrays import Array
from msc.support.diagnostics import MscError


def _depends(value: SSAValue, on: set[SSAValue]) -> bool:
    """Whether a value is computed of any of some others."""
    waiting, seen = [value], {value}
    while waiting:
        found = waiting.pop()
        if found in on:
            return True
        if isinstance(found.owner, Operation):
            new = set(found.owner.operands) - seen
            seen |= new
            waiting += new
    return False


class ElementsDecide(BaseException):
    """A function that runs for one example of a batch looks at its elements, which differ from example to example.

    No subclass of Exception, as `reader.signals.Refusal`: the handlers of user code must not catch it.
    """


class TapeValue(Symbol):
    """A value of a tape, with its elements."""

    __slots__ = ("array",)

    def __init__(self, ssa: SSAValue, dtype: DType, shape: tuple[int, ...], array: Array) -> None:
        super().__init__(ssa, dtype, shape)
        self.array = array


class Tape:
    """The builder that is installed while a function runs: it records what depends on the tape's own values."""

    runs_at_once = True
    """Whether all values have elements while they are recorded."""

    def __init__(self) -> None:
        self.block = Block()
        self._arrays: dict[SSAValue, Any] = {}
        self._given: dict[int, tuple[Array, SSAValue]] = {}
        self._tensors: list[weakref.ref[Tensor]] = []
        self._written: dict[int, Parameter] = {}
        self._before: list[tuple[Parameter, Any]] = []
        self._examples: list[SSAValue] = []
        self._evaluator = Evaluator(Symbols({}, {}), {}, None)

    # The builder that operations on tensors use.

    def emit(
        self, name: str, operands: Sequence[Tensor | None], properties: Mapping[str, Property]
    ) -> tuple[Tensor, ...]:
        """Run `ms.<name>` and record it."""
        op = built(name, [None if operand is None else self.ssa(operand) for operand in operands], properties)
        try:
            self.insert(op)
        except MscError as error:
            first = error.diagnostics[0]
            raise MscError(at_user_line(first.code, first.message, help=first.help, notes=first.notes)) from None
        return tuple(map(self.tensor, op.results))

    def read(self, parameter: Parameter) -> Tensor:
        """The value that a parameter has now."""
        return Tensor.of(parameter.content)

    def write(self, parameter: Parameter, value: Tensor) -> None:
        """From here on the parameter has another value."""
        self._written[id(parameter)] = parameter
        if self._examples:
            self._before.append((parameter, parameter.content))
        parameter.content = value.content

    def changing(self, tensor: Tensor) -> None:
        """A tensor is about to refer to another value, which needs no note here."""
        self._tensors.append(weakref.ref(tensor))

    def observing(self, tensor: Tensor) -> None:
        """Somebody looks at the elements of a tensor, as everybody may."""

    def value_of(self, tensor: Tensor, what: str) -> Array:
        """The elements of a value of the tape. Raises ElementsDecide for what depends on an example."""
        content = tensor.content
        assert isinstance(content, TapeValue)
        if self._examples and _depends(content.ssa, set(self._examples)):
            raise ElementsDecide
        return content.array

    # The recording that transformations use.

    @contextmanager
    def one_stands_for_all(self, examples: Sequence[Tensor]) -> Generator[None]:
        """Within, nobody may look at the elements of examples: a look undoes what was written, and ends the block."""
        before, self._before = self._before, []
        kept = len(self._examples)
        self._examples += map(self.ssa, examples)
        try:
            yield
        except ElementsDecide:
            for parameter, content in reversed(self._before):
                parameter.content = content
            self._before = []
            raise
        finally:
            del self._examples[kept:]
            self._before = before + self._before

    def insert(self, op: Operation) -> Operation:
        """Append an operation and run it."""
        self.block.add_op(op)
        operands = [self._arrays[operand] for operand in op.operands]
        if isinstance(op, MsOp):
            results: Sequence[Any] = evaluate_op(op, *operands)
        elif op.name in CONTROL:
            results = CONTROL[op.name](self._evaluator, op, operands, self._arrays)
        else:
            results = (SCALARS[op.name](op, *operands),)
        self._arrays.update(zip(op.results, results, strict=True))
        return op

    def ssa(self, tensor: Tensor) -> SSAValue:
        """A tensor as an operand; one from outside is an argument of the block."""
        content = tensor.content
        if isinstance(content, TapeValue):
            return content.ssa
        array = np.asarray(content)
        found = self._given.get(id(array))
        if found is None:
            argument = self.block.insert_arg(known(array).type, len(self.block.args))
            self._arrays[argument] = array
            found = self._given[id(array)] = (array, argument)
        return found[1]

    def tensor(self, value: SSAValue) -> Tensor:
        """A tensor of a value of the block."""
        type_ = type_of(value)
        dtype = by_name(dtype_name(type_.element_type) or "f32")
        made = Tensor.of(TapeValue(value, dtype, shape_of(type_), self._arrays[value]))
        self._tensors.append(weakref.ref(made))
        return made

    def close(self) -> None:
        """The tape ends: tensors that are left, and parameters that were written, have elements alone."""
        for op in self.block.walk():
            CUSTOM.pop(op, None)
        left = [tensor for reference in self._tensors if (tensor := reference()) is not None]
        for tensor in [*left, *self._written.values()]:
            if isinstance(tensor.content, TapeValue):
                tensor.content = tensor.content.array
        for parameter in self._written.values():
            parameter.version += 1
        Changes.count += bool(self._written)
