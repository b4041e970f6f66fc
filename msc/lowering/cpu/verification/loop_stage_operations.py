"""The closed list of operations that are legal at the loop stage, by their context."""

from __future__ import annotations

_ARITH_UNARY = "negf index_cast fptosi fptoui sitofp uitofp extf truncf trunci extsi extui bitcast"
_ARITH_BINARY = (
    "addf subf mulf divf maximumf minimumf addi subi muli divsi divui remsi remui floordivsi ceildivsi"
    " maxsi minsi maxui minui andi ori xori shli shrsi shrui"
)
_ARITH_OTHER = "constant cmpf cmpi select"
_MATH = (
    "absf absi acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp exp2 expm1 floor fma"
    " ipowi log log10 log1p log2 powf round roundeven rsqrt sin sinh sqrt tan tanh trunc"
)
_LANES = "cmpf cmpi select remf sitofp uitofp fptosi fptoui extsi extui trunci extf truncf bitcast"
_VECTOR = "broadcast reduction"


def _names(dialect: str, mnemonics: str) -> frozenset[str]:
    return frozenset(f"{dialect}.{mnemonic}" for mnemonic in mnemonics.split())


SCALARS = _names("arith", f"{_ARITH_UNARY} {_ARITH_BINARY} {_ARITH_OTHER}") | _names("math", _MATH)
"""Computation on scalars and, lane by lane, on vectors."""

LANES = _names("arith", _LANES) | _names("math", "copysign")
"""What `loop.lanes` may stand for: upstream operations that xDSL lacks, or does not take on vectors."""

KERNEL = (
    SCALARS
    | _names("vector", _VECTOR)
    | _names("memref", "alloca load store")
    | _names("loop", "for load store prefetch apply lanes add_products argsort")
    | _names("func", "return")
)
"""In the function of a kernel."""

ENTRY = (
    SCALARS
    | _names("memref", "view reinterpret_cast copy load store")
    | _names("loop", "slice")
    | _names("scf", "if for while yield condition")
    | _names("func", "call return")
)
"""In the entry function, planned."""

TOP_LEVEL = _names("ms", "parameter") | _names("func", "func")
"""Directly in the module. What stands in a parameter's region is evaluated at compile time and is not of this stage."""
