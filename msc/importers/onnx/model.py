"""From a model to a module: the entry function, its inputs and outputs, and the parameters."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from msc.dialects.arrays import Array, dtype_text
from msc.dialects.ms.attributes import MS_CODES, MS_NAME
from msc.dialects.ms.shapes import shape_text, tensor_type
from msc.dialects.open_sizes import COUNTS, DIMENSIONS
from msc.importers.failures import UnknownSize, failure, shown
from msc.importers.imported import Imported
from msc.importers.onnx.builder import Builder
from msc.importers.onnx.narrow import NARROW, known_codes
from msc.importers.onnx.reading.functions import local_functions
from msc.importers.onnx.reading.model_file import opsets
from msc.importers.onnx.reading.tensors import TensorReader, dimension_name, dimension_names, dtype_of, input_shape
from msc.importers.onnx.unsupported import check_supported
from msc.importers.onnx.values import Count, OnnxValue, known
from msc.importers.onnx.walking import NodeContext, Scope, Walker
from msc.interp.inputs import note_sizes
from msc.ir.entry import ENTRY
from msc.support.diagnostics import did_you_mean
from msc.support.naming import identifier, unique, value_hint


@dataclass(frozen=True)
class Binding:
    """What is known of a model beyond its file: sizes of symbolic dimensions and values of inputs."""

    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    input_values: Mapping[str, Array] = field(default_factory=dict[str, Array])
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Whole shapes of inputs, for what the file leaves open."""
    open_dims: frozenset[str] = frozenset()
    """Symbolic dimensions whose names stay on the arguments."""
    has_open_sizes: bool = False
    """Whether sizes are those of one call of many: the operations must not depend on them."""


def build_module(model: ModelProto, name: str, read_tensor: TensorReader, binding: Binding) -> Imported:
    """The module of a model of file `name`. Raises MSC0703 to MSC0714, and MSC02xx that name a node."""
    check_text(model)
    versions = opsets(model)
    check_supported(model, versions)
    entry = Block()
    builder = Builder(entry, has_open_sizes=binding.has_open_sizes)
    walker = Walker(name, builder, local_functions(model.functions), read_tensor)
    scope: Scope = {}
    inputs = _define_inputs(model.graph, scope, entry, binding)
    walker.add_initialisers(model.graph, scope)
    with _advising(model.graph, binding):
        walker.walk(model.graph.node, NodeContext(scope, versions))
    outputs = [_output(info, scope) for info in model.graph.output]
    narrow = {n: scope[n] for n in inputs} | dict(outputs)
    types = {n: NARROW[v.narrow].dtype for n, v in narrow.items() if isinstance(v, OnnxValue) and v.narrow is not None}
    arguments = [(info, scope[info.name]) for info in model.graph.input if info.name in inputs]
    given = [_input(info, value, binding) for info, value in arguments if isinstance(value, OnnxValue)]
    return replace(_module(_stem(name), builder, entry, given, outputs), codes=types)


@contextmanager
def _advising(graph: GraphProto, binding: Binding) -> Generator[None]:
    """Say of a size that must be known which dimensions are open."""
    try:
        yield
    except UnknownSize as error:
        constants = {tensor.name for tensor in graph.initializer}
        names = (n for info in graph.input if info.name not in constants for n in dimension_names(info))
        open_names = [shown(name) for name in dict.fromkeys(names) if name and name not in binding.dims]
        given = " ".join(f"--dim {name}=8" for name in open_names)
        ranges = " ".join(f"--dim {name}=1..8" for name in open_names)
        advice = f"give the open sizes, as in {given}, or ranges of them, as in {ranges}"
        raise UnknownSize(replace(error.diagnostics[0], help=advice)) from error


