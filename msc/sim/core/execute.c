/* The data of moves and of the cube, bit by bit as the hardware's formats have it: f16 and bf16 round to nearest even. */
#include <math.h>
#include <string.h>

#include "dv_sim.h"

static float of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31) return of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    return of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static uint16_t float_to_half(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000u) return (uint16_t)(sign | (uint16_t)rintf(fabsf(f) * 0x1p24f));
    uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}

static uint16_t float_to_bfloat(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

float dv_load(const uint8_t *at, int type) {
    union { uint16_t u; int16_t h; int32_t i; uint32_t w; float f; } v;
    v.w = 0;
    memcpy(&v, at, (size_t)dv_size(type));
    switch (type) {
    case TYPE_f16: return half_to_float(v.u);
    case TYPE_bf16: return of_bits((uint32_t)v.u << 16);
    case TYPE_i8: return (float)(int8_t)*at;
    case TYPE_ui8: return (float)*at;
    case TYPE_i16: return (float)v.h;
    case TYPE_i32: return (float)v.i;
    case TYPE_ui32: return (float)v.w;
    default: return v.f;
    }
}

static double clamp(double value, double least, double most) { return isnan(value) ? 0 : fmin(fmax(rint(value), least), most); }

void dv_store(uint8_t *at, int type, float value) {
    union { uint16_t u; int16_t h; int32_t i; uint32_t w; float f; uint8_t b; } v;
    switch (type) {
    case TYPE_f16: v.u = float_to_half(value); break;
    case TYPE_bf16: v.u = float_to_bfloat(value); break;
    case TYPE_i8: v.b = (uint8_t)(int8_t)clamp(value, -128, 127); break;
    case TYPE_ui8: v.b = (uint8_t)clamp(value, 0, 255); break;
    case TYPE_i16: v.h = (int16_t)clamp(value, -32768, 32767); break;
    case TYPE_i32: v.i = (int32_t)clamp(value, -2147483648.0, 2147483647.0); break;
    case TYPE_ui32: v.w = (uint32_t)clamp(value, 0, 4294967295.0); break;
    default: v.f = value;
    }
    memcpy(at, &v, (size_t)dv_size(type));
}

uint8_t *dv_at(struct core *core, int space, int64_t address) {
    if (space != SPACE_gm) return core->memory[space] + address;
    struct argument *a = &core->sim->argument[(address >> GM_SHIFT) - 1];
    return a->data + (address & ((1LL << GM_SHIFT) - 1));
}

static uint8_t *operand(struct core *core, const struct dv_instr *i, int k) {
    return dv_at(core, dv_spaces[i->op][k], i->operand[k]);
}

/* Bursts from rows of the second region to rows of the first. */
static void copy_rows(struct core *core, const struct dv_instr *i, int64_t bytes, int64_t count, int64_t to_stride, int64_t from_stride, int64_t padded) {
    uint8_t *to = operand(core, i, 0);
    const uint8_t *from = operand(core, i, 1);
    for (int64_t k = 0; k < count; k++) {
        memmove(to + k * to_stride, from + k * from_stride, (size_t)bytes);
        if (padded > bytes) memset(to + k * to_stride + bytes, 0, (size_t)(padded - bytes));
    }
}

/* L1 to the bias table: f16 and bf16 become f32. */
static void widen(struct core *core, const struct dv_instr *i) {
    int to_size = dv_size(i->type[0]), from_size = dv_size(i->type[1]);
    uint8_t *to = operand(core, i, 0);
    const uint8_t *from = operand(core, i, 1);
    for (int64_t k = 0; k < i->p[0] * 32 / from_size; k++) dv_store(to + k * to_size, i->type[0], dv_load(from + k * from_size, i->type[1]));
}

static void nd2nz(struct core *core, const struct dv_instr *i) {
    int size = dv_size(i->type[0]), c0 = 32 / size;
    uint8_t *to = operand(core, i, 0);
    const uint8_t *from = operand(core, i, 1);
    for (int64_t n = 0; n < i->p[0]; n++)
        for (int64_t d = 0; d < i->p[1]; d += c0) {
            int64_t part = i->p[1] - d < c0 ? i->p[1] - d : c0;
            uint8_t *block = to + (d / c0 * i->p[3] + n) * 32;
            memcpy(block, from + (n * i->p[2] + d) * size, (size_t)(part * size));
            memset(block + part * size, 0, (size_t)(32 - part * size));
        }
}

/* A square of which rows become columns: 16 x 16 in one fractal (2 bytes) or two beside each other (4 bytes), 32 x 32 in
 * two below each other (1 byte). Distances between the two are in fractals. */
static void transpose_square(uint8_t *to, const uint8_t *from, int size, int64_t to_gap, int64_t from_gap) {
    int side = size == 1 ? 32 : 16, c0 = 32 / size;
    uint8_t square[1024];
    for (int r = 0; r < side; r++)
        for (int c = 0; c < side; c++)
            memcpy(square + (c * side + r) * size, from + (size == 1 ? r / 16 : c / c0) * from_gap * 512 + (r % 16 * c0 + c % c0) * size, (size_t)size);
    for (int r = 0; r < side; r++)
        for (int c = 0; c < side; c++)
            memcpy(to + (size == 1 ? r / 16 : c / c0) * to_gap * 512 + (r % 16 * c0 + c % c0) * size, square + (r * side + c) * size, (size_t)size);
}

static void load2d(const struct dv_instr *i, uint8_t *to, const uint8_t *from) {
    for (int64_t k = 0; k < i->p[0]; k++) {
        if (i->p[3]) transpose_square(to + k * i->p[2] * 512, from + k * i->p[1] * 512, dv_size(i->type[1]), i->p[5], i->p[4]);
        else memcpy(to + k * i->p[2] * 512, from + k * i->p[1] * 512, 512);
    }
}

/* Windows of a feature map in C1HWC0 as rows: m counts output pixels, k counts (c1, kh, kw, c0). */
static void load3d(const struct dv_instr *i, uint8_t *to, const uint8_t *from, int padding) {
    const int64_t *p = i->p;
    int64_t c0 = 32 / dv_size(i->type[1]), size = dv_size(i->type[1]);
    int64_t out_w = (p[1] + p[3] + p[4] - ((p[9] - 1) * p[11] + 1)) / p[7] + 1, taps = p[9] * p[10];
    int64_t k1 = (p[13] + c0 - 1) / c0, m1 = (p[14] + 15) / 16;
    bool to_b = dv_spaces[i->op][0] == SPACE_cb;
    for (int64_t m = 0; m < m1 * 16; m++)
        for (int64_t k = 0; k < k1; k++) {
            int64_t fractal = to_b ? k * m1 + m / 16 : m / 16 * k1 + k, first = p[15] / c0 + k, pixel = p[16] + m;
            uint8_t *block = to + fractal * 512 + m % 16 * 32;
            int64_t channel = first / taps, tap = first % taps;
            int64_t y = pixel / out_w * p[8] - p[5] + tap / p[9] * p[12], x = pixel % out_w * p[7] - p[3] + tap % p[9] * p[11];
            bool inside = m < p[14] && y >= 0 && y < p[0] && x >= 0 && x < p[1];
            if (inside) memcpy(block, from + ((channel * p[0] + y) * p[1] + x) * 32, (size_t)(c0 * size));
            else memset(block, padding, 32);
        }
}

/* Fractals of a row of L0A: where k_align is set, those of a multiple of 16. */
int64_t dv_fractals_of_k(const struct dv_instr *i) {
    int64_t c0 = 32 / dv_size(i->type[1]), k = i->p[5] ? (i->p[1] + 15) / 16 * 16 : i->p[1];
    return (k + c0 - 1) / c0;
}

static int32_t integer(const uint8_t *at, int type) { return type == TYPE_ui8 ? *at : (int8_t)*at; }

/* k runs upwards and each sum rounds to f32; i32 wraps. */
static void mad(struct core *core, const struct dv_instr *i) {
    int64_t M = i->p[0], K = i->p[1], N = i->p[2];
    int ta = i->type[1], tb = i->type[2], sa = dv_size(ta);
    int64_t c0 = 32 / sa, k1 = dv_fractals_of_k(i), m1 = (M + 15) / 16, n1 = (N + 15) / 16;
    uint8_t *c = operand(core, i, 0);
    const uint8_t *a = operand(core, i, 1), *b = operand(core, i, 2);
    const uint8_t *bias = i->op == OP_mad_bias ? operand(core, i, 3) : NULL;
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            uint8_t *at = c + ((n / 16 * m1 * 16 + m) * 16 + n % 16) * 4;
            union { float f; int32_t i; uint32_t u; } sum = {0};
            if (bias) memcpy(&sum, bias + n * 4, 4);
            else if (i->p[3]) memcpy(&sum, at, 4);
            for (int64_t k = 0; k < K; k++) {
                const uint8_t *x = a + ((m / 16 * k1 + k / c0) * 16 + m % 16) * 32 + k % c0 * sa;
                const uint8_t *y = b + ((k / c0 * n1 + n / 16) * 16 + n % 16) * 32 + k % c0 * sa;
                if (sa == 1) sum.u += (uint32_t)(integer(x, ta) * integer(y, tb));
                else sum.f += dv_load(x, ta) * dv_load(y, tb);
            }
            memcpy(at, &sum, 4);
        }
}

