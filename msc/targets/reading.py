"""Reads machine files: TOML text to `Machine`, with the location of each error.

Tables are those of `msc.targets.machine`. `base` names a machine of msc whose figures a file changes key by key, and
`without` the tables of the base that the file omits. Files of users may be in any folder. The tables of `memory` are
in order, nearest first.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import Any, NoReturn, cast, get_args, get_origin, get_type_hints

from msc.support.diagnostics import Diagnostic, Location, MscError, did_you_mean
from msc.support.files import read_source
from msc.targets.abilities import BITS, LANES, MEMORY, PLAIN, REGISTER, Unit
from msc.targets.machine import FIGURES, Machine

_NAMED = ("memory", "unit", "scratchpad", "board")
"""Tables whose entries are named tables."""
_NEEDED = ("memory", *(table for table in FIGURES if table not in _NAMED))
_OWN = ("aliases", "vendor", "families", "models")
"""Keys that a file does not take from its base."""
_GIVEN_APART = ("name", "levels", "instructions", "scratchpads", "boards", *FIGURES)
_NARROWEST_UNIT = 64
"""Bits of the widest element, which a narrower unit could not compute at once."""

Figures = dict[str, Any]
"""A file's figures as TOML gives them, without those of its base."""


def read_machine(path: Path, figures_of: Callable[[str], Figures], bases: tuple[str, ...]) -> Machine:
    """The machine of a file; `figures_of` gives the figures of one of the `bases` by its name.

    Raises MSC0001 to MSC0003, and MSC0511 if it is no machine file.
    """
    text = read_source(path)
    figures = parse(text, str(path))
    base = figures.pop("base", None)
    if base is not None and base not in bases:
        Source(text, str(path)).fail(
            f"there is no machine '{base}' to begin with", ("base",), help=did_you_mean(str(base), bases)
        )
    source = Source(text, str(path))
    return machine_of(path.stem, over_base(figures, figures_of(base) if base is not None else {}, source), source)


def over_base(figures: Figures, under: Figures, source: Source | None = None) -> Figures:
    """The figures of a file over those `under` it, without the tables that it leaves out. Raises MSC0511."""
    reduced = _reduced(under, figures.pop("without", []), source or Source("", ""))
    return merged(reduced, figures)


def _reduced(figures: Figures, without: object, source: Source) -> Figures:
    """Figures without some of their named tables, such as `memory.L3`. Raises MSC0511 for an unknown table."""
    known = [f"{table}.{name}" for table in _NAMED for name in figures.get(table, {})]
    wanted = cast("list[object]", without) if isinstance(without, list) else [without]
    for name in wanted:
        if name not in known:
            advice = did_you_mean(str(name), known) or _listed(known)
            source.fail(f"its base has no table {name!r} to be without", ("without",), help=advice)
    return {
        table: {name: each for name, each in values.items() if f"{table}.{name}" not in wanted}
        if table in _NAMED
        else values
        for table, values in figures.items()
    }


