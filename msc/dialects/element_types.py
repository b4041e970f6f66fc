"""Element types: between xDSL's attributes, the names that compute definitions use, and classes of types."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

_FLOATS: dict[str, Attribute] = {
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f32": Float32Type(),
    "f64": Float64Type(),
}
_INTEGERS: dict[str, Attribute] = {
    **{f"i{bits}": IntegerType(bits) for bits in (1, 8, 16, 32, 64)},
    **{f"ui{bits}": IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16, 32, 64)},
}
ELEMENT_TYPES: dict[str, Attribute] = {**_FLOATS, **_INTEGERS}
_NAMES = {attribute: name for name, attribute in ELEMENT_TYPES.items()}
BYTES = {
    name: 8 if name.endswith("64") else 4 if name.endswith("32") else 2 if name.endswith("16") else 1
    for name in ELEMENT_TYPES
}

NARROW_FLOATS = frozenset({"f16", "bf16"})
"""Floats that are only stored: they are computed on in f32."""


def dtype_name(element_type: Attribute) -> str | None:
    """The name of an element type ("f32"), or None if msc does not compute on it."""
    return "index" if isinstance(element_type, IndexType) else _NAMES.get(element_type)


def element_type(name: str) -> Attribute:
    """The attribute of an element type named as MLIR names it; KeyError for others."""
    return ELEMENT_TYPES[name]


def is_float(dtype: str) -> bool:
    """Floats of any width."""
    return dtype in _FLOATS


def is_integer(dtype: str) -> bool:
    """Integers proper: "i1" is the boolean."""
    return dtype in _INTEGERS and dtype != "i1"


def is_signed(dtype: str) -> bool:
    """Floats and signed integers."""
    return dtype in _FLOATS or (dtype in _INTEGERS and not dtype.startswith("u") and dtype != "i1")


_NUMBERS = frozenset(ELEMENT_TYPES) - {"i1"}
FAMILIES: dict[str, frozenset[str]] = {
    "any": frozenset(ELEMENT_TYPES),
    "a number": _NUMBERS,
    "a float": frozenset(_FLOATS),
    "an integer": _NUMBERS - frozenset(_FLOATS),
    "a signed integer": frozenset(name for name in _INTEGERS if name[0] == "i" and name != "i1"),
    "a signed number": frozenset(name for name in _NUMBERS if name[0] != "u"),
    "a boolean": frozenset({"i1"}),
}
"""What an operand may be: families of element types, named as messages name them."""
