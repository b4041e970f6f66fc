"""The attributes of nodes against what the standard defines for their operators."""

from __future__ import annotations

from typing import Any, cast

from onnx import AttributeProto, NodeProto

from msc.importers.failures import failure, shown
from msc.importers.onnx.reading.functions import schema_of
from msc.support.diagnostics import Location, MscError, did_you_mean


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