def parse(text: str, file: str, code: str = "MSC0511") -> Figures:
    """The tables of a file's text. Raises the code if it is not TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        message = str(error).partition(" (at ")[0]
        line, column = (int(place[1]), int(place[2])) if place else (len(text.splitlines()) or 1, 1)
        source = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
        diagnostic = Diagnostic(code, f"not TOML: {message}", Location(file, line, column), source)
        raise MscError(diagnostic) from error


def merged(under: Figures, over: Figures) -> Figures:
    """The figures `under` replaced by those `over`, tables key by key; names and CPUs are not inherited."""
    both = {key: value for key, value in under.items() if key not in _OWN}
    for key, value in over.items():
        inside = both.get(key)
        nested = isinstance(inside, dict) and isinstance(value, dict)
        both[key] = merged(cast(Figures, inside), cast(Figures, value)) if nested else value
    return both


def machine_of(name: str, figures: Figures, source: Source) -> Machine:
    """The machine that figures describe. Raises MSC0511."""
    reader = Reader(source)
    known = {f.name for f in fields(Machine)} - set(_GIVEN_APART)
    reader.check_names(figures, known | {*FIGURES, "base", "without"}, ())
    for table in _NEEDED:
        if not figures.get(table):
            source.fail(f"the machine has no table '{table}'", (), help='base = "generic" gives what a file does not')
    top = {key: figures[key] for key in figures if key in known}
    levels = reader.named(figures, "memory")
    tables = {k: reader.table(figures[k], FIGURES[k], (k,)) for k in figures if k in FIGURES and k not in _NAMED}
    reader.check_given(figures, Machine, (), apart=_GIVEN_APART)
    given = reader.values(top, Machine, (), apart=_GIVEN_APART)
    units, pads, boards = (reader.named(figures, table) for table in ("unit", "scratchpad", "board"))
    machine = Machine(name=name, levels=levels, instructions=units, scratchpads=pads, boards=boards, **tables, **given)
    _check(machine, source)
    return machine


def _check(machine: Machine, source: Source) -> None:
    """Raises MSC0511 for figures that contradict each other."""
    if len(machine.levels) < 2:
        source.fail("a machine has a cache, and memory behind it", ("memory",))
    for level in machine.levels:
        if bool(level.bytes) is (level is machine.memory):
            message = "the last table of memory has no bytes, as it is without a limit; all before it have"
            source.fail(message, ("memory", level.name, "bytes"))
        if level.ways and level.bytes % (level.ways * level.line):
            message = f"{level.bytes} bytes are not a multiple of {level.ways} ways of {level.line}-byte lines"
            source.fail(message, ("memory", level.name, "ways"))
    for near, far in pairwise(machine.caches):
        if near.bytes > far.bytes:
            source.fail(f"{far.name} is smaller than {near.name}; the nearest is first", ("memory", far.name, "bytes"))
    if machine.vectors.bits & (machine.vectors.bits - 1):
        source.fail("bits of a vector are a power of two", ("vectors", "bits"))
    _check_execution_unit(machine, source)
    for table, size in (
        *((("memory", each.name, "line"), each.line) for each in machine.levels),
        (("page",), machine.page),
    ):
        if size & (size - 1):
            source.fail(f"{size} bytes are not a power of two", table)
    if machine.stack_of_places <= 0:
        message = f"a stack of {machine.stack} bytes has no room for four times {machine.register_file} of registers"
        source.fail(message, ("stack",))
    _check_scratchpads(machine, source)
    _check_units(machine, source)


def _check_execution_unit(machine: Machine, source: Source) -> None:
    bits, unit = machine.vectors.bits, machine.vectors.unit
    if unit and (unit & (unit - 1) or not _NARROWEST_UNIT <= unit <= bits):
        message = f"an execution unit is 0 or a power of two from {_NARROWEST_UNIT} to the {bits} bits of a register"
        source.fail(f"{message}, not {unit}", ("vectors", "unit"))


def _check_scratchpads(machine: Machine, source: Source) -> None:
    """Scratchpads have names of their own, and a level of memory fills each, directly or through others."""
    levels = [level.name for level in machine.levels]
    _check_names("scratchpad", machine.scopes, {*PLAIN.scopes, *levels}, source)
    beside = {pad.name: pad.beside for pad in machine.scratchpads}
    for pad in machine.scratchpads:
        if pad.align & (pad.align - 1):
            source.fail(f"{pad.align} bytes are not a power of two", ("scratchpad", pad.name, "align"))
        _check_memory(pad.beside, [*levels, *beside], ("scratchpad", pad.name, "beside"), source)
    for name in beside:
        passed, last = {name}, beside[name]
        while last in beside and last not in passed:
            passed.add(last)
            last = beside[last]
        if last not in levels:
            source.fail(f"no level of memory fills {name}: it is beside itself", ("scratchpad", name, "beside"))


def _check_units(machine: Machine, source: Source) -> None:
    _check_names("unit", [unit.name for unit in machine.instructions], (), source)
    for unit in machine.instructions:
        path = ("unit", unit.name)
        for name, operand in zip("abc", unit.operands, strict=True):
            if operand.place not in (REGISTER, MEMORY):
                _check_memory(operand.place, machine.scopes, (*path, name), source)
        _check_definition(unit, path, source)
        if unit.in_registers:
            _check_lanes(unit, path, source)
        elif any(operand.place == REGISTER for operand in unit.operands):
            source.fail("either all operands are in registers, or none", (*path, "a"))


_SUM = re.compile(r"\s*c\[([^]]*)\]\s*\+=\s*a\[([^]]*)\]\s*\*\s*b\[([^]]*)\]\s*")


def _check_definition(unit: Unit, path: tuple[str, ...], source: Source) -> None:
    """It is a product of matrices, with the indices of each in any order; in registers, one of lanes."""
    found, wanted = _SUM.fullmatch(unit.computes), ("n", "nk", "nk") if unit.in_registers else ("mn", "mk", "kn")
    indices = [] if found is None else [sorted(index.strip() for index in part.split(",")) for part in found.groups()]
    if indices != [sorted(each) for each in wanted]:
        form = LANES if unit.in_registers else "c[m, n] += a[m, k] * b[k, n], in any order of the indices of each"
        source.fail(f"a unit on {unit.a.place} computes {form}", (*path, "computes"))


def _check_lanes(unit: Unit, path: tuple[str, ...], source: Source) -> None:
    """An instruction on registers: a power of two of lanes, each with k terms of both factors."""
    if unit.shape.m > 1 or unit.shape.n & (unit.shape.n - 1):
        source.fail("in registers m is 1 and n a power of two", (*path, "shape"))
    terms = {unit.shape.k * BITS[type_] for type_ in (*unit.a.types, *unit.b.types)}
    if terms != {32} or {BITS[type_] for type_ in unit.c.types} != {32}:
        source.fail("in registers sums have 32 bits, and so have k factors together", (*path, "shape"))


_ARRAY = re.compile(r"(in|out|t)\d+", re.ASCII)
"""Names of the arrays of a kernel in its schedule."""


def _check_names(table: str, names: Iterable[str], taken: Collection[str], source: Source) -> None:
    """Names in schedules are words, and each is unique."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            source.fail(f"a schedule names '{name}': it consists of letters, digits and _", (table, name))
        if name in taken or _ARRAY.fullmatch(name):
            what = "a memory" if name in taken else "an array of a kernel"
            source.fail(f"{name} is the name of {what} already", (table, name))


