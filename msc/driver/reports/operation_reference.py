"""The reference of the `ms` operations, made of their definitions: `msc explain ms.conv2d` and docs/operations.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.irdl import OpDef, OptOperandDef, OptPropertyDef, VarOperandDef, VarResultDef
from xdsl.printer import Printer

from msc.dialects.element_types import ELEMENT_TYPES
from msc.dialects.ms import MS
from msc.dialects.ms.attributes import MS_ORIGIN
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.dialects.ms.properties import kind_of, value_text
from msc.dialects.ms.syntax import SEGMENTS
from msc.driver.passes.registry import load_pass, new_context
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.poly.statement_text import statement_lines
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

_EXPANSION = ("expand-composites", "canonicalize-ms", "cse", "dce")
_PREFERRED = ("f32", "i32", "i1", *ELEMENT_TYPES)
"""Element types for an example, the first that the operation takes."""


@dataclass(frozen=True)
class OperandEntry:
    """An operand's name and how often it stands: "once", "optional" or "any number"."""

    name: str
    count: str


@dataclass(frozen=True)
class PropertyEntry:
    """A property: what it takes, its legal words, and its default as it is written; None where there is none."""

    name: str
    kind: str
    words: tuple[str, ...]
    default: str | None
    is_optional: bool


@dataclass(frozen=True)
class OperationReference:
    """All that a person needs to write one operation.

    `element_types` are those that T in the example's types may be, empty where none varies. `definition` is what
    `meaning` says: the statements that it computes, or the basic operations that it is rewritten into.
    """

    name: str
    description: str
    operands: tuple[OperandEntry, ...]
    properties: tuple[PropertyEntry, ...]
    results: tuple[str, ...]
    element_types: tuple[str, ...]
    example: str
    meaning: str
    definition: tuple[str, ...]


def operation_names() -> tuple[str, ...]:
    """The operations that models are written in, in the dialect's order."""
    return tuple(op.name for op in _operations())


def reference(name: str) -> OperationReference:
    """The reference of an operation. Raises MSC0005 where there is none of this name."""
    found = {op.name: op for op in _operations()}
    if name not in found:
        raise MscError(Diagnostic("MSC0005", f"there is no operation '{name}'", help=did_you_mean(name, found)))
    op = found[name]
    types = tuple(dtype for dtype in _PREFERRED if has_example(op) and _accepts(op, dtype))
    shown = _example_op(op, types[0]) if types else None
    (text,) = ("",) if shown is None else _texts([shown])
    meaning, definition = ("", ()) if shown is None else _definition(shown)
    return OperationReference(
        name,
        inspect.cleandoc(op.__doc__ or ""),
        tuple(OperandEntry(n, _count(declared)) for n, declared in op.get_irdl_definition().operands),
        tuple(_properties(op)),
        tuple(_results(op)),
        tuple(dtype for dtype in ELEMENT_TYPES if dtype in types) if "T" in op.EXAMPLE else (),
        text,
        meaning,
        definition,
    )


def _operations() -> Iterator[type[MsOp]]:
    return (op for op in MS.operations if issubclass(op, MsOp))


def _count(declared: object) -> str:
    if isinstance(declared, OptOperandDef):
        return "optional"
    return "any number" if isinstance(declared, VarOperandDef) else "once"


def _properties(op: type[MsOp]) -> Iterator[PropertyEntry]:
    for name, declared in op.get_irdl_definition().properties.items():
        default = None if declared.default_value is None else value_text(declared.default_value)
        if name != SEGMENTS:
            optional = isinstance(declared, OptPropertyDef)
            yield PropertyEntry(name, kind_of(declared), op.CHOICES.get(name, ()), default, optional)


def _results(op: type[MsOp]) -> Iterator[str]:
    for name, declared in op.get_irdl_definition().results:
        yield f"{name} (any number)" if isinstance(declared, VarResultDef) else name


def _accepts(op: type[MsOp], dtype: str) -> bool:
    try:
        _example_op(op, dtype)
    except MscError:
        return False
    return True


def _example_op(op: type[MsOp], dtype: str) -> MsOp:
    """The example's operation in its function. Raises MscError where the operation does not take the type."""
    several = any(isinstance(declared, VarResultDef) for _, declared in op.get_irdl_definition().results)
    text = example(op, dtype).function("y0, %y1" if several else "y")
    module = parse_module(new_context(), text, "example.mir")
    verify_module(module, {"example.mir": text})
    return next(found for found in module.walk() if isinstance(found, op))


def _definition(op: MsOp) -> tuple[str, tuple[str, ...]]:
    """What an operation means, on its example: statements of a basic one, basic operations of a composite one."""
    if isinstance(op, ViewOp):
        return "computes nothing: the result has the operand's bytes", ()
    if isinstance(op, BasicOp) and op.is_basic:
        names = [value.name_hint or "" for value in op.operands]
        results = [value.name_hint or "" for value in op.results]
        lines = [line for statement in op.compute() for line in statement_lines(statement, names, results)]
        return "computes", tuple(lines)
    return "is rewritten into", _expansion(op)


def _expansion(op: MsOp) -> tuple[str, ...]:
    """The basic operations that expanders write for an operation."""
    function = op.parent_op()
    assert isinstance(function, FuncOp)
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    function.body.block.erase_op(last)
    function.body.block.add_op(ReturnOp(*op.results))
    function.update_function_type()
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    for name in _EXPANSION:
        load_pass(name)().apply(new_context(), module)
    return _texts(found for found in function.body.block.ops if not isinstance(found, ReturnOp))


def _texts(ops: Iterable[Operation]) -> tuple[str, ...]:
    """Operations as they are printed, in one scope of names, without where they come from."""
    printer = Printer(StringIO())
    texts: list[str] = []
    for op in ops:
        op.attributes.pop(MS_ORIGIN, None)
        printer.stream = StringIO()
        printer.print_op(op)
        texts.append(printer.stream.getvalue())
    return tuple(texts)


# A typical use of each `ms` operation, made of its `EXAMPLE`: for people who read about it, and for tests.
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
