"""Stages that make a data set of others: map, filter, shuffle, repeat, parts, columns."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import count as numbers
from itertools import islice
from typing import Any, TypeVar, cast

import numpy as np

from msc.dataset import arguments, config
from msc.dataset.arguments import known, names, refuse
from msc.dataset.base import Dataset, skipping
from msc.dataset.blocks import Column, MapChain, MapStep, RowReader, rows_of
from msc.dataset.config import ErrorSamplesMode
from msc.dataset.mapping import mapped
from msc.dataset.runs import EpochRun, at_function
from msc.dataset.transforms.general import Compose, Transform
from msc.dataset.values import Array, Group, Row, own, own_row
from msc.frontend.errors import ApiTypeError, ApiValueError

T = TypeVar("T")


class DerivedDataset(Dataset):
    """A data set that is made of another one, whose columns and number of rows it keeps."""

    def __init__(self, source: Dataset) -> None:
        self.source = source

    @property
    def chain(self) -> MapChain:
        """The stages from this one down that take whole blocks: which ones those are, the mode of errors decides."""
        mode = config.get_error_samples_mode()
        if mode not in self._chains:
            self._chains[mode] = MapChain(self)
        return self._chains[mode]

    @cached_property
    def _chains(self) -> dict[ErrorSamplesMode, MapChain]:
        return {}

    @property
    def in_blocks(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.is_chained and self.chain.source.in_blocks

    def reader(self, run: EpochRun) -> RowReader | None:
        return self.chain.reader(run) if self.in_blocks else None

    def batches(self, run: EpochRun, start: int, size: int) -> Iterator[Group]:
        is_stream = self.is_chained and not self.in_blocks
        return self.chain.blocks(run, start, size) if is_stream else super().batches(run, start, size)

    @property
    def inputs(self) -> tuple[Dataset, ...]:
        return (self.source,)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.source.columns

    def size(self) -> int:
        return self.source.size()


def functions(operations: Any) -> tuple[Callable[..., Any], ...]:
    """One function or several. Raises MSC0871."""
    found = tuple(cast("Sequence[Any]", operations)) if isinstance(operations, list | tuple) else (operations,)
    if not found or not all(callable(function) for function in found):
        wrong = next((function for function in found if not callable(function)), operations)
        refuse("operations", wrong, "a function or a transform, or a list of them", is_type=True)
    for function in found:
        if isinstance(function, type):
            refuse(
                "operations", function, "an object", is_type=True, advice=f"write {cast(Any, function).__name__}(...)"
            )
    return found


def _taken(function: Callable[..., Any], columns: int) -> int:
    """How many of the first columns a function takes, which no argument says."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 1
    needed = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    return min(max(needed, 1), columns)


class ColumnChange:
    """The columns that a function takes, and what it gives: in their place, or in front of the others."""

    def __init__(self, own: tuple[str, ...], given: tuple[str, ...], outputs: Any) -> None:
        self.taken = known("input_columns", given, own)
        self.outputs = given if outputs is None else names("output_columns", outputs)
        self.kept = tuple(k for k in range(len(own)) if k not in self.taken)

    def placed(self, kept: Sequence[T], made: Sequence[T]) -> tuple[T, ...]:
        """What there is of the columns that stay, or their names, with that of what the function gives."""
        if len(self.outputs) != len(self.taken):
            return (*made, *kept)
        found = dict(zip((*self.kept, *self.taken), (*kept, *made), strict=True))
        return tuple(found[k] for k in range(len(found)))

    def names(self, own: tuple[str, ...]) -> tuple[str, ...]:
        """The columns behind the function, of those before it."""
        return self.placed([own[k] for k in self.kept], self.outputs)