def _check_memory(name: str, known: Sequence[str], path: tuple[str, ...], source: Source) -> None:
    if name not in known:
        kind = "memory" if path[-1] == "beside" else "scratchpad"
        source.fail(f"there is no {kind} '{name}'", path, help=did_you_mean(name, known) or _listed(known))


class Source:
    """The text of a file, where its keys stand, and the code of what is wrong with it."""

    def __init__(self, text: str, file: str, code: str = "MSC0511") -> None:
        self._lines, self._file, self._code = text.splitlines(), file, code

    def fail(self, message: str, path: tuple[str, ...], *, help: str | None = None) -> NoReturn:
        """Raise the code at a key; at its table if a base has the key, at the first line if it has the table, too."""
        line, column, length = self._place(path)
        text = self._lines[line - 1] if self._lines else ""
        raise MscError(Diagnostic(self._code, message, Location(self._file, line, column), text, length, help=help))

    def _place(self, path: tuple[str, ...]) -> tuple[int, int, int]:
        found, table, entries = (1, 1, 1), tuple[str, ...](), dict[str, int]()
        for number, line in enumerate(self._lines, 1):
            header, key = re.match(r"\s*\[(\[?)([^\[\]]+)\]", line), re.match(r"\s*([\w.\"-]+)\s*=", line)
            if header:
                table = _keys(header[2])
                if header[1]:  # an entry of a list of tables, which its number names
                    entries[table[0]] = entries.get(table[0], -1) + 1
                if table[0] in entries:
                    table = (table[0], str(entries[table[0]]), *table[1:])
                if table == path[: len(table)]:
                    found = number, header.start(2) + 1, len(header[2])
            elif key:
                named = (*table, *_keys(key[1]))
                if named == path:
                    return number, key.start(1) + 1, len(key[1])
                if len(named) > len(table) and named == path[: len(named)]:  # a table within the line
                    found = number, key.start(1) + 1, len(key[1])
        return found


def _keys(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip('"') for part in text.split("."))


def _listed(names: Sequence[str]) -> str:
    return f"there are: {', '.join(names)}" if names else "there are none"


