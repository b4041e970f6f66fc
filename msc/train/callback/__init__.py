"""Callbacks, as MindSpore's `train.callback`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from importlib import import_module

from msc.frontend.boundary import elsewhere, publish
from msc.train.callback.base import Callback, RunContext
from msc.train.callback.checkpoints import CheckpointConfig, ModelCheckpoint
from msc.train.callback.monitors import History, LambdaCallback, LossMonitor, ProgressBar, TimeMonitor
from msc.train.callback.stopping import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau

__all__ = [
    "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
    "LossMonitor", "ModelCheckpoint", "ProgressBar", "ReduceLROnPlateau", "RunContext", "TimeMonitor",
]

publish(globals(), __all__, "train.callback")


if TYPE_CHECKING:
    from msc.train.summary import SummaryCollector as SummaryCollector

else:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        if name == "SummaryCollector":
            return import_module("msc.train.summary").SummaryCollector
        return elsewhere("msc.train.callback", name, __all__)
