"""Running modules at the loop stage: the entry function's roles, its workspace and its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument

from msc.dialects.arrays import Array, element_dtype
from msc.dialects.loop.attributes import LOOP_OFFSET
from msc.dialects.ms.attributes import MS_ROLE
from msc.dialects.ms.structure import ParameterOp
from msc.dialects.open_sizes import argument_sizes
from msc.interp.graph import WeightSource, evaluate_parameter
from msc.interp.inputs import arguments, arranged, declared
from msc.interp.loop_memory import fresh, fresh_bytes
from msc.interp.loop_translation import FunctionScope, translate
from msc.ir.donation import RESULT, STATE
from msc.ir.entry import entry_name
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

KernelObserver: TypeAlias = Callable[[str, tuple[Any, ...]], None]
"""Called after every call of a function, with its name and its arguments, of which outputs are written by then."""


class LoopProgram:
    """The functions of a loop-stage module as Python callables on arrays, translated when they are first called."""

    def __init__(
        self, module: ModuleOp, weights: WeightSource | None = None, observer: KernelObserver | None = None
    ) -> None:
        self.functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._module = module
        self._weights = weights or {}
        self._observer = observer
        self._translated: dict[str, Callable[..., tuple[Any, ...]]] = {}
        self._parameters: dict[str, Array] = {}

    def function(self, name: str) -> FuncOp:
        """The function of a name. Raises MSC0605."""
        if name not in self.functions:
            message = f"the module has no function @{name}"
            raise MscError(Diagnostic("MSC0605", message, help=did_you_mean(name, self.functions)))
        return self.functions[name]

    def run(self, name: str, *values: Any) -> tuple[Any, ...]:
        """Call a function on arrays, which it may write. Raises MSC0605, MSC0610 and MSC0611."""
        if name not in self._translated:
            self._translated[name] = translate(self.function(name), FunctionScope(self._call, self._parameter))
        with np.errstate(all="ignore"):
            return self._translated[name](*values)

    def _parameter(self, name: str) -> Array:
        """The value of a parameter as a buffer; unsigned elements have no sign in buffers."""
        if name not in self._parameters:
            value = np.array(evaluate_parameter(self._module, name, self._weights), order="C")
            kind = value.dtype.kind
            self._parameters[name] = value.view(f"i{value.dtype.itemsize}") if kind == "u" else value
        return self._parameters[name]

    def _call(self, name: str, *values: Any) -> tuple[Any, ...]:
        results = self.run(name, *values)
        if self._observer is not None:
            self._observer(name, values)
        return results


def evaluate_loops(
    module: ModuleOp,
    inputs: Mapping[str, Array] | Sequence[Array],
    weights: WeightSource,
    *,
    observer: KernelObserver | None = None,
    entry: str | None = None,
) -> tuple[Array, ...]:
    """The results of the entry function of a loop-stage module, in order; fresh memory is poisoned.

    Sizes that a call decides are the largest.

    Raises MSC0601 to MSC0605 for a call that does not fit, MSC0303 and MSC0304 for weights that do not, MSC0610 for an
    access outside its buffer and MSC0611 for an operation that this stage does not have.
    """
    program, entry = LoopProgram(module, weights, observer), entry or entry_name(module)
    expected = list(arguments(program.function(entry)))
    given = iter(arranged([declared(*a) for a in expected if _role(a[1]) in ("input", STATE)], inputs))
    sizes = argument_sizes([argument for argument, _ in expected], program.function(entry).arg_attrs)
    values: list[Any] = [
        sizes[argument].high if argument in sizes else _value(module, argument, attributes, given, weights)
        for argument, attributes in expected
    ]
    program.run(entry, *values)
    buffers = ((a, value) for value, a in zip(values, expected, strict=True) if a[0] not in sizes)
    written = [(a, _public(value, *a)) for a, value in buffers]
    results = [value for (_, attributes), value in written if _role(attributes) == "output"]
    states = [(number, v) for (_, attributes), v in written if (number := _result(attributes)) is not None]
    for number, value in sorted(states, key=lambda state: state[0]):
        results.insert(number, value)
    return tuple(results)


def _role(attributes: Mapping[str, Attribute]) -> str:
    role = attributes.get(MS_ROLE)
    return role.data if isinstance(role, StringAttr) else "input"


def _result(attributes: Mapping[str, Attribute]) -> int | None:
    """Which result an argument is that the function updates."""
    number = attributes.get(RESULT)
    return number.value.data if isinstance(number, IntegerAttr) else None


def _value(
    module: ModuleOp,
    argument: BlockArgument,
    attributes: Mapping[str, Attribute],
    inputs: Any,
    weights: WeightSource,
) -> Array:
    type_ = cast("MemRefType[Attribute]", argument.type)
    dtype = element_dtype(type_.element_type)
    match _role(attributes):
        case "weights":
            return packed_weights(module, type_.get_shape()[0], weights)
        case "output":
            return fresh(type_.get_shape(), dtype)
        case "workspace":
            return fresh_bytes(type_.get_shape()[0])
        case _:
            return np.array(next(inputs), order="C").view(dtype)


def _public(value: Array, argument: BlockArgument, attributes: Mapping[str, Attribute]) -> Array:
    found = declared(argument, attributes)
    return found.outside(value.view(found.dtype))


def packed_weights(module: ModuleOp, size: int, weights: WeightSource) -> Array:
    """The bytes (i8) of the compile-time data section: every parameter that has a place in it, at that place."""
    data = np.zeros(size, np.int8)
    for op in module.ops:
        offset = op.attributes.get(LOOP_OFFSET)
        if isinstance(op, ParameterOp) and isinstance(offset, IntegerAttr):
            value = np.ascontiguousarray(evaluate_parameter(module, op.symbol, weights))
            data[offset.value.data :][: value.nbytes] = value.reshape(-1).view(np.int8)
    return data
