"""Pass `verify-tensors`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    MemRefType,
    ModuleOp,
    TensorType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from msc.dialects.element_types import ELEMENT_TYPES, dtype_name
from msc.dialects.ms.structure import ParameterOp
from msc.ir.entry import find_entry
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, raise_any

_INSTEAD = {
    "arith.constant": "ms.constant",
    "arith.addf": "ms.add", "arith.addi": "ms.add", "arith.subf": "ms.sub", "arith.subi": "ms.sub",
    "arith.mulf": "ms.mul", "arith.muli": "ms.mul", "arith.divf": "ms.div", "arith.divsi": "ms.div",
    "arith.negf": "ms.neg", "arith.maximumf": "ms.maximum", "arith.maxsi": "ms.maximum",
    "arith.minimumf": "ms.minimum", "arith.minsi": "ms.minimum", "arith.select": "ms.select",
    "arith.sitofp": "ms.cast", "arith.fptosi": "ms.cast", "arith.extf": "ms.cast", "arith.truncf": "ms.cast",
}  # fmt: skip
"""What computes the same on tensors."""


@dataclass(frozen=True)
class VerifyTensors(ModulePass):
    """Check that values are tensors and scalars that msc computes on. Changes nothing.

    Values are tensors of a known rank, with elements of a type that msc computes on, and scalars of such types, which
    control flow is made of. @main takes and gives tensors only; `arith` computes on scalars only. Raises MSC0202 for
    every value of another type, with what to write instead.
    """

    name = "verify-tensors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check the module; all that is wrong is reported at once."""
        raise_any(_diagnostics(op))


def _diagnostics(module: ModuleOp) -> Iterator[Diagnostic]:
    entry = find_entry(module)
    if entry is not None:
        yield from _entry_diagnostics(entry)
    for op in module.walk():
        yield from _operation_diagnostics(op)


def _entry_diagnostics(entry: FuncOp) -> Iterator[Diagnostic]:
    """Of all types that @main declares but tensors; the values in it are checked with the others."""
    type_: FunctionType = entry.function_type
    for kind, types in (("argument", type_.inputs.data), ("result", type_.outputs.data)):
        for position, given in enumerate(types):
            if not isinstance(given, TensorType):
                message = f"{kind} {position} of @main is of type {given}; a model takes and gives tensors"
                yield _wrong(entry, message, _tensor_instead(given))


def _operation_diagnostics(op: Operation) -> Iterator[Diagnostic]:
    if op.name.startswith("arith.") and any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
        instead = _INSTEAD.get(op.name)
        help_line = f"{instead} does so on tensors" if instead is not None else "ms operations compute on tensors"
        yield _wrong(op, f"'{op.name}' computes on scalars here, not on tensors", help_line)
        return
    arguments = [] if _is_entry(op) else [a for region in op.regions for block in region.blocks for a in block.args]
    types = dict.fromkeys(value.type for value in (*op.results, *arguments))
    if isinstance(op, ParameterOp):
        types[op.type] = None
    for type_ in types:
        yield from _type_diagnostics(op, type_)


def _is_entry(op: Operation) -> bool:
    """Whether arguments were checked already, unless they are tensors."""
    return isinstance(op, FuncOp) and any(not isinstance(a.type, TensorType) for a in op.args)


def _type_diagnostics(op: Operation, type_: Attribute) -> Iterator[Diagnostic]:
    tensor = isinstance(type_, TensorType)  # `isa` says the same, twenty times slower
    element = cast(TensorType[Attribute], type_).element_type if tensor else type_
    known = dtype_name(element) in ELEMENT_TYPES or (isinstance(element, IndexType) and not tensor)
    if known:
        return
    help_line = f"element types are {', '.join(ELEMENT_TYPES)}" if tensor else _tensor_instead(type_)
    yield _wrong(op, f"'{op.name}' has a value of type {type_}, which msc does not compute on", help_line)


def _tensor_instead(type_: Attribute) -> str:
    """What to write for a type that is no tensor."""
    if isinstance(type_, UnrankedTensorType):
        return "give its rank: tensor<?x?xf32> has two dimensions of any size"
    if isa(type_, MemRefType[Attribute] | VectorType[Attribute]):
        shape = "x".join("?" if n < 0 else str(n) for n in type_.get_shape())
        return f"write tensor<{shape}{'x' if shape else ''}{type_.get_element_type()}>"
    if isinstance(type_, IndexType):
        return "write tensor<i64>; tensor.extract reads its element and arith.index_cast makes an index of it"
    if dtype_name(type_) in ELEMENT_TYPES:
        return f"write tensor<{type_}>, a tensor without dimensions; tensor.extract reads its element"
    return f"element types are {', '.join(ELEMENT_TYPES)}"


def _wrong(op: Operation, message: str, help_line: str) -> Diagnostic:
    return Diagnostic("MSC0202", message, source_location(op), help=help_line)
