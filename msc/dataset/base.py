"""`Dataset`: rows of named columns, and what makes other data sets of one.

A data set is a tree of stages. A pass over it is asked of the root: `rows(run, start)` gives the rows of an epoch from
a place on. All that is random about a pass follows from the run, so that a pass can begin anywhere.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from msc.dataset import config
from msc.dataset.arguments import count as count_of
from msc.dataset.arguments import known, names, refuse
from msc.dataset.iterators import RowIterator, as_tensor
from msc.dataset.runs import EpochRun
from msc.dataset.values import Array, Group, Row, gathered
from msc.frontend.boundary import Published, publish_methods
from msc.frontend.settings import unused

if TYPE_CHECKING:
    from msc.dataset.blocks import Column, RowReader


def _stages() -> Any:
    return import_module("msc.dataset.stages")


def _batches() -> Any:
    return import_module("msc.dataset.batches")


class Dataset(Published):
    """Rows of named columns. Subclasses say `columns`, `rows` and `size`."""

    FOR_MSC: ClassVar[tuple[str, ...]] = (
        "rows", "batches", "columns", "size", "inputs", "in_blocks", "reader", "is_chained", "chained"
    )  # fmt: skip

    # What subclasses say.

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        raise NotImplementedError

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        """The rows of a pass, from number `start` on."""
        raise NotImplementedError

    def batches(self, run: EpochRun, start: int, size: int) -> Iterator[Group]:
        """The rows of a pass, from number `start` on, `size` at a time: the values of each column together.

        The last ones may be fewer. Data sets that hold whole columns take them without making rows.
        """
        reader = self.reader(run)
        if reader is not None:
            yield from reader.batches(start, size)
            return
        rows = self.rows(run, start)
        while group := list(islice(rows, size)):
            yield tuple(map(gathered, zip(*group, strict=True)))

    def size(self) -> int:
        """The number of rows of an epoch."""
        return sum(1 for _ in self.rows(EpochRun(config.seed_of_a_run())))

    @property
    def inputs(self) -> tuple[Dataset, ...]:
        """The data sets that this one is made of."""
        return ()

    in_blocks: bool = False
    """Whether there is a `reader`: rows are taken by their numbers, many at once."""

    def reader(self, run: EpochRun) -> RowReader | None:
        """What takes the rows of a pass by their numbers; None where they come one after the other."""
        return None

    is_chained: bool = False
    """Whether this is a stage that a chain holds: see `msc.dataset.blocks`."""

    def chained(self, columns: list[Column], depth: int) -> list[Column]:
        """The columns of a chain behind this stage, which is `depth` stages below its top."""
        raise NotImplementedError

    def explain(self) -> str:
        """What is done to each column, stage by stage: compiled, on whole blocks, or row by row, and why."""
        return import_module("msc.dataset.explaining").explained(self)

    # Asking.

    def get_dataset_size(self) -> int:
        """The number of rows, or of batches, of an epoch. Where only reading tells, as after `filter`, it is read."""
        return self.size()

    def __len__(self) -> int:
        return self.size()

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def _first(self) -> Row:
        first = next(self.rows(EpochRun(config.seed_of_a_run())), None)
        return tuple(np.zeros(0, np.float32) for _ in self.columns) if first is None else first

    def output_shapes(self, estimate: bool = False) -> list[list[int]]:
        """The shapes of the columns of the first row."""
        unused("Dataset.output_shapes", estimate=estimate)
        return [list(value.shape) for value in self._first()]

    def output_types(self) -> list[np.dtype[Any]]:
        """The NumPy types of the columns of the first row."""
        return [value.dtype for value in self._first()]

    def get_batch_size(self) -> int:
        """The number of rows of a batch: 1 without `batch`."""
        return self.inputs[0].get_batch_size() if self.inputs else 1

    def get_repeat_count(self) -> int:
        """How often `repeat` repeats: 1 without it."""
        return self.inputs[0].get_repeat_count() if self.inputs else 1

    def num_classes(self) -> int | None:
        """The number of classes; None where the data do not say."""
        return self.inputs[0].num_classes() if self.inputs else None

    def get_class_indexing(self) -> dict[str, int]:
        """The number of each class by its name, for data sets in folders."""
        return self.inputs[0].get_class_indexing() if self.inputs else {}

    # Reading.

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> RowIterator[dict[str, Any]]:
        """Rows as dictionaries of tensors, or of arrays with `output_numpy`. Each `for` over it is an epoch."""
        unused("Dataset.create_dict_iterator", do_copy=do_copy)
        columns, make = self.columns, _identity if output_numpy else as_tensor
        return RowIterator(
            self, _epochs(num_epochs), lambda row: {n: make(v) for n, v in zip(columns, row, strict=True)}
        )

    def create_tuple_iterator(
        self,
        columns: Sequence[str] | str | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> RowIterator[list[Any]]:
        """Rows as lists of tensors, or of arrays with `output_numpy`; of some columns in an order, if that is said."""
        unused("Dataset.create_tuple_iterator", do_copy=do_copy)
        own = self.columns
        places = range(len(own)) if columns is None else known("columns", names("columns", columns), own)
        make = _identity if output_numpy else as_tensor
        return RowIterator(self, _epochs(num_epochs), lambda row: [make(row[k]) for k in places])

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self.create_tuple_iterator(num_epochs=1))

    def set_dynamic_columns(self, columns: object = None) -> None:
        """For programs that call this: shapes are those that come."""

    def reset(self) -> None:
        """For programs that call this: each iterator begins anew."""

    close_pool = reset

    # Making others.

    def map(
        self,
        operations: Any,
        input_columns: Any = None,
        output_columns: Any = None,
        num_parallel_workers: int | None = None,
        python_multiprocessing: bool = False,
        cache: object = None,
        callbacks: object = None,
        max_rowsize: object = None,
        offload: bool | None = None,
        column_order: Any = None,
    ) -> Dataset:
        """Apply one function, or several in turn, to columns of each row.

        Without `input_columns` the first columns are given. If there are as many results as inputs they take the places
        of those; otherwise `output_columns` names them, and they come first. Rows keep their order for any number of
        `num_parallel_workers`, which are threads. Transforms of the library are compiled where rows are read in
        batches: with the first one if `offload` is true, never if it is false, by default once that pays.
        """
        unused(
            "Dataset.map",
            python_multiprocessing=python_multiprocessing,
            cache=cache,
            callbacks=callbacks,
            max_rowsize=max_rowsize,
        )
        made = _stages().mapped_dataset(self, operations, input_columns, output_columns, num_parallel_workers, offload)
        return made if column_order is None else made.project(column_order)

    def filter(
        self, predicate: Callable[..., Any], input_columns: Any = None, num_parallel_workers: int | None = None
    ) -> Dataset:
        """The rows of which a function of columns, all of them by default, is true."""
        unused("Dataset.filter", num_parallel_workers=num_parallel_workers)
        return _stages().FilterDataset(self, predicate, input_columns)

    def batch(
        self,
        batch_size: int | Callable[..., int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: Any = None,
        output_columns: Any = None,
        column_order: Any = None,
        pad_info: Any = None,
        python_multiprocessing: bool = False,
        max_rowsize: object = None,
    ) -> Dataset:
        """Rows in batches: one axis more. `batch_size` may be a function of a BatchInfo.

        `per_batch_map(*columns, info)` gets lists of arrays before they are stacked, and gives lists. The last batch
        may be smaller, unless `drop_remainder`.
        """
        unused(
            "Dataset.batch",
            num_parallel_workers=num_parallel_workers,
            python_multiprocessing=python_multiprocessing,
            max_rowsize=max_rowsize,
        )
        if pad_info is not None:
            return self.padded_batch(batch_size, drop_remainder, pad_info=pad_info)
        made = _batches().BatchDataset(self, batch_size, drop_remainder, per_batch_map, input_columns, output_columns)
        return made if column_order is None else made.project(column_order)

    def padded_batch(
        self,
        batch_size: int | Callable[..., int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: Any = None,
    ) -> Dataset:
        """Batches of rows that are padded to one shape.

        `pad_info` says for columns to which shape, and with what: `{"x": ([None, 8], 0.5)}`; a None is the
        largest size of the batch. Without `pad_info` all columns are padded with zeros.
        """
        unused("Dataset.padded_batch", num_parallel_workers=num_parallel_workers)
        return _batches().PaddedBatchDataset(self, batch_size, drop_remainder, pad_info)

    def bucket_batch_by_length(
        self,
        column_names: Any,
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: Any = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batches of rows whose lengths are in one bucket, padded as `padded_batch` does.

        A length is the first size of the only column, or what a function of the columns gives. A bucket ends below its
        boundary; the last has none. With `pad_to_bucket_boundary` rows are padded to the boundary less one.
        """
        return _batches().BucketBatchDataset(
            self,
            column_names,
            bucket_boundaries,
            bucket_batch_sizes,
            element_length_function,
            pad_info,
            pad_to_bucket_boundary,
            drop_remainder,
        )

    def sync_wait(
        self, condition_name: str, num_batch: int = 1, callback: Callable[[Any], Any] | None = None
    ) -> Dataset:
        """Rows that wait after every `num_batch` for `sync_update(condition_name)`, whose data the callback is given.

        Raises MSC1312 after `ds.config.get_callback_timeout()` seconds.
        """
        return import_module("msc.dataset.waiting").SyncWaitDataset(self, condition_name, num_batch, callback)

    def sync_update(self, condition_name: str, num_batch: int | None = None, data: Any = None) -> None:
        """Let `num_batch` rows more through a `sync_wait` of this data set."""
        import_module("msc.dataset.waiting").updated(self, condition_name, num_batch, data)

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write the rows of an epoch as MindRecord: numbers and strings, arrays, and rank 1 of UInt8 as bytes."""
        import_module("msc.dataset.mindrecord").saved(self, file_name, num_files, file_type)

    def shuffle(self, buffer_size: int) -> Dataset:
        """Rows in a random order, another one each epoch: each is drawn from the next `buffer_size` ones."""
        return _stages().ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """The rows several times in one epoch, shuffled anew each time; without end for None and -1."""
        return _stages().RepeatDataset(self, count)

    def skip(self, count: int) -> Dataset:
        """The rows after the first ones."""
        return _stages().SliceDataset(self, count_of("count", count, 0), None)

    def take(self, count: int = -1) -> Dataset:
        """The first rows; all for -1."""
        number = count_of("count", count, -1)
        if number == 0:
            refuse("count", 0, "an integer of 1 or more, or -1")
        return _stages().SliceDataset(self, 0, None if number == -1 else number)

    def zip(self, datasets: Any) -> Dataset:
        """Rows with the columns of this and of other data sets, as many as the shortest has."""
        others = datasets if isinstance(datasets, tuple | list) else (datasets,)
        return _stages().ZipDataset((self, *others))

    def concat(self, datasets: Any) -> Dataset:
        """The rows of this data set, then those of others with the same columns."""
        others = datasets if isinstance(datasets, tuple | list) else (datasets,)
        return _stages().ConcatDataset((self, *others))

    def __add__(self, datasets: Any) -> Dataset:
        return self.concat(datasets)

    def rename(self, input_columns: Any, output_columns: Any) -> Dataset:
        """Other names for columns."""
        return _stages().RenameDataset(self, input_columns, output_columns)

    def project(self, columns: Any) -> Dataset:
        """Some columns, in an order."""
        return _stages().ProjectDataset(self, columns)

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """The rows of the data sets that a function makes of each row."""
        return _stages().FlatMapDataset(self, func)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What a function makes of this data set."""
        made: Any = apply_func(self)
        if not isinstance(made, Dataset):
            refuse("what apply_func gives", made, "a data set", is_type=True)
        return made

    def split(self, sizes: Sequence[int] | Sequence[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Parts that have no row in common: numbers of rows, or shares of 1. With `randomize` rows are drawn at random,
        the same ones in each epoch.
        """
        return _stages().split(self, sizes, randomize)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(columns={list(self.columns)})"


def _identity(array: Array) -> Any:
    return array


def _epochs(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < -1 or number == 0:
        refuse("num_epochs", number, "an integer of 1 or more, or -1 for no limit")
    return number


def skipping(rows: Iterator[Row], start: int) -> Iterator[Row]:
    """Rows without the first `start` ones, for stages that must make them to know what follows."""
    return rows if start == 0 else islice(rows, start, None)


publish_methods(Dataset, "Dataset", without=Dataset.FOR_MSC)
