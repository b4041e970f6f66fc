/* Cycles of the instructions that stay on a core. */
#include <math.h>

#include "dv_sim.h"

static double ceil_to(double value, double multiple) { return ceil(value / multiple) * multiple; }

static struct cost plain(double occupied, double done) {
    struct cost c = {occupied, done, done};
    return c;
}

/* k of the cube's steps of 16 x 16 x k, one a cycle. Inputs of four bytes are f32. */
static double cube_k(const struct sim *sim, const struct dv_instr *i) {
    int size = dv_size(i->type[1]);
    return size == 1 ? PARAM(cube_s8_k) : size == 2 ? PARAM(cube_f16_k) : PARAM(cube_f32_k);
}

static struct cost cube_cost(struct sim *sim, const struct dv_instr *i, bool stalled) {
    int size = dv_size(i->type[1]);
    double k = cube_k(sim, i);
    double k0 = size == 1 ? PARAM(cube_s8_k0) : size == 2 ? PARAM(cube_f16_k0) : PARAM(cube_f32_k0);
    double steps = ceil(i->p[0] / 16.0) * ceil(i->p[2] / 16.0) * ceil_to((double)i->p[1], k0) / k;
    double restart = stalled ? PARAM(cube_restart) : 0;
    return plain(steps + PARAM(cube_gap) + restart, steps + PARAM(cube_latency) + restart);
}

/* Bytes a cycle of Load3D: the table of the reference page, by strideW and the kernel rows that a load slides along. */
static double load3d_bandwidth(struct sim *sim, const struct dv_instr *i, bool to_b) {
    double base = to_b ? PARAM(mte1_l0b) : PARAM(mte1_l0a), least = to_b ? PARAM(mte1_load3d_l0b_least) : PARAM(mte1_load3d_l0a_least);
    double extra = to_b ? PARAM(mte1_load3d_l0b_extra) : PARAM(mte1_load3d_l0a_extra);
    int64_t s = i->p[7], n = i->p[10];
    double bandwidth = least;
    if (s == 1) bandwidth = n == 1 ? base : floor(512 / (n + 2 + extra));
    else if (s == 2 || s == 4 || s == 8) bandwidth = floor(512 / (2 * s + extra + (n > 1 ? n : 0)));
    return fmax(bandwidth, least);
}

static struct cost load_cost(struct core *core, const struct dv_instr *i) {
    struct sim *sim = core->sim;
    double bytes = 512.0 * i->p[0];
    if (i->p[3] && dv_size(i->type[1]) != 2) bytes *= 2;
    bool to_b = dv_spaces[i->op][0] == SPACE_cb;
    double bandwidth = to_b ? PARAM(mte1_l0b) : PARAM(mte1_l0a), constant = i->p[3] ? PARAM(mte1_transpose) : PARAM(mte1_load2d);
    switch (i->op) {
    case OP_img2colv2_cbuf_to_ca: case OP_img2colv2_cbuf_to_cb:
        bytes = ceil_to((double)i->p[14], 16) * ceil_to((double)i->p[13] * dv_size(i->type[0]), 32);
        bandwidth = load3d_bandwidth(sim, i, to_b);
        constant = PARAM(mte1_load3d);
        break;
    case OP_copy_cbuf_to_bt: case OP_copy_cbuf_to_fbuf:
        bytes = 32.0 * i->p[0];
        bandwidth = i->op == OP_copy_cbuf_to_bt ? PARAM(mte1_bt) : PARAM(mte1_fb);
        constant = PARAM(mte1_table);
        break;
    }
    core->path_bytes[dv_path[i->op]] += (int64_t)bytes;
    return plain(fmax(bytes / bandwidth + PARAM(mte1_gap), 1), bytes / bandwidth + constant);
}

/* Blocks of a repeat as a set of bank groups, in the first repeat: later ones keep the distance. */
static uint32_t bank_groups(const struct region *r) {
    uint32_t set = 0;
    int64_t row = r->row < 256 ? r->row : 256;
    for (int64_t k = 0; k < r->rows && k < 8; k++)
        for (int64_t b = 0; b < row; b += 32) set |= 1u << ((r->base + k * r->stride + b) >> 5 & 15);
    return set;
}

