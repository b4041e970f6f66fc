"""What comes before and after training: so far checkpoints."""

from msc.frontend.boundary import publish
from msc.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = ["load_checkpoint", "load_param_into_net", "save_checkpoint"]

publish(globals(), __all__, "train")
