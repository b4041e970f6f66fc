"""Walking a graph: nodes in order, each with the values of its inputs; functions and subgraphs are inlined."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto
from xdsl.utils.exceptions import VerifyException

from msc.importers.failures import failure, shown
from msc.importers.onnx.builder import Builder
from msc.importers.onnx.counted import followed, is_counted, meant, refused
from msc.importers.onnx.narrow import NARROW, known_codes
from msc.importers.onnx.node import Node, node_label
from msc.importers.onnx.reading.functions import (
    FunctionKey,
    body_with_attributes,
    broken_rule,
    has_standard_function,
    schema_of,
    standard_function,
)
from msc.importers.onnx.reading.model_file import DEFAULT_DOMAINS, function_opsets
from msc.importers.onnx.reading.tensors import TensorReader
from msc.importers.onnx.registry import importer_of
from msc.importers.onnx.unsupported import REASONS
from msc.importers.onnx.values import OnnxValue, Slot, known
from msc.importers.onnx.writing import Writing
from msc.ir.errors import code_of, help_of
from msc.ir.locations import file_location
from msc.support.diagnostics import Diagnostic, Location, MscError, did_you_mean
from msc.support.naming import value_hint


class Faults:
    """A context that names the node in the errors of the operations it becomes.

    A damaged model asks for things that no importer foresees (an axis of 10^18, a table of a terabyte): NumPy then
    raises exceptions of any kind, which are the model's mistakes and not ours. If the standard's own inference of types
    and shapes refuses the node, the error is its reason.
    """

    def __init__(self, label: str, place: Location, broken_rule: Callable[[], str | None]) -> None:
        self._label = label
        self._place = place
        self._broken_rule = broken_rule

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, VerifyException):
            message = f"{self._label}: {error}"
            raise MscError(Diagnostic(code_of(error), message, self._place, help=help_of(error))) from error
        if isinstance(error, Exception) and not isinstance(error, MscError):
            if (rule := self._broken_rule()) is not None:
                raise failure("MSC0711", f"{self._label}: {rule}", at=self._place) from error
            reason = str(error).partition("\n")[0][:200]
            message = f"{self._label} cannot be imported: {type(error).__name__}{': ' if reason else ''}{reason}"
            raise MscError(Diagnostic("MSC0790", message, self._place)) from error


MAXIMUM_NODES = 200_000
"""After inlining and unrolling; a model whose functions call each other can grow exponentially."""

MAXIMUM_DEPTH = 48
"""Of functions in functions and subgraphs in subgraphs."""

Scope = MutableMapping[str, Slot]


@dataclass(frozen=True)
class NodeContext:
    """Where a node stands: what it sees, which opsets hold.

    And the node of the model's own graph that it is part of, with its writing where that is one operator.
    """

    scope: Scope
    opsets: Mapping[str, int]
    place: Location | None = None
    writing: Writing | None = None


def initialiser(read_tensor: TensorReader, tensor: TensorProto) -> OnnxValue:
    """The value of a constant of the model."""
    array = read_tensor(tensor)
    narrow = NARROW.get(tensor.data_type)
    return known(array, tensor.name) if narrow is None else known_codes(array, narrow, tensor.name)


class Walker:
    """Imports nodes into a builder. `functions` are the model's own."""

    def __init__(
        self, file: str, builder: Builder, functions: Mapping[FunctionKey, FunctionProto], read_tensor: TensorReader
    ) -> None:
        self._file = file
        self._builder = builder
        self._functions = functions
        self._read_tensor = read_tensor
        self._nodes = 0
        self._depth = 0

    def add_initialisers(self, graph: GraphProto, scope: Scope) -> None:
        """Define the constants of a graph."""
        if graph.sparse_initializer:
            raise failure("MSC0704", f"graph '{shown(graph.name)}' has sparse initialisers, which msc does not read")
        for tensor in graph.initializer:
            scope[tensor.name] = initialiser(self._read_tensor, tensor)

    def walk(self, nodes: Iterable[NodeProto], frame: NodeContext) -> None:
        """Import nodes in order; what they compute goes into the frame's scope."""
        ordered = list(nodes)
        for index, proto in enumerate(ordered):
            place = frame.place or Location(f"{self._file} ({node_label(proto)})", index + 1, 1)
            inside = NodeContext(frame.scope, frame.opsets, place, frame.writing)
            self._count(place)
            inputs = [self._input(name, inside, ordered[index:], proto) for name in proto.input]
            self._define(proto, self._results(proto, inputs, inside, place), frame.scope)

    def _count(self, place: Location) -> None:
        self._nodes += 1
        if self._nodes > MAXIMUM_NODES:
            raise failure("MSC0714", f"the model has more than {MAXIMUM_NODES} nodes when it is unrolled", at=place)

    def _input(self, name: str, frame: NodeContext, rest: Sequence[NodeProto], proto: NodeProto) -> Slot:
        if name == "":
            return None
        if name in frame.scope:
            return frame.scope[name]
        label = node_label(proto)
        if any(name in node.output for node in rest):
            message = f"{label} uses '{shown(name)}', which is computed later: the graph has a cycle or is not sorted"
            raise failure("MSC0705", message, at=frame.place)
        help_ = did_you_mean(name, frame.scope)
        raise failure("MSC0705", f"{label} uses '{shown(name)}', which nothing computes", at=frame.place, help=help_)

    def _define(self, proto: NodeProto, results: Sequence[Slot], scope: Scope) -> None:
        for name, slot in zip(proto.output, results, strict=False):
            if isinstance(slot, OnnxValue) and name:
                slot.label = slot.label or name
                if slot.ssa is not None and slot.ssa.name_hint is None:
                    slot.ssa.name_hint = value_hint(name)
            if name:
                scope[name] = slot

    def _results(self, proto: NodeProto, inputs: Sequence[Slot], frame: NodeContext, place: Location) -> Sequence[Slot]:
        function = self._functions.get((proto.domain, proto.op_type, proto.overload))
        if function is not None:
            return self._call(function, proto, inputs, place)
        domain = "" if proto.domain in DEFAULT_DOMAINS else proto.domain
        opset = frame.opsets.get(domain, 1)
        if domain in frame.opsets:
            check_attributes(proto, opset, node_label(proto), place)
        if importer_of(domain, proto.op_type, opset) is not None:
            return self._import(proto, inputs, frame, place, opset)
        with Faults(node_label(proto), place, lambda: broken_rule(proto, opset, inputs)):
            body = standard_function(proto, opset, inputs)
        if body is None:
            known = has_standard_function(proto, opset)
            absent = "the standard defines no result for these attributes and inputs" if known else f"of opset {opset}"
            reason = REASONS.get(proto.op_type, absent)
            raise failure("MSC0710", f"msc does not import {node_label(proto)}: {reason}", at=place)
        # What a body converts by itself is rounded where it says so.
        converts = any(node.op_type == "CastLike" for node in body.node)
        writing = frame.writing or (None if converts else Writing(self._builder))
        results = self._call(body, proto, inputs, place, writing)
        if writing is not None and frame.writing is None:
            writing.finish(results)
        return results

    def _import(
        self, proto: NodeProto, inputs: Sequence[Slot], frame: NodeContext, place: Location, opset: int
    ) -> Sequence[Slot]:
        inner: list[Slot] = []

        def run_graph(graph: GraphProto, values: Sequence[Slot]) -> Sequence[Slot]:
            found = self._subgraph(graph, values, frame, place)
            inner.extend(found)
            return found

        def call_function(function: FunctionProto, values: Sequence[Slot]) -> Sequence[Slot]:
            return self._call(function, proto, values, place, writing)

        import_ = importer_of(proto.domain if proto.domain not in DEFAULT_DOMAINS else "", proto.op_type, opset)
        assert import_ is not None
        narrow = _check_narrow(proto, inputs, place)
        writing = frame.writing or Writing(self._builder)
        node = Node(proto, inputs, opset, self._builder, place, run_graph, self._read_tensor, writing, call_function)
        self._builder.location = file_location(place.file, place.line, place.column)
        with Faults(node_label(proto), place, lambda: broken_rule(proto, opset, inputs)):
            result = import_(meant(node))
            results = followed(node, result if isinstance(result, Sequence) else (result,))
        if is_counted(slot for slot in inner if not any(slot is kept for kept in results)):
            node.inputs = inner
            raise refused(node, "a branch or an iteration gives a tensor of such a length")
        if frame.writing is None:
            writing.finish(results)
        return results if narrow is None else [_as_narrow(slot, narrow) for slot in results]

    def _subgraph(
        self, graph: GraphProto, values: Sequence[Slot], frame: NodeContext, place: Location
    ) -> Sequence[Slot]:
        """The outputs of a subgraph, which sees the names of the graph around it."""
        scope: Scope = ChainMap[str, Slot]({}, frame.scope)
        scope.update({info.name: value for info, value in zip(graph.input, values, strict=False)})
        with self._deeper(place):
            self.add_initialisers(graph, scope)
            self.walk(graph.node, NodeContext(scope, frame.opsets, place))
        return _outputs([info.name for info in graph.output], scope, place)

    def _call(
        self,
        function: FunctionProto,
        proto: NodeProto,
        inputs: Sequence[Slot],
        place: Location,
        writing: Writing | None = None,
    ) -> Sequence[Slot]:
        """The outputs of a function, which sees nothing but its inputs; with `writing` it is one operator."""
        scope: Scope = dict.fromkeys(function.input)
        scope.update(dict(zip(function.input, inputs, strict=False)))
        with self._deeper(place):
            frame = NodeContext(scope, function_opsets(function), place, writing)
            self.walk(body_with_attributes(function, proto), frame)
        return _outputs(function.output, scope, place, optional=True)

    @contextmanager
    def _deeper(self, place: Location) -> Generator[None]:
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            message = f"functions and subgraphs are nested more than {MAXIMUM_DEPTH} deep, or call themselves"
            raise failure("MSC0714", message, at=place)
        try:
            yield
        finally:
            self._depth -= 1


