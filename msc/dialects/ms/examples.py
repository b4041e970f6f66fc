"""A typical use of each `ms` operation, made of its `EXAMPLE`: for people who read about it, and for tests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.irdl import OpDef, OptOperandDef, VarOperandDef

from msc.dialects.ms.base import MsOp

_ELEMENT = re.compile(r"T$")


@dataclass(frozen=True)
class Example:
    """One operation on named operands: `names` and `types` ("2x3xf32") of these, and the rest of its text."""

    op: type[MsOp]
    names: tuple[str, ...]
    types: tuple[str, ...]
    properties: str

    @property
    def text(self) -> str:
        """The operation without its result: `ms.add %lhs, %rhs`; its types are inferred."""
        operands = ", ".join(f"%{name}" for name in self.names)
        return " ".join(part for part in (self.op.name, operands, self.properties) if part)

    def function(self, result: str = "y") -> str:
        """A function that does nothing else, as module text; `result` is the type of what it returns."""
        arguments = ", ".join(f"%{n}: tensor<{t}>" for n, t in zip(self.names, self.types, strict=True))
        return f"func.func @main({arguments}) {{\n  %{result} = {self.text}\n  func.return\n}}\n"


def has_example(op: type[MsOp]) -> bool:
    """Whether an operation has an example; those that only make sense with a symbol or a literal have none."""
    return bool(op.EXAMPLE)


def example(op: type[MsOp], dtype: str = "f32") -> Example:
    """The example of an operation with `dtype` for the element type that may vary."""
    head, brace, tail = op.EXAMPLE.partition("{")
    types = tuple(_ELEMENT.sub(dtype, word) for word in head.split())
    return Example(op, _operand_names(op.get_irdl_definition(), len(types)), types, brace + tail)


def _operand_names(definition: OpDef, count: int) -> tuple[str, ...]:
    names: list[str] = []
    for name, declared in definition.operands:
        if isinstance(declared, VarOperandDef) and not isinstance(declared, OptOperandDef):
            names += [f"{name.rstrip('s')}{k}" for k in range(count - len(definition.operands) + 1)]
        else:
            names.append(name)
    return tuple(names[:count])
