"""One change of a kernel's text at a time, and what may come of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

HUGE = ("4611686018427387904", "9223372036854775807", "99999999999999999999")

ANY, SAME, REFUSED = "any", "same", "refused"
"""What an accepted mutant computes: anything, but the same for every timing; what the kernel computes; or nothing."""


@dataclass(frozen=True)
class Mutant:
    """A changed kernel: what was changed, the text, and what it may lead to."""

    what: str
    text: str
    allowed: str


_ORDER = re.compile(r"davinci\.(set_flag|wait_flag|pipe_barrier|ffts_cross_core_sync|wait_flag_dev)\b")
_EVENT = re.compile(r"(davinci\.(?:set|wait)_flag \w+ -> \w+, )(.+)$")
_PIPES = re.compile(r"(davinci\.(?:set|wait)_flag )(\w+) -> (\w+)")
_ALLOC = re.compile(r"(davinci\.alloc at )(\d+)( overlapping)?( : !davinci\.buffer<)(\w+), (\w+), (\d+)>")
_LOOP = re.compile(r"(loop\.for %\w+ = )(.+?)( to )(.+?)(?: step (\d+))?( \{)$")
_PARAMETER = re.compile(r"\b(\w+) = (\d+)(?=[,}])")
_OFFSET = re.compile(r"\[([^\]]*%\w+[^\]]*)\]")
_TYPES = {"f16": ("bf16", "f32"), "bf16": ("f16", "i32"), "f32": ("i32", "f16"), "i32": ("f32", "i16"), "i8": ("f16",)}


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a kernel."""
    lines = text.splitlines()

    def changed(k: int, line: str, what: str, allowed: str) -> Mutant:
        return Mutant(f"line {k + 1}: {what}", "\n".join([*lines[:k], line, *lines[k + 1 :]]), allowed)

    yield from _kinds(text)
    for k, line in enumerate(lines):
        if _ORDER.search(line):
            yield Mutant(f"line {k + 1}: no {line.strip()}", "\n".join(lines[:k] + lines[k + 1 :]), SAME)
            yield Mutant(f"line {k + 1}: twice {line.strip()}", "\n".join([*lines[:k], line, *lines[k:]]), SAME)
            for other in (k - 1, k + 1):
                if 0 < other < len(lines) - 1 and not lines[other].rstrip().endswith(("{", "}")):
                    swapped = list(lines)
                    swapped[k], swapped[other] = swapped[other], swapped[k]
                    yield Mutant(f"line {k + 1}: to line {other + 1}: {line.strip()}", "\n".join(swapped), SAME)
        for make in (_events, _places, _loops, _numbers, _offsets):
            for what, new, allowed in make(line):
                yield changed(k, new, what, allowed)


Change = tuple[str, str, str]


def _kinds(text: str) -> Iterator[Mutant]:
    head, _, rest = text.partition("\n")
    for old, new in (("cube", "vector"), ("vector", "cube"), ("mix", "cube"), ("mix", "vector")):
        if f" {old} " in head:
            yield Mutant(
                f"kind {old} to {new}",
                head.replace(f" {old} ", f" {new} ", 1) + "\n" + rest,
                ANY if old == "mix" else REFUSED,
            )
    for old, new in (("cube", "vector"), ("vector", "cube")):
        if f"davinci.section {old}" in rest:
            yield Mutant(
                f"section {old} to {new}", head + "\n" + rest.replace(f"section {old}", f"section {new}", 1), REFUSED
            )


def _events(line: str) -> Iterator[Change]:
    if found := _EVENT.search(line):
        for event, allowed in (("6", REFUSED), ("7", REFUSED), ("8", REFUSED), ("5", SAME), (HUGE[2], REFUSED)):
            yield f"event {event}", f"{line[: found.start()]}{found[1]}{event}", allowed
        yield "event + 1", f"{line[: found.start()]}{found[1]}{found[2]} + 1", SAME
    if found := _PIPES.search(line):
        yield "turned", f"{line[: found.start()]}{found[1]}{found[3]} -> {found[2]}{line[found.end() :]}", SAME


def _places(line: str) -> Iterator[Change]:
    if not (found := _ALLOC.search(line)):
        return

    def written(address: str, dtype: str = found[6], space: str = found[5]) -> str:
        kept = f"{found[1]}{address}{found[3] or ''}{found[4]}{space}, {dtype}, {found[7]}>"
        return line[: found.start()] + kept + line[found.end() :]

    address = int(found[2])
    for new in (address + 8, address + 64, max(0, address - 64), address + 2048, 10**9, HUGE[2]):
        if new != address:
            yield f"at {new}", written(str(new)), REFUSED if new in (address + 8, 10**9, HUGE[2]) else SAME
    for dtype in _TYPES.get(found[6], ()):
        yield f"of {dtype}", written(found[2], dtype), SAME


def _loops(line: str) -> Iterator[Change]:
    if not (found := _LOOP.search(line)):
        return
    start = line[: found.start()]
    step = f" step {found[5]}" if found[5] else ""

    def written(lower: str, upper: str, steps: str = step) -> str:
        return f"{start}{found[1]}{lower}{found[3]}{upper}{steps}{found[6]}"

    yield "one more", written(found[2], f"{found[4]} + 1"), ANY
    yield "one fewer", written(f"{found[2]} + 1", found[4]), ANY
    yield "to 10^12", written(found[2], "1000000000000"), REFUSED
    yield "from -10^12", written("-1000000000000", found[4]), REFUSED
    for huge in HUGE:
        yield f"to {huge}", written(found[2], huge), REFUSED
        yield f"step {huge}", written(found[2], found[4], f" step {huge}"), REFUSED


def _numbers(line: str) -> Iterator[Change]:
    if "davinci.alloc" in line or "davinci.kernel" in line:
        return
    for found in _PARAMETER.finditer(line):
        number = int(found[2])
        for new in (number + 1, 2 * number + 1, max(0, number - 1)):
            yield f"{found[1]} = {new}", f"{line[: found.start(2)]}{new}{line[found.end(2) :]}", ANY
        for new in ("-1", *HUGE):
            allowed = ANY if found[1] in ("high", "low", "offset") and new != HUGE[2] else REFUSED
            yield f"{found[1]} = {new}", f"{line[: found.start(2)]}{new}{line[found.end(2) :]}", allowed


def _offsets(line: str) -> Iterator[Change]:
    makers: tuple[tuple[str, Callable[[str], str]], ...] = (
        *((f"times {huge}", lambda place, huge=huge: f"({place}) * {huge}") for huge in HUGE),
        *((f"plus {huge}", lambda place, huge=huge: f"{place} + {huge}") for huge in (*HUGE, "1099511627776")),
    )
    for found in _OFFSET.finditer(line):
        for what, make in makers:
            yield f"[{found[1]}] {what}", f"{line[: found.start(1)]}{make(found[1])}{line[found.end(1) :]}", REFUSED
        yield f"[{found[1]}] + 16", f"{line[: found.start(1)]}{found[1]} + 16{line[found.end(1) :]}", ANY
