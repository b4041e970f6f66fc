"""The largest elements in order."""

from __future__ import annotations

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


@importer("TopK")
def _top_k(node: Node) -> list[OnnxValue]:
    """NaN counts as infinity; among equal elements the first comes first."""
    x = node[0]
    axis = node.axis(node.int_("axis", -1), x.rank)
    k = node.known_int(1, "k") if node.opset >= 10 else node.int_("k", 1)
    size = node.size_of(x, axis)
    if not 0 <= k <= size:
        raise node.failure("MSC0711", f"k is {k}, but axis {axis} has {size} elements")
    places = node(ms.ArgsortOp, x, axis=axis, count=k, descending=node.flag("largest", True))
    return [node(ms.GatherElementsOp, x, places, axis=axis), places]
