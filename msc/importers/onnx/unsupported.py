"""What a model needs and msc does not have, all at once and before any work is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from onnx import AttributeProto, ModelProto, NodeProto

from msc.importers.failures import shown
from msc.importers.onnx.reading.functions import FunctionKey, has_standard_function, local_functions
from msc.importers.onnx.reading.model_file import DEFAULT_DOMAINS, function_opsets
from msc.importers.onnx.registry import importer_of, operators
from msc.support.diagnostics import Diagnostic, MscError, near_match

_LISTED = 20

REASONS: Mapping[str, str] = {
    "ImageDecoder": "it reads image files",
    "Gradient": "training is not compiled",
    "SVMClassifier": "msc has regressions by support vectors only",
    **dict.fromkeys(
        ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"),
        "ONNX does not say which random numbers it gives",
    ),
    **dict.fromkeys(("StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch"), "it works on strings"),
}
"""Why operators are left out on purpose."""


def check_supported(model: ModelProto, opsets: Mapping[str, int]) -> None:
    """Raise one MSC0710 that lists every operator without importer, with its count and the nearest name msc has."""
    functions = local_functions(model.functions)
    missing: Counter[tuple[str, str]] = Counter()
    bodies: list[tuple[Iterable[NodeProto], Mapping[str, int]]] = [(model.graph.node, opsets)]
    bodies += [(f.node, function_opsets(f)) for f in functions.values()]
    for nodes, versions in bodies:
        missing.update(_missing(nodes, versions, functions))
    if missing:
        raise MscError(_diagnostic(missing))


def _missing(
    nodes: Iterable[NodeProto], opsets: Mapping[str, int], functions: Mapping[FunctionKey, object]
) -> Iterator[tuple[str, str]]:
    for node in all_nodes(nodes):
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        opset = opsets.get(domain, 1)
        known = (node.domain, node.op_type, node.overload) in functions
        if not known and importer_of(domain, node.op_type, opset) is None and not has_standard_function(node, opset):
            yield domain, node.op_type


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes and those of their subgraphs."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                pending.extend(attribute.g.node)


def _diagnostic(missing: Counter[tuple[str, str]]) -> Diagnostic:
    total = sum(missing.values())
    lines = [_line(domain, name, count) for (domain, name), count in missing.most_common(_LISTED)]
    if len(missing) > _LISTED:
        lines.append(f"and {len(missing) - _LISTED} more operators")
    message = f"msc does not import {len(missing)} of the model's operators ({total} nodes)"
    return Diagnostic("MSC0710", message, notes=tuple(lines))


def _line(domain: str, name: str, count: int) -> str:
    full = shown(f"{domain}.{name}" if domain else name)
    times = "once" if count == 1 else f"{count} times"
    if name in REASONS:
        return f"{full}, used {times}: {REASONS[name]}"
    near = near_match(name[:100], operators(domain))
    return f"{full}, used {times}" + (f"; did you mean '{near}'?" if near and near != name else "")
