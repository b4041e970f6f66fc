/*** power ***/
/* By squaring, wrapping. A negative power is the truncated reciprocal: 0 but for 1 and -1. */
static inline {v} ipow_{f}({v} a, {v} b)
{
    if (b < 0)
        return a == 1 ? ({v})1 : a == -1 ? ({v})((b & 1) != 0 ? -1 : 1) : ({v})0;
    {ue} power = 1;
    uint64_t factor = (uint64_t)a;
    for (; b != 0; b = ({v})(b / 2)) {
        if ((b & 1) != 0)
            power = ({ue})(power * factor);
        factor *= factor;
    }
    return ({v})power;
}

/*** power_lanes ***/
/* By squaring, wrapping. A negative power is the truncated reciprocal: 0 but for 1 and -1. */
static inline {v} ipow_{f}({v} a, {v} b)
{
    {v} result = a;
    for (int lane = 0; lane < {n}; ++lane) {
        const {e} base = a[lane];
        {e} exponent = b[lane];
        {ue} power = 1;
        uint64_t factor = (uint64_t)base;
        for (; exponent > 0; exponent = ({e})(exponent / 2)) {
            if ((exponent & 1) != 0)
                power = ({ue})(power * factor);
            factor *= factor;
        }
        const {e} reciprocal = base == 1 ? ({e})1 : base == -1 ? ({e})((b[lane] & 1) != 0 ? -1 : 1) : ({e})0;
        result[lane] = b[lane] < 0 ? reciprocal : ({e})power;
    }
    return result;
}

/*** upper_half ***/
/* The upper half of the product, rounded: `(a * b + 2^31) >> 32`. */
#if defined(__ARM_ARCH_6M__)
/* The processor has products of 32 bits alone: of halves. */
static __attribute__((noinline)) int32_t mulhr_i32(int32_t a, int32_t b)
{
    const int32_t a_high = a >> 16, b_high = b >> 16;
    const uint32_t a_low = (uint32_t)a & 0xffff, b_low = (uint32_t)b & 0xffff;
    const int32_t first = a_high * (int32_t)b_low + (int32_t)(a_low * b_low >> 16);
    const int32_t second = b_high * (int32_t)a_low + (first & 0xffff);
    return a_high * b_high + (first >> 16) + (((second >> 15) + 1) >> 1);
}
#else
static inline int32_t mulhr_i32(int32_t a, int32_t b)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
#else
    return (int32_t)(((int64_t)a * b + INT64_C(0x80000000)) >> 32);
#endif
}
#endif

/*** saturated ***/
/* The nearest number of the type. */
static inline {v} saturated_{f}(int32_t value)
{
#if defined(__ARM_FEATURE_SAT)
    int32_t nearest;
    __asm__("ssat %0, #{bits}, %1" : "=r"(nearest) : "r"(value));
    return ({v})nearest;
#else
    const int32_t least = value > {min} ? value : {min};
    return ({v})(least < INT{bits}_MAX ? least : INT{bits}_MAX);
#endif
}

/*** dot_bytes ***/
/* The products of the bytes of two words, without a sign in a and with one in b, added to c. */
static inline {v} dot_bytes_{f}({v} a, {v} b, {v} c)
{
    for (int place = 0; place < 32; place += 8)
        c += (int32_t)((uint32_t)a >> place & 255) * (int8_t)((uint32_t)b >> place);
    return c;
}

/*** dot_bytes_lanes ***/
#if defined(__AVX512VNNI__) && {n} * {bits} == 512
#include <immintrin.h>
#endif
/* The products of the bytes of two words, without a sign in a and with one in b, added to c. */
static inline {v} dot_bytes_{f}({v} a, {v} b, {v} c)
{
#if defined(__AVX512VNNI__) && {n} * {bits} == 512
    return ({v})_mm512_dpbusd_epi32((__m512i)c, (__m512i)a, (__m512i)b);
#else
    for (int place = 0; place < 32; place += 8)
        c += ({v})(({u})a >> place & 255) * (({v})(({u})b << (24 - place)) >> 24);
    return c;
#endif
}
