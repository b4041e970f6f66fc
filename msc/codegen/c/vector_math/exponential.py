"""exp, exp2, expm1, sigmoid, tanh: everything that is a power of two times a short polynomial, for f32.

All reduce x = n ln 2 + r with |r| <= ln 2 / 2, n by the round-to-integer constant 1.5 * 2^23, and ln 2 split in two so
that the product with n is exact (Cody and Waite, 1980). Coefficients: minimax fits of relative error, by Lawson's
reweighted least squares on 1500 Chebyshev nodes in extended precision, each coefficient rounded to f32 from the lowest
power up and the remaining ones refitted; ``tools/fit_vector_math.py`` derives them again.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.pieces import PIECEWISE, evaluation, tables
from msc.codegen.c.vector_math.template import ErrorBound, MathTemplate, VectorFunction, horner

_EXP = (1.0, 1.0, 0.49999994, 0.16666521, 0.04166829, 0.008368704, 0.0013818939)
"""e^r on |r| <= ln 2 / 2, the first two given; relative error 2^-28.2."""

_EXPM1 = (0.5, 0.16666666, 0.041666493, 0.008333543, 0.0013932365, 0.00019764331)
"""(e^r - 1 - r) / r^2 on |r| <= ln 2 / 2; relative error of e^r - 1 2^-31.1."""

_EXP2 = (0.6931472, 0.24022648, 0.0555036, 0.009618506, 0.0013390806, 0.00015326463)
"""(2^r - 1) / r on |r| <= 1/2; relative error of 2^r 2^-28.3."""

_TANH = (
    (
        1.0, 0.8969891, 0.69878054, 0.53043056, 0.41382948, 0.33506918, 0.28025034, 0.24048343, 0.2104948,
        0.18712597, 0.1684187, 0.1531094, 0.1403507, 0.1295546, 0.12030074, 0.1122807,
    ),
    (
        -1.2237072e-07, -0.3042327, -0.3261911, -0.23754847, -0.15992162, -0.1093289, -0.07776465, -0.05762459,
        -0.044251673, -0.035000637, -0.028360566, -0.023441287, -0.019697981, -0.0167843, -0.014472241,
        -0.012606941,
    ),
    (
        -0.3333256, -0.130168, 0.057067998, 0.0764475, 0.05326077, 0.033310387, 0.020927422, 0.013628241,
        0.009253162, 0.006531373, 0.0047722263, 0.003587025, 0.0027634627, 0.00217542, 0.0017404668,
        0.0014158867,
    ),
    (
        -0.0001615408, 0.1592521, 0.045132484, -0.009224602, -0.013364382, -0.008899786, -0.0052760774,
        -0.0031217723, -0.0019059444, -0.0012109997, -0.00080053404, -0.00054844294, -0.00038760548,
        -0.00028172508, -0.00020937558, -0.00015897669,
    ),
    (
        0.13485333, -0.022046989, -0.042785536, -0.0077056955, 0.0013543306, 0.0018118748, 0.0012014742,
        0.000682957, 0.0003793063, 0.0002616917, 0.00012125068, 0.00010665261, 7.8139194e-05, 5.478352e-06,
        4.087303e-05, 6.841893e-06,
    ),
    (
        -0.0068886816, -0.04618097, 0.014023625, 0.0066481032, 0.00087565626, -0.00018114693, -0.00021416553,
        -0.00013233926, -7.268418e-05, -4.0403018e-05, -2.1946607e-05, -1.2866788e-05, -8.9987425e-06,
        -3.625912e-06, -3.5823932e-06, -1.4685572e-06,
    ),
    (
        -0.040919725, 0.025601413, 0.002466676, -0.0026691274, -0.0002534153, 0.00030139394, -0.00011150552,
        -5.405476e-05, 1.9236086e-05, -0.00029875545, 9.382272e-05, -0.00017193136, -0.00017688471,
        0.0002327563, -0.0001172733, 8.25567e-05,
    ),
)  # fmt: skip
"""tanh(a) / a in t = a - 19 k / 32 for the nearest k = 0, ..., 15; relative error 2^-24.6."""

_REDUCE = """    const f32x@ t = {x} * 1.442695f + 12582912.0f;
    const f32x@ n = t - 12582912.0f;
    f32x@ r = {x} - n * 0.693359375f;
    r = r + n * 2.1219444e-4f;"""


def _power(x: str) -> str:
    """C that makes of x the p, n and t of e^x = p * 2^n."""
    return f"{_REDUCE.format(x=x)}\n{horner('p', 'r', _EXP)}"


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
{_power("x")}
    return msc_scale_f32x@(p, t);
}}
"""

_EXP_TEXT = f"""
/* Lanes below -104 give 0 without an underflow, which takes a hundred cycles: masked scores are such lanes. */
MSC_INLINE f32x@ msc_exp_f32x@(f32x@ x)
{{
#if defined(__AVX512F__) && @ == 16
    const uint16_t computed = __builtin_ia32_cmpps512_mask(x, msc_splat_f32x@(-104.0f), 0x15 /* not less */, -1, 4);
    const f32x@ bounded = msc_least_f32x@(89.0f, x);
{_power("bounded")}
    return __builtin_ia32_scalefps512_mask(p, n, (f32x@){{0}}, computed, 4);
#else
    const i32x@ vanishes = x < -104.0f;
    const f32x@ bounded = msc_least_f32x@(89.0f, msc_select_f32x@(vanishes, msc_splat_f32x@(0.0f), x));
    return msc_select_f32x@(vanishes, msc_splat_f32x@(0.0f), msc_exp_bounded_f32x@(bounded));
#endif
}}
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
/* (e^2|x| - 1) / (e^2|x| + 1), which rounds to 1 beyond 9.02; or without a division. */
MSC_INLINE f32x@ msc_tanh_f32x@(f32x@ x)
{{
    const f32x@ a = msc_abs_f32x@(x);
#ifdef __AVX512F__
{evaluation("tanh", _TANH, 19 / 32, 9.05)}
#else
    const f32x@ bounded = msc_least_f32x@(9.02f, a);
    const f32x@ twice = bounded + bounded;
{_REDUCE.format(x="twice")}
{horner("p", "r", _EXPM1)}
    p = r * r * p + r;
    const f32x@ scale = (f32x@)(((u32x@)t + 127u) << 23);
    const f32x@ expm1 = scale * p + (scale - 1.0f);
    return msc_withsign_f32x@(expm1 / (expm1 + 2.0f), x);
#endif
}}
"""

EXPONENTIAL_PARTS: Mapping[str, MathTemplate] = {
    "tanh_pieces": tables("tanh", _TANH),
    "scale": MathTemplate(_SCALE, ("types",)),
    "exp_bounded": MathTemplate(_EXP_BOUNDED, ("scale",)),
}

EXPONENTIAL: Mapping[str, VectorFunction] = {
    "exp": VectorFunction(MathTemplate(_EXP_TEXT, ("exp_bounded", "least", "select", "splat")), ErrorBound(2)),
    "exp2": VectorFunction(MathTemplate(_EXP2_TEXT, ("scale", "clamp")), ErrorBound(2)),
    "expm1": VectorFunction(MathTemplate(_EXPM1_TEXT, ("clamp", "abs")), ErrorBound(4)),
    "sigmoid": VectorFunction(MathTemplate(_SIGMOID_TEXT, ("exp_bounded", "least", "abs")), ErrorBound(4)),
    "tanh": VectorFunction(MathTemplate(_TANH_TEXT, ("tanh_pieces", *PIECEWISE)), ErrorBound(4)),
}