_MOVING = frozenset(
    "Concat Expand Flatten Gather GatherElements GatherND Reshape Slice Split Squeeze Tile Transpose Unsqueeze".split()
)
"""What only moves elements, so that it may move codes."""

_CONVERTING = frozenset("BitCast Cast CastLike Constant DequantizeLinear Identity QuantizeLinear Shape Size".split())


def _check_narrow(proto: NodeProto, inputs: Sequence[Slot], place: Location) -> int | None:
    """The narrow type whose codes a node moves. Raises MSC0704 for a node that would compute on codes."""
    narrow = {slot.narrow for slot in inputs if isinstance(slot, OnnxValue) and slot.narrow is not None}
    if not narrow or proto.op_type in _CONVERTING:
        return None
    if proto.op_type not in _MOVING:
        message = (
            f"{node_label(proto)} on float8, float4, int4 or int2: msc converts these, but does not compute on them"
        )
        raise failure("MSC0704", message, at=place)
    return narrow.pop()


def _as_narrow(slot: Slot, narrow: int) -> Slot:
    return replace(slot, narrow=narrow) if isinstance(slot, OnnxValue) else slot


def _outputs(names: Iterable[str], scope: Scope, place: Location, *, optional: bool = False) -> Sequence[Slot]:
    results: list[Slot] = []
    for name in names:
        if name not in scope and not optional:
            raise failure("MSC0705", f"output '{shown(name)}' of a subgraph is computed by no node", at=place)
        results.append(scope.get(name))
    return results