def mapped_dataset(
    source: Dataset, operations: Any, inputs: Any, outputs: Any, workers: Any, offload: bool | None
) -> MapDataset:
    """See `Dataset.map`. Transforms of the library that begin a map of one column are a stage of their own."""
    if offload is not None and not isinstance(offload, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse("offload", offload, "True, False or None", is_type=True)
    whole = MapDataset(source, operations, inputs, outputs, workers, offload)
    own = whole.own_transforms
    if own in (0, len(whole.functions)):
        return whole
    taken = whole.change.taken[0]
    first = MapDataset(source, list(whole.functions[:own]), source.columns[taken], None, workers, offload)
    return MapDataset(first, list(whole.functions[own:]), source.columns[taken], outputs, workers, offload)


def _flat(found: Sequence[Callable[..., Any]]) -> tuple[Callable[..., Any], ...]:
    """Functions, with what a Compose holds in its place."""
    parts = [_flat(cast(Compose, f).transforms) if type(f) is Compose else (f,) for f in found]
    return tuple(function for part in parts for function in part)


class MapDataset(DerivedDataset):
    """Functions of columns; see `Dataset.map`."""

    def __init__(
        self, source: Dataset, operations: Any, inputs: Any, outputs: Any, workers: Any, offload: bool | None = None
    ) -> None:
        super().__init__(source)
        given_functions = functions(operations)
        self.functions = _flat(given_functions)
        own = source.columns
        given = own[: _taken(given_functions[0], len(own))] if inputs is None else names("input_columns", inputs)
        self.change = ColumnChange(own, given, outputs)
        self._workers = config.get_num_parallel_workers() if workers is None else arguments.workers(workers)
        self._offload = (config.get_auto_offload() or None) if offload is None else offload
        kept = [own[k] for k in self.change.kept]
        for name in self.change.outputs:
            if name in kept:
                raise ApiValueError("MSC0873", f"map: output_columns has '{name}', which is another column already")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.change.names(self.source.columns)

    @property
    def own_transforms(self) -> int:
        """How many of the functions, from the first on, are transforms of the library, of one column into itself."""
        if len(self.change.taken) != 1:
            return 0
        is_other = [not type(function).__module__.startswith("msc.dataset.") for function in self.functions]
        return is_other.index(True) if True in is_other else len(is_other)

    @property
    def is_chained(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        if config.get_error_samples_mode() is not ErrorSamplesMode.RETURN:
            return False
        return self.own_transforms == len(self.functions) and len(self.change.outputs) == 1

    def chained(self, columns: list[Column], depth: int) -> list[Column]:
        (taken,) = self.change.taken
        steps = [
            MapStep(depth, k, cast(Transform, function), self._workers, self._offload)
            for k, function in enumerate(self.functions)
        ]
        return [column.then(steps) if k == taken else column for k, column in enumerate(columns)]

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        if config.get_error_samples_mode() is ErrorSamplesMode.SKIP:
            return skipping(self._one_by_one(run, 0), start)
        return rows_of(self, run, start, self._one_by_one) if self.in_blocks else self._one_by_one(run, start)

    def _one_by_one(self, run: EpochRun, start: int) -> Iterator[Row]:
        return mapped(self.source.rows(run.inside(0), start), self._applied, self._workers, run, start)

    def _applied(self, row: Row) -> Row:
        outputs = self.change.outputs
        values: tuple[Any, ...] = tuple(row[k] for k in self.change.taken)
        for number, function in enumerate(self.functions):
            at_function(number)
            found = function(*values)
            values = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
        if len(values) != len(outputs):
            raise ApiValueError(
                "MSC0872",
                f"map: the functions give {len(values)} values for the columns {arguments.listed(outputs)}",
                help="output_columns names the columns of what they give",
            )
        made = [own(v, f"what map gives for column '{n}'") for v, n in zip(values, outputs, strict=True)]
        return self.change.placed([row[k] for k in self.change.kept], made)


class FilterDataset(DerivedDataset):
    """The rows of which a function is true."""

    def __init__(self, source: Dataset, predicate: Any, inputs: Any) -> None:
        super().__init__(source)
        if not callable(predicate):
            refuse("predicate", predicate, "a function", is_type=True)
        self._predicate = predicate
        given = source.columns if inputs is None else names("input_columns", inputs)
        self._places = known("input_columns", given, source.columns)

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        return skipping((row for row in self.source.rows(run.inside(0)) if self._holds(row)), start)

    def _holds(self, row: Row) -> bool:
        found = np.asarray(self._predicate(*own_row(tuple(row[k] for k in self._places))))
        if found.size != 1:
            raise ApiTypeError("MSC0872", f"filter: the function gives an array of shape {found.shape}, not one truth")
        return bool(found.reshape(())[()])

    def size(self) -> int:
        return Dataset.size(self)


class ShuffleDataset(DerivedDataset):
    """Each row is drawn from a buffer of the next ones; see `Dataset.shuffle`."""

    def __init__(self, source: Dataset, buffer_size: Any, *, anew: bool = True) -> None:
        super().__init__(source)
        self._buffer_size = arguments.count("buffer_size", buffer_size, 2 if anew else 1)
        self._anew = anew

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        if self.in_blocks:
            return rows_of(self, run, start)
        return skipping(self._shuffled(run if self._anew else run.at_epoch(0)), start)

    def _shuffled(self, run: EpochRun) -> Iterator[Row]:
        return self._reordered(self.source.rows(run.inside(0)), run)

    def _reordered(self, items: Iterable[T], run: EpochRun) -> Iterator[T]:
        draws, buffer = run.generator(), list[T]()
        for row in items:
            if len(buffer) < self._buffer_size:
                buffer.append(row)
                continue
            place = int(draws.integers(len(buffer)))
            buffer[place], row = row, buffer[place]
            yield row
        for place in draws.permutation(len(buffer)):
            yield buffer[place]

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks

    def reader(self, run: EpochRun) -> RowReader | None:
        run = run if self._anew else run.at_epoch(0)
        inner = self.source.reader(run.inside(0))
        if inner is None:
            return None
        order: Array = np.fromiter(self._reordered(range(inner.total), run), np.int64, inner.total)
        return RowReader(inner.total, lambda numbers, size: inner.at(order[numbers], size), inner.workers)


class RepeatDataset(DerivedDataset):
    """The rows several times; each time is an epoch of the source."""

    def __init__(self, source: Dataset, count: Any) -> None:
        super().__init__(source)
        self._count = None if count in (None, -1) else arguments.count("count", count)

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        first = 0
        if start:
            first, start = divmod(start, max(self.source.size(), 1))
        times = numbers(first) if self._count is None else range(first, self._count)
        for time in times:
            epoch = run.epoch * self._count + time if self._count is not None else time
            is_empty = True
            for row in self.source.rows(run.inside(0).at_epoch(epoch), start):
                is_empty = False
                yield row
            if is_empty and not start:
                return
            start = 0

    def size(self) -> int:
        if self._count is None:
            raise ApiValueError("MSC0871", "a data set that repeats without end has no size: give repeat a count")
        return self.source.size() * self._count

    def get_repeat_count(self) -> int:
        return -1 if self._count is None else self._count


class SliceDataset(DerivedDataset):
    """Rows from one number on, up to a count of them."""

    def __init__(self, source: Dataset, start: int, count: int | None) -> None:
        super().__init__(source)
        self._start, self._count = start, count

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        rows = self.source.rows(run.inside(0), self._start + start)
        return rows if self._count is None else islice(rows, max(self._count - start, 0))

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks

    def reader(self, run: EpochRun) -> RowReader | None:
        inner = self.source.reader(run.inside(0))
        if inner is None:
            return None
        rest = max(inner.total - self._start, 0)
        total = rest if self._count is None else min(rest, self._count)
        return RowReader(total, lambda numbers, size: inner.at(numbers + self._start, size), inner.workers)

    def size(self) -> int:
        rest = max(self.source.size() - self._start, 0)
        return rest if self._count is None else min(rest, self._count)


class RenameDataset(DerivedDataset):
    """Other names for columns."""

    def __init__(self, source: Dataset, inputs: Any, outputs: Any) -> None:
        super().__init__(source)
        old, new = names("input_columns", inputs), names("output_columns", outputs)
        if len(old) != len(new):
            refuse("output_columns", f"{len(new)} names", f"as many as input_columns has, {len(old)}")
        found = list(source.columns)
        for place, name in zip(known("input_columns", old, source.columns), new, strict=True):
            found[place] = name
        if len(set(found)) != len(found):
            raise ApiValueError("MSC0873", f"rename: two columns get one name: {arguments.listed(tuple(found))}")
        self._columns = tuple(found)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    is_chained = True

    def chained(self, columns: list[Column], depth: int) -> list[Column]:
        return columns

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        return self.source.rows(run.inside(0), start)


class ProjectDataset(DerivedDataset):
    """Some columns, in an order."""

    def __init__(self, source: Dataset, columns: Any) -> None:
        super().__init__(source)
        self._columns = names("columns", columns)
        self._places = known("columns", self._columns, source.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    is_chained = True

    def chained(self, columns: list[Column], depth: int) -> list[Column]:
        return [columns[k] for k in self._places]

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        return (tuple(row[k] for k in self._places) for row in self.source.rows(run.inside(0), start))


class FlatMapDataset(DerivedDataset):
    """The rows of the data sets that a function makes of each row."""

    def __init__(self, source: Dataset, function: Any) -> None:
        super().__init__(source)
        if not callable(function):
            refuse("func", function, "a function", is_type=True)
        self._function = function

    def _made(self, row: Row) -> Dataset:
        made: object = self._function(*row)
        if not isinstance(made, Dataset):
            refuse("what func gives", made, "a data set", is_type=True)
        return made

    @property
    def columns(self) -> tuple[str, ...]:
        first = next(self.source.rows(EpochRun(config.seed_of_a_run())), None)
        return self.source.columns if first is None else self._made(first).columns

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        made = (
            found
            for number, row in enumerate(self.source.rows(run.inside(0)))
            for found in self._made(row).rows(run.inside(1).inside(number))
        )
        return skipping(made, start)

    def size(self) -> int:
        return Dataset.size(self)


class Joined(Dataset):
    """A data set that is made of several."""

    def __init__(self, sources: Sequence[Any]) -> None:
        for source in sources:
            if not isinstance(source, Dataset):
                refuse("datasets", source, "data sets", is_type=True)
        self.sources = tuple(cast("Sequence[Dataset]", sources))

    @property
    def inputs(self) -> tuple[Dataset, ...]:
        return self.sources


class ZipDataset(Joined):
    """Rows with the columns of all."""

    def __init__(self, sources: Sequence[Any]) -> None:
        super().__init__(sources)
        found = [name for source in self.sources for name in source.columns]
        for name in found:
            if found.count(name) > 1:
                raise ApiValueError("MSC0873", f"zip: '{name}' is a column of two data sets", help="rename one of them")
        self._columns = tuple(found)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        parts = [source.rows(run.inside(k), start) for k, source in enumerate(self.sources)]
        return (tuple(value for part in row for value in part) for row in zip(*parts, strict=False))

    def size(self) -> int:
        return min(source.size() for source in self.sources)


class ConcatDataset(Joined):
    """The rows of one data set after those of another."""

    def __init__(self, sources: Sequence[Any]) -> None:
        super().__init__(sources)
        for source in self.sources:
            if source.columns != self.columns:
                own, other = arguments.listed(self.columns), arguments.listed(source.columns)
                raise ApiValueError("MSC0873", f"concat: one data set has the columns {own}, another {other}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.sources[0].columns

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        for k, source in enumerate(self.sources):
            if start and (size := source.size()) <= start:
                start -= size
                continue
            yield from source.rows(run.inside(k), start)
            start = 0

    def size(self) -> int:
        return sum(source.size() for source in self.sources)


def split(source: Dataset, sizes: Any, randomize: Any) -> tuple[Dataset, ...]:
    """The parts of `Dataset.split`."""
    total = source.size()
    lengths = _lengths(sizes, total)
    ordered = ShuffleDataset(source, max(total, 1), anew=False) if randomize else source
    ends: Array = np.cumsum([0, *lengths])
    return tuple(SliceDataset(ordered, int(begin), length) for begin, length in zip(ends[:-1], lengths, strict=True))


def _lengths(sizes: Any, total: int) -> list[int]:
    wanted = "a list of numbers of rows, or of shares above 0 that make 1"
    if not isinstance(sizes, list | tuple) or not sizes:
        refuse("sizes", sizes, wanted, is_type=True)
    given = cast("Sequence[Any]", sizes)
    if all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given):
        if sum(given) != total:
            refuse("sizes", str(list(given)), f"numbers whose sum is that of the rows, {total}")
        return list(given)
    if not all(isinstance(n, float) and 0 < n < 1 for n in given) or abs(sum(given) - 1) > 1e-6:
        refuse("sizes", str(list(given)), wanted)
    lengths = [round(n * total) for n in given]
    lengths[0] += total - sum(lengths)
    if min(lengths) < 1:
        refuse("sizes", str(list(given)), f"shares of {total} rows that have a row each")
    return lengths
