"""Transforms of pictures as one function over a block of rows, in `ms.compute` statements.

What moves pixels is where each pixel of the result comes from: numbers of rows and columns, for each picture of a block
its own if they are random. Moves one after the other are one move, composed before the pixels are touched. A linear
resize takes two such places and their weights; it may begin with pictures that differ in size, each of them alone.
What changes a byte alone is a table of 256 values that the transform
itself fills. Places, weights and tables are arguments of the function: pipelines of one form and size share its code,
and its results have the bits of the transforms, whose numbers they are.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from msc.dataset.runs import Draws
from msc.dataset.values import Array
from msc.frontend.modes import Wishes

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

WISHES = Wishes(target="cpu", threads=1)
"""What pictures are compiled for: threads take blocks, not parts of them."""

Places: TypeAlias = "Array | None"
"""Of each place of a result along an axis: that of the picture [size] or, of each row, [rows, size]; -1 is outside.

None is each place itself.
"""
Finding: TypeAlias = Callable[[Draws], tuple[Places, Places]]
"""From the draws of a block to the places along height and width."""
Shares: TypeAlias = tuple[Array, Array, Array]
"""Two places of each place along an axis, and what both count [..., size, 2]."""
Extents: TypeAlias = "tuple[int | Array, int | Array]"
"""Height and width: of all pictures, or of each row [rows, 1]."""
Blending: TypeAlias = Callable[[Draws, Extents], tuple[Shares, Shares]]
"""From the draws of a block, and the sizes of its pictures, to the shares along height and width."""
Rectangle: TypeAlias = tuple[int, int, int, int]
"""Left, top, right and bottom of a part of a picture, as Pillow has them."""


class Unplanned(Exception):
    """A transform that has no form over a block here; the message says why."""


def behind(later: Places, earlier: Places) -> Places:
    """Places of places."""
    if later is None or earlier is None:
        return earlier if later is None else later
    if earlier.ndim == 1:
        found = earlier[later]
    else:
        found = np.take_along_axis(earlier, np.broadcast_to(later, (len(earlier), later.shape[-1])), 1)
    return np.where(later < 0, -1, found)


def _behind_shares(later: Places, shares: Shares) -> Shares:
    """The shares of places of a result."""
    if later is None:
        return shares
    first, second, counts = shares
    found = [behind(later, part) for part in (first, second, counts[..., 0], counts[..., 1])]
    assert found[0] is not None
    assert found[1] is not None
    return found[0], found[1], np.stack([part for part in found[2:] if part is not None], -1)


@dataclass
class _Pass:
    """Pixels moved, then either blended, and moved again, or looked up in a table."""

    size: tuple[int, int, int]
    dtype: np.dtype[Any]
    moves: list[tuple[Any, Finding]] = field(default_factory=list[tuple[Any, Finding]])
    fill: Array | None = None
    channels: Array | None = None
    blend: tuple[Any, Blending] | None = None
    extents: tuple[int, int] = (1, 1)
    """Height and width of what is blended, if pictures do not differ in size."""
    blended: list[tuple[Any, Finding]] = field(default_factory=list[tuple[Any, Finding]])
    """How what is blended is moved."""
    table: Array | None = None

    @property
    def changes(self) -> bool:
        return bool(self.moves) or any(v is not None for v in (self.fill, self.channels, self.blend, self.table))

    def shares(self, draws: Callable[[Any], Draws], extents: Extents) -> tuple[Shares, Shares]:
        """What is blended of pictures of some sizes, along height and width."""
        assert self.blend is not None
        vertical, horizontal = self.blend[1](draws(self.blend[0]), extents)
        rows, columns = _moved(self.blended, draws)
        return _behind_shares(rows, vertical), _behind_shares(columns, horizontal)

    def arrays(self, draws: Callable[[Any], Draws]) -> list[Array]:
        """What the statements read beside pixels, in the order in which `_Writer` names it."""
        rows, columns = _moved(self.moves, draws)
        found: list[Places] = []
        if self.blend is None:
            found += [rows, columns, self.fill]
        else:
            vertical, horizontal = self.shares(draws, self.extents)
            for places, (first, second, counts) in ((columns, horizontal), (rows, vertical)):
                found += [behind(first, places), behind(second, places), counts[..., 0], counts[..., 1]]
        found += [self.channels, self.table]
        exact = (self.fill, self.table)
        return [
            np.ascontiguousarray(v if any(v is e for e in exact) else v.astype(np.int32, copy=False))
            for v in found
            if v is not None
        ]


def _moved(moves: Sequence[tuple[Any, Finding]], draws: Callable[[Any], Draws]) -> tuple[Places, Places]:
    """The places along height and width of moves one after the other."""
    rows: Places = None
    columns: Places = None
    for key, find in moves:
        more = find(draws(key))
        rows, columns = behind(more[0], rows), behind(more[1], columns)
    return rows, columns


class Picture:
    """What is planned for the pictures [height, width] or [height, width, channels] of a column.

    `key` names the function that is planned, for its draws. Methods raise Unplanned for what cannot be planned.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], *, differ: bool = False) -> None:
        self.differ = differ
        """Whether pictures differ in size, so far; the size says nothing then."""
        self.began_unlike = False
        if len(shape) not in (2, 3) or dtype.kind not in "uif" or dtype == np.float16 or 0 in shape:
            raise Unplanned(f"{dtype} of shape {list(shape)} is no picture")
        height, width, *rest = shape
        self.size = (height, width, rest[0] if rest else 1)
        self.rank = len(shape)
        self.key: Any = None
        self.is_front = False
        self.is_random = False
        self._passes = [_Pass(self.size, dtype)]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of what is planned so far."""
        last = self._passes[-1]
        return last.dtype if last.table is None else last.table.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is planned so far."""
        height, width, channels = self.size
        if self.rank == 2:
            return (height, width)
        return (channels, height, width) if self.is_front else (height, width, channels)

    def _behind_pixels(self) -> _Pass:
        if self.is_front:
            raise Unplanned("it comes after the channels are in front")
        if self.differ:
            raise Unplanned("pictures differ in size")
        return self._passes[-1]

    def _flushed(self) -> _Pass:
        """A pass that changes nothing yet, behind all that is planned."""
        if self._passes[-1].changes:
            self._passes.append(_Pass(self.size, self.dtype))
        return self._passes[-1]

    def move(self, find: Finding, *, random: bool = False, fill: Any = None) -> None:
        """Take pixels from places; `fill` is what those outside are."""
        last = self._behind_pixels()
        if fill is None and not last.changes and len(self._passes) > 1 and self._passes[-2].blend is not None:
            self._passes[-2].blended.append((self.key, find))
        else:
            self._moves(last, find, fill)
        self.is_random |= random
        rows, columns = find(Draws(0, np.zeros(1, np.uint64)))
        height, width, channels = self.size
        height, width = (n if p is None else p.shape[-1] for n, p in ((height, rows), (width, columns)))
        self.size = (height, width, channels)
        self._passes[-1].size = self.size if not self._passes[-1].changes else self._passes[-1].size

    def _moves(self, last: _Pass, find: Finding, fill: Any) -> None:
        if fill is not None:
            value = np.empty(self.size[2], self.dtype)
            value[...] = fill
            is_other = last.fill is not None and not np.array_equal(last.fill, value)
            if is_other or last.table is not None or last.channels is not None:
                last = self._flushed()
            last.fill = value
        last.moves.append((self.key, find))

    def reorder(self, channels: Sequence[int]) -> None:
        """Take channels in an order."""
        last = self._behind_pixels()
        if last.table is not None or last.channels is not None or last.fill is not None:
            last = self._flushed()
        last.channels, self.rank = np.asarray(channels), 3
        self.size = (self.size[0], self.size[1], len(channels))

    def blend(self, find: Blending, size: tuple[int, int], *, random: bool = False) -> None:
        """Resize bytes linearly. Pictures that differ in size have one size then."""
        self.began_unlike |= self.differ
        self.differ = False
        last = self._behind_pixels()
        if self.dtype != np.uint8:
            raise Unplanned(f"{self.dtype} is resized in floating point")
        if last.fill is not None or last.channels is not None or last.table is not None:
            last = self._flushed()
        last.blend, last.extents = (self.key, find), self.size[:2]
        self.is_random |= random
        self.size = (*size, self.size[2])
        self._passes.append(_Pass(self.size, np.dtype(np.uint8)))

    def look_up(self, function: Callable[[Array], Array]) -> None:
        """Change each pixel by itself."""
        last = self._passes[-1] if self.is_front else self._behind_pixels()
        if last.dtype != np.uint8:
            raise Unplanned(f"{self.dtype} is changed in floating point")
        if last.table is None:
            pixels = np.arange(256, dtype=np.uint8)
            wide = np.broadcast_to(pixels[:, None, None], (256, 1, self.size[2]))
            shown = wide[..., 0] if self.rank == 2 else wide
            last.table = shown.transpose(2, 0, 1) if self.is_front else shown
        last.table = function(last.table)

    def channels_first(self) -> None:
        """Channels in front."""
        last = self._behind_pixels()
        if self.rank == 3:
            self.is_front = True
            last.table = None if last.table is None else last.table.transpose(2, 0, 1)

    def finished(self) -> PictureProgram:
        """The plan as a program."""
        for part in self._passes:
            if part.table is not None:
                is_front = self.is_front and part is self._passes[-1]
                in_front = part.table if is_front else part.table.reshape(256, -1).T
                part.table = np.ascontiguousarray(in_front.reshape(-1, 256))
        steps = [part for part in self._passes if part.changes or part is self._passes[-1]]
        how = (self.is_front, self.is_random, self.began_unlike)
        return PictureProgram(steps, self.size, self.dtype, self.shape, *how)


