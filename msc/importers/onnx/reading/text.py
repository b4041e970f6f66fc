"""The names of a model must be text: a damaged file may hold bytes that are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from msc.importers.failures import failure


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
