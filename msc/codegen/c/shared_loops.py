"""Loops that threads share: the loop becomes a function of a range of its iterations, which the team calls.

What the loop takes from around it goes through an array of pointers, as tensors do from msc to an artifact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msc.codegen.c.lines import Lines, wrap_prototype
from msc.codegen.c.names import NameScope
from msc.codegen.c.types import INDEX_TYPE, CArrayType, memory_name


@dataclass(frozen=True)
class Capture:
    """A name that stands around a loop, and its declaration as a parameter.

    `type_name` is that of a scalar or vector, which is passed by its address, and None for an array, which is one.
    """

    name: str
    declaration: str
    type_name: str | None = None

    def argument(self) -> str:
        """As a pointer."""
        return f"(void *){'' if self.type_name is None else '&'}{self.name}"

    def taken(self, pointer: str) -> str:
        """What the pointer leads to."""
        return pointer if self.type_name is None else f"*(const {self.type_name} *){pointer}"


@dataclass(frozen=True)
class LoopPart:
    """The function of some iterations of a loop, and the one that the team calls, which unpacks the pointers.

    They take `captures`, and the iterations from `first` to below `last`.
    """

    name: str
    captures: tuple[Capture, ...]
    first: str
    last: str
    lines: str

    def text(self) -> str:
        """The definitions of both."""
        declarations = [
            *(c.declaration for c in self.captures),
            f"{INDEX_TYPE} {self.first}",
            f"{INDEX_TYPE} {self.last}",
        ]
        taken = [*(c.taken(f"arguments[{k}]") for k, c in enumerate(self.captures)), "first", "last"]
        return (
            f"{wrap_prototype(f'static void {self.name}(', declarations)}\n{{\n{self.lines}}}\n\n"
            f"static void {self.name}_of(void *const *arguments, int64_t first, int64_t last)\n{{\n"
            f"    {wrap_prototype(f'{self.name}(', taken, ');')}\n}}\n\n"
        )


def scalar(name: str, type_name: str) -> Capture:
    """A scalar or a vector."""
    return Capture(name, f"{type_name} {name}", type_name)


def local_array(name: str, buffer: CArrayType) -> Capture:
    """A local buffer; of one element it is a variable."""
    if buffer.elements == 1:
        return scalar(name, memory_name(buffer.base))
    shape = tuple(size for size in buffer.shape if size != 1)
    return Capture(name, f"{memory_name(buffer.base)} {CArrayType(buffer.base, shape).declarator(name)}")


def share_call(name: str, captures: Sequence[Capture], trips: str, least: int, scope: NameScope, lines: Lines) -> None:
    """Have the team run all iterations, or the caller where there are fewer than `least`."""
    arguments = scope.fresh("arguments")
    lines.add(f"void *const {arguments}[] = {{{', '.join(c.argument() for c in captures)}}};")
    shared = f"msc_share({name}_of, {arguments}, {trips});"
    if not least:
        lines.add(shared)
        return
    with lines.braces(f"if ({trips} < {least})"):
        lines.add(f"{name}_of({arguments}, 0, {trips});")
    with lines.braces("else"):
        lines.add(shared)