@dataclass
class PictureProgram:
    """Planned pictures: `arguments` of a block, and `text` of the statements that make them of its pixels."""

    passes: list[_Pass]
    size: tuple[int, int, int]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_front: bool
    is_random: bool
    are_unlike: bool
    """Whether pictures differ in size: then the program makes one row, of a number of bytes that is a power of two."""
    _fixed: list[Array] | None = None

    def arguments(self, draws: Callable[[Any], Draws]) -> list[Array]:
        """The places, weights and tables of a block."""
        if self._fixed is not None:
            return self._fixed
        found = [array for part in self.passes for array in part.arrays(draws)]
        self._fixed = None if self.is_random else found
        return found

    def parts(
        self, draws: Callable[[Any], Draws], extents: tuple[Array, Array], cuts: Array
    ) -> tuple[list[Rectangle], Callable[[int], list[Array]]]:
        """Of pictures that differ in size [rows, 1]: which part of each is read, and the arguments of a row.

        Of those that `cuts` [rows, 1] does not say all is read down to the last row. The pixels lie row after row.
        """
        first, *others = self.passes
        vertical, horizontal = first.shares(draws, extents)
        ends: list[Array] = []
        for (low, high, _), size in ((horizontal, extents[1]), (vertical, extents[0])):
            before, after = low.min(1, keepdims=True), high.max(1, keepdims=True) + 1
            ends += [np.where(cuts, before, 0), after if size is extents[0] else np.where(cuts, after, size)]
        left, right, top, bottom = ends
        (one, two, counts), (three, four, high) = horizontal, vertical
        stride = right - left
        channels = first.size[2]
        inside = [((place - left) * channels)[:, None] + np.arange(channels)[:, None] for place in (one, two)]
        below = [(place - top) * (stride * channels) for place in (three, four)]
        given = [*inside, counts[..., 0], counts[..., 1], *below, high[..., 0], high[..., 1]]
        given = [array.astype(np.int32) for array in given]
        rest = [(array, array.ndim == 2 and array is not p.table) for p in others for array in p.arrays(draws)]
        given += [array for array, _ in rest]
        alone = [True] * 8 + [is_alone for _, is_alone in rest]

        def arguments(row: int) -> list[Array]:
            return [array[row : row + 1] if own else array for array, own in zip(given, alone, strict=True)]

        boxes = np.concatenate([left, top, right, bottom], 1).tolist()
        return [(a, b, c, d) for a, b, c, d in boxes], arguments

    @property
    def extents(self) -> tuple[int, int, int]:
        """The sizes of a row as the statements have them, which keep channels."""
        height, width, channels = self.size
        return (channels, height, width) if self.is_front else self.size

    def module(self, shape: tuple[int, ...], dtype: np.dtype[Any], arguments: Sequence[Array]) -> ModuleOp:
        """The graph of blocks of pixels [rows, height, width, channels], or of a row's bytes."""
        from msc.dialects.ms.values import known
        from msc.frontend.dtypes import as_dtype
        from msc.frontend.reader.graph import Graph

        graph = Graph(lambda: None, lambda _: None)

        def input_like(array: Array) -> Any:
            return graph.add_input(known(array).type, lambda arrays: arrays[0]).ssa

        value, given = input_like(np.zeros(shape, dtype)), [input_like(array) for array in arguments]
        count = 1 if self.are_unlike else shape[0]
        for taken, extents, name, text in self.statements(count, arguments, shape[0] - 1):
            kind = as_dtype(np.dtype(_NUMPY[name]))
            properties: Any = {"shape": extents, "dtype": kind, "statements": text}
            value = graph.emit("compute", [value, *(given[k] for k in taken)], properties)[0].ssa
        return graph.finish([value])

    def statements(
        self, count: int, arguments: Sequence[Array], last: int
    ) -> list[tuple[list[int], tuple[int, ...], str, str]]:
        """For a block of `count` rows: which arguments a statement reads (behind the pixels), shape, type, text.

        `last` is the number of the last byte of pictures that differ in size.
        """
        writer = _Writer(count, list(arguments))
        for number, part in enumerate(self.passes):
            is_last = number == len(self.passes) - 1
            after = self.size if is_last else self.passes[number + 1].size
            if self.are_unlike and number == 0:
                writer.blend_unlike(after, last)
            elif part.changes or not (self.are_unlike and self.is_front):
                writer.write(part, after, is_front=is_last and self.is_front)
        return writer.made


