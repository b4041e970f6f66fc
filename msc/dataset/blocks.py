"""Library transforms over blocks of rows: what `map` does to a batch at once, compiled where that pays.

A chain is what stands between a source and whoever takes batches: `map` with transforms of the library, `project` and
`rename`. Each column has its functions in turn. Those of pictures become one compiled program (`vision.pictures`),
those that change all elements alike take the whole block, and the others take row by row. The values are the same.

A program is compiled once it has made `PAYS` elements row by row, which takes as long as compiling it: a short run does
not wait for a compiler. `map(offload=True)` compiles with the first block, `offload=False` never.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import count as numbers
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from msc.dataset import pictures
from msc.dataset.mapping import called, in_order
from msc.dataset.pictures import Picture, PictureProgram, Unplanned
from msc.dataset.runs import Draws, EpochRun, at_row, drawing
from msc.dataset.transforms.general import Transform
from msc.dataset.values import Array, Group, Ragged, Row, Values, gathered
from msc.dataset.vision.decoding import OpenPicture
from msc.support.diagnostics import MscError

if TYPE_CHECKING:
    from msc.dataset.base import Dataset

PAYS = 1 << 22
"""Elements that are made row by row before a program is compiled."""


class RowReader:
    """Takes rows of a pass by their numbers: `at(numbers, size)`; for at most `size` of them."""

    def __init__(self, total: int, at: Callable[[Array, int], Group], workers: int = 1) -> None:
        self.total, self.at, self.workers = total, at, workers

    def batches(self, start: int, size: int) -> Iterator[Group]:
        """All rows from a number on, `size` at a time."""
        groups = (np.arange(first, min(first + size, self.total)) for first in range(start, self.total, size))
        return in_order(groups, lambda numbers: self.at(numbers, size), self.workers)


_ROWS = 32
"""Rows that are made at once for who takes one after the other."""


def rows_of(
    dataset: Dataset, run: EpochRun, start: int, one_by_one: Callable[[EpochRun, int], Iterator[Row]] | None = None
) -> Iterator[Row]:
    """The rows of a data set that has a reader. An error is that of the row which `one_by_one` comes to."""
    reader = dataset.reader(run)
    assert reader is not None
    groups = reader.batches(start, _ROWS)
    while True:
        try:
            group = next(groups)
        except StopIteration:
            return
        except MscError:
            if one_by_one is None:
                raise
            yield from one_by_one(run, start)
            return
        for row in zip(*group, strict=True):
            yield tuple(map(np.array, row))
        start += len(group[0])


@dataclass(frozen=True)
class MapStep:
    """A function of a map: number `place` of its functions, `depth` stages below the top of a chain."""

    depth: int
    place: int
    function: Transform
    workers: int = 1
    offload: bool | None = None


@dataclass
class Column:
    """A column of a chain: where it is in the source, and what is done to it."""

    source: int
    steps: list[MapStep] = field(default_factory=list[MapStep])

    def then(self, steps: Sequence[MapStep]) -> Column:
        """The column with more done to it."""
        return Column(self.source, [*self.steps, *steps])


@dataclass(frozen=True)
class _Block:
    """Which rows are made, by their numbers in a pass that the top of the chain sees; at most `size`."""

    run: EpochRun
    numbers: Array
    size: int

    def draws(self, step: MapStep) -> Draws:
        """What a step draws for `size` rows: for these, and for others behind them."""
        rows = np.zeros(self.size, np.uint64)
        rows[: len(self.numbers)] = self.numbers
        return self.stage(step).draws(step.place, rows)

    def stage(self, step: MapStep) -> EpochRun:
        """The pass that a step's stage sees."""
        run = self.run
        for _ in range(step.depth):
            run = run.inside(0)
        return run


