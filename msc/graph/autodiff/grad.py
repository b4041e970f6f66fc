"""Pass `grad`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.properties import TENSORS
from msc.dialects.ms.attributes import MS_NAME
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import GetParameterOp
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import gradient
from msc.graph.autodiff.reverse import Reverse, activity, has_gradient, is_variable
from msc.graph.autodiff.stacks import remove_dead
from msc.graph.emitter import CompositeEmitter
from msc.graph.expand.expanders import expander
from msc.graph.inline_calls import InlineCalls
from msc.ir.contracts import Contract
from msc.ir.entry import STRUCTURE, entries
from msc.ir.locations import set_location, source_location
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean


@dataclass(frozen=True)
class Grad(ModulePass):
    """Replace a function by its gradient: the derivative of the sum of its results by inputs and parameters.

    Takes: a graph of known sizes. Gives: in place of `function` (the first entry) one with the same arguments, whose
    results are the gradients by the arguments of `inputs` and by the `parameters` named (`all` for every float one), of
    their types; with `value`, the results stand in front. `results` are those that are differentiated, all unless
    given. With `sens`, a further argument for each of them is what its elements count, instead of one.
    Applied twice it gives second derivatives. Composite operations that have no formula of their own are expanded on
    the way, calls are inlined; branches and loops are differentiated as such (`msc.graph.autodiff.control_flow`).
    An input of integers or booleans has a gradient of zeros, of its own type.
    Raises MSC0402 for an input, result or parameter that there is not, and MSC0414 for what has no gradient: a while
    loop without `ms.bound`, a loop whose number of iterations only a run knows, an operation without a derivative.
    """

    name = "grad"
    contract = Contract(requires=(TENSORS,))
    function: str = ""
    inputs: tuple[int, ...] = (0,)
    parameters: tuple[str, ...] = ()
    results: tuple[int, ...] = ()
    value: bool = False
    sens: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        function = self._function(op)
        if any(isinstance(inner, CallOp) for inner in function.walk()):
            InlineCalls().apply(ctx, op)
        _expand(function)
        _Gradient(self, function).write()

    def _function(self, module: ModuleOp) -> FuncOp:
        functions = {f.sym_name.data: f for f in module.ops if isinstance(f, FuncOp) and f.body.blocks}
        name = self.function or next((f.sym_name.data for f in entries(module)), "main")
        if name not in functions:
            raise MscError(
                Diagnostic("MSC0402", f"grad: there is no function @{name}", help=did_you_mean(name, functions))
            )
        return functions[name]


def _expand(function: FuncOp) -> None:
    """Put the basic operations in the place of composite ones without a formula, so that their values are at hand."""
    for op in list(function.walk()):
        if isinstance(op, MsOp) and not op.is_basic and gradient.get(type(op)) is None:
            expand = expander.get(type(op))
            if expand is not None:
                writer = CompositeEmitter(op)
                value = expand(op, writer)
                new = writer.finished(value)
                for made in new:
                    set_location(made, op.location)
                Rewriter.replace_op(op, new, [value])


class _Gradient:
    """A function that is being replaced by its gradient."""

    def __init__(self, options: Grad, function: FuncOp) -> None:
        self._options, self._function, self._block = options, function, function.body.block
        last = self._block.last_op
        assert isinstance(last, ReturnOp)
        self._return = last
        self._arguments = list(self._block.args)

    def write(self) -> None:
        options, block, results = self._options, self._block, list(self._return.arguments)
        inputs = [self._argument(k) for k in options.inputs]
        parameters = self._parameters()
        numbers = options.results or [k for k, result in enumerate(results) if is_variable(result)]
        chosen = [self._result(k) for k in numbers]
        variables = [*inputs, *(op.results[0] for ops in parameters.values() for op in ops)]
        ops = [op for op in block.ops if op is not self._return]
        emit = GradientEmitter(self._return, lambda op: block.insert_op_before(op, self._return))
        reverse = Reverse(emit, activity(ops, [v for v in variables if has_gradient(v.type)]))
        for value, seed in self._seeds(chosen, emit):
            reverse.add(value, seed)
        reverse.run(ops)
        found = [reverse.of(v) for v in inputs]
        for reads in parameters.values():
            found.append(_sum([reverse.of(op.results[0]) for op in reads], emit))
        self._finish([*(results if options.value else ()), *found], list(parameters), len(results))

    def _argument(self, number: int) -> SSAValue:
        if not 0 <= number < len(self._arguments):
            raise self._bad(f"there is no input {number}: @{self._name} has {len(self._arguments)}")
        return self._arguments[number]

    def _result(self, number: int) -> SSAValue:
        results = self._return.arguments
        if not 0 <= number < len(results):
            raise self._bad(f"there is no result {number}: @{self._name} has {len(results)}")
        if not is_variable(results[number]):
            raise self._bad(f"result {number} is a {results[number].type}, which has no derivative")
        return results[number]

    def _parameters(self) -> dict[str, list[GetParameterOp]]:
        """Where the parameters are read that gradients are asked for."""
        reads: dict[str, list[GetParameterOp]] = {}
        for op in self._block.ops:
            if isinstance(op, GetParameterOp) and is_variable(op.result):
                reads.setdefault(op.symbol, []).append(op)
        if self._options.parameters == ("all",):
            return reads
        for name in self._options.parameters:
            if name not in reads:
                help_ = did_you_mean(name, reads)
                raise self._bad(f"@{self._name} does not read a parameter @{name} of floats", help_)
        return {name: reads[name] for name in self._options.parameters}

    def _seeds(self, chosen: Sequence[SSAValue], emit: GradientEmitter) -> Sequence[tuple[SSAValue, SSAValue]]:
        """What the elements of results count."""
        if not self._options.sens:
            return [(v, emit.filled(1.0, emit.shape(v), emit.dtype(v))) for v in chosen]
        return [(v, self._block.insert_arg(v.type, len(self._block.args))) for v in chosen]

    def _finish(self, results: Sequence[SSAValue], parameters: Sequence[str], values: int) -> None:
        """Return these results, and say what arguments and results are called."""
        function = self._function
        hints = [argument.name_hint or f"x{k}" for k, argument in enumerate(self._arguments)]
        named = [_name(function.arg_attrs, k) or hint for k, hint in enumerate(hints)]
        gradients = [f"d_{named[k]}" for k in self._options.inputs] + [f"d_{name}" for name in parameters]
        kept = [_attributes(function.res_attrs, k) for k in range(values)] if self._options.value else []
        attributes = [*kept, *(DictionaryAttr({MS_NAME: StringAttr(name)}) for name in gradients)]
        more = len(self._block.args) - len(self._arguments)
        given = [_attributes(function.arg_attrs, k) for k in range(len(self._arguments))]
        if function.arg_attrs is not None:
            function.arg_attrs = ArrayAttr(
                [*given, *(DictionaryAttr({MS_NAME: StringAttr(f"sens{k}")}) for k in range(more))]
            )
        function.res_attrs = ArrayAttr(attributes)
        function.attributes.pop(STRUCTURE, None)
        last = ReturnOp(*results)
        last.location = self._return.location
        Rewriter.replace_op(self._return, [last], [])
        function.update_function_type()
        remove_dead(function.body.walk())

    @property
    def _name(self) -> str:
        return self._function.sym_name.data

    def _bad(self, message: str, help_: str | None = None) -> MscError:
        return MscError(Diagnostic("MSC0402", f"grad: {message}", source_location(self._function), help=help_))


def _sum(parts: Sequence[SSAValue], emit: GradientEmitter) -> SSAValue:
    total: SSAValue | None = None
    for part in parts:
        total = emit.added(total, part)
    assert total is not None
    return total


def _attributes(given: ArrayAttr[DictionaryAttr] | None, number: int) -> DictionaryAttr:
    return given.data[number] if given is not None and number < len(given.data) else DictionaryAttr({})


def _name(given: ArrayAttr[DictionaryAttr] | None, number: int) -> str | None:
    found: Attribute | None = _attributes(given, number).data.get(MS_NAME)
    return found.data if isinstance(found, StringAttr) else None
