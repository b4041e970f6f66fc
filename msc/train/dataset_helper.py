"""MindSpore's `DatasetHelper`: the batches of one epoch after another, for loops that a program writes itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msc.dataset.base import Dataset
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.nn.cell import Cell
from msc.support.argument_values import described

__all__ = ["DatasetHelper", "connect_network_with_dataset"]


class DatasetHelper:
    """Iterates over the batches of a data set as tuples of tensors: an epoch, or `sink_size` batches, each time.

    Without sinks a loop gives the batches to the network. With them the network that `connect_network_with_dataset`
    gives takes them itself, and the loop gets an empty tuple for each. Raises MSC0833 for other arguments.
    """

    def __init__(self, dataset: Dataset, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1):
        if not isinstance(dataset, Dataset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApiTypeError("MSC0833", f"DatasetHelper: dataset is {described(dataset)}; it takes a data set")
        if sink_size < -1 or sink_size == 0:
            raise ApiValueError("MSC0833", f"DatasetHelper: sink_size is {described(sink_size)}; it is -1 or positive")
        self._dataset, self._is_sinking = dataset, bool(dataset_sink_mode)
        self._size = dataset.get_dataset_size() if sink_size == -1 else sink_size
        self._epochs = epoch_num
        self._rows: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for _ in range(self._size):
            yield () if self._is_sinking else self.next_batch()

    def next_batch(self) -> tuple[Any, ...]:
        """The next batch; the first of the next epoch after the last one."""
        row = next(self._rows, None)
        if row is None:
            self._rows = self._dataset.create_tuple_iterator()
            row = next(self._rows)
        return tuple(row)

    @property
    def is_sinking(self) -> bool:
        """Whether the network takes the batches itself."""
        return self._is_sinking

    def sink_size(self) -> int:
        """How many batches a loop has."""
        return self._size

    def types_shapes(self) -> tuple[list[Any], list[Any]]:
        """The element types and the shapes of the columns."""
        return self._dataset.output_types(), self._dataset.output_shapes()

    def stop_send(self) -> None:
        """Nothing: batches are read when they are needed."""

    def continue_send(self) -> None:
        """Nothing: batches are read when they are needed."""

    def release(self) -> None:
        """Forget the epoch that is being read."""
        self._rows = iter(())

    def get_data_info(self) -> tuple[list[Any], list[Any]]:
        """The element types and the shapes of the columns."""
        return self.types_shapes()

    def dynamic_min_max_shapes(self) -> tuple[list[Any], list[Any]]:
        """The smallest and the largest shapes of the columns."""
        shapes = self._dataset.output_shapes()
        return shapes, shapes


class _Connected(Cell):
    """A network that takes its inputs from a data set."""

    def __init__(self, network: Cell, helper: DatasetHelper) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self._helper = helper

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        return self.network(*(inputs or self._helper.next_batch()), **keywords)

    def construct(self, *inputs: Any) -> Any:
        return self.network(*inputs)


def connect_network_with_dataset(network: Cell, dataset_helper: DatasetHelper) -> Cell:
    """The network, which takes a batch of the helper's data set at each call without inputs."""
    if not isinstance(dataset_helper, DatasetHelper):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ApiTypeError("MSC0833", f"dataset_helper is {described(dataset_helper)}; it is a DatasetHelper")
    return _Connected(network, dataset_helper) if dataset_helper.is_sinking else network