def _define_inputs(graph: GraphProto, scope: Scope, entry: Block, binding: Binding) -> list[str]:
    """Define the graph's inputs; the names of those that stay arguments."""
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in constants]
    _check_binding(inputs, binding)
    binding = replace(binding, dims=_sizes(inputs, binding))
    for info in inputs:
        bound = binding.input_values.get(info.name)
        scope[info.name] = _argument(info, entry, binding) if bound is None else _bound(info, bound)
    return [info.name for info in inputs if info.name not in binding.input_values]


def _sizes(inputs: Sequence[ValueInfoProto], binding: Binding) -> dict[str, int]:
    """The sizes of open dimensions, as they are bound or as the shapes of inputs have them. Raises MSC0603."""
    sizes = dict(binding.dims)
    for info in inputs:
        if info.name in binding.shapes and info.type.tensor_type.HasField("shape"):
            note_sizes(sizes, shown(info.name), dimension_names(info), binding.shapes[info.name])
    return sizes


def _input(info: ValueInfoProto, argument: OnnxValue, binding: Binding) -> DictionaryAttr:
    """The attributes of an argument: also the names of dimensions that stay open, or that a call decides."""
    given = zip(dimension_names(info), info.type.tensor_type.shape.dim, argument.shape, strict=False)
    names = [name if name in binding.open_dims else dimension_name(d) if n < 0 else "" for name, d, n in given]
    dims = {DIMENSIONS: ArrayAttr([StringAttr(name) for name in names])} if any(names) else {}
    return DictionaryAttr({**_named(info.name, argument).data, **dims})


def _counts(outputs: Sequence[tuple[str, OnnxValue]]) -> dict[Count, str]:
    """The lengths of outputs that data decide, each named for the first output that has it."""
    found, taken = dict[Count, str](), {name for name, _ in outputs}
    for name, value in outputs:
        for count in value.counts.values():
            if count not in found:
                found[count] = unique(f"{name}_count", taken)
                taken.add(found[count])
    return found


def _named(name: str, value: OnnxValue, counts: Mapping[Count, str] | None = None) -> DictionaryAttr:
    """The attributes of an argument or a result: its name, the type whose codes it has, which lengths data decide."""
    if counts and value.counts:
        names = [StringAttr(counts[value.counts[a]] if a in value.counts else "") for a in range(value.rank)]
        return DictionaryAttr({**_named(name, value).data, COUNTS: ArrayAttr(names)})
    codes = {MS_CODES: StringAttr(NARROW[value.narrow].dtype.name)} if value.narrow is not None else {}
    return DictionaryAttr({MS_NAME: StringAttr(name), **codes})


def _check_binding(inputs: Sequence[ValueInfoProto], binding: Binding) -> None:
    """Raises MSC0715 for a name that the model does not have."""
    names = [info.name for info in inputs]
    dims = sorted({name for info in inputs for name in dimension_names(info) if name})
    for given, have, what in ((binding.input_values, names, "input"), (binding.dims, dims, "dimension")):
        for name in given:
            if name not in have:
                help_ = did_you_mean(name, have) or f"it has: {', '.join(map(shown, have)) or 'none'}"
                raise failure("MSC0715", f"the model has no {what} '{shown(name)}'", help=help_)


def _bound(info: ValueInfoProto, array: Array) -> OnnxValue:
    what = f"input '{shown(info.name)}'"
    narrow = NARROW.get(info.type.tensor_type.elem_type)
    if narrow is not None:
        return replace(known_codes(array, narrow, info.name), depends=frozenset({info.name}))
    dtype = dtype_of(info.type.tensor_type.elem_type, what)
    if dtype_text(array.dtype) != dtype:
        raise failure("MSC0604", f"{what} has element type {dtype}, but the value given has {dtype_text(array.dtype)}")
    value = known(array, info.name)
    value.depends = frozenset({info.name})
    return value


