"""Training: models, callbacks, metrics and checkpoints, as MindSpore's `train`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from collections.abc import Callable
from importlib import import_module

from msc.frontend.boundary import elsewhere, publish
from msc.nn.metrics import *
from msc.nn import metrics
from msc.train import callback, model, serialization
from msc.train import dataset_helper as dataset_helper, quant as quant
from msc.train.callback import *
from msc.nn.optim.loss_scale import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from msc.train.data_sink import data_sink
from msc.train.model import Model
from msc.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint
from msc.train.summary import SummaryCollector, SummaryRecord

__all__ = [
    "DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "Model", "SummaryCollector",
    "SummaryRecord", "callback", "data_sink", "load_checkpoint", "load_param_into_net", "metrics", "model",
    "save_checkpoint", "serialization",
]  # fmt: skip
__all__ += callback.__all__
__all__ += metrics.__all__

publish(globals(), ["Model", "data_sink", "load_checkpoint", "load_param_into_net", "save_checkpoint"], "train")


if TYPE_CHECKING:
    from msc import amp as amp

    export: Callable[..., str]

else:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        if name == "amp":
            return import_module("msc.amp")
        if name == "export":
            return import_module("msc").export
        return elsewhere("msc.train", name, __all__)
