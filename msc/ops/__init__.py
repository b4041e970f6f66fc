"""Functions on tensors, as MindSpore's `ops`."""

from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.tensor import Tensor
from msc.ops.activation import relu, softmax
from msc.ops.arithmetic import (
    add,
    atan2,
    div,
    floor_divide,
    floor_mod,
    fmod,
    maximum,
    minimum,
    mul,
    pow,
    sub,
)
from msc.ops.linear import dense, matmul
from msc.ops.shapes import cast, flatten, reshape, transpose
from msc.ops.windows import conv2d

__all__ = [
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "add",
    "atan2",
    "cast",
    "conv2d",
    "dense",
    "div",
    "flatten",
    "floor_divide",
    "floor_mod",
    "fmod",
    "matmul",
    "maximum",
    "minimum",
    "mul",
    "pow",
    "relu",
    "reshape",
    "softmax",
    "sub",
    "transpose",
]