/* Fractals that a load brings may hold nothing at their edges: what they hold goes along with them. */
void dv_load_valid(const struct dv_instr *i, uint8_t *to, const uint8_t *from) {
    if (i->op == OP_img2colv2_cbuf_to_ca || i->op == OP_img2colv2_cbuf_to_cb) load3d(i, to, from, 1);
    else load2d(i, to, from);
}

/* Whether every element of A (rows m) or B (rows n) that a product takes holds something. */
static bool holds(const uint8_t *valid, int64_t rows, int64_t depth, int64_t k1, int size, bool is_b) {
    int64_t c0 = 32 / size, r1 = (rows + 15) / 16;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < depth; k++) {
            int64_t fractal = is_b ? k / c0 * r1 + r / 16 : r / 16 * k1 + k / c0;
            if (!valid[(fractal * 16 + r % 16) * 32 + k % c0 * size]) return false;
        }
    return true;
}

bool dv_product_holds(const struct core *core, const struct dv_instr *i) {
    int size = dv_size(i->type[1]);
    int64_t k1 = dv_fractals_of_k(i);
    return holds(core->valid[SPACE_ca] + i->operand[1], i->p[0], i->p[1], k1, size, false) &&
           holds(core->valid[SPACE_cb] + i->operand[2], i->p[2], i->p[1], k1, size, true);
}

