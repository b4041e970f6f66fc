"""pow and rsqrt for f32.

pow works in f64 on the two halves of a vector: y log2 x needs about 33 good bits, and the conversion back to f32 rounds
overflow and denormals correctly. Coefficients are fitted as those of the exponentials are, rounded to f64.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import ErrorBound, MathTemplate, VectorFunction, horner

_LOG2 = (
    2.88539008177785, 0.9617966941134632, 0.5770779423201167,
    0.41220925746253656, 0.31990547111030476, 0.28290359556597855,
)  # fmt: skip
"""2 atanh(s) / (s ln 2) in s^2 for |s| <= 0.1716; relative error 2^-45.1."""

_EXP2 = (
    0.9999999999616821, 0.6931471807284487, 0.24022651198156983, 0.055504103534424795,
    0.00961802725372275, 0.0013333922567995648, 0.00015469291128170505, 1.5201920565430273e-05,
)  # fmt: skip
"""2^r on |r| <= 1/2; relative error 2^-34.5."""

_POW_MAGNITUDE = f"""
MSC_INLINE f64x@h msc_select_f64x@h(i64x@h mask, f64x@h a, f64x@h b)
{{
    return (f64x@h)((mask & (i64x@h)a) ^ (~mask & (i64x@h)b));
}}

/* a^y for a >= 0 that an f32 held: 2^(y log2 a), log2(1 + f) = 2 atanh(f / (2 + f)) / ln 2. */
MSC_INLINE f64x@h msc_pow_magnitude_f64x@h(f64x@h a, f64x@h y)
{{
    const f64x@h zero = {{0}};
    const u64x@h bits = (u64x@h)a + 0x00095f619980c433u;
    const f64x@h k = (f64x@h)(bits >> 52 | 0x4330000000000000u) - (0x1p52 + 1023.0);
    const f64x@h m = (f64x@h)((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
    const f64x@h s = (m - 1.0) / (m + 1.0);
    const f64x@h square = s * s;
{horner("log2", "square", _LOG2, "", "f64x@h")}
    log2 = s * log2 + k;
    log2 = msc_select_f64x@h(a == 0.0, zero - 1e300, log2);
    log2 = msc_select_f64x@h(a == __builtin_inf(), zero + 1e300, log2);
    f64x@h exponent = y * log2;
    exponent = msc_select_f64x@h(exponent < -300.0, zero - 300.0, exponent);
    exponent = msc_select_f64x@h(exponent > 300.0, zero + 300.0, exponent);
    const f64x@h t = exponent + 0x1.8p52;
    const f64x@h r = exponent - (t - 0x1.8p52);
{horner("p", "r", _EXP2, "", "f64x@h")}
    return p * (f64x@h)(((u64x@h)t + 1023u) << 52);
}}
"""

_POW_TEXT = """
/* The edge cases of C11 F.10.4.4. */
MSC_INLINE f32x@ msc_pow_f32x@(f32x@ x, f32x@ y)
{
    const f32x@ one = msc_splat_f32x@(1.0f);
    const f32x@ a = msc_abs_f32x@(x);
    const f64x@h low = msc_pow_magnitude_f64x@h(msc_low_f64x@h(a), msc_low_f64x@h(y));
    const f64x@h high = msc_pow_magnitude_f64x@h(msc_high_f64x@h(a), msc_high_f64x@h(y));
    f32x@ result = msc_select_f32x@(a == 1.0f, one, msc_join_f32x@(low, high));
    /* From 2^24 on every y is an even integer. */
    const f32x@ small = msc_select_f32x@(msc_abs_f32x@(y) < 0x1p24f, y, msc_splat_f32x@(0.0f));
    const i32x@ integer = __builtin_convertvector(small, i32x@);
    const i32x@ fractional = __builtin_convertvector(integer, f32x@) != small;
    const u32x@ odd = (u32x@)(integer & ~fractional) << 31;
    result = (f32x@)((u32x@)result | (odd & (u32x@)x));
    const i32x@ undefined = ((x < 0.0f) & (a < __builtin_inff()) & fractional) | (x != x) | (y != y);
    result = msc_select_f32x@(undefined, msc_splat_f32x@(__builtin_nanf("")), result);
    return msc_select_f32x@((y == 0.0f) | (x == 1.0f), one, result);
}
"""

_RSQRT_GUESS = """
#ifdef __AVX512VL__
/* 1 / sqrt(x) within 2^-14 of it, and exactly where that is 0 or infinite. */
MSC_INLINE f32x@ msc_rsqrt_guess_f32x@(f32x@ x)
{
#if @ == 4
    return __builtin_ia32_rsqrt14ps128_mask(x, x, -1);
#elif @ == 8
    return __builtin_ia32_rsqrt14ps256_mask(x, x, -1);
#elif @ == 16
    return __builtin_ia32_rsqrt14ps512_mask(x, x, -1);
#else
    f32x@ guess;
    for (int part = 0; part < @ / 16; ++part) {
        float some __attribute__((vector_size(64)));
        memcpy(&some, (const char *)&x + 64 * part, 64);
        some = __builtin_ia32_rsqrt14ps512_mask(some, some, -1);
        memcpy((char *)&guess + 64 * part, &some, 64);
    }
    return guess;
#endif
}
#endif
"""

_RSQRT_TEXT = """
/* A guess of an instruction or by halving the exponent, then Newton steps; the last adds a residual: it rounds less. */
MSC_INLINE f32x@ msc_rsqrt_f32x@(f32x@ x)
{
#ifdef __AVX512VL__
    const f32x@ guess = msc_rsqrt_guess_f32x@(x);
    const f32x@ product = x * guess;
    const f32x@ y = guess + 0.5f * guess * (1.0f - product * guess);
    return msc_select_f32x@((x == 0.0f) | (x == __builtin_inff()), guess, y);
#else
    const i32x@ tiny = x < 0x1p-126f;
    const f32x@ scaled = msc_select_f32x@(tiny, x * 0x1p24f, x);
    const f32x@ half = 0.5f * scaled;
    f32x@ y = (f32x@)(0x5f375a86u - ((u32x@)scaled >> 1));
    y = y * (1.5f - half * y * y);
    y = y * (1.5f - half * y * y);
    const f32x@ product = scaled * y;
    y = y + 0.5f * y * (1.0f - product * y);
    y = msc_select_f32x@(tiny, y * 0x1p12f, y);
    y = msc_select_f32x@(x == __builtin_inff(), msc_splat_f32x@(0.0f), y);
    y = msc_select_f32x@(x < 0.0f, msc_splat_f32x@(__builtin_nanf("")), y);
    return msc_select_f32x@(x == 0.0f, msc_withsign_f32x@(msc_splat_f32x@(__builtin_inff()), x), y);
#endif
}
"""

POWER_PARTS: Mapping[str, MathTemplate] = {
    "pow_magnitude": MathTemplate(_POW_MAGNITUDE, ("half_types",)),
    "rsqrt_guess": MathTemplate(_RSQRT_GUESS, ("types",), ("string.h",)),
}

POWER: Mapping[str, VectorFunction] = {
    "pow": VectorFunction(
        MathTemplate(_POW_TEXT, ("pow_magnitude", "halves", "select", "splat", "abs")), ErrorBound(4), arity=2
    ),
    "rsqrt": VectorFunction(MathTemplate(_RSQRT_TEXT, ("rsqrt_guess", "select", "splat", "withsign")), ErrorBound(4)),
}
