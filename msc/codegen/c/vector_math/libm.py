"""Functions that are calls of the C library lane by lane: every f64 function, and the rare f32 ones."""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import ErrorBound
from msc.poly.scalar import OPERATORS

LIBM_BOUND = ErrorBound(4)
"""What is assumed of the system's libm; glibc and musl stay below it for the functions listed here."""

_EXACT = frozenset({"sqrt", "floor", "ceil", "trunc", "rint", "fmod"})

LIBM_ARITY: Mapping[str, int] = {
    **{"log10": 1, "erfc": 1, "cbrt": 1, "hypot": 2},
    **{operator.c: operator.arity for operator in OPERATORS.values() if operator.c},
}
"""libm functions by name (of the f64 form) and how many arguments they take."""

COMPOSED: Mapping[str, str] = {
    "rsqrt": "    return 1.0 / sqrt(x);",
    "sigmoid": "    const double e = exp(-fabs(x));\n    return (x < 0.0 ? e : 1.0) / (1.0 + e);",
    "softplus": "    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));",
}
"""f64 functions that libm lacks: bodies of their scalar form over ``x``."""

_C_TYPES: Mapping[str, tuple[str, str, int]] = {"f32": ("float", "f", 4), "f64": ("double", "", 8)}


def has_libm_form(name: str, dtype: str) -> bool:
    """Whether ``name`` is a libm function, or (f64 only) composed of some."""
    return dtype in _C_TYPES and (name in LIBM_ARITY or (dtype == "f64" and name in COMPOSED))


def libm_bound(name: str) -> ErrorBound:
    """The stated error of the libm form; correctly rounded ones have half a unit."""
    return ErrorBound(0.5) if name in _EXACT else LIBM_BOUND


def libm_scalar(name: str, dtype: str) -> str:
    """C text of ``msc_<name>_<dtype>`` on one scalar."""
    ctype, suffix, _ = _C_TYPES[dtype]
    arguments = _arguments(name)
    body = COMPOSED.get(name, f"    return {name}{suffix}({', '.join(arguments)});")
    parameters = ", ".join(f"{ctype} {a}" for a in arguments)
    return f"MSC_INLINE {ctype} msc_{name}_{dtype}({parameters})\n{{\n{body}\n}}\n"


def lane_loop(name: str, dtype: str, lanes: int) -> str:
    """C text of ``msc_<name>_<dtype>x<lanes>``: a loop over the scalar form."""
    vector = f"{dtype}x{lanes}"
    arguments = _arguments(name)
    parameters = ", ".join(f"{vector} {a}" for a in arguments)
    call = f"msc_{name}_{dtype}({', '.join(f'{a}[lane]' for a in arguments)})"
    return (
        f"MSC_INLINE {vector} msc_{name}_{vector}({parameters})\n{{\n"
        f"    {vector} result = {arguments[0]};\n    for (int lane = 0; lane < {lanes}; ++lane)\n"
        f"        result[lane] = {call};\n    return result;\n}}\n"
    )


def vector_type(dtype: str, lanes: int) -> str:
    """C text of the vector type alone."""
    ctype, _, size = _C_TYPES[dtype]
    return f"typedef {ctype} {dtype}x{lanes} __attribute__((vector_size({size} * {lanes})));\n"


def _arguments(name: str) -> tuple[str, ...]:
    return ("x", "y")[: LIBM_ARITY.get(name, 1)]
