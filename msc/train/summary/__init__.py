"""Records for TensorBoard, as MindSpore's `train.summary`."""

from msc.frontend.boundary import publish
from msc.train.summary.recording import SummaryCollector, SummaryRecord

__all__ = ["SummaryCollector", "SummaryRecord"]

publish(globals(), __all__, "train.summary")
