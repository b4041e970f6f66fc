"""MindSpore's `common.parameter`."""

from msc.frontend.parameter import Parameter, ParameterTuple

__all__ = ["Parameter", "ParameterTuple"]
