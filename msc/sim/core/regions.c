/* Which bytes an instruction reads and writes: the one place that knows it; checks, moves through GM and races ask it. */
#include "dv_sim.h"

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int dv_size(int type) {
    static const int size[] = {2, 2, 4, 1, 1, 2, 4, 4};
    return size[type & 7];
}

static struct region rows(int operand, int space, bool written, int64_t base, int64_t row, int64_t count, int64_t stride) {
    struct region r = {(uint8_t)space, (uint8_t)operand, written, base, row, count, stride, 1, 0};
    if (count > 1 && stride == row) {
        r.row = row * count;
        r.rows = 1;
    }
    return r;
}

static struct region grid(struct region r, int64_t outer, int64_t outer_stride) {
    if (outer > 1 && r.rows == 1 && outer_stride == r.row) {
        r.row *= outer;
    } else {
        r.outer = outer;
        r.outer_stride = outer_stride;
    }
    return r;
}

/* Elements of the widest type of an instruction that fit 256 bytes. */
int dv_elements_per_repeat(const struct dv_instr *i) {
    int widest = 1, n = dv_operands[i->op];
    if (i->op == OP_vcmp) return 256 / dv_size(i->type[1]);
    if (i->op == OP_vsel) n = 3;
    for (int k = 0; k < n; k++)
        if (dv_size(i->type[k]) > widest) widest = dv_size(i->type[k]);
    return 256 / widest;
}

static int repeat_position(int op) { return dv_repeat[op]; }

int dv_repeats(const struct core *core, const struct dv_instr *i) {
    int at = repeat_position(i->op);
    if (i->op == OP_vgather) return (int)ceil_div(i->p[0], 256 / dv_size(i->type[0]));
    if (at < 0) return 1;
    if (i->op == OP_vbrcb) return (int)i->p[at]; /* no mask */
    if (core->mask_count > 0) return (int)ceil_div(core->mask_count, dv_elements_per_repeat(i));
    return (int)i->p[at];
}

static int top_bit(const struct core *core) {
    for (int k = 1; k >= 0; k--)
        for (int b = 63; b >= 0; b--)
            if (core->mask[k] >> b & 1) return k * 64 + b + 1;
    return 0;
}

int dv_lanes(const struct core *core, const struct dv_instr *i) {
    int elements = dv_elements_per_repeat(i);
    int64_t used = core->mask_count > 0 ? core->mask_count : top_bit(core);
    return used < elements ? (int)used : elements;
}

/* One operand of the vector unit: repeats of blocks. */
static struct region vector_region(const struct core *core, const struct dv_instr *i, int operand, bool written,
                                   int64_t block_stride, int64_t repeat_stride) {
    int size = dv_size(i->type[operand]), elements = dv_elements_per_repeat(i), repeats = dv_repeats(core, i);
    int64_t base = i->operand[operand];
    if (core->mask_count > 0 && block_stride == 1 && repeat_stride * 32 == (int64_t)elements * size)
        return rows(operand, SPACE_ub, written, base, core->mask_count * size, 1, 0);
    int used = core->mask_count > 0 ? elements : dv_lanes(core, i);
    if (block_stride == 1) return rows(operand, SPACE_ub, written, base, (int64_t)used * size, repeats, repeat_stride * 32);
    struct region r = rows(operand, SPACE_ub, written, base, 32, ceil_div((int64_t)used * size, 32), block_stride * 32);
    return grid(r, repeats, repeat_stride * 32);
}

