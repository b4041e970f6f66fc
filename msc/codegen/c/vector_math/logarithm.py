"""log, log2, log1p, softplus for f32.

x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), taken from the bits; then log(1 + f) = f - f^2 / 2 + f^3 P(f).
Coefficients are fitted as those of the exponentials are.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import ErrorBound, MathTemplate, VectorFunction, horner

_LOG = (0.3333333, -0.2500082, 0.20001242, -0.16623409, 0.14201581, -0.13159613, 0.127622, -0.076363996)
"""(log(1 + f) - f + f^2 / 2) / f^3; relative error of log(1 + f) 2^-27.4."""

_LOG2 = (
    -0.72134733, 0.4808982, -0.36069867, 0.28857142, -0.23956735, 0.20448658, -0.19139083, 0.18708819, -0.1102559,
)  # fmt: skip
"""(log2(1 + f) - f log2 e) / f^2; relative error of log2(1 + f) 2^-27.7."""

_LOG_REDUCED = f"""
/* log(1 + f) + k ln 2; ln 2 in two parts, of which the first times k is exact. */
MSC_INLINE f32x@ msc_log_reduced_f32x@(f32x@ f, f32x@ k)
{{
{horner("p", "f", _LOG)}
    f32x@ y = f * f * (f * p - 0.5f) + f;
    y = y - k * 2.1219444e-4f;
    return y + k * 0.693359375f;
}}
"""

_LOG_EDGES = """
/* What a logarithm is where its polynomial says nothing: -inf at 0, NaN below, x at inf and NaN. */
MSC_INLINE f32x@ msc_log_edges_f32x@(f32x@ x, f32x@ y)
{
    y = msc_select_f32x@(x < __builtin_inff(), y, x);
    y = msc_select_f32x@(x < 0.0f, msc_splat_f32x@(__builtin_nanf("")), y);
    return msc_select_f32x@(x == 0.0f, msc_splat_f32x@(-__builtin_inff()), y);
}
"""

_SPLIT = """    const i32x@ tiny = x < 0x1p-126f;
    const u32x@ bits = (u32x@)msc_select_f32x@(tiny, x * 0x1p23f, x) - 0x3f3504f3u;
    const f32x@ k = __builtin_convertvector(((i32x@)bits >> 23) - (tiny & 23), f32x@);
    const f32x@ f = (f32x@)((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;"""

_LOG_TEXT = f"""
MSC_INLINE f32x@ msc_log_f32x@(f32x@ x)
{{
{_SPLIT}
    return msc_log_edges_f32x@(x, msc_log_reduced_f32x@(f, k));
}}
"""

_LOG2_TEXT = f"""
/* log2 e is 1 + 0.4426950: the 1 costs no rounding. */
MSC_INLINE f32x@ msc_log2_f32x@(f32x@ x)
{{
{_SPLIT}
{horner("p", "f", _LOG2)}
    const f32x@ y = f * (f * p + 0.44269504f) + f;
    return msc_log_edges_f32x@(x, y + k);
}}
"""

_LOG1P_TEXT = """
/* k from the rounded 1 + x, but f = 2^-k x + (2^-k - 1) from x itself; at a quarter, so that 2^-128 is not needed. */
MSC_INLINE f32x@ msc_log1p_f32x@(f32x@ x)
{
    const f32x@ valid = msc_select_f32x@(x < -1.0f, msc_splat_f32x@(__builtin_nanf("")), x);
    const i32x@ k = (i32x@)((u32x@)(1.0f + valid) - 0x3f3504f3u) >> 23;
    const f32x@ scale = (f32x@)((129u - (u32x@)k) << 23);
    const f32x@ f = 0.25f * valid * scale + (0.25f * scale - 1.0f);
    f32x@ y = msc_log_reduced_f32x@(f, __builtin_convertvector(k, f32x@));
    y = msc_select_f32x@(msc_abs_f32x@(valid) < 0x1p-25f, valid, y);
    y = msc_select_f32x@(valid < __builtin_inff(), y, valid);
    return msc_select_f32x@(valid == -1.0f, msc_splat_f32x@(-__builtin_inff()), y);
}
"""

_SOFTPLUS_TEXT = """
/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|). */
MSC_INLINE f32x@ msc_softplus_f32x@(f32x@ x)
{
    const f32x@ e = msc_exp_bounded_f32x@(-msc_least_f32x@(104.0f, msc_abs_f32x@(x)));
    const i32x@ upper = e > 0.41421357f;
    const f32x@ f = msc_select_f32x@(upper, 0.5f * e - 0.5f, e);
    const f32x@ k = msc_select_f32x@(upper, msc_splat_f32x@(1.0f), msc_splat_f32x@(0.0f));
    const f32x@ positive = msc_select_f32x@(x > 0.0f, x, msc_splat_f32x@(0.0f));
    return positive + msc_log_reduced_f32x@(f, k);
}
"""

LOGARITHM_PARTS: Mapping[str, MathTemplate] = {
    "log_reduced": MathTemplate(_LOG_REDUCED, ("types",)),
    "log_edges": MathTemplate(_LOG_EDGES, ("select", "splat")),
}

LOGARITHM: Mapping[str, VectorFunction] = {
    "log": VectorFunction(MathTemplate(_LOG_TEXT, ("log_reduced", "log_edges")), ErrorBound(2)),
    "log2": VectorFunction(MathTemplate(_LOG2_TEXT, ("log_edges",)), ErrorBound(4)),
    "log1p": VectorFunction(MathTemplate(_LOG1P_TEXT, ("log_reduced", "select", "splat", "abs")), ErrorBound(4)),
    "softplus": VectorFunction(
        MathTemplate(_SOFTPLUS_TEXT, ("log_reduced", "exp_bounded", "least", "select", "splat", "abs")), ErrorBound(4)
    ),
}
