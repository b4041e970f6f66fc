"""The types and bit-level primitives that every f32 vector function builds on: selects, clamps, half vectors."""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import MathTemplate
from msc.support.escaping import comment_text


def _extremum(name: str, relation: str, instruction: str) -> str:
    """Bounds from one side. By the instruction's name where GCC does not find it, which for vectors is everywhere."""
    return f"""
/* bound {comment_text(relation)} x ? bound : x, so that NaN stays. */
MSC_INLINE f32x@ msc_{name}_f32x@(float bound, f32x@ x)
{{
#if defined(__AVX512F__) && !defined(__clang__) && @ == 16
    return __builtin_ia32_{instruction}512_mask(msc_splat_f32x@(bound), x, x, -1, 4);
#elif defined(__AVX__) && @ == 8
    return __builtin_ia32_{instruction}256(msc_splat_f32x@(bound), x);
#elif defined(__SSE__) && @ == 4
    return __builtin_ia32_{instruction}(msc_splat_f32x@(bound), x);
#else
    return msc_select_f32x@(bound {relation} x, msc_splat_f32x@(bound), x);
#endif
}}
"""


_PERMUTE = """
typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));

/* table[k mod 16], lane by lane: one instruction where the table fits a register. */
MSC_INLINE f32x16 msc_permute_f32x16(f32x16 table, i32x16 k)
{
#if defined(__AVX512F__) && defined(__clang__)
    return __builtin_ia32_permvarsf512(table, k);
#elif defined(__AVX512F__)
    return __builtin_shuffle(table, k);
#else
    f32x16 found;
    for (int lane = 0; lane < 16; ++lane)
        found[lane] = table[k[lane] & 15];
    return found;
#endif
}
"""

_LOOKUP = """
MSC_INLINE f32x@ msc_lookup_f32x@(const f32x16 *table, i32x@ k)
{
    f32x@ found;
#if @ < 16
    for (int lane = 0; lane < @; ++lane)
        found[lane] = (*table)[k[lane] & 15];
#else
    for (int part = 0; part < @ / 16; ++part) {
        i32x16 some;
        memcpy(&some, (const char *)&k + 64 * part, 64);
        const f32x16 permuted = msc_permute_f32x16(*table, some);
        memcpy((char *)&found + 64 * part, &permuted, 64);
    }
#endif
    return found;
}
"""

_TYPES = """
typedef float f32x@ __attribute__((vector_size(4 * @)));
typedef int32_t i32x@ __attribute__((vector_size(4 * @)));
typedef uint32_t u32x@ __attribute__((vector_size(4 * @)));
"""

_HALF_TYPES = """
typedef float f32x@h __attribute__((vector_size(4 * @h)));
typedef int32_t i32x@h __attribute__((vector_size(4 * @h)));
typedef double f64x@h __attribute__((vector_size(8 * @h)));
typedef int64_t i64x@h __attribute__((vector_size(8 * @h)));
typedef uint64_t u64x@h __attribute__((vector_size(8 * @h)));
"""

_SELECT = """
/* mask ? a : b, lane by lane; a mask is what a vector comparison returns. GCC makes one blend of `^`, not of `|`. */
MSC_INLINE f32x@ msc_select_f32x@(i32x@ mask, f32x@ a, f32x@ b)
{
    return (f32x@)((mask & (i32x@)a) ^ (~mask & (i32x@)b));
}
"""

_SPLAT = """
MSC_INLINE f32x@ msc_splat_f32x@(float value)
{
    return value - (f32x@){0};
}
"""

_ABS = """
MSC_INLINE f32x@ msc_abs_f32x@(f32x@ x)
{
    return (f32x@)((i32x@)x & 0x7fffffff);
}
"""

_COPYSIGN = """
/* The non-negative magnitude with the sign of x. */
MSC_INLINE f32x@ msc_withsign_f32x@(f32x@ magnitude, f32x@ x)
{
    return (f32x@)((u32x@)magnitude | ((u32x@)x & 0x80000000u));
}
"""

_CLAMP = """
/* NaN stays NaN. */
MSC_INLINE f32x@ msc_clamp_f32x@(f32x@ x, float low, float high)
{
    return msc_least_f32x@(high, msc_most_f32x@(low, x));
}
"""

_ANY = """
/* Whether the sign of any lane is set, as it is where a mask holds. */
MSC_INLINE int32_t msc_any_i32x@(i32x@ mask)
{
#if defined(__AVX512DQ__) && @ == 16
    return __builtin_ia32_cvtd2mask512(mask) != 0;
#elif defined(__AVX__) && @ == 8
    return __builtin_ia32_movmskps256((f32x@)mask) != 0;
#else
    int32_t any = 0;
    for (int lane = 0; lane < @; ++lane)
        any |= mask[lane];
    return any < 0;
#endif
}
"""


_HALVES = """
MSC_INLINE f64x@h msc_low_f64x@h(f32x@ x)
{
    return __builtin_convertvector(__builtin_shufflevector(x, x, @low), f64x@h);
}

MSC_INLINE f64x@h msc_high_f64x@h(f32x@ x)
{
    return __builtin_convertvector(__builtin_shufflevector(x, x, @high), f64x@h);
}

MSC_INLINE f32x@ msc_join_f32x@(f64x@h low, f64x@h high)
{
    return __builtin_shufflevector(__builtin_convertvector(low, f32x@h), __builtin_convertvector(high, f32x@h),
                                   @low,
                                   @high);
}
"""

PRIMITIVES: Mapping[str, MathTemplate] = {
    "types": MathTemplate(_TYPES, headers=("stdint.h",)),
    "half_types": MathTemplate(_HALF_TYPES, ("types",), ("stdint.h",)),
    "select": MathTemplate(_SELECT, ("types",)),
    "splat": MathTemplate(_SPLAT, ("types",)),
    "abs": MathTemplate(_ABS, ("types",)),
    "withsign": MathTemplate(_COPYSIGN, ("types",)),
    "least": MathTemplate(_extremum("least", "<", "minps"), ("select", "splat")),
    "most": MathTemplate(_extremum("most", ">", "maxps"), ("select", "splat")),
    "clamp": MathTemplate(_CLAMP, ("least", "most")),
    "permute": MathTemplate(_PERMUTE, headers=("stdint.h",)),
    "lookup": MathTemplate(_LOOKUP, ("types", "permute"), ("string.h",)),
    "any": MathTemplate(_ANY, ("types",)),
    "halves": MathTemplate(_HALVES, ("half_types",)),
}
"""Building blocks by name."""