static double conflicts(struct core *core, const struct dv_instr *i, const struct region *r, int count) {
    struct sim *sim = core->sim;
    const struct region *sources[3];
    int n = 0;
    for (int k = 1; k < count && n < 3; k++)
        if (!r[k].written && r[k].operand > 0) sources[n++] = &r[k];
    double extra = 0;
    if (n >= 2 && bank_groups(sources[0]) & bank_groups(sources[1])) extra += PARAM(vector_conflict);
    bool hidden = false, meets = false;
    for (int k = 0; k < n; k++) {
        bool same_bank = (sources[k]->base >> 16) == (r[0].base >> 16);
        if (sources[k]->base == r[0].base) return extra; /* in place: read before it is written */
        if (same_bank && ((sources[k]->base ^ r[0].base) >> 5 & 15) == 0) hidden = true;
        else if (same_bank && bank_groups(sources[k]) & bank_groups(&r[0])) meets = true;
    }
    (void)i;
    return meets && !hidden ? extra + PARAM(vector_write_conflict) : extra;
}

static struct cost vector_cost(struct core *core, const struct dv_instr *i) {
    struct sim *sim = core->sim;
    if (i->op == OP_set_vector_mask || i->op == OP_set_mask_count || i->op == OP_set_mask_norm) return plain(1, 1);
    struct region r[REGIONS];
    int count = dv_regions(core, i, r);
    if (i->op == OP_copy_ubuf_to_ubuf) {
        double cycles = i->p[0] * i->p[1] * 32 / PARAM(vector_ub_to_ub);
        return plain(fmax(cycles, PARAM(vector_gap)), cycles + PARAM(vector_start));
    }
    int size = dv_size(i->type[dv_operands[i->op] > 1 ? 1 : 0]), repeats = dv_repeats(core, i);
    if (i->op == OP_vconv && dv_size(i->type[0]) > size) size = dv_size(i->type[0]);
    double elements = i->op == OP_vtranspose ? 256 : i->op == OP_vbrcb ? 128 : dv_elements_per_repeat(i);
    double rate = sim->rate[i->op][size >= 4];
    double each = elements / rate + conflicts(core, i, r, count);
    double cycles = repeats * each;
    return plain(fmax(cycles, PARAM(vector_gap)), cycles + PARAM(vector_start));
}

/* Fixpipe within a core: 64 elements a cycle. */
static struct cost fixpipe_cost(struct core *core, const struct dv_instr *i) {
    struct sim *sim = core->sim;
    double elements = ceil_to((double)i->p[0], 16) * (double)i->p[1], bytes = elements * dv_size(i->type[0]);
    bool to_ub = i->op == OP_copy_matrix_cc_to_ubuf;
    double bandwidth = to_ub ? PARAM(fixpipe_ub) : dv_size(i->type[0]) == 1 ? PARAM(fixpipe_l1_s8) : PARAM(fixpipe_l1);
    core->path_bytes[dv_path[i->op]] += (int64_t)bytes;
    double cycles = bytes / bandwidth + (to_ub ? PARAM(fixpipe_ub_start) : PARAM(fixpipe_start));
    return plain(cycles, cycles);
}

struct cost dv_cost(struct core *core, const struct dv_instr *i, bool stalled) {
    struct sim *sim = core->sim;
    switch (dv_pipe[i->op]) {
    case PIPE_M:
        core->macs += (double)i->p[0] * i->p[1] * i->p[2];
        core->ideal += (double)i->p[0] * i->p[1] * i->p[2] / (256 * cube_k(sim, i));
        return cube_cost(sim, i, stalled);
    case PIPE_MTE1: return load_cost(core, i);
    case PIPE_V: return vector_cost(core, i);
    case PIPE_FIX: return i->op == OP_copy_cbuf_to_fbuf ? load_cost(core, i) : fixpipe_cost(core, i);
    default: { /* UB -> L1 */
        double bytes = 32.0 * i->p[0] * i->p[1];
        core->path_bytes[dv_path[i->op]] += (int64_t)bytes;
        return plain(bytes / 128 + PARAM(gm_write_start), bytes / 128 + PARAM(gm_write_start));
    }
    }
}
