"""Kernels that differ in extents alone: one function, which takes the extents, computes all of them.

Layers of a network often differ in their channels alone, and the C compiler takes as long for the last of them as for
the first. What may differ is what it does not need to know: the extents of parameters, with them the strides of
elements, and the bounds of loops that it does not unroll. Tiles in registers, unrolled loops and local arrays are the
same for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msc.codegen.c.kernels import Kernel, MergedFunction
from msc.codegen.c.lines import wrap_prototype
from msc.codegen.c.loops import UNROLLED
from msc.codegen.c.names import NameScope, identifier
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.shared_loops import Capture, LoopPart, scalar, with_captures
from msc.codegen.c.types import INDEX_TYPE
from msc.support.escaping import c_comment
from msc.support.naming import unique

FEWEST = 4
"""Kernels that are worth a function of their own, where a reader has to go."""
MOST_EXTENTS = 3
"""Parameters of such a function: layers that differ in more than their channels are other functions to a reader."""
_SAVED_BYTES = 4000
"""Of C that the compiler need not compile, which are worth it too."""

_DIGITS = re.compile(r"\d+")
_INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ELEMENT = re.compile(r"\b_p\d+((?:\[[^][]*\])+)(?:\)(\[[^][]*\]))?")
"""Of a parameter; behind the parenthesis stands how far it is from `(&_p0[...])`, as rows of a tile are read."""
_LOOP = re.compile(
    r"^( *)for \(«index» \w+ = ([^;\n]*); \w+ < ([^;\n]*); (?:\+\+\w+|\w+ \+= (\d+))\) \{\n", re.MULTILINE
)
_ITERATIONS = re.compile(r"\bmsc_share\(\w+, \w+, (\d+)\)")
_BREAK = "\f\n"
"""Between the texts of a kernel: each begins with a line."""


@dataclass(frozen=True)
class _Code:
    """A kernel and its C as one text, in which parameters are `_p0`, `_p1`, ... and functions of parts `_f0`, ...

    No name of generated C begins so (`identifier`). `numbers` are all digits in the text.
    """

    symbol: str
    kernel: Kernel
    text: str
    numbers: tuple[str, ...]


def merge_kernels(kernels: Mapping[str, Kernel], functions: NameScope, prelude: Prelude) -> dict[str, Kernel]:
    """The kernels, of which those that differ in extents alone call one function."""
    alike: dict[str, list[_Code]] = {}
    for symbol, kernel in kernels.items():
        if any(parameter.buffer.open_strides for parameter in kernel.parameters):
            continue  # calls decide its extents already
        code = _code(symbol, kernel)
        alike.setdefault(_DIGITS.sub("0", code.text), []).append(code)
    made = dict(kernels)
    for codes in alike.values():
        for family in _families(codes):
            text, extents = _with_extents(family)
            if len(extents) <= MOST_EXTENTS:
                prelude.plain.add("merged")
                made |= _merged(family, text, extents, functions)
    return made


def _code(symbol: str, kernel: Kernel) -> _Code:
    own = _own_names(kernel)
    text = _WORD.sub(lambda word: own.get(word[0], word[0]), _BREAK.join(_texts(kernel)))
    return _Code(symbol, kernel, text, tuple(_DIGITS.findall(text)))


def _own_names(kernel: Kernel) -> dict[str, str]:
    """What stands for names that are a kernel's own."""
    parameters = {p.name: f"_p{k}" for k, p in enumerate(kernel.parameters)}
    parts = {part.name: f"_f{k}" for k, part in enumerate(kernel.parts)}
    return parameters | parts | {f"{name}_of": f"{other}_of" for name, other in parts.items()}


def _texts(kernel: Kernel) -> list[str]:
    """All that stands in a kernel's C but its name and its comment."""
    parts = (text for part in kernel.parts for text in (*(c.declaration for c in part.captures), part.lines))
    return [*(p.declaration for p in kernel.parameters), *kernel.sizes, *parts, kernel.body]


