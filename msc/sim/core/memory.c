/* Moves through global memory: packets, L2 (first in, first out, lines of 512 bytes), HBM, and what cores share.
 *
 * A core by itself moves a packet every so many cycles, more where the line is not in L2. Cores that move at the same
 * time share L2's and HBM's bandwidth (sharing.c). Packets of one line from several cores follow each other. */
#include <math.h>

#include "dv_sim.h"

enum { COLD_GM_CBUF, COLD_GM_UB, COLD_GM_CA, COLD_ND2NZ, COLD_UB_GM, COLD_CC_GM, COLD_NONE = -1 };

enum { LINE_SHIFT = 9 }; /* lines of 512 bytes: api.c refuses a machine with others */

struct move {
    const struct region *region;
    bool write, bypass, shared; /* shared: other cores run too */
    double start, packet, miss, full; /* cycles; `full` is the least for a whole line, in proportion for a part */
    int cold;
};

struct tally { int64_t packets, missed, bytes, hbm; double lag; };

bool dv_is_gm(int op) {
    for (int k = 0; k < dv_operands[op]; k++)
        if (dv_spaces[op][k] == SPACE_gm) return true;
    return false;
}

/* A line comes into L2, and the oldest one leaves: a changed one is written to HBM. */
static int64_t fill(struct sim *sim, int64_t line, bool dirty) {
    int64_t cost = 0, place = sim->l2_next;
    int32_t old = sim->l2_line[place];
    if (old) {
        if (sim->dirty[old - 1]) cost = (int64_t)PARAM(shared_line);
        sim->dirty[old - 1] = 0;
        sim->l2_place[old - 1] = 0;
    }
    sim->l2_line[place] = (int32_t)(line + 1);
    sim->l2_place[line] = (int32_t)(place + 1);
    sim->dirty[line] = dirty;
    sim->l2_next = place + 1 == sim->l2_lines ? 0 : place + 1;
    return cost;
}

/* One packet of a line: whether L2 had it, and the bytes that HBM moves for it. */
static bool visit(struct sim *sim, int64_t line, bool write, bool bypass, int64_t *hbm) {
    if (sim->l2_place[line]) {
        if (write) sim->dirty[line] = 1;
        return true;
    }
    if (bypass) *hbm += (int64_t)PARAM(shared_line);
    else *hbm += fill(sim, line, write) + (write ? 0 : (int64_t)PARAM(shared_line));
    return write;
}

/* Another core may be at the same line: it is served first. */
static void meet(struct core *core, int64_t line, double arrival, struct tally *tally) {
    struct sim *sim = core->sim;
    if (sim->line_core[line] != core->index && sim->line_core[line] >= 0) {
        double late = sim->line_free[line] - (arrival + tally->lag);
        if (late > 0) tally->lag += late;
    }
    sim->line_core[line] = (int16_t)core->index;
    sim->line_free[line] = arrival + tally->lag + PARAM(shared_same_line);
}

static inline double larger(double a, double b) { return a > b ? a : b; }

/* One row of a move, packet by packet; a packet stays within a line. Returns the time after it. */
static inline double walk_row(struct core *core, const struct move *m, int64_t offset, int64_t first_line, int64_t bytes, double time,
                              struct tally *tally) {
    struct sim *sim = core->sim;
    for (int64_t at = offset, end = offset + bytes; at < end;) {
        int64_t next = (at >> LINE_SHIFT) + 1, stop = next << LINE_SHIFT < end ? next << LINE_SHIFT : end;
        int64_t line = first_line + next - 1;
        double each = larger(m->packet, m->full * (double)(stop - at));
        bool hit = sim->l2_place[line] && !m->write;
        if (!hit) hit = visit(sim, line, m->write, m->bypass, &tally->hbm);
        if (m->shared) meet(core, line, time, tally);
        time += hit ? each : larger(m->miss, each);
        tally->packets++;
        tally->missed += !hit;
        at = stop;
    }
    return time;
}

static double walk(struct core *core, const struct move *m, double time, struct tally *tally) {
    const struct region *r = m->region;
    const struct argument *argument = &core->sim->argument[(r->base >> GM_SHIFT) - 1];
    int64_t offset = r->base & ((1LL << GM_SHIFT) - 1);
    double at = time + m->start;
    for (int64_t o = 0; o < r->outer; o++)
        for (int64_t k = 0; k < r->rows; k++)
            at = walk_row(core, m, offset + o * r->outer_stride + k * r->stride, argument->first_line, r->row, at, tally);
    tally->bytes = r->row * r->rows * r->outer;
    return at - time + tally->lag;
}

