"""Quantisation-aware training: `from msc.train.quant import quant`, as MindSpore's tutorials spell it."""

from msc.train.quant import quant
from msc.train.quant.quant import (
    LearnedStepSizeQuantizationAwareTraining,
    SimulatedQuantizationAwareTraining,
    convert_quant_network,
    export,
)

__all__ = [
    "LearnedStepSizeQuantizationAwareTraining",
    "SimulatedQuantizationAwareTraining",
    "convert_quant_network",
    "export",
    "quant",
]