def _families(codes: Sequence[_Code]) -> list[list[_Code]]:
    """Codes that differ only in numbers that may, out of those that differ in numbers alone."""
    if len(codes) < FEWEST:
        return []
    text = codes[0].text
    places = {digits.start(): k for k, digits in enumerate(_DIGITS.finditer(text))}
    loops = list(_LOOP.finditer(text))
    innermost = [_Bounds(places[m.start(2)], places[m.start(3)], int(m[4] or 1)) for m in loops if _is_innermost(m)]
    bounds = {k for loop in innermost for k in (loop.first, loop.end)}
    fixed = [k for k in places.values() if k not in bounds | {places[start] for start in _free(text, loops)}]
    families: dict[tuple[str, ...], list[_Code]] = {}
    for code in codes:
        known = (text for loop in innermost for text in loop.known(code))
        families.setdefault((*(code.numbers[k] for k in fixed), *known), []).append(code)
    return [family for family in families.values() if _is_worth_it(family)]


def _is_worth_it(family: Sequence[_Code]) -> bool:
    return len(family) >= FEWEST and (len(family) - 1) * len(family[0].text) >= _SAVED_BYTES


@dataclass(frozen=True)
class _Bounds:
    """Which numbers of a text are the bounds of an innermost loop, and its step."""

    first: int
    end: int
    step: int

    def known(self, code: _Code) -> tuple[str, str]:
        """The bounds, if they are so near that the compiler unrolls the loop, for which it has to know them."""
        bounds = code.numbers[self.first], code.numbers[self.end]
        return bounds if (int(bounds[1]) - int(bounds[0])) // self.step <= UNROLLED else ("", "")


def _free(text: str, loops: Sequence[re.Match[str]]) -> set[int]:
    """Where numbers begin that may differ always."""
    spans = [match.span(k) for match in _ELEMENT.finditer(text) for k in (1, 2) if match[k]]
    spans += [match.span(1) for match in _ITERATIONS.finditer(text)]
    spans += [loop.span(k) for loop in loops if _has_loops(loop) and not _is_marked(loop) for k in (2, 3)]
    return {match.start() for span in spans for match in _INTEGER.finditer(text, *span)}


def _is_innermost(loop: re.Match[str]) -> bool:
    """Whether a loop has constant bounds and no other loop than unrolled ones in it, and is not marked itself."""
    return not _is_marked(loop) and not _has_loops(loop) and loop[2].isdecimal() and loop[3].isdecimal()


def _is_marked(loop: re.Match[str]) -> bool:
    """Whether the C says how a loop is unrolled."""
    return _line_before(loop.string, loop.start()).startswith("MSC_")


def _has_loops(loop: re.Match[str]) -> bool:
    """Whether a loop has others in it that are not unrolled."""
    body = loop.string[loop.end() : loop.string.index(f"\n{loop[1]}}}", loop.end())]
    return not all(_line_before(body, inner.start()).startswith("MSC_UNROLL") for inner in _LOOP.finditer(body))


def _line_before(text: str, place: int) -> str:
    return text[: max(place - 1, 0)].rpartition("\n")[2].strip()


def _merged(
    family: Sequence[_Code], text: str, extents: Mapping[str, tuple[int, ...]], functions: NameScope
) -> dict[str, Kernel]:
    """The kernels of a family as calls of one function, whose text has names for `extents`."""
    name = functions.fresh(f"{family[0].kernel.name}_merged")
    function = _function(family, text, [scalar(extent, INDEX_TYPE) for extent in extents], name)
    made = dict[str, Kernel]()
    for code, *values in zip(family, *extents.values(), strict=True):
        arguments = (*map(str, values), *(p.name for p in code.kernel.parameters), *code.kernel.sizes)
        call = wrap_prototype(f"    {name}(", arguments, ");\n")
        made[code.symbol] = replace(code.kernel, parts=(), body=call, merged=function)
    return made


