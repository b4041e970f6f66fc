"""MindSpore's `common`: the names that programs import from there. Nothing is defined here."""

from msc.frontend import boundary
from msc.frontend.dtypes import DType as DType
from msc.frontend.mutable import mutable as mutable
from msc.frontend.parameter import Parameter as Parameter
from msc.frontend.parameter import ParameterTuple as ParameterTuple
from msc.frontend.randomness import get_seed as get_seed
from msc.frontend.randomness import set_seed as set_seed
from msc.ops import Tensor as Tensor

boundary.surface(globals(), "common")
