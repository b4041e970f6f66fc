/* Tensors of any type, for programs that work on any model; after model_table.h. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Memory aligned for vectors; never of size 0. */
static inline void *tensor_allocate(size_t bytes)
{
    return aligned_alloc(MSC_ALIGNMENT, (bytes / MSC_ALIGNMENT + 1) * MSC_ALIGNMENT);
}

static inline double tensor_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31)
        size = fraction ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -size : size;
}

static inline double tensor_bfloat(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* One element as a number, f16 and bf16 by their value. */
static inline double tensor_number(const struct msc_tensor *tensor, const void *data, size_t k)
{
    const char *const type = tensor->dtype;
    if (strcmp(type, "f32") == 0)
        return ((const float *)data)[k];
    if (strcmp(type, "f64") == 0)
        return ((const double *)data)[k];
    if (strcmp(type, "f16") == 0)
        return tensor_half(((const uint16_t *)data)[k]);
    if (strcmp(type, "bf16") == 0)
        return tensor_bfloat(((const uint16_t *)data)[k]);
    switch (tensor->element_bytes) {
    case 1:
        return type[0] == 'u' || strcmp(type, "i1") == 0 ? ((const uint8_t *)data)[k] : ((const int8_t *)data)[k];
    case 2:
        return type[0] == 'i' ? ((const int16_t *)data)[k] : ((const uint16_t *)data)[k];
    case 4:
        return type[0] == 'u' ? (double)((const uint32_t *)data)[k] : (double)((const int32_t *)data)[k];
    default:
        return type[0] == 'u' ? (double)((const uint64_t *)data)[k] : (double)((const int64_t *)data)[k];
    }
}
