"""Metrics, where MindSpore 2 has them."""

from msc.nn import metrics
from msc.nn.metrics import *  # noqa: F403

__all__: list[str] = []
__all__ += metrics.__all__
