"""The cases of the suite, by name: what to call, and which classes of models each belongs to."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto

from tests.conformance.backend import MscBackend

CATEGORIES = {
    "Node": "node",
    "Simple": "simple",
    "Real": "real",
    "PyTorchConverted": "pytorch-converted",
    "PyTorchOperator": "pytorch-operator",
}

RANDOM = "real-random"
"""Not of the suite: its light models with random weights, against ONNX Runtime."""


@dataclass(frozen=True)
class Case:
    """A case: calling `run` raises if msc does not give what the case wants."""

    name: str
    kind: str
    run: Callable[[], None]
    model: ModelProto | None


def cases(kinds: frozenset[str]) -> Iterator[Case]:
    """The cases of some kinds, without those for other devices."""
    suite, models = _suite()
    if RANDOM in kinds:
        from tests.conformance.random_weights import light_cases

        yield from (Case(name, RANDOM, run, None) for name, run in light_cases())
    for word, kind in CATEGORIES.items():
        if kind not in kinds:
            continue
        for name, item in sorted(_items(suite, f"{word}Model").items()):
            if name.endswith("_cpu"):
                short = name.removesuffix("_cpu")
                yield Case(short, kind, lambda item=item: item.func(None), models.get(short))


@cache
def _suite() -> tuple[object, Mapping[str, ModelProto | None]]:
    """What calls each case, and the models of the node cases: all of them are computed when onnx loads them."""
    if "ONNX_HOME" not in os.environ:
        os.environ["ONNX_HOME"] = tempfile.mkdtemp(prefix="msc-onnx-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test import BackendTest
        from onnx.backend.test.loader import load_model_tests

        return BackendTest(MscBackend, __name__), {c.name: c.model for c in load_model_tests(kind="node")}


def _items(suite: object, category: str) -> Mapping[str, Any]:
    """The suite's own table of what to call: its public side gives whole unittest classes only."""
    return vars(suite)["_test_items"][category]


_NARROW = {
    name: number
    for name, number in TensorProto.DataType.items()
    if any(part in name for part in ("FLOAT8", "FLOAT4", "INT4", "INT2", "FLOAT6"))
}


def classes(case: Case) -> frozenset[str]:
    """What a model needs beyond tensors of plain numbers: "string", "sequence", "float8", "4-bit", "training", ..."""
    if case.model is None:
        return frozenset()
    found: set[str] = set()
    for info in (*case.model.graph.input, *case.model.graph.output):
        found |= _of_type(info.type)
    for node in _nodes(case.model.graph.node):
        found |= _of_node(node)
    return frozenset(found)


def _nodes(nodes: Any) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g.node)


def _of_type(type_: TypeProto) -> set[str]:
    kind = type_.WhichOneof("value")
    if kind != "tensor_type":
        return {"sequence" if kind == "sequence_type" else "optional" if kind == "optional_type" else "other type"}
    return _of_number(type_.tensor_type.elem_type)


def _of_number(number: int) -> set[str]:
    if number == TensorProto.STRING:
        return {"string"}
    if number in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return {"complex"}
    if number in _NARROW.values():
        return {"float8" if "FLOAT8" in TensorProto.DataType.Name(number) else "sub-byte"}
    return set()


def _of_node(node: NodeProto) -> set[str]:
    found: set[str] = set()
    if node.domain not in ("", "ai.onnx"):
        found.add(f"domain {node.domain}")
    if node.op_type in ("If", "Loop", "Scan", "SequenceMap"):
        found.add("subgraph")
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype", "output_dtype") and attribute.type == AttributeProto.INT:
            found |= _of_number(attribute.i)
    return found


NOT_PLAIN: Mapping[str, str] = {
    "string": "string tensors",
    "sequence": "sequences as inputs or outputs",
    "optional": "optionals as inputs or outputs",
    "other type": "inputs that are not tensors",
    "complex": "complex numbers",
}
"""Classes that msc leaves out: the goal counts the others."""
