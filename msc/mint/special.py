"""MindSpore's `mint.special`."""

from msc import ops

erfc, exp2, expm1, log1p, round, sinc = ops.erfc, ops.exp2, ops.expm1, ops.log1p, ops.round, ops.sinc
log_softmax = ops.log_softmax
__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]
