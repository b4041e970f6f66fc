"""Integer functions of generated C that are defined for every pair of operands: division, shifts, powers.

On vectors, divisions run lane by lane: no vector machine divides integers.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.template import Template
from msc.codegen.c.text import sections
from msc.support.escaping import c_comment

INTEGERS = sections("integers.h")

_EXPRESSIONS: Mapping[str, tuple[str, str]] = {
    "div": (
        "x / 0 is 0, and the one quotient that overflows wraps.",
        "{b} == 0 ? ({e})0 : {b} == -1 ? ({e})(0 - ({ue}){a}) : ({e})({a} / {b})",
    ),
    "rem": ("x % 0 is 0.", "{b} == 0 || {b} == -1 ? ({e})0 : ({e})({a} % {b})"),
    "divu": ("x / 0 is 0.", "{b} == 0 ? ({e})0 : ({e})(({ue}){a} / ({ue}){b})"),
    "remu": ("x % 0 is 0.", "{b} == 0 ? ({e})0 : ({e})(({ue}){a} % ({ue}){b})"),
    "shl": (
        "A shift by the width or more leaves no bit of a.",
        "{b} >= 0 && {b} < {bits} ? ({e})(({ue}){a} << {b}) : ({e})0",
    ),
    "shru": (
        "A shift by the width or more leaves no bit of a.",
        "{b} >= 0 && {b} < {bits} ? ({e})(({ue}){a} >> {b}) : ({e})0",
    ),
    "shrs": (
        "A shift by the width or more leaves the sign.",
        "{b} >= 0 && {b} < {bits} ? ({e})({a} >> {b}) : ({e})({a} < 0 ? -1 : 0)",
    ),
}
"""Function -> what it defines, and its value for operands {a} and {b}."""

_SHIFTS: Mapping[str, str] = {
    "shl": "({v})(({u})a << (({u})b & ({bits} - 1))) & inside",
    "shru": "({v})(({u})a >> (({u})b & ({bits} - 1))) & inside",
    "shrs": "a >> ((b & inside) | (({bits} - 1) & ~inside))",
}
"""Function -> the value of vectors `a` and `b`, where `inside` is the mask of amounts below the width."""

_DIRECTED: Mapping[str, tuple[str, str, str]] = {
    "floordiv": ("minus infinity", "!=", "- 1"),
    "ceildiv": ("plus infinity", "==", "+ 1"),
}
"""Function -> where it rounds to, when the truncated quotient is not it (the signs), and how they differ."""


def _filled(expression: str, a: str, b: str) -> str:
    return expression.replace("{a}", a).replace("{b}", b)


def _elementwise(name: str, comment: str, expression: str) -> Template:
    head = (
        f"{c_comment(f'Defined for every pair: {comment}')}\nstatic inline {{v}} {name}_{{f}}({{v}} a, {{v}} b)\n{{\n"
    )
    lanes = (
        "    {v} result = a;\n    for (int lane = 0; lane < {n}; ++lane)\n"
        f"        result[lane] = {_filled(expression, 'a[lane]', 'b[lane]')};\n    return result;\n}}\n"
    )
    if name in _SHIFTS:
        lanes = f"    const {{v}} inside = (b >= 0) & (b < {{bits}});\n    return {_SHIFTS[name]};\n}}\n"
    return Template(head + lanes, variants={0: f"{head}    return {_filled(expression, 'a', 'b')};\n}}\n"})


def _directed(name: str, rounded: str, signs: str, step: str) -> Template:
    """Division rounded in one direction, on top of `div` and `rem`."""
    head = f"{c_comment(f'Rounded towards {rounded}.')}\nstatic inline {{v}} {name}_{{f}}({{v}} a, {{v}} b)\n{{\n"
    quotient = "    const {v} q = div_{f}(a, b);\n"
    lanes = f"    return q {step[0]} (({{v}})((rem_{{f}}(a, b) != 0) & ((a < 0) {signs} (b < 0))) & 1);\n}}\n"
    scalar = f"    return rem_{{f}}(a, b) != 0 && (a < 0) {signs} (b < 0) ? ({{v}})(q {step}) : q;\n}}\n"
    return Template(head + quotient + lanes, ("div", "rem"), variants={0: head + quotient + scalar})


_WRAPPED = "{x} >= 0x1p63 ? (uint64_t)(int64_t)({x} - 0x1p63) + (UINT64_C(1) << 63) : (uint64_t)(int64_t){x}"
_TO_U64 = c_comment("As of the processor's conversion to i64; C's own to u64 differs between scalars and vectors.")

U64_FROM = Template(
    f"{_TO_U64}\nstatic inline u64x{{n}} u64_from_{{f}}({{v}} x)\n{{\n"
    "    u64x{n} result = {0};\n    for (int lane = 0; lane < {n}; ++lane)\n"
    f"        result[lane] = {_WRAPPED.replace('{x}', 'x[lane]')};\n    return result;\n}}\n",
    variants={
        0: f"{_TO_U64}\nstatic inline uint64_t u64_from_{{f}}({{v}} x)\n{{\n"
        f"    return {_WRAPPED.replace('{x}', 'x')};\n}}\n"
    },
    types=("u64",),
)
"""A float as u64, where C leaves undefined what does not fit."""

INTEGER_TEMPLATES: Mapping[str, Template] = {
    "u64_from": U64_FROM,
    **{name: _elementwise(name, *parts) for name, parts in _EXPRESSIONS.items()},
    **{name: _directed(name, *parts) for name, parts in _DIRECTED.items()},
    "mulhr": Template(INTEGERS["upper_half"]),
    "saturated": Template(INTEGERS["saturated"]),
    "dot_bytes": Template(INTEGERS["dot_bytes_lanes"], variants={0: INTEGERS["dot_bytes"]}),
    "ipow": Template(INTEGERS["power_lanes"], variants={0: INTEGERS["power"]}),
}
"""By name, callees before callers."""