static int vector_regions(const struct core *core, const struct dv_instr *i, struct region *out) {
    int n = dv_operands[i->op], count = 0, at = repeat_position(i->op);
    const int64_t *p = i->p;
    int repeats = dv_repeats(core, i), size = n > 1 ? dv_size(i->type[0]) : 0;
    switch (i->op) {
    case OP_vcadd: case OP_vcmax: case OP_vcmin:
        out[count++] = rows(0, SPACE_ub, true, i->operand[0], size, repeats, p[1] * size);
        out[count++] = vector_region(core, i, 1, false, p[2], p[3]);
        return count;
    case OP_vcgadd: case OP_vcgmax: case OP_vcgmin:
        out[count++] = rows(0, SPACE_ub, true, i->operand[0], 8 * size, repeats, p[1] * 8 * size);
        out[count++] = vector_region(core, i, 1, false, p[2], p[3]);
        return count;
    case OP_vcpadd:
        out[count++] = rows(0, SPACE_ub, true, i->operand[0], 128, repeats, p[1] * 128);
        out[count++] = vector_region(core, i, 1, false, p[2], p[3]);
        return count;
    case OP_vbrcb:
        out[count++] = grid(rows(0, SPACE_ub, true, i->operand[0], 32, 8, p[1] * 32), repeats, p[2] * 32);
        out[count++] = rows(1, SPACE_ub, false, i->operand[1], 8 * (int64_t)size * repeats, 1, 0);
        return count;
    case OP_vgather:
        out[count++] = rows(0, SPACE_ub, true, i->operand[0], p[0] * size, 1, 0);
        out[count++] = rows(1, SPACE_ub, false, i->operand[1], p[1], 1, 0);
        out[count++] = rows(2, SPACE_ub, false, i->operand[2], p[0] * 4, 1, 0);
        return count;
    case OP_vtranspose:
        out[count++] = rows(0, SPACE_ub, true, i->operand[0], 512, 1, 0);
        out[count++] = rows(1, SPACE_ub, false, i->operand[1], 512, 1, 0);
        return count;
    case OP_vcmp:
        out[count++] = rows(0, SPACE_ub, true, i->operand[0], ceil_div((int64_t)repeats * dv_elements_per_repeat(i), 8), 1, 0);
        out[count++] = vector_region(core, i, 1, false, p[3], p[6]);
        out[count++] = vector_region(core, i, 2, false, p[4], p[7]);
        return count;
    case OP_vector_dup:
        out[count++] = vector_region(core, i, 0, true, p[2], p[3]);
        return count;
    case OP_set_vector_mask: case OP_set_mask_count: case OP_set_mask_norm:
        return 0;
    }
    int sources = i->op == OP_vsel ? 2 : n - 1; /* repeat, block strides, repeat strides */
    for (int k = 0; k <= sources; k++)
        out[count++] = vector_region(core, i, k, k == 0, p[at + 1 + k], p[at + 2 + sources + k]);
    if (dv_reads_first[i->op]) {
        out[count] = out[0];
        out[count++].written = false;
    }
    if (i->op == OP_vsel)
        out[count++] = rows(3, SPACE_ub, false, i->operand[3], ceil_div((int64_t)repeats * dv_elements_per_repeat(i), 8), 1, 0);
    return count;
}

struct core *dv_receiver(const struct core *core, const struct dv_instr *i, int sub_block) {
    if (i->op != OP_copy_matrix_cc_to_ubuf || core->ring.is_vector) return NULL;
    struct sim *sim = core->sim;
    for (int k = 0; k < sim->cores; k++) {
        const struct dv_ring *ring = &sim->core[k].ring;
        if (ring->block == core->ring.block && ring->is_vector && ring->sub_block == sub_block) return &sim->core[k];
    }
    return NULL;
}

int64_t dv_received(const struct dv_instr *i, int sub_block) { return sub_block ? i->p[1] / 2 : (i->p[1] + 1) / 2; }

struct region dv_landing(const struct dv_instr *i, int64_t m) {
    const int64_t *p = i->p;
    int size = dv_size(i->type[0]), to = dv_spaces[i->op][0];
    int64_t n = p[0], c0 = 32 / size;
    return p[6] && to != SPACE_cbuf ? rows(0, to, true, i->operand[0], n * size, m, p[2] * size)
                                    : grid(rows(0, to, true, i->operand[0], m * 32, 1, 0), ceil_div(n, c0), p[2] * 32);
}

static int matrix_regions(const struct core *core, const struct dv_instr *i, int from, struct region *out) {
    const int64_t *p = i->p;
    out[0] = dv_landing(i, dv_receiver(core, i, 0) ? dv_received(i, 0) : p[1]);
    out[1] = grid(rows(1, from, false, i->operand[1], p[1] * 64, 1, 0), ceil_div(p[0], 16), p[3] * 64);
    return 2;
}

static int load3d_regions(const struct dv_instr *i, struct region *out) {
    const int64_t *p = i->p;
    int64_t c0 = 32 / dv_size(i->type[1]), window = p[9] * p[10];
    int64_t first = p[15] / c0 / window, last = (p[15] + p[13] - 1) / c0 / window;
    out[0] = rows(0, dv_spaces[i->op][0], true, i->operand[0], ceil_div(p[14], 16) * ceil_div(p[13], c0) * 512, 1, 0);
    out[1] = rows(1, SPACE_cbuf, false, i->operand[1] + first * p[0] * p[1] * 32, (last - first + 1) * p[0] * p[1] * 32, 1, 0);
    return 2;
}

