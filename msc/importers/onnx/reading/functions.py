"""Functions: those of a model, and the bodies that the ONNX standard itself gives for composite operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.shape_inference
from onnx import AttributeProto, FunctionProto, NodeProto

from msc.importers.onnx.values import OnnxValue, Slot

_SMALL = 1024
"""Elements of a known value that shape inference may need."""

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


def local_functions(functions: Iterable[FunctionProto]) -> Mapping[FunctionKey, FunctionProto]:
    """The functions of a model by key."""
    return {(f.domain, f.name, f.overload): f for f in functions}


def body_with_attributes(function: FunctionProto, call: NodeProto) -> list[NodeProto]:
    """The nodes of a function with the attributes of a call in place of the function's own names for them."""
    given = {a.name: a for a in function.attribute_proto}
    given.update({a.name: a for a in call.attribute})
    return [_substituted(node, given) for node in function.node]


def _substituted(node: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    if not any(a.ref_attr_name or a.HasField("g") or a.graphs for a in node.attribute):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        substitute = _attribute(attribute, given)
        if substitute is not None:
            copy.attribute.append(substitute)
    return copy


def _attribute(attribute: AttributeProto, given: Mapping[str, AttributeProto]) -> AttributeProto | None:
    """An attribute with references replaced; None if it refers to one that the call leaves out."""
    if not attribute.ref_attr_name:
        return attribute if not attribute.HasField("g") else _with_graph(attribute, given)
    source = given.get(attribute.ref_attr_name)
    if source is None:
        return None
    copy = AttributeProto()
    copy.CopyFrom(source)
    copy.name = attribute.name
    return copy


def _with_graph(attribute: AttributeProto, given: Mapping[str, AttributeProto]) -> AttributeProto:
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    nodes = [_substituted(node, given) for node in attribute.g.node]
    del copy.g.node[:]
    copy.g.node.extend(nodes)
    return copy


def standard_function(node: NodeProto, opset: int, inputs: Sequence[Slot]) -> FunctionProto | None:
    """The standard's body of an operator for its attributes and inputs of these types, or None if it gives none."""
    found = schema_of(node, opset)
    if found is None:
        return None
    schema = cast(Any, found)  # the package's type stubs leave out the methods that give functions
    if fitting := [v for v in schema.function_opset_versions if v <= opset]:
        return _with_defaults(found, FunctionProto.FromString(schema.get_function_with_opset_version(max(fitting))))
    if fitting := [v for v in schema.context_dependent_function_opset_versions if v <= opset]:
        types = [_type_bytes(slot) for slot in inputs]
        build = schema.get_context_dependent_function_with_opset_version
        body = FunctionProto.FromString(build(max(fitting), node.SerializeToString(), types))
        return _with_defaults(found, body) if body.output else None
    return None


def has_standard_function(node: NodeProto, opset: int) -> bool:
    """Whether the standard gives a body for an operator."""
    schema = cast(Any, schema_of(node, opset))
    if schema is None:
        return False
    return any(v <= opset for v in (*schema.function_opset_versions, *schema.context_dependent_function_opset_versions))


def schema_of(node: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    """The standard's definition of an operator in an opset, or None."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    if not onnx.defs.has(node.op_type, domain):
        return None
    try:
        return onnx.defs.get_schema(node.op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None


def broken_rule(node: NodeProto, opset: int, inputs: Sequence[Slot]) -> str | None:
    """What the standard's own type and shape inference says against a node's inputs of these types, if anything."""
    schema = schema_of(node, opset)
    if schema is None:
        return None
    given = [(name, slot) for name, slot in zip(node.input, inputs, strict=False) if isinstance(slot, OnnxValue)]
    types = {name: onnx.TypeProto.FromString(_type_bytes(slot)) for name, slot in given}
    arrays = {name: slot.array for name, slot in given if slot.array is not None and slot.array.size <= _SMALL}
    data = {name: onnx.numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in arrays.items()}
    try:
        onnx.shape_inference.infer_node_outputs(schema, node, types, data)
    except onnx.shape_inference.InferenceError as error:
        return str(error).removeprefix("[ShapeInferenceError] ").partition("\n")[0]
    except (RuntimeError, ValueError, TypeError, KeyError):  # the standard's library cannot read the node either
        return None
    return None


def _with_defaults(schema: onnx.defs.OpSchema, function: FunctionProto) -> FunctionProto:
    """The function with the defaults of the operator's attributes as its own."""
    known = {a.name for a in function.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in known and attribute.default_value.name:
            function.attribute_proto.append(attribute.default_value)
    return function


def _type_bytes(slot: Slot) -> bytes:
    from msc.importers.onnx.reading.tensors import DTYPES

    if not isinstance(slot, OnnxValue):
        return onnx.TypeProto().SerializeToString()
    numbers = {name: number for number, name in DTYPES.items()}
    return onnx.helper.make_tensor_type_proto(slot.narrow or numbers[slot.dtype], slot.shape).SerializeToString()