def row_by_row(steps: Sequence[MapStep], values: Values, block: _Block) -> Values:
    """Each row through functions in turn."""
    made: list[Array] = []
    for k, value in enumerate(values):
        for step in steps:
            with drawing(block.stage(step)):
                at_row(int(block.numbers[k]), step.place)
                value = called(step.function, value, int(block.numbers[k]))
        made.append(value)
    return gathered(made)


class _Rows:
    """Steps that take row by row."""

    def __init__(self, steps: Sequence[MapStep], reason: str) -> None:
        self.steps, self._reason = steps, reason

    def run(self, values: Values, block: _Block) -> Values:
        return row_by_row(self.steps, values, block)

    def __str__(self) -> str:
        return f"row by row ({self._reason})"


class _Whole:
    """A step that takes the block as it is, or texts and words of any number behind each other."""

    def __init__(self, steps: Sequence[MapStep]) -> None:
        self.steps = steps

    def run(self, values: Values, block: _Block) -> Values:
        function = self.steps[0].function
        return function.over_rows(values) if isinstance(values, Ragged) else function(values)

    def __str__(self) -> str:
        return "the whole block at once"


class _Compiled:
    """Steps that are one program, row by row until compiling it pays."""

    OF = "blocks of"
    """What the numbers are for which it is compiled."""

    def __init__(self, steps: Sequence[MapStep], program: PictureProgram, shape: tuple[int, ...]) -> None:
        self.steps, self._program, self._shape = steps, program, shape
        wishes = [step.offload for step in steps if step.offload is not None]
        self._offload = all(wishes) if wishes else None
        self._made = 0
        self._failure = ""
        self._models: dict[tuple[int, Any], Any] = {}
        self._lock = threading.Lock()

    def run(self, values: Values, block: _Block) -> Values:
        assert isinstance(values, np.ndarray)
        if self._waits(len(values)):
            return row_by_row(self.steps, values, block)
        arguments = self._program.arguments(block.draws)
        model = self._model(block.size, values.dtype, arguments)
        if model is None:
            return row_by_row(self.steps, values, block)
        height, width, *channels = values.shape[1:]
        pixels: Array = values.reshape(len(values), height, width, *(channels or (1,)))
        if len(values) < block.size:
            rest = np.zeros((block.size - len(values), *pixels.shape[1:]), pixels.dtype)
            pixels = np.concatenate([pixels, rest])
        made = model([np.ascontiguousarray(pixels), *arguments])[0]
        found = made.reshape(block.size, *self._program.shape)
        return found if len(values) == block.size else found[: len(values)].copy()

    def _waits(self, rows: int) -> bool:
        if self._failure or self._offload is False:
            return True
        self._made += rows * math.prod(self._program.shape)
        return not self._offload and self._made <= PAYS

    def _model(self, count: int, dtype: np.dtype[Any], arguments: list[Array]) -> Any:
        """The compiled program for blocks of `count` rows; None if there is none, and then `_failure` says why."""
        with self._lock:
            key = (count, dtype)
            if key not in self._models and not self._failure:
                try:
                    module = self._program.module(self._extents(count), dtype, arguments)
                    self._models[key] = self._built(module)
                except MscError as error:
                    self._failure = error.diagnostics[0].message
            return self._models.get(key)

    def _built(self, module: Any) -> Any:
        """What runs a program. Raises what compiling raises."""
        return import_module("msc.frontend.execution").program_of(module, {}, pictures.WISHES)

    def _extents(self, count: int) -> tuple[int, ...]:
        height, width, *channels = self._shape
        return (count, height, width, *(channels or (1,)))

    def __str__(self) -> str:
        if self._failure:
            return f"row by row (compiling it failed: {self._failure})"
        if self._models:
            sizes = ", ".join(f"{count:,}" for count, _ in self._models)
            return f"compiled, for {self.OF} {sizes}"
        if self._offload is False:
            return "row by row (offload=False)"
        return f"row by row until {PAYS:,} elements are made, then compiled ({self._made:,} are made)"