class _Writer:
    """Writes the statements of passes. The pixels are `x0`; what lies beside them, `x1` and so on."""

    def __init__(self, count: int, arguments: list[Array]) -> None:
        self._count, self._arguments, self._next = count, arguments, 0
        self._taken: list[int] = []
        self._source = ""
        self._is_front = False
        self.made: list[tuple[list[int], tuple[int, ...], str, str]] = []

    def _argument(self, *places: str) -> str:
        """The element of the next argument: for each row its own, if it has one axis more than places."""
        array = self._arguments[self._next]
        self._taken.append(self._next)
        self._next += 1
        at = ("n", *places) if array.ndim > len(places) else places
        return f"x{len(self._taken)}.{type_name(array.dtype)}[{', '.join(at)}]"

    def _finish(self, size: tuple[int, int, int], dtype: str, body: str, *, is_front: bool = False) -> None:
        extents = dict(zip("nijk", (self._count, *size), strict=True))
        order = "nkij" if is_front else "nijk"
        loops = ", ".join(f"{name} < {extents[name]}" for name in order)
        text = f"for {loops}: r0[{', '.join(order)}] = {body}"
        self.made.append((self._taken, tuple(extents[name] for name in order), dtype, text))
        self._taken = []

    def write(self, part: _Pass, after: tuple[int, int, int], *, is_front: bool) -> None:
        """A pass, of which `after` is the size behind it."""
        own = self._source or type_name(part.dtype)
        if part.blend is not None:
            self._blend(part, own, after)
            self._source = "i32"
            return
        row = self._argument("i") if _moves(part, 0) else ""
        column = self._argument("j") if _moves(part, 1) else ""
        fill = self._argument("k") if part.fill is not None else ""
        channel = f"at({self._argument('k')})" if part.channels is not None else "k"
        places = (f"at({row})" if row else "i", f"at({column})" if column else "j", channel)
        places = (channel, *places[:2]) if self._is_front else places
        self._is_front = False
        value = f"x0.{own}[n, {', '.join(places)}]"
        target = type_name(part.dtype)
        if fill:
            outside = [f"lt({place}, i32(0))" for place in (row, column) if place]
            test = f"or_({outside[0]}, {outside[1]})" if len(outside) > 1 else outside[0]
            value = f"select({test}, {fill if own == target else f'cast({own}, {fill})'}, {value})"
        if part.table is not None:
            target = type_name(part.table.dtype)
            element = self._argument("k", f"at(cast(i32, {value}))" if own != "i32" else f"at({value})")
            value = element
        elif own != target:
            value = f"cast({target}, {value})"
        self._source = ""
        self._finish(after, target, value, is_front=is_front)

    def _blend(self, part: _Pass, own: str, after: tuple[int, int, int]) -> None:
        def both(axis: str, read: Callable[[str], str]) -> list[str]:
            first, second = (f"at({self._argument(axis)})" for _ in range(2))
            counts = [self._argument(axis) for _ in range(2)]
            return [f"mul({read(place)}, {n})" for place, n in zip((first, second), counts, strict=True)]

        height = part.size[0]
        front, self._is_front = self._is_front, False
        wide = both("j", lambda place: f"cast(i32, x0.{own}[{f'n, k, i, {place}' if front else f'n, i, {place}, k'}])")
        self._finish((height, *after[1:]), "i32", f"shr(add({wide[0]}, {wide[1]}), i32(4))")
        high = [f"shr({p}, i32(16))" for p in both("i", lambda place: f"x0.i32[n, {place}, j, k]")]
        self._finish(after, "i32", f"shr(add(add({high[0]}, {high[1]}), i32(2)), i32(2))")

    def blend_unlike(self, after: tuple[int, int, int], last: int) -> None:
        """The first pass of a picture of any size, whose bytes are `x0`; channels come in front.

        A place that is masked needs no test whether it is inside.
        """
        wide = [self._argument(*axes) for axes in ("kj", "kj", "j", "j")]
        high = [self._argument("i") for _ in range(4)]

        def across(row: str) -> str:
            places = (f"x0.ui8[at(and_(add({row}, {column}), i32({last})))]" for column in wide[:2])
            shares = [f"mul(cast(i32, {byte}), {n})" for byte, n in zip(places, wide[2:], strict=True)]
            return f"shr(add({shares[0]}, {shares[1]}), i32(4))"

        down = [f"shr(mul({across(row)}, {n}), i32(16))" for row, n in zip(high[:2], high[2:], strict=True)]
        made = f"cast(ui8, shr(add(add({down[0]}, {down[1]}), i32(2)), i32(2)))"
        self._finish(after, "ui8", made, is_front=True)
        self._is_front = True


def _moves(part: _Pass, axis: int) -> bool:
    draws = Draws(0, np.zeros(1, np.uint64))
    return any(find(draws)[axis] is not None for _, find in part.moves)


_NUMPY = {f"{k}{b}": f"{n}{b // 8}" for k, n in (("ui", "u"), ("i", "i"), ("f", "f")) for b in (8, 16, 32, 64)}
"""Element types as statements have them -> as NumPy has them."""


def type_name(dtype: np.dtype[Any]) -> str:
    """An element type as statements have it."""
    kind = {"u": "ui", "i": "i", "f": "f"}[dtype.kind]
    return f"{kind}{dtype.itemsize * 8}"
