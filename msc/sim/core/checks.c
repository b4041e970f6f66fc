/* What an instruction may not do: parameters out of range, addresses out of bounds or unaligned, reads of nothing. */
#include "dv_sim.h"

static bool check_parameters(struct core *core, const struct dv_instr *i) {
    for (int k = 0; k < dv_parameters[i->op]; k++)
        if (dv_limits[i->op][k][0] <= dv_limits[i->op][k][1] && (i->p[k] < dv_limits[i->op][k][0] || i->p[k] > dv_limits[i->op][k][1])) {
            dv_error(core, ERROR_PARAMETER, i, "%s: %s is %lld, outside %lld to %lld", dv_op_name[i->op],
                     dv_parameter_name[i->op][k], (long long)i->p[k], (long long)dv_limits[i->op][k][0],
                     (long long)dv_limits[i->op][k][1]);
            return false;
        }
    return true;
}

/* Load3D: windows lie in the padded image; its rows are pixels of the result, in whole fractals, its columns channels and taps. */
static bool check_load3d(struct core *core, const struct dv_instr *i) {
    const int64_t *p = i->p;
    if (i->op != OP_img2colv2_cbuf_to_ca && i->op != OP_img2colv2_cbuf_to_cb) return true;
    int64_t c0 = 32 / dv_size(i->type[1]), over = p[1] + p[3] + p[4] - ((p[9] - 1) * p[11] + 1), down = p[0] + p[5] + p[6] - ((p[10] - 1) * p[12] + 1);
    if (over < 0 || down < 0) {
        dv_error(core, ERROR_PARAMETER, i, "%s: the filter is larger than the padded image", dv_op_name[i->op]);
        return false;
    }
    int64_t pixels = (over / p[7] + 1) * (down / p[8] + 1), rows = (pixels + 15) / 16 * 16, columns = (p[2] + c0 - 1) / c0 * c0 * p[9] * p[10];
    if (p[16] + p[14] > rows)
        dv_error(core, ERROR_PARAMETER, i, "%s: m_start + m_extension is %lld; the result has %lld pixels", dv_op_name[i->op],
                 (long long)(p[16] + p[14]), (long long)pixels);
    else if (p[15] + p[13] > columns)
        dv_error(core, ERROR_PARAMETER, i, "%s: k_start + k_extension is %lld; channels and taps are %lld", dv_op_name[i->op],
                 (long long)(p[15] + p[13]), (long long)columns);
    return !core->sim->error;
}

static int64_t extent(const struct region *r) {
    int64_t outer = r->outer > 1 ? (r->outer - 1) * r->outer_stride : 0, inner = r->rows > 1 ? (r->rows - 1) * r->stride : 0;
    return r->outer > 0 && r->rows > 0 && r->row > 0 ? outer + inner + r->row : 0;
}

static bool check_bounds(struct core *core, const struct dv_instr *i, const struct region *r) {
    const struct sim *sim = core->sim;
    int64_t base = r->base, capacity = sim->capacity[r->space], bytes = extent(r);
    int argument = -1;
    if (r->space == SPACE_gm) {
        argument = (int)(base >> GM_SHIFT) - 1;
        if (argument < 0 || argument >= sim->arguments) {
            dv_error(core, ERROR_BOUNDS, i, "%s: operand %d is no address of an argument", dv_op_name[i->op], r->operand);
            return false;
        }
        base &= (1LL << GM_SHIFT) - 1;
        capacity = sim->argument[argument].bytes;
        if (base >> (GM_SHIFT - 1)) base -= 1LL << GM_SHIFT;
    } else if (base % sim->align[r->space]) {
        dv_error(core, ERROR_ALIGNMENT, i, "%s: operand %d is at byte %lld of %s, no multiple of %lld", dv_op_name[i->op],
                 r->operand, (long long)base, dv_space_name[r->space], (long long)sim->align[r->space]);
        return false;
    }
    if (base < 0 || base + bytes > capacity) {
        dv_error(core, ERROR_BOUNDS, i, "%s: operand %d %s bytes %lld to %lld of %s, which has %lld", dv_op_name[i->op],
                 r->operand, r->written ? "writes" : "reads", (long long)base, (long long)(base + bytes),
                 dv_space_name[r->space], (long long)capacity);
        return false;
    }
    return true;
}

