"""exp, exp2, expm1, sigmoid, tanh: everything that is a power of two times a short polynomial, for f32.

All reduce x = n ln 2 + r with |r| <= ln 2 / 2, n by the round-to-integer constant 1.5 * 2^23, and ln 2 split in two so
that the product with n is exact (Cody and Waite, 1980). Coefficients: minimax fits of relative error, by Lawson's
reweighted least squares on 1500 Chebyshev nodes in extended precision, each coefficient rounded to f32 from the lowest
power up and the remaining ones refitted; ``tools/fit_vector_math.py`` derives them again.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import ErrorBound, Template, VectorFunction, horner

_EXP = (1.0, 1.0, 0.49999994, 0.16666521, 0.04166829, 0.008368704, 0.0013818939)
"""e^r on |r| <= ln 2 / 2, the first two given; relative error 2^-28.2."""

_EXPM1 = (0.5, 0.16666666, 0.041666493, 0.008333543, 0.0013932365, 0.00019764331)
"""(e^r - 1 - r) / r^2 on |r| <= ln 2 / 2; relative error of e^r - 1 2^-31.1."""

_EXP2 = (0.6931472, 0.24022648, 0.0555036, 0.009618506, 0.0013390806, 0.00015326463)
"""(2^r - 1) / r on |r| <= 1/2; relative error of 2^r 2^-28.3."""

_REDUCE = """    const f32x@ t = {x} * 1.442695f + 12582912.0f;
    const f32x@ n = t - 12582912.0f;
    f32x@ r = {x} - n * 0.693359375f;
    r = r + n * 2.1219444e-4f;"""

_SCALE = """
/* p * 2^n for t = n + 1.5 * 2^23 and -252 <= n <= 254: in two steps, so that overflow and underflow round once. */
MSC_INLINE f32x@ msc_scale_f32x@(f32x@ p, f32x@ t)
{
#if defined(__AVX512F__) && @ == 16
    return __builtin_ia32_scalefps512_mask(p, t - 12582912.0f, p, -1, 4);
#else
    const i32x@ n = (i32x@)t - 0x4b400000;
    const i32x@ half = n >> 1;
    const f32x@ first = (f32x@)(((u32x@)half + 127u) << 23);
    const f32x@ second = (f32x@)(((u32x@)(n - half) + 127u) << 23);
    return p * first * second;
#endif
}
"""

_EXP_BOUNDED = f"""
/* e^x for -104 <= x <= 89, or NaN. */
MSC_INLINE f32x@ msc_exp_bounded_f32x@(f32x@ x)
{{
{_REDUCE.format(x="x")}
{horner("p", "r", _EXP)}
    return msc_scale_f32x@(p, t);
}}
"""

_EXP_TEXT = """
/* What vanishes, as masked scores do, is not computed: processors take a hundred cycles for an underflow. */
MSC_INLINE f32x@ msc_exp_f32x@(f32x@ x)
{
    const i32x@ vanishes = x < -104.0f;
    const f32x@ bounded = msc_least_f32x@(89.0f, msc_select_f32x@(vanishes, msc_splat_f32x@(0.0f), x));
    return msc_select_f32x@(vanishes, msc_splat_f32x@(0.0f), msc_exp_bounded_f32x@(bounded));
}
"""

_EXP2_TEXT = f"""
MSC_INLINE f32x@ msc_exp2_f32x@(f32x@ x)
{{
    const f32x@ bounded = msc_clamp_f32x@(x, -151.0f, 129.0f);
    const f32x@ t = bounded + 12582912.0f;
    const f32x@ r = bounded - (t - 12582912.0f);
{horner("p", "r", _EXP2)}
    return msc_scale_f32x@(p * r + 1.0f, t);
}}
"""

_EXPM1_TEXT = f"""
/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1), at half its size so that 2^128 is not needed. */
MSC_INLINE f32x@ msc_expm1_f32x@(f32x@ x)
{{
    const f32x@ bounded = msc_clamp_f32x@(x, -20.0f, 89.0f);
{_REDUCE.format(x="bounded")}
{horner("p", "r", _EXPM1)}
    p = r * r * p + r;
    const f32x@ half_scale = (f32x@)(((u32x@)t + 126u) << 23);
    const f32x@ half = half_scale * p + (half_scale - 0.5f);
    return msc_select_f32x@(msc_abs_f32x@(x) < 0x1p-25f, x, half + half);
}}
"""

_SIGMOID_TEXT = """
/* 1 / (1 + e^-x) as e^min(x, 0) / (1 + e^-|x|): nothing overflows, and the left tail keeps its relative accuracy. */
MSC_INLINE f32x@ msc_sigmoid_f32x@(f32x@ x)
{
    const f32x@ e = msc_exp_bounded_f32x@(-msc_least_f32x@(104.0f, msc_abs_f32x@(x)));
    return msc_select_f32x@(x < 0.0f, e, msc_splat_f32x@(1.0f)) / (1.0f + e);
}
"""

_TANH_TEXT = f"""
/* (e^2|x| - 1) / (e^2|x| + 1), which rounds to 1 beyond 9.02. */
MSC_INLINE f32x@ msc_tanh_f32x@(f32x@ x)
{{
    const f32x@ bounded = msc_least_f32x@(9.02f, msc_abs_f32x@(x));
    const f32x@ twice = bounded + bounded;
{_REDUCE.format(x="twice")}
{horner("p", "r", _EXPM1)}
    p = r * r * p + r;
    const f32x@ scale = (f32x@)(((u32x@)t + 127u) << 23);
    const f32x@ expm1 = scale * p + (scale - 1.0f);
    return msc_withsign_f32x@(expm1 / (expm1 + 2.0f), x);
}}
"""

EXPONENTIAL_PARTS: Mapping[str, Template] = {
    "scale": Template(_SCALE, ("types",)),
    "exp_bounded": Template(_EXP_BOUNDED, ("scale",)),
}

EXPONENTIAL: Mapping[str, VectorFunction] = {
    "exp": VectorFunction(Template(_EXP_TEXT, ("exp_bounded", "least", "select", "splat")), ErrorBound(2)),
    "exp2": VectorFunction(Template(_EXP2_TEXT, ("scale", "clamp")), ErrorBound(2)),
    "expm1": VectorFunction(Template(_EXPM1_TEXT, ("clamp", "abs")), ErrorBound(4)),
    "sigmoid": VectorFunction(Template(_SIGMOID_TEXT, ("exp_bounded", "least", "abs")), ErrorBound(4)),
    "tanh": VectorFunction(Template(_TANH_TEXT, ("least", "abs", "withsign")), ErrorBound(4)),
}