class _Unlike(_Compiled):
    """Steps that are one program for pictures that differ in size, or are in files: each is a call of it."""

    OF = "pictures of any size, whose bytes are at most"

    def __init__(self, steps: Sequence[MapStep], program: PictureProgram, shape: tuple[int, ...]) -> None:
        super().__init__(steps, program, shape)
        self._decodes = steps[0].function.DECODES
        self._bytes = 1 << 20
        self._own = threading.local()

    def run(self, values: Values, block: _Block) -> Values:
        if self._waits(len(values)):
            return row_by_row(self.steps, values, block)
        opened = [OpenPicture(value, is_file=self._decodes) for value in values]
        made = self._made_of(opened, replace(block, size=len(opened)))
        return row_by_row(self.steps, values, block) if made is None else made

    def _made_of(self, opened: list[OpenPicture], block: _Block) -> Array | None:
        heights, widths = np.array([[p.height, p.width] for p in opened]).T[..., None]
        cuts = np.array([[p.pays_to_cut] for p in opened])
        boxes, arguments = self._program.parts(block.draws, (heights, widths), cuts)
        pixels = self._scratch(int((heights * widths).max()) * self._shape[2])
        model = self._model(len(pixels), pixels.dtype, arguments(0))
        if model is None:
            return None
        made = np.empty((len(opened), *self._program.extents), self._program.dtype)
        for row, (picture, box) in enumerate(zip(opened, boxes, strict=True)):
            picture.read(box, pixels)
            model([pixels, *arguments(row)], made[row : row + 1])
        return made.reshape(len(opened), *self._program.shape)

    def _built(self, module: Any) -> Any:
        return import_module("msc.frontend.execution").filling(module, pictures.WISHES)

    def _scratch(self, size: int) -> Array:
        """Room for the bytes of a picture, of this thread: programs for more of them are compiled when they come."""
        while self._bytes < size:
            self._bytes *= 2
        found = getattr(self._own, "pixels", None)
        if found is None or len(found) < self._bytes:
            found = self._own.pixels = np.zeros(self._bytes, np.uint8)
        return found

    def _extents(self, count: int) -> tuple[int, ...]:
        return (count,)


_Part: TypeAlias = "_Rows | _Whole | _Compiled"


class MapChain:
    """Columns of a source and what is done to them, over blocks; the source is `depth` stages below the top."""

    def __init__(self, top: Dataset) -> None:
        stages: list[Dataset] = []
        while top.is_chained:
            stages.append(top)
            top = top.inputs[0]
        self.source, self._depth = top, len(stages)
        columns = [Column(k) for k in range(len(top.columns))]
        for depth, stage in reversed(list(enumerate(stages))):
            columns = stage.chained(columns, depth)
        self._columns, self._names = columns, stages[0].columns if stages else top.columns
        self._workers = max((s.workers for column in columns for s in column.steps), default=1)
        self._parts: dict[tuple[int, int, Any], _Part] = {}

    def blocks(self, run: EpochRun, start: int, size: int) -> Iterator[Group]:
        """Batches of `size` rows, from number `start` on."""
        groups = self.source.batches(self._below(run), start, size)
        firsts = numbers(start, size)
        blocks = ((g, _Block(run, np.arange(first, first + len(g[0])), size)) for g, first in zip(groups, firsts))  # noqa: B905  without end
        return in_order(blocks, lambda item: self._made(*item), self._workers)

    def reader(self, run: EpochRun) -> RowReader | None:
        """What takes rows by their numbers, if the source has such a reader."""
        inner = self.source.reader(self._below(run))
        if inner is None:
            return None

        def at(chosen: Array, size: int) -> Group:
            return self._made(inner.at(chosen, size), _Block(run, chosen, size))

        return RowReader(inner.total, at, max(self._workers, inner.workers))

    def _below(self, run: EpochRun) -> EpochRun:
        for _ in range(self._depth):
            run = run.inside(0)
        return run

    def _made(self, group: Group, block: _Block) -> Group:
        made: list[Values] = []
        for number, column in enumerate(self._columns):
            try:
                made.append(self._by_parts(number, group[column.source], block))
            except (MscError, ArithmeticError, ValueError):  # Row by row the error is that of its row.
                made.append(row_by_row(column.steps, group[column.source], block))
        return tuple(made)

    def _by_parts(self, number: int, values: Values, block: _Block) -> Values:
        first, steps = 0, self._columns[number].steps
        while first < len(steps):
            part = self._part(number, first, values)
            values = part.run(values, block)
            first += len(part.steps)
        return values

    def _part(self, number: int, first: int, values: Values) -> _Part:
        steps = self._columns[number].steps[first:]
        like = _Likeness.of(values, is_file=steps[0].function.DECODES)
        key = (number, first, like)
        if key not in self._parts:
            self._parts[key] = _planned(steps, like)
        return self._parts[key]

    def explained(self) -> list[str]:
        """A line for each part of each column."""
        lines: list[str] = []
        for number, (column, name) in enumerate(zip(self._columns, self._names, strict=True)):
            parts = sorted(((first, part) for (n, first, _), part in self._parts.items() if n == number), key=_first)
            lines += [f"{name}: {_listed(part.steps)}: {part}" for _, part in parts]
            if column.steps and not parts:
                lines.append(f"{name}: {_listed(column.steps)}: nothing has been read in batches yet")
        return lines


