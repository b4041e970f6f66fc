"""NumPy's names on tensors, as MindSpore's `numpy`: `import msc.numpy as mnp`; numbers and lists are operands too."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from msc.frontend.boundary import publish
from msc.frontend.dtypes import (
    bfloat16, bool_, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8,
)
from msc.frontend.errors import missing_name
from msc.frontend.tensor import Tensor
from msc.numpy.creation import (
    all, amax, amin, any, arange, argmax, argmin, array, asarray, average, copy, count_nonzero, cumsum, diff,
    empty, empty_like, eye, full, full_like, identity, linspace, logspace, max, mean, meshgrid, min, nansum,
    ones, ones_like, prod, ptp, std, sum, trapz, var, zeros, zeros_like,
)
from msc.numpy.functions import (
    allclose, append, apply_along_axis, argsort, around, array_equal, atleast_1d, atleast_2d, bincount,
    broadcast_arrays, broadcast_to, clip, column_stack, concatenate, convolve, divmod, dot, dsplit, dstack,
    expand_dims, heaviside, histogram, hsplit, hstack, hypot, inner, isclose, log2, logaddexp, matmul, ndim,
    outer, pad, power, ravel, repeat, reshape, roll, round, rsqrt, select, shape, size, sort, split, squeeze,
    stack, swapaxes, take, tensordot, tile, trace, transpose, unique, vsplit, vstack, where,
)
from msc.ops import (
    abs, absolute, acos as arccos, acosh as arccosh, add, asin as arcsin, asinh as arcsinh, atan as arctan,
    atan2 as arctan2, atanh as arctanh, bitwise_and, bitwise_or, bitwise_xor, ceil, cos, cosh, cross, cumprod,
    deg2rad, diag, diagonal, div as divide, einsum, equal, erf, exp, exp2, expm1, trunc as fix, flip, fliplr,
    flipud, floor, floor_divide, fmod, greater, greater_equal, isfinite, isinf, isnan, less, less_equal, log,
    log10, log1p, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mul as multiply, movedim
    as moveaxis, neg as negative, nonzero, not_equal, rad2deg, reciprocal, floor_mod as mod, floor_mod as
    remainder, rint, rot90, sign, sin, sinh, sqrt, square, sub as subtract, tan, tanh, tril, triu, true_divide,
    trunc,
)

pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
degrees, radians = rad2deg, deg2rad
float_, int_, uint = float32, int64, uint64

__all__ = [
    "Tensor", "abs", "absolute", "add", "all", "allclose", "amax", "amin", "any", "append", "apply_along_axis",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort",
    "around", "array", "array_equal", "asarray", "atleast_1d", "atleast_2d", "average", "bfloat16", "bincount",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bool_", "broadcast_arrays", "broadcast_to", "ceil", "clip",
    "column_stack", "concatenate", "convolve", "copy", "cos", "cosh", "count_nonzero", "cross", "cumprod", "cumsum",
    "deg2rad", "degrees", "diag", "diagonal", "diff", "divide", "divmod", "dot", "dsplit", "dstack", "e", "einsum",
    "empty", "empty_like", "equal", "erf", "exp", "exp2", "expand_dims", "expm1", "eye", "fix", "flip", "fliplr",
    "flipud", "float16", "float32", "float64", "float_", "floor", "floor_divide", "fmod", "full", "full_like",
    "greater", "greater_equal", "heaviside", "histogram", "hsplit", "hstack", "hypot", "identity", "inf", "inner",
    "int8", "int16", "int32", "int64", "int_", "isclose", "isfinite", "isinf", "isnan", "less", "less_equal",
    "linspace", "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logspace", "matmul", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod", "moveaxis",
    "multiply", "nan", "nansum", "ndim", "negative", "newaxis", "nonzero", "not_equal", "ones", "ones_like", "outer",
    "pad", "pi", "power", "prod", "ptp", "rad2deg", "radians", "ravel", "reciprocal", "remainder", "repeat",
    "reshape", "rint", "roll", "rot90", "round", "rsqrt", "select", "shape", "sign", "sin", "sinh", "size", "sort",
    "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "tan", "tanh",
    "tensordot", "tile", "trace", "transpose", "trapz", "tril", "triu", "true_divide", "trunc", "uint", "uint8",
    "uint16", "uint32", "uint64", "unique", "var", "vsplit", "vstack", "where", "zeros", "zeros_like",
]


publish(globals(), __all__, "numpy")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.numpy", name, __all__)
