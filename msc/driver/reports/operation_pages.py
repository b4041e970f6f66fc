"""The reference of the `ms` operations as text: for a terminal, and as the page docs/operations.md."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msc.driver.reports.operation_reference import (
    OperandEntry,
    OperationReference,
    PropertyEntry,
    operation_names,
    reference,
)

_SENTENCE = re.compile(r"(.+?[.:])(?:\s|$)", re.DOTALL)

_HEAD = """# The `ms` operations

Made from the definitions by `python -m msc.driver.reports.operation_pages > docs/operations.md`. `msc explain
ms.conv2d` prints one, `msc explain ms` lists all. [ir.md](ir.md) has the syntax. T stands for the element type that
may vary, the same in all places. The last part of each is what the operation computes in the example, as the
scheduler reads it (a *basic* operation), or the basic operations that it is rewritten into (a *composite* one). """


def terminal_text(found: OperationReference) -> str:
    """A reference for a terminal."""
    parts = ["\n".join([f"{title}:", *(f"  {line}" for line in lines)]) for title, lines in _parts(found) if lines]
    return "\n\n".join([f"{found.name}: {found.description}", *parts])


def overview() -> str:
    """Every operation with the first sentence of what it does."""
    names = operation_names()
    width = max(map(len, names))
    return "\n".join(f"{name:{width}}  {first_sentence(reference(name).description)}" for name in names)


def page() -> str:
    """docs/operations.md."""
    sections = (_section(reference(name)) for name in operation_names())
    return "\n".join([_HEAD, *sections])


def first_sentence(description: str) -> str:
    """The first sentence of a description, on one line."""
    found = _SENTENCE.match(description)
    return " ".join((found[1] if found else description).split())


def _section(found: OperationReference) -> str:
    lines = [f"## `{found.name}`", "", found.description, ""]
    for title, rows in _parts(found):
        if rows and title in ("operands", "properties", "results", "T is one of"):
            lines += [f"* **{title}**: {'; '.join(f'`{row}`' for row in rows)}"]
        elif rows:
            lines += ["", f"{title.capitalize()}:", "", *(f"    {row}" for row in rows)]
    return "\n".join([*lines, ""])


def _parts(found: OperationReference) -> Iterator[tuple[str, list[str]]]:
    yield "operands", [_operand(operand) for operand in found.operands]
    yield "properties", [_property(declared) for declared in found.properties]
    yield "results", list(found.results)
    yield "T is one of", [" ".join(found.element_types)] if found.element_types else []
    yield "example", [found.example] if found.example else []
    yield found.meaning if not found.definition else f"{found.meaning}, here", list(found.definition)


def _operand(operand: OperandEntry) -> str:
    return operand.name if operand.count == "once" else f"{operand.name} ({operand.count})"


def _property(declared: PropertyEntry) -> str:
    kind = " | ".join(f'"{word}"' for word in declared.words) if declared.words else declared.kind
    if declared.default is not None:
        return f"{declared.name} = {declared.default}: {kind}"
    return f"{declared.name}: {kind}, {'optional' if declared.is_optional else 'required'}"


if __name__ == "__main__":
    print(page(), end="")