def _argument(info: ValueInfoProto, entry: Block, binding: Binding) -> OnnxValue:
    what = f"input '{shown(info.name)}'"
    if not info.type.HasField("tensor_type"):
        raise failure("MSC0704", f"{what} is a {info.type.WhichOneof('value') or 'value of no type'}, not a tensor")
    number = info.type.tensor_type.elem_type
    dtype = "ui8" if number in NARROW else dtype_of(number, what)
    type_ = tensor_type(dtype, _shape(info, binding))
    argument = entry.insert_arg(type_, len(entry.args))
    argument.name_hint = value_hint(info.name)
    narrow = number if number in NARROW else None
    return OnnxValue(type_, ssa=argument, depends=frozenset({info.name}), label=info.name, narrow=narrow)


def _shape(info: ValueInfoProto, binding: Binding) -> tuple[int, ...]:
    """The declared shape with what the binding knows. Raises MSC0603 where the two differ."""
    given = binding.shapes.get(info.name)
    if given is not None and not info.type.tensor_type.HasField("shape"):
        return given
    declared = input_shape(info, binding.dims)
    if given is None:
        return declared
    if len(given) != len(declared) or any(n not in (-1, m) for n, m in zip(declared, given, strict=True)):
        message = f"input '{shown(info.name)}' is {shape_text(declared)}, but the value given is {shape_text(given)}"
        raise failure("MSC0603", message)
    return given


def _output(info: ValueInfoProto, scope: Scope) -> tuple[str, OnnxValue]:
    if info.name not in scope:
        help_ = did_you_mean(info.name, scope)
        raise failure("MSC0705", f"output '{shown(info.name)}' is computed by no node", help=help_)
    value = scope[info.name]
    if not isinstance(value, OnnxValue):
        raise failure("MSC0704", f"output '{shown(info.name)}' is not a tensor")
    return info.name, value


def _module(
    name: str,
    builder: Builder,
    entry: Block,
    inputs: Sequence[DictionaryAttr],
    outputs: Sequence[tuple[str, OnnxValue]],
) -> Imported:
    counts = _counts(outputs)
    given = ArrayAttr([_named(output, value, counts) for output, value in outputs])
    outputs = [*outputs, *((name, count.value) for count, name in counts.items())]
    results = [builder.ssa(value) for _, value in outputs]
    entry.add_op(ReturnOp(*results))
    types = [a.type for a in entry.args], [r.type for r in results]
    given = ArrayAttr([*given, *(DictionaryAttr({MS_NAME: StringAttr(name)}) for name in counts.values())])
    function = FuncOp(ENTRY, types, Region(entry), arg_attrs=ArrayAttr(inputs), res_attrs=given)
    module = ModuleOp([*builder.declarations(), function], sym_name=StringAttr(name))
    return Imported(module, builder.parameters, tuple(output for output, _ in outputs))


def _stem(file: str) -> str:
    return identifier(file.rpartition("/")[2].rpartition(".")[0] or file, "model").replace(".", "_")


# The names of a model must be text: a damaged file may hold bytes that are none.
def check_text(model: ModelProto) -> None:
    """Raise MSC0702 if a name in the model is not UTF-8."""
    if any(isinstance(text, bytes) for text in _texts(model)):
        raise failure("MSC0702", "the model is damaged: a name in it is not UTF-8 text")


def _texts(model: ModelProto) -> Iterator[object]:
    yield from (o.domain for o in model.opset_import)
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from (function.domain, function.name, function.overload, *function.input, *function.output)
        yield from (o.domain for o in function.opset_import)
        yield from function.attribute
        yield from _of_attributes(function.attribute_proto)
        yield from _of_nodes(function.node)


def _of_graph(graph: GraphProto) -> Iterator[object]:
    yield graph.name
    for infos in cast("Sequence[Sequence[ValueInfoProto]]", (graph.input, graph.output)):
        for info in infos:
            yield info.name
            yield from (d.dim_param for d in info.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        yield from _of_attributes(node.attribute)


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[object]:
    for attribute in attributes:
        yield from (attribute.name, attribute.ref_attr_name)
        for graph in (attribute.g, *cast(Any, attribute.graphs)) if attribute.HasField("g") else ():
            yield from _of_graph(graph)