class Reader:
    """Values of a file of a `noun` by the types of the dataclasses that they go into; `tables` are those with names."""

    def __init__(self, source: Source, tables: Mapping[str, type] = FIGURES, noun: str = "machine") -> None:
        self._source, self._tables, self._noun = source, tables, noun

    def named(self, figures: Figures, table: str) -> tuple[Any, ...]:
        """The tables of a table, in order."""
        found = figures.get(table, {})
        if not isinstance(found, dict):
            self._source.fail(f"'{table}' is a table of tables: [{table}.NAME]", (table,))
        return tuple(self._one_named(table, name, values) for name, values in cast(Figures, found).items())

    def _one_named(self, table: str, name: str, values: object) -> Any:
        if not isinstance(values, dict):
            self._source.fail(f"'{table}' is a table of tables: [{table}.NAME]", (table, name))
        return self.table({"name": name, **cast(Figures, values)}, self._tables[table], (table, name))

    def table(self, values: object, class_: type, path: tuple[str, ...]) -> Any:
        """An instance of a class."""
        if not isinstance(values, dict):
            self._source.fail(f"'{path[-1]}' is a table: [{path[-1]}]", path)
        figures = cast(Figures, values)
        known = [f.name for f in fields(class_)]
        self.check_names(figures, set(known), path)
        self.check_given(figures, class_, path)
        return class_(**self.values(figures, class_, path))

    def check_given(self, figures: Figures, class_: type, path: tuple[str, ...], apart: tuple[str, ...] = ()) -> None:
        """Raise MSC0511 for a missing figure without a default."""
        for f in fields(class_):
            if f.default is MISSING and f.name not in figures and f.name not in apart:
                where = f"[{'.'.join(path)}]" if path else f"the {self._noun}"
                self._source.fail(f"{where} has no {f.name}", path, help=f.metadata["text"])

    def check_names(self, figures: Figures, known: set[str], path: tuple[str, ...]) -> None:
        """Raise MSC0511 for an unknown key."""
        for name in figures:
            if name not in known:
                where = f"[{'.'.join(path)}]" if path else f"a {self._noun}"
                advice = did_you_mean(name, known) or _listed(sorted(known - {"name"}))
                self._source.fail(f"{where} has no '{name}'", (*path, name), help=advice)

    def values(self, figures: Figures, class_: type, path: tuple[str, ...], apart: tuple[str, ...] = ()) -> Figures:
        """The given values of a class's fields."""
        types, known = get_type_hints(class_), {f.name: f for f in fields(class_) if f.name not in apart}
        return {
            name: self._value(value, types[name], known[name], (*path, name))
            for name, value in figures.items()
            if name in known
        }

    def _value(self, value: object, type_: Any, known: Field[Any], path: tuple[str, ...]) -> Any:
        if is_dataclass(type_):
            return self.table(value, cast(type, type_), path)
        read = _converted(value, type_)
        if read is None:
            self._source.fail(f"{known.name} is {_wanted(type_)}, not {value!r}", path, help=known.metadata.get("text"))
        least, most = known.metadata.get("least", 0), known.metadata.get("most", inf)
        numbers = cast("tuple[object, ...]", read) if isinstance(read, tuple) else (read,)
        for number in numbers:
            if isinstance(number, int | float) and not (least <= number <= most and isfinite(number)):
                limits = f"{least} to {most}" if most < inf else f"{least} or more" if isfinite(number) else "finite"
                self._source.fail(f"{known.name} is {number}; it is {limits}", path, help=known.metadata["text"])
        return cast(object, read)


def _converted(value: object, type_: Any) -> Any:
    """The value as a type; None if it has another."""
    if get_origin(type_) in (tuple, frozenset):
        item = get_args(type_)[0]
        items = [_converted(v, item) for v in cast(list[object], value)] if isinstance(value, list) else [None]
        return None if any(i is None for i in items) else get_origin(type_)(items)
    if get_args(type_):
        return value if value in get_args(type_) else None
    if type_ is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return value if type(value) is type_ else None


def _wanted(type_: Any) -> str:
    if get_origin(type_) in (tuple, frozenset):
        return f"a list, each of which is {_wanted(get_args(type_)[0])}"
    if get_args(type_):
        return " or ".join(f'"{choice}"' for choice in get_args(type_))
    return {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}[type_]