static uint8_t *valid_at(struct core *core, const struct region *r) {
    if (r->space != SPACE_gm) return core->valid[r->space] ? core->valid[r->space] + r->base : NULL;
    struct argument *a = &core->sim->argument[(r->base >> GM_SHIFT) - 1];
    return a->valid ? a->valid + (r->base & ((1LL << GM_SHIFT) - 1)) : NULL;
}

static bool check_initialised(struct core *core, const struct dv_instr *i, const struct region *r) {
    const uint8_t *valid = valid_at(core, r);
    if (!valid || r->written) return true;
    for (int64_t o = 0; o < r->outer; o++)
        for (int64_t k = 0; k < r->rows; k++)
            for (int64_t b = 0; b < r->row; b++)
                if (!valid[o * r->outer_stride + k * r->stride + b]) {
                    dv_error(core, ERROR_UNINITIALISED, i, "%s: operand %d reads byte %lld of %s, which nothing has written",
                             dv_op_name[i->op], r->operand,
                             (long long)((r->base & ((1LL << GM_SHIFT) - 1)) + o * r->outer_stride + k * r->stride + b),
                             dv_space_name[r->space]);
                    return false;
                }
    return true;
}

bool dv_check(struct core *core, const struct dv_instr *i) {
    struct region r[REGIONS];
    if (!check_parameters(core, i) || !check_load3d(core, i)) return false;
    int n = dv_regions(core, i, r);
    for (int k = 0; k < n; k++)
        if (!check_bounds(core, i, &r[k])) return false;
    if (!(core->sim->mode & MODE_FUNCTION)) return true;
    if (dv_pipe[i->op] == PIPE_MTE1 && dv_spaces[i->op][0] != SPACE_bt) return true; /* see dv_load_valid */
    for (int k = 0; k < n; k++)
        if (r[k].space != SPACE_ca && r[k].space != SPACE_cb && !check_initialised(core, i, &r[k])) return false;
    if (dv_pipe[i->op] == PIPE_M && !dv_product_holds(core, i)) {
        dv_error(core, ERROR_UNINITIALISED, i, "%s: L0A or L0B holds elements that nothing has written", dv_op_name[i->op]);
        return false;
    }
    return true;
}

static void mark(struct core *core, const struct region *r) {
    uint8_t *valid = valid_at(core, r);
    if (!valid || !r->written) return;
    for (int64_t o = 0; o < r->outer; o++)
        for (int64_t row = 0; row < r->rows; row++)
            for (int64_t b = 0; b < r->row; b++) valid[o * r->outer_stride + row * r->stride + b] = 1;
}

void dv_mark_written(struct core *core, const struct dv_instr *i) {
    if (!(core->sim->mode & MODE_FUNCTION)) return;
    struct region r[REGIONS];
    int n = dv_regions(core, i, r);
    if (dv_receiver(core, i, 0)) {
        for (int sub = 0; sub < 2; sub++) {
            struct core *receiver = dv_receiver(core, i, sub);
            r[0] = dv_landing(i, dv_received(i, sub));
            if (receiver) mark(receiver, &r[0]);
        }
        return;
    }
    if (dv_pipe[i->op] == PIPE_MTE1 && dv_spaces[i->op][0] != SPACE_bt) {
        dv_load_valid(i, core->valid[dv_spaces[i->op][0]] + i->operand[0], core->valid[SPACE_cbuf] + i->operand[1]);
        return;
    }
    for (int k = 0; k < n; k++) mark(core, &r[k]);
}
