"""What generated C needs before its first kernel: headers, vector types, and small inline functions, each on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msc.codegen.c.prelude_text import PLAIN, TEMPLATES
from msc.codegen.c.template import Template
from msc.codegen.c.text import sections
from msc.codegen.c.types import CType, memory_name
from msc.codegen.c.vector_math import definitions, supported
from msc.targets.abilities import Unit

_SCALAR_LAST = 1 << 20
"""A scalar function may call a vector one, never the other way round."""


@dataclass
class Prelude:
    """Collects needs while kernels are emitted; its text depends on the set of them only, not on their order.

    Local arrays take at most `stack` bytes in each of `threads`. Indices have `index` bits. Of the machine's `units`,
    `instructions` are the functions of those that kernels use, by name, and `includes` the lines for their headers.
    """

    threads: int = 1
    stack: int = 0
    index: int = 64
    team: bool = False
    units: Mapping[str, Unit] = field(default_factory=dict[str, Unit])
    aligns_words: bool = False
    """Whether loads say that words are aligned, where they are: the processor may have no others."""
    includes: set[str] = field(default_factory=set[str])
    instructions: dict[str, str] = field(default_factory=dict[str, str])
    plain: set[str] = field(default_factory=set[str])
    headers: set[str] = field(default_factory=lambda: {"stddef.h", "stdint.h"})
    types: set[CType] = field(default_factory=set[CType])
    functions: dict[tuple[str, str, int], CType] = field(default_factory=dict[tuple[str, str, int], CType])
    math: set[tuple[str, str, int]] = field(default_factory=set[tuple[str, str, int]])

    def type_name(self, type_: CType) -> str:
        """The C name of a type, declared if it is a vector."""
        if type_.is_vector:
            self.types.add(CType(type_.base, type_.lanes))
        elif type_.base == "i1":
            self.headers.add("stdbool.h")
        return type_.name

    def spelling(self, type_: CType) -> str:
        """The C name of a type; of an index that of the integer that it is."""
        return self.type_name(CType(f"i{self.index}") if type_.base == "index" else type_)

    def function(self, name: str, type_: CType) -> str:
        """The C name of the inline function `name` on a type; it and what it builds on will be defined."""
        key = (name, type_.base, type_.lanes)
        if key not in self.functions:
            template = TEMPLATES[name]
            self.functions[key] = type_
            self._require(template, type_)
            if not type_.is_vector and name in ("from_f16", "f16_from"):
                self.function(name, CType(type_.base, 4))
        return f"{name}_{type_.name if type_.is_vector else type_.base}"

    def math_function(self, name: str, type_: CType) -> str | None:
        """The C name of a vector math function, or None if there is none for the type."""
        if not supported(name, type_.base):
            return None
        self.math.add((name, type_.base, max(type_.lanes, 1)))
        self.type_name(type_)
        return f"msc_{name}_{type_.name if type_.is_vector else type_.base}"

    def _require(self, template: Template, type_: CType) -> None:
        self.headers.update(template.headers)
        text = template.text_for(type_)
        for kind in ("{v}", "{i}", "{u}", "{r}", "{h}"):
            if type_.is_vector and kind in text:
                self.types.add(_related(kind, type_))
        for base in template.types if type_.is_vector else ():
            self.types.add(CType(base, type_.lanes))
        for other in template.requires:
            if _names(text, f"{other}_{{f}}"):
                self.function(other, type_)
        for other in template.requires_half:
            if _names(text, f"{other}_{{hf}}"):
                self.function(other, CType(type_.base, type_.lanes // 2))

    def team_text(self, linkage: str = "") -> str:
        """The thread team; `linkage`, `static ` or nothing, is that of the function through which kernels use it.

        It shares work by claims (Blumofe and Leiserson's stealing, with counters for deques): nobody waits for a thread
        that the system does not run, as a fork-join barrier does.
        """
        if not self.team:
            return ""
        text = sections("team.c")["definition"].replace("{threads}", str(self.threads))
        return text.replace("{stack}", str(self.stack)).replace("{linkage}", linkage)

    def text(self) -> str:
        """Headers, types and functions as C text, ending in an empty line; all but the team."""
        # f16 lies in memory as u16: what moves either is one function
        functions = dict.fromkeys(self._function_text(key) for key in self._ordered())
        math = definitions(self.math)
        sections = [*self._headers(), *self._pragmas(), *self._typedefs(), *self._plain(), *functions]
        own = (self.instructions[name] for name in sorted(self.instructions))
        return "\n".join(section for section in (*sections, *own, math) if section)

    def _headers(self) -> Iterator[str]:
        yield "".join(f"#include <{header}>\n" for header in sorted(self.headers))

    def _pragmas(self) -> Iterator[str]:
        if self.types or self.math:
            yield PLAIN["psabi"]
            yield PLAIN["scheduling"]

    def _plain(self) -> Iterator[str]:
        yield from sorted(self.includes)
        yield from (PLAIN[name] for name in sorted(self.plain))

    def _typedefs(self) -> Iterator[str]:
        lines = [_typedef(t) for t in sorted(self.types, key=lambda t: (t.base, t.lanes))]
        yield "".join(lines)

    def _ordered(self) -> list[tuple[str, str, int]]:
        """Callees first: by the order of the templates, halves before wholes."""
        order = list(TEMPLATES)
        return sorted(self.functions, key=lambda key: (order.index(key[0]), key[1], key[2] or _SCALAR_LAST))

    def _function_text(self, key: tuple[str, str, int]) -> str:
        return TEMPLATES[key[0]].instantiate(self.functions[key])


def _names(text: str, function: str) -> bool:
    """Whether C text names a function, as a whole word: `reduce_max_{f}` does not name `max_{f}`."""
    return re.search(rf"(?<!\w){re.escape(function)}", text) is not None


def _typedef(type_: CType) -> str:
    element, size = memory_name(type_.base), type_.bits // 8
    total = size * type_.lanes
    unaligned = f"__attribute__((vector_size({total}), aligned({size}), may_alias))"
    return (
        f"typedef {element} {type_.name} __attribute__((vector_size({total})));\n"
        f"typedef {element} {type_.name}_u {unaligned}; /* in memory: aligned as an element */\n"
    )


def _related(kind: str, type_: CType) -> CType:
    match kind:
        case "{i}":
            return type_.signed
        case "{u}":
            return type_.unsigned
        case "{r}":
            return type_.real
        case "{h}":
            return CType(type_.base, type_.lanes // 2) if type_.lanes > 2 else type_
        case _:
            return type_
