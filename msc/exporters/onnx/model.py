"""From a module at the graph stage to an ONNX model: inputs, outputs, weights, and nodes for each operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from onnx import ModelProto, ValueInfoProto, helper
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from msc.dialects.arrays import dense_array
from msc.dialects.ms.attributes import MS_NAME
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.dialects.open_sizes import DIMENSIONS
from msc.exporters.onnx.writer import OPSET, TYPES, Writer, dtype, form, no_form, shape
from msc.interp import WeightSource, evaluate_parameter
from msc.interp.inputs import arguments, declared
from msc.ir.entry import find_entry
from msc.support.diagnostics import Diagnostic, MscError

_CHECKER: Any = import_module("onnx.checker")
"""Parts of which have no types."""

IR_VERSION = 8
"""Of the file format: that of opset 18."""


def export_model(module: ModuleOp, weights: WeightSource, producer: str) -> ModelProto:
    """The entry function of a module, with the values of its parameters.

    Raises MSC0605 for a module without one, and MSC0720 for an operation that ONNX does not have: control flow and
    calls, the products of passes, and modes that opset 18 lacks.
    """
    entry = find_entry(module)
    if entry is None:
        raise MscError(Diagnostic("MSC0605", "the module has no function @main, where a model starts"))
    names, w = dict[SSAValue, str](), Writer()
    inputs = [_input(w, names, argument, given) for argument, given in arguments(entry)]
    results = _walk(w, entry, names, module, weights)
    outputs = [_output(w, names[v], v, name) for v, name in zip(results, _result_names(entry), strict=True)]
    title = module.sym_name.data if module.sym_name is not None else "model"
    read = {name for node in w.nodes for name in node.input}
    graph = helper.make_graph(w.nodes, title, inputs, outputs, [each for each in w.initialisers if each.name in read])
    others = sorted({node.domain for node in w.nodes if node.domain})
    sets = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(domain, 1) for domain in others)]
    model = helper.make_model(graph, opset_imports=sets, producer_name=producer)
    model.ir_version = IR_VERSION
    if model.ByteSize() < 1 << 31:
        _CHECKER.check_model(model)
    return model


def _input(
    w: Writer, names: dict[SSAValue, str], argument: BlockArgument, given: Mapping[str, Attribute]
) -> ValueInfoProto:
    names[argument] = w.name(declared(argument, given).name)
    dims = given.get(DIMENSIONS)
    open_names = [a.data for a in dims] if isa(dims, ArrayAttr[StringAttr]) else []
    return _info(names[argument], argument, open_names)


def _info(name: str, value: SSAValue, open_names: Sequence[str] = ()) -> ValueInfoProto:
    sizes: list[int | str] = list(shape(value))
    for axis, size in enumerate(sizes):
        if size == -1:
            sizes[axis] = (open_names[axis] if axis < len(open_names) else "") or f"{name}.{axis}"
    return helper.make_tensor_value_info(name, TYPES[dtype(value)], sizes)


def _walk(
    w: Writer, entry: FuncOp, names: dict[SSAValue, str], module: ModuleOp, weights: WeightSource
) -> Sequence[SSAValue]:
    """Write the operations in order; the values that the function returns."""
    parameters: dict[str, str] = {}
    for op in entry.body.block.ops:
        match op:
            case ReturnOp():
                return op.arguments
            case ConstantOp():
                names[op.result] = w.constant(dense_array(op.value))
            case GetParameterOp():
                if op.symbol not in parameters:
                    value = evaluate_parameter(module, op.symbol, weights)
                    parameters[op.symbol] = w.initialiser(value, op.symbol)
                names[op.result] = parameters[op.symbol]
            case _:
                _write(w, op, names)
    raise no_form(entry, "it does not end with func.return")


def _write(w: Writer, op: Operation, names: dict[SSAValue, str]) -> None:
    write = form.get(op.name.removeprefix("ms."))
    if write is None or not isinstance(op, MsOp):
        raise no_form(op)
    written = write(w, op, *(names[value] for value in op.operands))
    found = [written] if isinstance(written, str) else written
    names.update(zip(op.results, found, strict=True))


def _result_names(entry: FuncOp) -> list[str]:
    given = [d.data.get(MS_NAME) for d in entry.res_attrs or ()] or [None] * len(entry.function_type.outputs)
    return [name.data if isinstance(name, StringAttr) else f"output{k}" for k, name in enumerate(given)]


def _output(w: Writer, value: str, result: SSAValue, name: str) -> ValueInfoProto:
    """An output under its own name: what it is called inside is another matter."""
    unique = w.name(name)
    w.nodes.append(helper.make_node("Identity", [value], [unique]))
    return _info(unique, result)
