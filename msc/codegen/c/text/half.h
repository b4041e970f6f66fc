/*** bf16_to_f32 ***/
static inline f32x{n} from_bf16_f32x{n}(u16x{n} x)
{
    return (f32x{n})(__builtin_convertvector(x, u32x{n}) << 16);
}

/*** bf16_to_f32_scalar ***/
static inline float from_bf16_f32(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/*** f32_to_bf16 ***/
/* To nearest, ties to even; NaN stays NaN. */
static inline u16x{n} bf16_from_f32x{n}(f32x{n} value)
{
    const u32x{n} bits = (u32x{n})value;
    const u32x{n} rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const u32x{n} quiet = (bits >> 16) | 0x40u;
    const u32x{n} nan = (u32x{n})(value != value);
    return __builtin_convertvector((nan & quiet) | (~nan & rounded), u16x{n});
}

/*** f32_to_bf16_scalar ***/
/* To nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/*** f16_to_f32_software ***/
static inline f32x{n} from_f16_f32x{n}(u16x{n} x)
{
    const u32x{n} wide = __builtin_convertvector(x, u32x{n});
    const u32x{n} magnitude = wide & 0x7fffu;
    const u32x{n} special = (u32x{n})(magnitude >= 0x7c00u) & 0x38000000u;
    const u32x{n} tiny = (u32x{n})(magnitude < 0x0400u);
    const u32x{n} subnormal = (u32x{n})(__builtin_convertvector((i32x{n})magnitude, f32x{n}) * 0x1p-24f);
    const u32x{n} normal = (magnitude << 13) + 0x38000000u + special;
    return (f32x{n})((tiny & subnormal) | (~tiny & normal) | (wide & 0x8000u) << 16);
}

/*** f32_to_f16_software ***/
/* To nearest, ties to even; NaN stays NaN. */
static inline u16x{n} f16_from_f32x{n}(f32x{n} value)
{
    const u32x{n} bits = (u32x{n})value & 0x7fffffffu;
    const u32x{n} tiny = (u32x{n})(bits < 0x38800000u);
    const u32x{n} large = (u32x{n})(bits >= 0x47800000u);
    const u32x{n} nan = (u32x{n})(bits > 0x7f800000u);
    const u32x{n} subnormal = (u32x{n})((f32x{n})bits + 0.5f) - 0x3f000000u;
    const u32x{n} normal = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    const u32x{n} special = 0x7c00u | (nan & 0x200u);
    const u32x{n} finite = (tiny & subnormal) | (~tiny & normal);
    const u32x{n} sign = (u32x{n})value >> 16 & 0x8000u;
    return __builtin_convertvector((large & special) | (~large & finite) | sign, u16x{n});
}

/*** f16_to_f32_scalar ***/
static inline float from_f16_f32(uint16_t x)
{
    return from_f16_f32x4((u16x4){x})[0];
}

/*** f32_to_f16_scalar ***/
static inline uint16_t f16_from_f32(float value)
{
    return f16_from_f32x4((f32x4){value})[0];
}

/*** pair ***/
/* bf16 of two iterations, the first one in the lower half of each lane. */
static inline u32x{n} pair_u32x{n}(u16x{n} first, u16x{n} second)
{
    return (u32x{n})__builtin_shufflevector(first, second, {zipped});
}

/*** pair_scalar ***/
static inline uint32_t pair_u32(uint16_t first, uint16_t second)
{
    return first | (uint32_t)second << 16;
}

/*** quad ***/
/* Bytes of four iterations, the first one in the lowest byte of each lane. */
static inline u32x{n} quad_u32x{n}(i8x{n} a, i8x{n} b, i8x{n} c, i8x{n} d)
{
    const u16x{n} low = __builtin_convertvector((u8x{n})a, u16x{n}) | __builtin_convertvector((u8x{n})b, u16x{n}) << 8;
    const u16x{n} high = __builtin_convertvector((u8x{n})c, u16x{n}) | __builtin_convertvector((u8x{n})d, u16x{n}) << 8;
    return __builtin_convertvector(low, u32x{n}) | __builtin_convertvector(high, u32x{n}) << 16;
}

/*** quad_scalar ***/
static inline uint32_t quad_u32(int8_t a, int8_t b, int8_t c, int8_t d)
{
    return (uint8_t)a | (uint32_t)(uint8_t)b << 8 | (uint32_t)(uint8_t)c << 16 | (uint32_t)(uint8_t)d << 24;
}

/*** aligned_word_scalar ***/
/* The four bytes from p on, which begin where words begin. */
static inline uint32_t aligned_word_u32(const void *p)
{
    typedef uint32_t in_memory __attribute__((may_alias));
    return *(const in_memory *)p;
}

/*** word_scalar ***/
/* The four bytes from p on, which need not be aligned. */
static inline uint32_t word_u32(const void *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}
