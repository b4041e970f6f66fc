"""sin and cos over the whole f32 range.

|x| = n pi / 2 + r with |r| <= pi / 4. Up to 2^13 in f32 with pi / 2 in four parts (Cody and Waite, 1980): the first
three have 11 bits and n has 13, so their products with n are exact, fused with the difference or not. Up to 2^20 in
f64 with pi / 2 in two parts, of which the first (33 bits) times n is exact. Above that, lane by lane, by multiplying
the significand with the 96 bits of 2 / pi that decide the quadrant and the fraction (Payne and Hanek, 1983).
Coefficients are fitted as those of the exponentials are.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import ErrorBound, MathTemplate, VectorFunction, horner

_SIN = (-0.16666655, 0.00833219, -0.00019518408)
"""(sin r - r) / r^3 in r^2 on |r| <= pi / 4; relative error of sin r 2^-28.0."""

_COS = (0.041666646, -0.0013887301, 2.4430668e-05)
"""(cos r - 1 + r^2 / 2) / r^4 in r^2 on |r| <= pi / 4; error of cos r 2^-33.1."""

_REDUCE_HUGE = """
/* a >= 2^20 (inf and NaN give a NaN remainder). The window of 2 / pi drops whole multiples of four quadrants. */
static inline float msc_reduce_huge_f32(float a, int32_t *quadrant)
{
    static const uint32_t two_over_pi[8] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    if (bits >= 0x7f800000u) {
        *quadrant = 0;
        return a - a;
    }
    const uint64_t significand = (bits & 0x007fffffu) | 0x00800000u;
    const uint32_t position = (bits >> 23) - 120u;
    const uint32_t shift = position & 31u;
    uint64_t window[3];
    for (uint32_t i = 0; i < 3; ++i) {
        const uint64_t pair = (uint64_t)two_over_pi[position / 32u + i] << 32 | two_over_pi[position / 32u + i + 1u];
        window[i] = (pair << shift) >> 32;
    }
    const uint64_t product = significand * ((window[0] << 32) + window[1]) + (significand * window[2] >> 32);
    const uint64_t nearest = (product + ((uint64_t)1 << 61)) >> 62;
    *quadrant = (int32_t)nearest;
    return (float)((double)(int64_t)(product << 2) * (0x1.921fb54442d18p+0 * 0x1p-64));
}
"""

_REDUCE_HALF = """
MSC_INLINE f64x@h msc_reduce_f64x@h(f64x@h a, f64x@h *n)
{
    *n = (a * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
    return (a - *n * 0x1.921fb544p+0) - *n * 0x1.0b4611a626331p-34;
}
"""

_REDUCE_FAR = """
MSC_INLINE f32x@ msc_reduce_far_f32x@(f32x@ a, i32x@ *quadrant)
{
    const i32x@ ordinary = a < 0x1p20f;
    const f32x@ bounded = msc_select_f32x@(ordinary, a, msc_splat_f32x@(0.0f));
    f64x@h n_low, n_high;
    const f64x@h low = msc_reduce_f64x@h(msc_low_f64x@h(bounded), &n_low);
    const f64x@h high = msc_reduce_f64x@h(msc_high_f64x@h(bounded), &n_high);
    f32x@ r = msc_join_f32x@(low, high);
    i32x@ q = __builtin_convertvector(msc_join_f32x@(n_low, n_high), i32x@);
    if (msc_any_i32x@(~ordinary)) {
        for (int lane = 0; lane < @; ++lane) {
            int32_t huge_quadrant;
            if (ordinary[lane])
                continue;
            r[lane] = msc_reduce_huge_f32(a[lane], &huge_quadrant);
            q[lane] = huge_quadrant;
        }
    }
    *quadrant = q;
    return r;
}
"""

_REDUCE = """
MSC_INLINE f32x@ msc_reduce_f32x@(f32x@ a, i32x@ *quadrant)
{
    const f32x@ t = a * 0x1.45f306p-1f + 0x1.8p23f;
    const f32x@ n = t - 0x1.8p23f;
    f32x@ r = a - n * 0x1.92p+0f;
    r = r - n * 0x1.fb4p-12f;
    r = r - n * 0x1.444p-24f;
    r = r - n * 0x1.68c234p-39f;
    *quadrant = (i32x@)t;
    if (msc_any_i32x@(0x45ffffff - (i32x@)a)) { /* a >= 2^13, or NaN: a comparison takes longer, as its mask moves */
        const i32x@ far = ~(a < 0x1p13f);
        i32x@ far_quadrant;
        r = msc_select_f32x@(far, msc_reduce_far_f32x@(a, &far_quadrant), r);
        *quadrant = (far & far_quadrant) | (~far & *quadrant);
    }
    return r;
}
"""

_SIN_COS = f"""
/* sin(r + quadrant pi / 2), with the other sign where that of `turned` is set. */
MSC_INLINE f32x@ msc_sin_quadrant_f32x@(f32x@ r, i32x@ quadrant, f32x@ turned)
{{
    const f32x@ square = r * r;
{horner("sine", "square", _SIN)}
    sine = r * square * sine + r;
{horner("cosine", "square", _COS)}
    cosine = square * (square * cosine - 0.5f) + 1.0f;
    const f32x@ y = msc_select_f32x@((quadrant & 1) != 0, cosine, sine);
    return (f32x@)((u32x@)y ^ (((u32x@)quadrant << 30 ^ (u32x@)turned) & 0x80000000u));
}}
"""

_SIN_TEXT = """
MSC_INLINE f32x@ msc_sin_f32x@(f32x@ x)
{
    i32x@ quadrant;
    const f32x@ r = msc_reduce_f32x@(msc_abs_f32x@(x), &quadrant);
    return msc_sin_quadrant_f32x@(r, quadrant, x);
}
"""

_COS_TEXT = """
MSC_INLINE f32x@ msc_cos_f32x@(f32x@ x)
{
    i32x@ quadrant;
    const f32x@ r = msc_reduce_f32x@(msc_abs_f32x@(x), &quadrant);
    return msc_sin_quadrant_f32x@(r, quadrant + 1, (f32x@){0});
}
"""

TRIGONOMETRIC_PARTS: Mapping[str, MathTemplate] = {
    "reduce_huge": MathTemplate(_REDUCE_HUGE, headers=("stdint.h", "string.h")),
    "reduce_half": MathTemplate(_REDUCE_HALF, ("half_types",)),
    "reduce_far": MathTemplate(_REDUCE_FAR, ("reduce_huge", "reduce_half", "halves", "select", "splat", "any")),
    "reduce": MathTemplate(_REDUCE, ("reduce_far", "select", "any")),
    "sin_quadrant": MathTemplate(_SIN_COS, ("select",)),
}

TRIGONOMETRIC: Mapping[str, VectorFunction] = {
    "sin": VectorFunction(MathTemplate(_SIN_TEXT, ("reduce", "sin_quadrant", "abs")), ErrorBound(4)),
    "cos": VectorFunction(MathTemplate(_COS_TEXT, ("reduce", "sin_quadrant", "abs")), ErrorBound(4)),
}