# The attributes of nodes against what the standard defines for their operators.
def check_attributes(node: NodeProto, opset: int, label: str, place: Location) -> None:
    """Raise MSC0711 for an attribute that the operator does not have in this opset, or of another kind, or given twice.

    Operators that the standard does not define are left to their importers.
    """
    schema = schema_of(node, opset)
    if schema is None:
        return
    kinds = {name: _kind(attribute) for name, attribute in schema.attributes.items()}
    seen = set[str]()
    for attribute in node.attribute:
        if attribute.name in seen:
            raise failure("MSC0711", f"{label}: attribute '{shown(attribute.name)}' is given twice", at=place)
        seen.add(attribute.name)
        if attribute.name not in kinds:
            raise _unknown(attribute.name, kinds, label, opset, place)
        if attribute.type not in (kinds[attribute.name], AttributeProto.UNDEFINED):
            found, wanted = _word(attribute.type), _word(kinds[attribute.name])
            message = f"{label}: attribute '{attribute.name}' is of kind {found}, not {wanted}"
            raise failure("MSC0711", message, at=place)


def _unknown(name: str, kinds: dict[str, int], label: str, opset: int, place: Location) -> MscError:
    known = ", ".join(sorted(kinds)) or "none"
    help_ = did_you_mean(name, kinds) or f"it has: {known}"
    message = f"{label}: the operator has no attribute '{shown(name)}' in opset {opset}"
    return failure("MSC0711", message, at=place, help=help_)


def _kind(attribute: object) -> int:
    """The number of an attribute's kind, as protobuf has it."""
    return int(cast(Any, attribute).type.value)  # the package's stubs leave the enumeration out


def _word(kind: int) -> str:
    return AttributeProto.AttributeType.Name(cast(AttributeProto.AttributeType, kind))
