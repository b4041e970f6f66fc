"""A schedule tree as lines of text, and back. Indentation is nesting.

tree  ::= axis* block
axis  ::= `axis` NAME EXTENT `:` (`S`k`.`d)+             dimension d of statement k
block ::= place* prefetch* node*                         nodes run one after the other
place ::= `place` ARRAY (`,` ARRAY)* `in` SCOPE `partial`?    for as long as the block runs
prefetch ::= `prefetch` ARRAY `ahead` N `of` NAME         what a loop around reads N of its axis later
node  ::= `for` part (`,` part)*  block                  nested loops, the first outermost
| `head` NAME `to` N  block  `tail` NAME `from` N  block
| `run` (`S`k)+
part  ::= NAME (`tile` N)? (`parallel` (N | `from` N)? | `vector` | `unroll` | `pipeline` N | `intrinsic` UNIT)?
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from msc.poly.schedule_tree.nodes import (
    MARKS,
    Axis,
    Block,
    Cut,
    Loop,
    Mark,
    Node,
    Place,
    Prefetch,
    Run,
    ScheduleError,
    Tree,
    all_blocks,
    loops,
    walk,
)

INDENT = 2
"""Spaces by which a block is indented deeper than the line above it."""


def to_lines(tree: Tree) -> list[str]:
    """The tree as text. Loops that hold nothing but another loop share its line."""
    return [*map(_axis_line, tree.axes), *_block_lines(tree.body, "")]


def _axis_line(axis: Axis) -> str:
    return f"axis {axis.name} {axis.extent}: {' '.join(f'S{s}.{d}' for s, d in sorted(axis.dims.items()))}"


def _block_lines(block: Block, indent: str) -> Iterator[str]:
    for (scope, partial), places in groupby(block.places, key=lambda place: (place.scope, place.partial)):
        yield f"{indent}place {', '.join(place.array for place in places)} in {scope}{' partial' if partial else ''}"
    for prefetch in block.prefetches:
        yield f"{indent}prefetch {prefetch.array} ahead {prefetch.ahead} of {prefetch.axis}"
    for node in block.nodes:
        yield from _node_lines(node, indent)


def _node_lines(node: Node, indent: str) -> Iterator[str]:
    deeper = indent + " " * INDENT
    match node:
        case Run():
            yield f"{indent}run {' '.join(f'S{s}' for s in node.statements)}"
        case Cut():
            yield f"{indent}head {node.axis} to {node.at}"
            yield from _block_lines(node.head, deeper)
            yield f"{indent}tail {node.axis} from {node.at}"
            yield from _block_lines(node.tail, deeper)
        case Loop():
            parts = [_part(node)]
            body = node.body
            while len(body.nodes) == 1 and isinstance(body.nodes[0], Loop) and not body.clauses:
                parts.append(_part(body.nodes[0]))
                body = body.nodes[0].body
            yield f"{indent}for {', '.join(parts)}"
            yield from _block_lines(body, deeper)


def _part(loop: Loop) -> str:
    tile = "" if loop.tile is None else f" tile {loop.tile}"
    of_mark = {"pipeline": f" {loop.buffers}", "intrinsic": f" {loop.unit}"}.get(loop.mark, "")
    least = f" from {loop.least}" if loop.least else f" {loop.cores}" if loop.cores else ""
    return f"{loop.axis}{tile}{f' {loop.mark}{of_mark}{least}' if loop.mark else ''}"


def line_of(tree: Tree, number: int) -> str | None:
    """A line of the text that a tree was read from, without indentation; None if no part of the tree comes from it."""
    parts = ", ".join(_part(loop) for loop in loops(tree) if loop.line == number)
    others = (node for node in walk(tree.body) if node.line == number and not isinstance(node, Loop))
    found = [
        *(_axis_line(axis) for axis in tree.axes if axis.line == number),
        *(line for block in all_blocks(tree.body) for line in _block_lines(_clauses_of(block, number), "")),
        *([f"for {parts}"] if parts else []),
        *(next(_node_lines(node, "")) for node in others),
    ]
    return found[0] if found else None


def _clauses_of(block: Block, number: int) -> Block:
    """The places and prefetches of a block that come from one line."""
    places = tuple(place for place in block.places if place.line == number)
    return Block((), places, tuple(prefetch for prefetch in block.prefetches if prefetch.line == number))


def from_lines(lines: Sequence[str]) -> Tree:
    """The tree of a text, each node with the number of its line. Raises ScheduleError for other text."""
    read = [_read(text, number) for number, text in enumerate(lines, 1) if text.strip()]
    count = next((k for k, line in enumerate(read) if line.word != "axis"), len(read))
    axes = tuple(_axis(line) for line in read[:count])
    body, rest = _block(read[count:], 0, 0)
    if rest:
        raise _unexpected_indent(rest[0], 0)
    return Tree(axes, body)


@dataclass(frozen=True)
class _Line:
    number: int
    indent: int
    text: str

    @property
    def word(self) -> str:
        return self.text.split(maxsplit=1)[0]


def _read(text: str, number: int) -> _Line:
    stripped = text.strip(" ")
    if not stripped.isprintable():
        raise ScheduleError("indentation is spaces, and a line contains no control characters", number)
    return _Line(number, len(text) - len(text.lstrip(" ")), stripped)


_AXIS = re.compile(r"axis (\w+) (\d{1,18}):((?: S\d{1,9}\.\d{1,9})+)", re.ASCII)
_PLACE = re.compile(r"place (\w+(?: ?, ?\w+)*) in (\w+)( partial)?", re.ASCII)
_PREFETCH = re.compile(r"prefetch (\w+) ahead (\d{1,18}) of (\w+)", re.ASCII)
_PARALLEL = r"parallel from ([1-9]\d{0,17})|parallel ([1-9]\d{0,5})"
_MARK = rf"{_PARALLEL}|({'|'.join(MARKS)})|(pipeline) ([1-9]\d{{0,3}})|(intrinsic) (\w+)"
_PART = re.compile(rf"(\w+)(?: tile (\d{{1,18}}))?(?: (?:{_MARK}))?", re.ASCII)
_PART_FORM = "NAME [tile N] [parallel | parallel N | parallel from N | vector | unroll | pipeline N | intrinsic UNIT]"
_HEAD = re.compile(r"head (\w+) to (\d{1,18})", re.ASCII)
_TAIL = re.compile(r"tail (\w+) from (\d{1,18})", re.ASCII)
_RUN = re.compile(r"run((?: S\d{1,9})+)", re.ASCII)
_DEEPEST = 64
"""The deepest nesting of blocks that is read: more is a mistake."""


def _matched(pattern: re.Pattern[str], text: str, number: int, form: str) -> tuple[str, ...]:
    match = pattern.fullmatch(" ".join(text.split()))
    if match is None:
        raise ScheduleError(f"{text.strip()[:80]!r} is not of the form '{form}'", number)
    return cast("tuple[str, ...]", match.groups())


def _axis(line: _Line) -> Axis:
    if line.indent:
        raise ScheduleError("an axis is not indented", line.number)
    name, extent, dims = _matched(_AXIS, line.text, line.number, "axis NAME EXTENT: S0.0 S1.0 ...")
    pairs = [_pair(word) for word in dims.split()]
    if len({s for s, _ in pairs}) < len(pairs):
        raise ScheduleError(f"axis {name} runs over a statement twice", line.number)
    return Axis(name, int(extent), dict(pairs), line.number)


def _pair(word: str) -> tuple[int, int]:
    statement, _, dimension = word.removeprefix("S").partition(".")
    return int(statement), int(dimension)


def _block(lines: Sequence[_Line], indent: int, depth: int) -> tuple[Block, Sequence[_Line]]:
    """The block that begins with the first line, if that is indented as it should be, and the lines after it."""
    if depth > _DEEPEST:
        raise ScheduleError(f"more than {_DEEPEST} nested blocks", lines[0].number)
    places: list[Place] = []
    prefetches: list[Prefetch] = []
    nodes: list[Node] = []
    while lines and lines[0].indent == indent:
        line = lines[0]
        if line.word == "place":
            if nodes or prefetches:
                raise ScheduleError("places are at the beginning of their block", line.number)
            arrays, scope, partial = _matched(_PLACE, line.text, line.number, "place ARRAY, ARRAY in SCOPE partial")
            places += [Place(array.strip(), scope, bool(partial), line.number) for array in arrays.split(",")]
            lines = lines[1:]
        elif line.word == "prefetch":
            if nodes:
                raise ScheduleError("prefetches precede the nodes of their block", line.number)
            array, ahead, axis = _matched(_PREFETCH, line.text, line.number, "prefetch ARRAY ahead N of NAME")
            prefetches.append(Prefetch(array, int(ahead), axis, line.number))
            lines = lines[1:]
        else:
            node, lines = _node(lines, depth)
            nodes.append(node)
    if lines and lines[0].indent > indent:
        raise _unexpected_indent(lines[0], indent)
    return Block(tuple(nodes), tuple(places), tuple(prefetches)), lines


def _unexpected_indent(line: _Line, around: int) -> ScheduleError:
    message = f"this line is indented deeper than its block: by {line.indent} spaces instead of {around}"
    return ScheduleError(message, line.number)


def _node(lines: Sequence[_Line], depth: int) -> tuple[Node, Sequence[_Line]]:
    line, rest = lines[0], lines[1:]
    match line.word:
        case "run":
            (names,) = _matched(_RUN, line.text, line.number, "run S0 S1 ...")
            return Run(tuple(int(word.removeprefix("S")) for word in names.split()), line.number), rest
        case "for":
            body, rest = _inside(line, rest, depth)
            return _loops(line, body), rest
        case "head":
            return _cut(line, rest, depth)
        case "tail":
            raise ScheduleError("a tail follows its head directly", line.number)
        case "axis":
            raise ScheduleError("axes precede the loops", line.number)
        case word:
            message = f"a line begins with axis, for, place, prefetch, head, tail or run, not with {word[:40]!r}"
            raise ScheduleError(message, line.number)


def _inside(line: _Line, rest: Sequence[_Line], depth: int) -> tuple[Block, Sequence[_Line]]:
    if not rest or rest[0].indent <= line.indent:
        raise ScheduleError("this line has no indented lines below it", line.number)
    return _block(rest, rest[0].indent, depth + 1)


def _loops(line: _Line, body: Block) -> Loop:
    texts = line.text.removeprefix("for").split(",")
    for text in reversed(texts):
        name, tile, least, cores, word, pipeline, count, intrinsic, unit = _matched(
            _PART, text, line.number, _PART_FORM
        )
        mark = "parallel" if least or cores else cast(Mark, word or pipeline or intrinsic or "")
        size = int(tile) if tile else None
        loop = Loop(name, body, size, mark, line.number, int(count or 1), unit or "", int(least or 0), int(cores or 0))
        body = Block((loop,))
    return loop  # pyright: ignore[reportPossiblyUnboundVariable] - split gives at least one


def _cut(line: _Line, rest: Sequence[_Line], depth: int) -> tuple[Cut, Sequence[_Line]]:
    axis, at = _matched(_HEAD, line.text, line.number, "head NAME to N")
    head, rest = _inside(line, rest, depth)
    after = rest[0] if rest else None
    if after is None or after.indent != line.indent or after.word != "tail":
        raise ScheduleError(f"'tail {axis} from {at}' is missing after it", line.number)
    if _matched(_TAIL, after.text, after.number, "tail NAME from N") != (axis, at):
        raise ScheduleError(f"its head ends elsewhere: 'tail {axis} from {at}'", after.number)
    tail, rest = _inside(after, rest[1:], depth)
    return Cut(axis, int(at), head, tail, line.number), rest
