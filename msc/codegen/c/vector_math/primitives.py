"""The types and bit-level primitives that every f32 vector function builds on: selects, clamps, half vectors."""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import Template

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
    x = msc_select_f32x@(x < low, msc_splat_f32x@(low), x);
    return msc_select_f32x@(x > high, msc_splat_f32x@(high), x);
}
"""

_ANY = """
MSC_INLINE int32_t msc_any_i32x@(i32x@ mask)
{
    int32_t any = 0;
    for (int lane = 0; lane < @; ++lane)
        any |= mask[lane];
    return any;
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

PRIMITIVES: Mapping[str, Template] = {
    "types": Template(_TYPES, headers=("stdint.h",)),
    "half_types": Template(_HALF_TYPES, ("types",), ("stdint.h",)),
    "select": Template(_SELECT, ("types",)),
    "splat": Template(_SPLAT, ("types",)),
    "abs": Template(_ABS, ("types",)),
    "withsign": Template(_COPYSIGN, ("types",)),
    "clamp": Template(_CLAMP, ("select", "splat")),
    "any": Template(_ANY, ("types",)),
    "halves": Template(_HALVES, ("half_types",)),
}
"""Building blocks by name."""
