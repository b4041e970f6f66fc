/* The data of vector instructions. f16 results are f32 results rounded once; f32 ones are the C library's. */
#include <math.h>
#include <string.h>

#include "dv_sim.h"

struct lanes { int repeats, elements; };

static bool masked_in(const struct core *core, int repeat, int element, int elements) {
    if (core->mask_count > 0) return (int64_t)repeat * elements + element < core->mask_count;
    return core->mask[element >> 6] >> (element & 63) & 1;
}

/* The address of an element of an operand: repeats of blocks of 32 bytes. */
static uint8_t *element_at(struct core *core, const struct dv_instr *i, int operand, int64_t block_stride, int64_t repeat_stride,
                           int repeat, int element) {
    int64_t byte = (int64_t)element * dv_size(i->type[operand]);
    int64_t offset = repeat * repeat_stride * 32 + byte / 32 * block_stride * 32 + byte % 32;
    return dv_at(core, SPACE_ub, i->operand[operand] + offset);
}

static float scalar_of(const struct dv_instr *i) {
    double value;
    memcpy(&value, &i->p[0], sizeof value);
    return (float)value;
}

/* NaN where one operand is, as IEEE 754-2019 has it; assumed of the hardware. */
static float maximum(float a, float b) { return a != a || b != b ? a + b : a > b ? a : b; }

static float minimum(float a, float b) { return a != a || b != b ? a + b : a < b ? a : b; }

static float unary(int op, float x, float scalar, float old) {
    switch (op) {
    case OP_vexp: return expf(x);
    case OP_vln: return logf(x);
    case OP_vabs: return fabsf(x);
    case OP_vrec: return 1.0f / x;
    case OP_vrsqrt: return 1.0f / sqrtf(x);
    case OP_vsqrt: return sqrtf(x);
    case OP_vrelu: return x < 0 ? 0.0f : x;
    case OP_vadds: return x + scalar;
    case OP_vmuls: return x * scalar;
    case OP_vmaxs: return maximum(x, scalar);
    case OP_vmins: return minimum(x, scalar);
    case OP_vlrelu: return x < 0 ? x * scalar : x;
    case OP_vaxpy: return old + x * scalar;
    default: return x; /* vconv */
    }
}

static float binary(int op, float x, float y, float old) {
    switch (op) {
    case OP_vadd: return x + y;
    case OP_vsub: return x - y;
    case OP_vmul: return x * y;
    case OP_vdiv: return x / y;
    case OP_vmax: return maximum(x, y);
    case OP_vmin: return minimum(x, y);
    case OP_vaddrelu: return maximum(x + y, 0.0f);
    case OP_vmla: return old + x * y;
    default: return old * x + y; /* vmadd */
    }
}

static bool compare(int how, float x, float y) {
    switch (how) {
    case 0: return x < y;
    case 1: return x > y;
    case 2: return x == y;
    case 3: return x <= y;
    case 4: return x >= y;
    default: return x != y;
    }
}

static void bits(struct core *core, const struct dv_instr *i, uint8_t *to, const uint8_t *x, const uint8_t *y) {
    (void)core;
    for (int b = 0; b < dv_size(i->type[0]); b++)
        to[b] = (uint8_t)(i->op == OP_vnot ? ~x[b] : i->op == OP_vand ? x[b] & y[b] : x[b] | y[b]);
}

static void elementwise(struct core *core, const struct dv_instr *i, int sources, int at, struct lanes n) {
    const int64_t *p = i->p + at;
    bool integer = i->type[0] == TYPE_i32 && i->type[1] == TYPE_i32;
    for (int r = 0; r < n.repeats; r++)
        for (int e = 0; e < n.elements; e++) {
            if (!masked_in(core, r, e, n.elements)) continue;
            uint8_t *to = element_at(core, i, 0, p[1], p[2 + sources], r, e);
            const uint8_t *x = element_at(core, i, 1, p[2], p[3 + sources], r, e);
            const uint8_t *y = sources > 1 ? element_at(core, i, 2, p[3], p[4 + sources], r, e) : NULL;
            if (i->op == OP_vnot || i->op == OP_vand || i->op == OP_vor) {
                bits(core, i, to, x, y);
            } else if (integer && (i->op == OP_vadd || i->op == OP_vsub || i->op == OP_vmul)) {
                uint32_t a, b;
                memcpy(&a, x, 4), memcpy(&b, y, 4);
                a = i->op == OP_vadd ? a + b : i->op == OP_vsub ? a - b : a * b;
                memcpy(to, &a, 4);
            } else {
                float old = dv_reads_first[i->op] ? dv_load(to, i->type[0]) : 0, f = dv_load(x, i->type[1]);
                dv_store(to, i->type[0],
                         y ? binary(i->op, f, dv_load(y, i->type[2]), old) : unary(i->op, f, at ? scalar_of(i) : 0, old));
            }
        }
}

static float combined(int op, float a, float b) {
    switch (op) {
    case OP_vcmax: case OP_vcgmax: return maximum(a, b);
    case OP_vcmin: case OP_vcgmin: return minimum(a, b);
    default: return a + b;
    }
}

