"""Training: models, callbacks, metrics and checkpoints, as MindSpore's `train`."""

# isort: off
# fmt: off
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name
from msc.nn.metrics import *  # noqa: F403
from msc.train import metrics
from msc.train import callback, model, serialization
from msc.train.callback import *  # noqa: F403
from msc.train.model import Model
from msc.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint
from msc.train.summary import SummaryCollector, SummaryRecord

__all__ = [
    "Model", "SummaryCollector", "SummaryRecord", "callback", "load_checkpoint", "load_param_into_net", "metrics",
    "model", "save_checkpoint", "serialization",
]
__all__ += callback.__all__
__all__ += metrics.__all__

publish(globals(), ["Model", "load_checkpoint", "load_param_into_net", "save_checkpoint"], "train")


def __getattr__(name: str) -> object:
    raise missing_name("msc.train", name, __all__)
