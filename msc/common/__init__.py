"""MindSpore's `common`: the names that programs import from there. Nothing is defined here."""

from msc.frontend.boundary import publish
from msc.frontend.dtypes import DType
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.randomness import get_seed, set_seed
from msc.ops import Tensor

__all__ = ["DType", "Parameter", "ParameterTuple", "Tensor", "get_seed", "set_seed"]

publish(globals(), __all__, "common")
