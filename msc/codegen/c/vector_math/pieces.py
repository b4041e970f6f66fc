"""Odd functions that rise to 1 as x times one of sixteen polynomials, where sixteen coefficients fit a register."""

from __future__ import annotations

from collections.abc import Sequence

from msc.codegen.c.vector_math.template import MathTemplate, literal

Pieces = Sequence[Sequence[float]]
"""Of f(a) / a: for each power of t = a - k step from the constant term up, a coefficient for each k = 0, ..., 15."""


def tables(name: str, pieces: Pieces) -> MathTemplate:
    """The coefficients as C vectors, where the machine looks them up in one instruction."""
    rows = ",\n".join(map(_row, pieces))
    text = f"""
#ifdef __AVX512F__
static const f32x16 msc_{name}_pieces[] = {{
{rows}
}};
#endif
"""
    return MathTemplate(text, ("permute",))


def _row(row: Sequence[float]) -> str:
    values = [literal(value) for value in row]
    return "    {" + ", ".join(values[:8]) + ",\n     " + ", ".join(values[8:]) + "}"


def evaluation(name: str, pieces: Pieces, step: float, one: float) -> str:
    """C statements that return f(x), given a = |x|; at `one` the last polynomial is 1, and so is f from there on."""
    *rest, last = (f"msc_lookup_f32x@(&msc_{name}_pieces[{k}], (i32x@)nearest)" for k in range(len(pieces)))
    terms = "\n".join(f"    p = p * t + {term};" for term in reversed(rest))
    return f"""    /* The bits of 1.5 * 2^23 + k end in k. */
    const f32x@ bounded = msc_least_f32x@({literal(one)}, a);
    const f32x@ nearest = bounded * {literal(round(1 / step, 7))} + 12582912.0f;
    const f32x@ t = bounded - (nearest - 12582912.0f) * {literal(step)};
    f32x@ p = {last};
{terms}
    return msc_withsign_f32x@(p * bounded, x);"""


PIECEWISE = ("lookup", "least", "abs", "withsign")
"""What the evaluation calls."""