static int mad_regions(const struct dv_instr *i, struct region *out) {
    int64_t m = ceil_div(i->p[0], 16), k = dv_fractals_of_k(i), n = ceil_div(i->p[2], 16);
    int count = 0;
    out[count++] = rows(0, SPACE_cc, true, i->operand[0], m * n * 1024, 1, 0);
    out[count++] = rows(1, SPACE_ca, false, i->operand[1], m * k * 512, 1, 0);
    out[count++] = rows(2, SPACE_cb, false, i->operand[2], k * n * 512, 1, 0);
    if (i->op == OP_mad_bias) out[count++] = rows(3, SPACE_bt, false, i->operand[3], i->p[2] * 4, 1, 0);
    else if (i->p[3]) {
        out[count] = out[0];
        out[count++].written = false;
    }
    return count;
}

int dv_regions(const struct core *core, const struct dv_instr *i, struct region out[REGIONS]) {
    const int64_t *p = i->p;
    int to = dv_spaces[i->op][0], from = dv_spaces[i->op][1], size = dv_size(i->type[0]);
    switch (i->op) {
    case OP_copy_gm_to_cbuf: case OP_copy_gm_to_ubuf: case OP_copy_ubuf_to_gm: case OP_copy_ubuf_to_cbuf:
    case OP_copy_ubuf_to_ubuf:
        out[0] = rows(0, to, true, i->operand[0], p[1] * 32, p[0], (p[1] + p[3]) * 32);
        out[1] = rows(1, from, false, i->operand[1], p[1] * 32, p[0], (p[1] + p[2]) * 32);
        return 2;
    case OP_copy_gm_to_ubuf_align:
        out[0] = rows(0, to, true, i->operand[0], ceil_div(p[1], 32) * 32, p[0], (ceil_div(p[1], 32) + p[3]) * 32);
        out[1] = rows(1, from, false, i->operand[1], p[1], p[0], p[1] + p[2]);
        return 2;
    case OP_copy_ubuf_to_gm_align:
        out[0] = rows(0, to, true, i->operand[0], p[1], p[0], p[1] + p[3]);
        out[1] = rows(1, from, false, i->operand[1], p[1], p[0], (ceil_div(p[1], 32) + p[2]) * 32);
        return 2;
    case OP_copy_gm_to_cbuf_multi_nd2nz:
        out[0] = grid(rows(0, to, true, i->operand[0], p[0] * 32, 1, 0), ceil_div(p[1] * size, 32), p[3] * 32);
        out[1] = rows(1, from, false, i->operand[1], p[1] * size, p[0], p[2] * size);
        return 2;
    case OP_load_gm_to_ca: case OP_load_gm_to_cb: case OP_load_cbuf_to_ca: case OP_load_cbuf_to_cb:
        out[0] = rows(0, to, true, i->operand[0], 512, p[0], p[2] * 512);
        out[1] = rows(1, from, false, i->operand[1], 512, p[0], p[1] * 512);
        if (p[3] && size != 2) {
            out[0] = grid(out[0], 2, p[5] * 512);
            out[1] = grid(out[1], 2, p[4] * 512);
        }
        return 2;
    case OP_img2colv2_cbuf_to_ca: case OP_img2colv2_cbuf_to_cb:
        return load3d_regions(i, out);
    case OP_copy_cbuf_to_bt: case OP_copy_cbuf_to_fbuf:
        out[0] = rows(0, to, true, i->operand[0], p[0] * 32 / dv_size(i->type[1]) * size, 1, 0);
        out[1] = rows(1, from, false, i->operand[1], p[0] * 32, 1, 0);
        return 2;
    case OP_copy_matrix_cc_to_gm: case OP_copy_matrix_cc_to_gm_quant: case OP_copy_matrix_cc_to_cbuf: case OP_copy_matrix_cc_to_ubuf:
        return matrix_regions(core, i, from, out);
    case OP_mad: case OP_mad_bias:
        return mad_regions(i, out);
    case OP_load_index:
        out[0] = rows(0, SPACE_gm, false, i->operand[0], size * p[1], 1, 0);
        return 1;
    case OP_scalar_work:
        return 0;
    }
    return dv_pipe[i->op] == PIPE_V ? vector_regions(core, i, out) : 0;
}