/* A sum times the scale; a byte is rounded to even, and the offset added, before it saturates. */
static float quantised(const struct dv_instr *i, float sum) {
    double scale;
    memcpy(&scale, &i->p[8], sizeof scale);
    float value = sum * (float)scale;
    if (i->p[4] && value < 0) value = 0;
    return dv_size(i->type[0]) == 1 ? rintf(value) + (float)i->p[7] : value;
}

static void fixpipe_rows(struct core *core, const struct dv_instr *i, uint8_t *to, int64_t first, int64_t count) {
    const int64_t *p = i->p;
    int type = i->type[0], size = dv_size(type);
    int64_t c0 = 32 / size;
    bool nd = p[6] && dv_spaces[i->op][0] != SPACE_cbuf;
    const uint8_t *from = operand(core, i, 1);
    for (int64_t m = 0; m < count; m++)
        for (int64_t n = 0; n < p[0]; n++) {
            const uint8_t *at = from + ((n / 16 * p[3] + first + m) * 16 + n % 16) * 4;
            uint8_t *out = to + (nd ? (m * p[2] + n) * size : (n / c0 * p[2] + m) * 32 + n % c0 * size);
            if (i->type[1] == type && !p[4]) {
                memcpy(out, at, 4);
                continue;
            }
            float value = dv_load(at, i->type[1]);
            if (i->op == OP_copy_matrix_cc_to_gm_quant) dv_store(out, type, quantised(i, value));
            else dv_store(out, type, p[4] && value < 0 ? 0 : value);
        }
}

static void fixpipe(struct core *core, const struct dv_instr *i) {
    if (!dv_receiver(core, i, 0)) {
        fixpipe_rows(core, i, operand(core, i, 0), 0, i->p[1]);
        return;
    }
    for (int sub = 0; sub < 2; sub++) {
        struct core *receiver = dv_receiver(core, i, sub);
        if (receiver) fixpipe_rows(core, i, operand(receiver, i, 0), sub * dv_received(i, 0), dv_received(i, sub));
    }
}

void dv_execute(struct core *core, const struct dv_instr *i) {
    const int64_t *p = i->p;
    int64_t padded = (p[1] + 31) / 32 * 32;
    switch (i->op) {
    case OP_copy_gm_to_cbuf: case OP_copy_gm_to_ubuf: case OP_copy_ubuf_to_gm: case OP_copy_ubuf_to_cbuf:
    case OP_copy_ubuf_to_ubuf:
        copy_rows(core, i, p[1] * 32, p[0], (p[1] + p[3]) * 32, (p[1] + p[2]) * 32, 0);
        return;
    case OP_copy_gm_to_ubuf_align: copy_rows(core, i, p[1], p[0], padded + p[3] * 32, p[1] + p[2], padded); return;
    case OP_copy_ubuf_to_gm_align: copy_rows(core, i, p[1], p[0], p[1] + p[3], padded + p[2] * 32, 0); return;
    case OP_copy_gm_to_cbuf_multi_nd2nz: nd2nz(core, i); return;
    case OP_load_gm_to_ca: case OP_load_gm_to_cb: case OP_load_cbuf_to_ca: case OP_load_cbuf_to_cb:
        load2d(i, operand(core, i, 0), operand(core, i, 1));
        return;
    case OP_img2colv2_cbuf_to_ca: case OP_img2colv2_cbuf_to_cb: load3d(i, operand(core, i, 0), operand(core, i, 1), (int)i->p[17]); return;
    case OP_copy_cbuf_to_bt: case OP_copy_cbuf_to_fbuf:
        if (i->type[0] == i->type[1]) copy_rows(core, i, p[0] * 32, 1, 0, 0, 0);
        else widen(core, i);
        return;
    case OP_mad: case OP_mad_bias: mad(core, i); return;
    case OP_copy_matrix_cc_to_gm: case OP_copy_matrix_cc_to_cbuf: case OP_copy_matrix_cc_to_ubuf:
    case OP_copy_matrix_cc_to_gm_quant:
        fixpipe(core, i);
        return;
    }
    if (dv_pipe[i->op] == PIPE_V) dv_vector(core, i);
}
