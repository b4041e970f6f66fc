"""Rows that wait until somebody allows them: `Dataset.sync_wait` and `sync_update`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from msc.dataset import arguments, config
from msc.dataset.arguments import refuse
from msc.dataset.base import Dataset
from msc.dataset.runs import EpochRun
from msc.dataset.stages import DerivedDataset
from msc.dataset.values import Row
from msc.frontend.errors import ApiError


class SyncWaitDataset(DerivedDataset):
    """Gives `num_batch` rows of a pass, and as many more after each update. See `Dataset.sync_wait`."""

    def __init__(self, source: Dataset, condition: Any, num_batch: Any, callback: Callable[[Any], Any] | None) -> None:
        super().__init__(source)
        if not isinstance(condition, str):
            refuse("condition_name", condition, "a name", is_type=True)
        if callback is not None and not callable(callback):
            refuse("callback", callback, "a function", is_type=True)
        self.condition, self._callback = condition, callback
        self._step = arguments.count("num_batch", num_batch)
        self._allowed = self._step
        self._changed = threading.Condition()

    def rows(self, run: EpochRun, start: int = 0) -> Iterator[Row]:
        with self._changed:
            self._allowed = self._step
        for number, row in enumerate(self.source.rows(run.inside(0), start)):
            seconds = config.get_callback_timeout()
            with self._changed:
                if not self._changed.wait_for(lambda n=number: n < self._allowed, seconds):
                    raise ApiError(
                        "MSC1312",
                        f"nobody called sync_update('{self.condition}') within {seconds} seconds",
                        help="call it after each of the batches that sync_wait counts, or set_callback_timeout",
                    )
            yield row

    def update(self, number: int | None, data: Any) -> None:
        """Allow more rows, and tell the callback."""
        if self._callback is not None:
            self._callback(data)
        with self._changed:
            self._allowed += self._step if number is None else arguments.count("num_batch", number)
            self._changed.notify_all()


def updated(dataset: Dataset, condition: Any, number: int | None, data: Any) -> None:
    """Allow more rows of the stage of a condition. Raises MSC0871 if there is none."""
    stages = [dataset]
    while stages:
        stage = stages.pop()
        if isinstance(stage, SyncWaitDataset) and stage.condition == condition:
            stage.update(number, data)
            return
        stages += stage.inputs
    refuse("condition_name", condition, "that of a sync_wait of this data set")
