"""Running modules at the graph and the kernel stage: `func`, `ms` and `gk` operations, and `scf` on tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from msc.dialects.arrays import Array, fits, shape_fits, type_text
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.interp.control import CONTROL
from msc.interp.inputs import arguments, arranged, declared
from msc.interp.registry import evaluate_op
from msc.interp.scalars import SCALARS
from msc.ir.donation import updates
from msc.ir.entry import entry_name
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

WeightSource: TypeAlias = Mapping[str, Array]
"""Parameter name to value."""

Value: TypeAlias = Any
"""What a value of the IR is here: an array, or a NumPy or Python scalar."""

Observer: TypeAlias = Callable[[Operation, tuple[Value, ...]], None]
"""Called after every operation that has results, those inside kernels and branches included."""


def evaluate(
    module: ModuleOp,
    inputs: Mapping[str, Array] | Sequence[Array],
    weights: WeightSource,
    *,
    observer: Observer | None = None,
    entry: str | None = None,
) -> tuple[Array, ...]:
    """The results of function `entry`, or @main, or the first, on `inputs`, by name (`ms.name`) or in order.

    Raises MSC0601 to MSC0604 for inputs that do not fit, MSC0303 and MSC0304 for weights that do not, MSC0610 for an
    index outside its dimension and MSC0611 for an operation that has no meaning at these stages.
    """
    evaluator = Evaluator(Symbols.of(module), weights, observer)
    function = evaluator.function(entry or entry_name(module))
    expected = [declared(*argument) for argument in arguments(function)]
    results = list(evaluator.run_block(function.body.block, arranged(expected, inputs), {}))
    for result, argument in updates(function).items():
        results[result] = expected[argument].outside(results[result])
    return tuple(results)


def evaluate_parameter(module: ModuleOp, name: str, weights: WeightSource) -> Array:
    """The value of parameter `name`, computed if it is derived. Raises MSC0303 and MSC0304."""
    return Evaluator(Symbols.of(module), weights, None).parameter(name)


@dataclass(frozen=True)
class Symbols:
    """The functions and parameters of a module by name."""

    functions: Mapping[str, FuncOp]
    parameters: Mapping[str, ParameterOp]

    @staticmethod
    def of(module: ModuleOp) -> Symbols:
        """The symbols that a module has now."""
        return Symbols(
            {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)},
            {op.symbol: op for op in module.ops if isinstance(op, ParameterOp)},
        )


class Evaluator:
    """One evaluation: the module's symbols, the weights, and the parameters that have been computed."""

    def __init__(self, symbols: Symbols, weights: WeightSource, observer: Observer | None) -> None:
        self._weights = weights
        self._observer = observer
        self._functions = symbols.functions
        self._parameters = symbols.parameters
        self._derived: dict[str, Array] = {}

    def function(self, name: str) -> FuncOp:
        """The function of a name. Raises MSC0605."""
        if name not in self._functions:
            message = f"the module has no function @{name}"
            raise MscError(Diagnostic("MSC0605", message, help=did_you_mean(name, self._functions)))
        return self._functions[name]

    def run_block(self, block: Block, arguments: Sequence[Value], scope: Mapping[SSAValue, Value]) -> tuple[Value, ...]:
        """The operands of the terminator of a block; `scope` holds what the block may use from outside."""
        values = {**scope, **dict(zip(block.args, arguments, strict=True))}
        dying = last_uses(block)
        for op in block.ops:
            if op is block.last_op:
                break
            results = self._run(op, values)
            values.update(zip(op.results, results, strict=True))
            for value in dying.get(op, ()):
                values.pop(value, None)
        return tuple(values[operand] for operand in block.last_op.operands) if block.last_op else ()

    def _run(self, op: Operation, values: Mapping[SSAValue, Value]) -> tuple[Value, ...]:
        results = self._results(op, [values[operand] for operand in op.operands], values)
        if self._observer is not None and op.results:
            self._observer(op, results)
        return results

    def _results(self, op: Operation, operands: Sequence[Value], scope: Mapping[SSAValue, Value]) -> tuple[Value, ...]:
        if isinstance(op, GetParameterOp):
            return (self.parameter(op.symbol),)
        if isinstance(op, MsOp):
            return _checked(op, evaluate_op(op, *operands))
        if op.name in CONTROL:
            return CONTROL[op.name](self, op, operands, scope)
        if op.name in SCALARS:
            return (SCALARS[op.name](op, *operands),)
        message = f"{op.name} cannot be executed at the graph or kernel stage"
        raise MscError(Diagnostic("MSC0611", message, source_location(op)))

    def parameter(self, name: str) -> Array:
        """The value of a parameter. Raises MSC0303 and MSC0304."""
        declared = self._parameters.get(name)
        if declared is None:
            message = f"the module has no parameter @{name}"
            raise MscError(Diagnostic("MSC0303", message, help=did_you_mean(name, self._parameters)))
        if declared.initialiser is None:
            return self._stored(declared)
        if name not in self._derived:
            self._derived[name] = cast(Array, self.run_block(declared.initialiser.block, (), {})[0])
        return self._derived[name]

    def _stored(self, parameter: ParameterOp) -> Array:
        name, location = parameter.symbol, source_location(parameter)
        if name not in self._weights:
            help_ = did_you_mean(name, self._weights)
            raise MscError(
                Diagnostic("MSC0303", f"the weights have no value for parameter '{name}'", location, help=help_)
            )
        array = self._weights[name]
        if not fits(array, parameter.type):
            message = f"parameter '{name}' is declared {parameter.type}, but its value is a {type_text(array)}"
            raise MscError(Diagnostic("MSC0304", message, location))
        return array


def _checked(op: MsOp, results: tuple[Array, ...]) -> tuple[Array, ...]:
    """The results, if they have the shapes that the operation infers; they differ only by a bug in one of the two."""
    for i, array in enumerate(results):
        if not shape_fits(array, op.result_tensor(i)):
            message = f"{op.name} infers {op.result_tensor(i)}, but its meaning gives a {type_text(array)}"
            raise MscError(Diagnostic("MSC0900", message, source_location(op)))
    return results


def last_uses(block: Block) -> Mapping[Operation, Sequence[SSAValue]]:
    """For each operation of the block: the values whose last use in the block, nested regions included, it is.

    Results that are never used die with the operation that makes them.
    """
    seen: set[SSAValue] = set()
    dying: dict[Operation, list[SSAValue]] = {}
    for op in reversed(list(block.ops)):
        touched = [*op.results, *(operand for inner in op.walk() for operand in inner.operands)]
        fresh = list(dict.fromkeys(value for value in touched if value not in seen))
        seen.update(fresh)
        dying[op] = fresh
    return dying
