"""A scheduling plan: the decisions for one kernel, as readable lines. Everything else about a schedule follows from it.

    first S4 over i0 extent 2: S4.0              groups before all others: what fills a border
    oc extent 12 tile 6 parallel: S0.1 S1.1 S2.1         a member of the outer band: dimension 1 of each statement
    ow extent 28 tile 28 vector: S0.3 S1.3 S2.3          tiles are moved below the inner loops, as point loops
    do S0                                                then groups of statements, in order;
    do S1 over ic extent 6: S1.4, kh extent 5: S1.5      each under inner loops of its own
    do S2

Members of the band share an iteration among all statements and carry no dependence. A tile of 1 makes a plain loop; a
tile of the whole extent leaves only the point loop. At most one loop of a statement is `vector`.

A group that the inner members of the band are no loops of runs in front of them, in each iteration of the outer ones:

    n extent 128 tile 64 vector: S0.1 S1.1 S2.1          for each panel of columns
    m extent 12 tile 6: S1.0 S2.0
    do S0 over k extent 9: S0.0                          copy it,
    do S1                                                and use the copy for all rows
    do S2 over k extent 9: S2.2

What is left of a vector loop whose extent fills no whole vectors may run as vectors along another member's tile:

    oc extent 16 tile 8: S0.1 S1.1
    place extent 49 tile 49 vector rest 1 along oc: S0.2 S1.2      8 rows of 48 places, and a column of 8 rows
    do S0
    do S1 over k extent 9: S1.3

or along an inner loop, in which all else of its group runs first; other groups run it along their last tile of rows:

    n extent 33 tile 33 vector rest 1 along k: S0.1 S1.1
    m extent 28 tile 14: S0.0 S1.0
    do S0
    do S1 over k extent 9: S1.2                14 rows of 32 columns, then 14 sums along k of the last column
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A loop shared by statements: `dims[k]` is the dimension of statement k that it runs over.

    The last `rest` iterations of a vector loop, in its last tile, run as vectors along the tile of the member or the
    inner loop named `along` instead.
    """

    name: str
    extent: int
    dims: Mapping[int, int]
    tile: int = 1
    vector: bool = False
    parallel: bool = False
    rest: int = 0
    along: str = ""


@dataclass(frozen=True)
class Group:
    """Statements that run together, innermost, under `inner` loops."""

    statements: tuple[int, ...]
    inner: tuple[Member, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The decisions for one kernel: `first` runs before the band and outside it."""

    band: tuple[Member, ...]
    groups: tuple[Group, ...]
    first: tuple[Group, ...] = ()

    @property
    def points(self) -> tuple[Member, ...]:
        """Band members with a point loop, in nesting order: the vector one is innermost."""
        tiled = [m for m in self.band if m.tile > 1]
        return tuple(sorted(tiled, key=lambda m: m.vector))

    @property
    def sums(self) -> bool:
        """Whether groups run loops below the tiles, so that what a tile computes should stay in registers."""
        return any(group.inner for group in self.groups)


def to_lines(plan: Plan) -> list[str]:
    """The plan as text, a line a decision."""
    before = (_group_line(g, "first") for g in plan.first)
    return [*before, *(_member_line(m) for m in plan.band), *(_group_line(g, "do") for g in plan.groups)]


def _member_line(member: Member) -> str:
    words = [member.name, f"extent {member.extent}"]
    if member.tile > 1:
        words.append(f"tile {member.tile}")
    words += ["parallel"] * member.parallel + ["vector"] * member.vector
    if member.rest:
        words.append(f"rest {member.rest} along {member.along}")
    return f"{' '.join(words)}: {_dims_text(member)}"


def _dims_text(member: Member) -> str:
    return " ".join(f"S{s}.{d}" for s, d in sorted(member.dims.items()))


def _group_line(group: Group, word: str) -> str:
    text = f"{word} " + " ".join(f"S{s}" for s in group.statements)
    if group.inner:
        text += " over " + ", ".join(_member_line(m) for m in group.inner)
    return text


_MEMBER = re.compile(
    r"^(\w+) extent (\d+)(?: tile (\d+))?( parallel)?( vector)?(?: rest (\d+) along (\w+))?: ([S\d. ]*)$"
)


def from_lines(lines: Sequence[str]) -> Plan:
    """The inverse of `to_lines`; raises ValueError naming the line that is not one."""
    band: list[Member] = []
    groups: list[Group] = []
    first: list[Group] = []
    for line in lines:
        if line.startswith("first "):
            first.append(_read_group(line.removeprefix("first ")))
        elif line.startswith("do "):
            groups.append(_read_group(line.removeprefix("do ")))
        else:
            band.append(_read_member(line))
    return Plan(tuple(band), tuple(groups), tuple(first))


def _read_group(text: str) -> Group:
    statements, _, loops = text.partition(" over ")
    inner = tuple(_read_member(text) for text in loops.split(", ")) if loops else ()
    return Group(tuple(int(word.removeprefix("S")) for word in statements.split()), inner)


def _read_member(text: str) -> Member:
    match = _MEMBER.match(text)
    if match is None:
        raise ValueError(f"not a line of a schedule: {text!r}")
    name, extent, tile, parallel, vector, rest, along, dims = match.groups()
    pairs = (word.removeprefix("S").split(".") for word in dims.split())
    over = {int(s): int(d) for s, d in pairs}
    return Member(name, int(extent), over, int(tile or 1), bool(vector), bool(parallel), int(rest or 0), along or "")
