"""NumPy's names on tensors, as MindSpore's `numpy`: `import msc.numpy as mnp`; numbers and lists are operands too."""

# isort: off
# fmt: off
from msc import ops
from msc.frontend import boundary
from msc.frontend.dtypes import (
    bfloat16 as bfloat16, bool_ as bool_, float16 as float16, float32 as float32, float64 as float64, int16
    as int16, int32 as int32, int64 as int64, int8 as int8, uint16 as uint16, uint32 as uint32, uint64 as uint64,
    uint8 as uint8,
)
from msc.frontend.tensor import Tensor as Tensor
from msc.numpy.creation import *
from msc.numpy.functions import *
from msc.numpy.elementwise import *
from msc.numpy.places import *
from msc.numpy.polynomials import *
from msc.numpy.statistics import *
from msc.ops import (
    abs as abs, absolute as absolute, add as add, bitwise_and as bitwise_and, bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor, ceil as ceil, cos as cos, cosh as cosh, cross as cross, cumprod as cumprod,
    deg2rad as deg2rad, diag as diag, diagonal as diagonal, einsum as einsum, equal as equal, erf as erf,
    exp as exp, exp2 as exp2, expm1 as expm1, flip as flip, fliplr as fliplr, flipud as flipud, floor as floor,
    floor_divide as floor_divide, fmod as fmod, greater as greater, greater_equal as greater_equal,
    isfinite as isfinite, isinf as isinf, isnan as isnan, less as less, less_equal as less_equal, log as log,
    log10 as log10, log1p as log1p, logical_and as logical_and, logical_not as logical_not,
    logical_or as logical_or, logical_xor as logical_xor, maximum as maximum, minimum as minimum,
    nonzero as nonzero, not_equal as not_equal, rad2deg as rad2deg, reciprocal as reciprocal, rint as rint,
    rot90 as rot90, sign as sign, sin as sin, sinh as sinh, sqrt as sqrt, square as square, tan as tan,
    tanh as tanh, tril as tril, triu as triu, true_divide as true_divide, trunc as trunc,
)

arccos = ops.acos
arccosh = ops.acosh
arcsin = ops.asin
arcsinh = ops.asinh
arctan = ops.atan
arctan2 = ops.atan2
arctanh = ops.atanh
divide = ops.div
fix = ops.trunc
multiply = ops.mul
moveaxis = ops.movedim
negative = ops.neg
mod = ops.floor_mod
remainder = ops.floor_mod
subtract = ops.sub
pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
degrees, radians = rad2deg, deg2rad
float_, int_, uint = float32, int64, uint64

boundary.surface(globals(), "numpy")