def _with_extents(family: Sequence[_Code]) -> tuple[str, dict[str, tuple[int, ...]]]:
    """The first text with names in place of numbers that differ, and what these stand for in each kernel."""
    text = family[0].text
    taken = set(_WORD.findall(text))
    extents: dict[str, tuple[int, ...]] = {}
    pieces, end = list[str](), 0
    for k, digits in enumerate(_DIGITS.finditer(text)):
        values = tuple(int(code.numbers[k]) for code in family)
        if len(set(values)) > 1:
            expression = _expression(values, extents)
            if expression is None:
                expression = unique("n", taken)
                taken.add(expression)
                extents[expression] = values
            pieces += [text[end : digits.start()], _operand(expression, text, *digits.span())]
            end = digits.end()
    return "".join((*pieces, text[end:])), extents


def _expression(values: Sequence[int], extents: Mapping[str, tuple[int, ...]]) -> str | None:
    """Values as a multiple of an extent plus a constant, if there is such an extent."""
    for name, base in extents.items():
        other = next(k for k, value in enumerate(base) if value != base[0])
        factor, odd = divmod(values[other] - values[0], base[other] - base[0])
        rest = values[0] - factor * base[0]
        is_one = not odd and factor > 0 and rest >= 0
        if is_one and all(value == factor * b + rest for value, b in zip(values, base, strict=True)):
            product = name if factor == 1 else f"{factor} * {name}"
            return f"{product} + {rest}" if rest else product
    return None


def _operand(expression: str, text: str, begin: int, end: int) -> str:
    """The expression in place of a number: in parentheses unless it is a name, or all that stands there."""
    is_all = text[:begin].rstrip()[-1] in "[=<," and text[end] in "];)"
    return expression if is_all or _WORD.fullmatch(expression) else f"({expression})"


def _function(family: Sequence[_Code], text: str, extents: Sequence[Capture], name: str) -> MergedFunction:
    """The function of a family, from the text of its first kernel with extents."""
    first = family[0].kernel
    names = {other: own for own, other in _own_names(first).items()} | _parameter_names(family)
    texts = iter(_WORD.sub(lambda word: names.get(word[0], word[0]), text).split(_BREAK))
    declarations = [next(texts) for _ in first.parameters]
    sizes = [f"{INDEX_TYPE} {next(texts)}" for _ in first.sizes]
    parts = tuple(_part(part, [next(texts) for _ in part.captures], next(texts), extents) for part in first.parts)
    declared = (*(extent.declaration for extent in extents), *declarations, *sizes)
    differing = ", ".join(extent.name for extent in extents)
    opening = c_comment(f"Computes {len(family)} kernels, which differ in {differing}.")
    return MergedFunction(name, f"{opening}\n", declared, parts, with_captures(next(texts), extents))


def _part(part: LoopPart, declarations: Sequence[str], lines: str, extents: Sequence[Capture]) -> LoopPart:
    """A part that takes the extents too."""
    taken = [
        replace(capture, declaration=declaration)
        for capture, declaration in zip(part.captures, declarations, strict=True)
    ]
    words = set(_WORD.findall(" ".join((lines, *declarations))))
    unused = "".join(f"    (void){extent.name};\n" for extent in extents if extent.name not in words)
    return replace(part, captures=(*extents, *taken), lines=unused + with_captures(lines, extents))


def _parameter_names(family: Sequence[_Code]) -> dict[str, str]:
    """For each `_p0` a name, with what all kernels call it."""
    names = dict[str, str]()
    taken = set(_WORD.findall(family[0].text))
    for k, parameters in enumerate(zip(*(code.kernel.parameters for code in family), strict=True)):
        own = {p.name for p in parameters}
        plain = own if len(own) == 1 else {identifier(_DIGITS.sub("", name)) for name in own}
        hint = plain.pop() if len(plain) == 1 else "y" if parameters[0].written else "x"
        names[f"_p{k}"] = unique(hint, taken)
        taken.add(names[f"_p{k}"])
    return names