def _first(item: tuple[int, Any]) -> int:
    return item[0]


def _listed(steps: Sequence[MapStep]) -> str:
    return ", ".join(type(step.function).__name__ for step in steps)


class _Likeness(NamedTuple):
    """What the values of a block have in common; of pictures that differ in size, their channels."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    differ: bool = False
    is_ragged: bool = False

    @classmethod
    def of(cls, values: Values, *, is_file: bool) -> _Likeness | None:
        """Of some values; None for those that have too little in common."""
        if is_file:
            return cls((1, 1, 3), np.dtype(np.uint8), differ=True)
        if isinstance(values, Ragged):
            dtype = values.items.dtype if isinstance(values.items, np.ndarray) else np.dtype(np.str_)
            return cls(() if values.lengths is None else (1,), dtype, is_ragged=True)
        if not isinstance(values, list):
            return cls(values.shape[1:], values.dtype)
        kinds = {(value.ndim, value.dtype, value.shape[2:], 0 in value.shape) for value in values}
        if len(kinds) > 1 or values[0].ndim != 3 or values[0].dtype != np.uint8 or not values[0].size:
            return None
        return cls((1, 1, values[0].shape[2]), np.dtype(np.uint8), differ=True)


def _planned(steps: Sequence[MapStep], like: _Likeness | None) -> _Part:
    """What is done first: as many steps as one part can take."""
    if like is None:
        return _Rows(steps, "rows differ in shape")
    if like.is_ragged:
        takes = len(like.shape) in steps[0].function.RAGGED_RANKS
        return _Whole(steps[:1]) if takes else _Rows(steps[:1], "it has no form over texts")
    program: PictureProgram | None = None
    count, reason = 0, ""
    while count < len(steps) and not reason:
        try:
            program = _program(steps[: count + 1], like)
            count += 1
        except Unplanned as unplanned:
            reason = str(unplanned)
        except MscError:
            reason = "it does not fit these rows"
    if all(step.function.TAKES_BLOCKS for step in steps[: count or 1]):
        return _Whole(steps[:1])
    if program is None or not count or (like.differ and not program.are_unlike):
        return _Rows(steps[:1], reason or "it is too little to compile")
    return _Unlike(steps[:count], program, like.shape) if like.differ else _Compiled(steps[:count], program, like.shape)


def _program(steps: Sequence[MapStep], like: _Likeness) -> PictureProgram:
    picture = Picture(like.shape, like.dtype, differ=like.differ)
    for step in steps:
        picture.key = step
        step.function.planned(picture)
    return picture.finished()