/* One result of every `group` elements, summed in the order of a tree, as the hardware's adders do. */
static void reduce(struct core *core, const struct dv_instr *i, int group, int64_t to_stride, struct lanes n) {
    int size = dv_size(i->type[0]);
    for (int r = 0; r < n.repeats; r++)
        for (int g = 0; g < n.elements / group; g++) {
            float value[128];
            int count = 0;
            for (int e = 0; e < group; e++)
                if (masked_in(core, r, g * group + e, n.elements))
                    value[count++] = dv_load(element_at(core, i, 1, i->p[2], i->p[3], r, g * group + e), i->type[1]);
            if (count == 0) continue;
            for (int step = 1; step < count; step *= 2)
                for (int k = 0; k + step < count; k += 2 * step) value[k] = combined(i->op, value[k], value[k + step]);
            dv_store(dv_at(core, SPACE_ub, i->operand[0] + r * to_stride + (int64_t)g * size), i->type[0], value[0]);
        }
}

static void select_or_compare(struct core *core, const struct dv_instr *i, struct lanes n) {
    int at = i->op == OP_vcmp;
    const int64_t *p = i->p + at;
    for (int r = 0; r < n.repeats; r++)
        for (int e = 0; e < n.elements; e++) {
            if (!masked_in(core, r, e, n.elements)) continue;
            int64_t bit = (int64_t)r * n.elements + e;
            int first = i->op == OP_vcmp ? 1 : 1;
            const uint8_t *x = element_at(core, i, first, p[2], p[5], r, e), *y = element_at(core, i, 2, p[3], p[6], r, e);
            if (i->op == OP_vcmp) {
                uint8_t *to = dv_at(core, SPACE_ub, i->operand[0] + bit / 8);
                bool set = compare((int)i->p[0], dv_load(x, i->type[1]), dv_load(y, i->type[2]));
                *to = (uint8_t)((*to & ~(1 << bit % 8)) | set << bit % 8);
            } else {
                const uint8_t *mask = dv_at(core, SPACE_ub, i->operand[3] + bit / 8);
                memmove(element_at(core, i, 0, p[1], p[4], r, e), *mask >> bit % 8 & 1 ? x : y, (size_t)dv_size(i->type[0]));
            }
        }
}

static void gather(struct core *core, const struct dv_instr *i) {
    int size = dv_size(i->type[0]);
    for (int64_t k = 0; k < i->p[0]; k++) {
        uint32_t offset;
        memcpy(&offset, dv_at(core, SPACE_ub, i->operand[2] + k * 4), 4);
        if (offset + (uint32_t)size > (uint32_t)i->p[1]) {
            dv_error(core, ERROR_BOUNDS, i, "vgather: element %lld is at byte %u, beyond src_length %lld", (long long)k, offset,
                     (long long)i->p[1]);
            return;
        }
        memcpy(dv_at(core, SPACE_ub, i->operand[0] + k * size), dv_at(core, SPACE_ub, i->operand[1] + offset), (size_t)size);
    }
}

static void broadcast(struct core *core, const struct dv_instr *i, struct lanes n) {
    int size = dv_size(i->type[0]);
    for (int r = 0; r < n.repeats; r++)
        for (int b = 0; b < 8; b++) {
            const uint8_t *from = dv_at(core, SPACE_ub, i->operand[1] + (int64_t)(r * 8 + b) * size);
            uint8_t *to = dv_at(core, SPACE_ub, i->operand[0] + (r * i->p[2] + b * i->p[1]) * 32);
            for (int k = 0; k < 32 / size; k++) memmove(to + k * size, from, (size_t)size);
        }
}

static void duplicate(struct core *core, const struct dv_instr *i, struct lanes n) {
    for (int r = 0; r < n.repeats; r++)
        for (int e = 0; e < n.elements; e++)
            if (masked_in(core, r, e, n.elements))
                dv_store(element_at(core, i, 0, i->p[2], i->p[3], r, e), i->type[0], scalar_of(i));
}

static void transpose(struct core *core, const struct dv_instr *i) {
    uint16_t a[256], b[256];
    memcpy(a, dv_at(core, SPACE_ub, i->operand[1]), 512);
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) b[c * 16 + r] = a[r * 16 + c];
    memcpy(dv_at(core, SPACE_ub, i->operand[0]), b, 512);
}

void dv_vector(struct core *core, const struct dv_instr *i) {
    struct lanes n = {dv_repeats(core, i), dv_elements_per_repeat(i)};
    int size = dv_size(i->type[0]);
    switch (i->op) {
    case OP_set_vector_mask: case OP_set_mask_count: case OP_set_mask_norm: return;
    case OP_vcadd: case OP_vcmax: case OP_vcmin: reduce(core, i, n.elements, i->p[1] * size, n); return;
    case OP_vcgadd: case OP_vcgmax: case OP_vcgmin: reduce(core, i, 32 / size, i->p[1] * 8 * size, n); return;
    case OP_vcpadd: reduce(core, i, 2, i->p[1] * 128, n); return;
    case OP_vcmp: case OP_vsel: select_or_compare(core, i, n); return;
    case OP_vgather: gather(core, i); return;
    case OP_vbrcb: broadcast(core, i, n); return;
    case OP_vector_dup: duplicate(core, i, n); return;
    case OP_vtranspose: transpose(core, i); return;
    default: elementwise(core, i, dv_operands[i->op] - 1, dv_repeat[i->op], n);
    }
}
