"""floor, ceil, trunc, rint for f32: exact, by x86's instruction, or by adding 2^23: larger f32 are integers."""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import ErrorBound, MathTemplate, VectorFunction

_RINT_TEXT = """
/* To nearest, ties to even. */
MSC_INLINE f32x@ msc_rint_f32x@(f32x@ x)
{
#if defined(__AVX512F__) && @ == 16
    return __builtin_ia32_rndscaleps_mask(x, 8, x, -1, 4);
#elif defined(__AVX__) && @ == 8
    return __builtin_ia32_roundps256(x, 8);
#elif defined(__SSE4_1__) && @ == 4
    return __builtin_ia32_roundps(x, 8);
#else
    const f32x@ a = msc_abs_f32x@(x);
    const f32x@ nearest = msc_withsign_f32x@((a + 0x1p23f) - 0x1p23f, x);
    return msc_select_f32x@(a < 0x1p23f, nearest, x);
#endif
}
"""

_DIRECTED_TEXT = """
MSC_INLINE f32x@ msc_{name}_f32x@(f32x@ x)
{{
    const f32x@ nearest = msc_rint_f32x@(x);
    const f32x@ one = msc_splat_f32x@(1.0f);
    const f32x@ rounded = msc_select_f32x@(nearest {wrong} x, nearest {step} one, nearest);
    return msc_withsign_f32x@(msc_abs_f32x@(rounded), x);
}}
"""

_TRUNC_TEXT = """
MSC_INLINE f32x@ msc_trunc_f32x@(f32x@ x)
{
    return msc_withsign_f32x@(msc_floor_f32x@(msc_abs_f32x@(x)), x);
}
"""


def _directed(name: str, wrong: str, step: str) -> VectorFunction:
    """The floor or ceil template: the nearest integer, moved by one when it is on the wrong side."""
    return VectorFunction(
        MathTemplate(_DIRECTED_TEXT.format(name=name, wrong=wrong, step=step), ("rint", "splat")), ErrorBound(0)
    )


ROUNDING: Mapping[str, VectorFunction] = {
    "rint": VectorFunction(MathTemplate(_RINT_TEXT, ("select", "abs", "withsign")), ErrorBound(0)),
    "floor": _directed("floor", ">", "-"),
    "ceil": _directed("ceil", "<", "+"),
    "trunc": VectorFunction(MathTemplate(_TRUNC_TEXT, ("floor",)), ErrorBound(0)),
}