static struct move move_of(struct core *core, const struct dv_instr *i, const struct region *region) {
    struct sim *sim = core->sim;
    struct move m = {region, region->written, false, sim->cores > 1 && !(sim->mode & MODE_MEMORY_ONLY), PARAM(gm_l1_start), PARAM(gm_l1_packet), PARAM(gm_l1_miss), 0, COLD_NONE};
    switch (i->op) {
    case OP_copy_gm_to_cbuf: m.cold = COLD_GM_CBUF; break;
    case OP_copy_gm_to_cbuf_multi_nd2nz: m.cold = COLD_ND2NZ; m.full = PARAM(gm_nd2nz_packet_512); break;
    case OP_load_gm_to_ca: case OP_load_gm_to_cb: m.cold = COLD_GM_CA; m.packet = PARAM(gm_l0_packet); break;
    case OP_copy_gm_to_ubuf: case OP_copy_gm_to_ubuf_align:
        m.cold = COLD_GM_UB, m.start = PARAM(gm_ub_start), m.packet = PARAM(gm_ub_packet), m.miss = PARAM(gm_ub_miss);
        m.bypass = i->p[4] != 0;
        break;
    default:
        m.cold = dv_pipe[i->op] == PIPE_FIX ? COLD_CC_GM : COLD_UB_GM;
        m.start = PARAM(gm_write_start), m.packet = PARAM(gm_write_packet) / 2, m.miss = m.packet, m.full = PARAM(gm_write_packet);
    }
    m.full /= PARAM(shared_line);
    return m;
}

/* A curve of measured points, straight between them; beyond its ends there is none. */
static double measured(const struct curve *curve, double kb) {
    for (int k = 0; k < curve->count; k++) {
        if (kb == curve->kb[k]) return curve->cycles[k];
        if (k + 1 < curve->count && kb > curve->kb[k] && kb < curve->kb[k + 1]) {
            double part = (kb - curve->kb[k]) / (curve->kb[k + 1] - curve->kb[k]);
            return curve->cycles[k] + part * (curve->cycles[k + 1] - curve->cycles[k]);
        }
    }
    return 0;
}

static const struct region *gm_region(const struct region *r, int count) {
    for (int k = 0; k < count; k++)
        if (r[k].space == SPACE_gm) return &r[k];
    return r;
}

/* The lines of a move, without its time: what L2 holds when a measured run starts. */
void dv_touch(struct core *core, const struct dv_instr *i) {
    struct region r[REGIONS];
    struct tally tally = {0};
    struct move m = move_of(core, i, gm_region(r, dv_regions(core, i, r)));
    walk(core, &m, 0, &tally);
}

struct flow dv_gm_flow(struct core *core, const struct dv_instr *i, double time) {
    struct sim *sim = core->sim;
    struct region r[REGIONS];
    struct tally tally = {0};
    struct move m = move_of(core, i, gm_region(r, dv_regions(core, i, r)));
    double alone = walk(core, &m, time, &tally);
    if (m.cold != COLD_NONE && !core->warm[m.cold]) {
        int64_t counted = m.cold == COLD_CC_GM ? 4 * i->p[0] * i->p[1] : tally.bytes; /* the curve counts L0C's bytes */
        double first = measured(&sim->cold[m.cold], (double)counted / 1024);
        if (first > 0) alone = first;
        core->warm[m.cold] = true;
    }
    struct flow flow = {.core = core, .pipe = dv_pipe[i->op], .since = time, .start = time, .left = alone};
    flow.demand[m.write ? SHARED_WRITE : SHARED_READ] = (double)tally.bytes / alone;
    flow.demand[SHARED_HBM] = (double)tally.hbm / alone;
    if (dv_spaces[i->op][0] == SPACE_cbuf) flow.l1 = (double)tally.bytes / alone / PARAM(mte1_l1_write);
    if (m.write) flow.acknowledged = PARAM(gm_write_latency);
    sim->hbm_bytes += (double)tally.hbm;
    sim->l2_bytes += (double)tally.bytes;
    sim->hits += tally.packets - tally.missed;
    sim->misses += tally.missed;
    core->path_bytes[dv_path[i->op]] += tally.bytes;
    return flow;
}
