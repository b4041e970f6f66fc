/* Races: whether flags, barriers and program order put every two conflicting accesses in order.
 *
 * Each queue numbers its instructions; clock[p][q] is the last instruction of q that is known to have ended when the
 * next one of p starts. Memory is watched in granules of 32 bytes. The order found holds for every timing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dv_sim.h"

struct granule {
    uint32_t written, writer_line;
    uint8_t writer;
    int16_t remote; /* 1 + the core that has written, 0 for the memory's own */
    uint32_t read[PIPES], reader_line[PIPES];
};

/* One access to bytes of a granule of global memory, `mask` says which; a granule has a list of those that still count. */
struct access {
    uint32_t number, line, mask, next; /* next: 1 + the place of the next one in the pool */
    int16_t core;
    uint8_t pipe;
    bool written;
};

struct shadow {
    struct granule *space[8];
    uint32_t *repeat; /* UB: which repeat of which vector instruction wrote a granule last */
};

struct shadow *dv_shadow_new(const struct sim *sim) {
    struct shadow *s = calloc(1, sizeof *s);
    for (int k = 1; s && k < 8; k++)
        if (sim->capacity[k]) s->space[k] = calloc((size_t)sim->capacity[k] / 32 + 1, sizeof(struct granule));
    if (s) s->repeat = calloc((size_t)sim->capacity[SPACE_ub] / 32 + 1, sizeof *s->repeat);
    return s;
}

void dv_shadow_free(struct shadow *shadow) {
    if (!shadow) return;
    for (int k = 1; k < 8; k++) free(shadow->space[k]);
    free(shadow->repeat);
    free(shadow);
}

static void join(uint64_t *into, const uint64_t *from) {
    for (int q = 0; q < PIPES; q++)
        if (from[q] > into[q]) into[q] = from[q];
}

/* All races are told, each pair of lines once: the run goes on until there are too many. */
static void race(struct core *core, const struct dv_instr *i, const struct region *r, int other, uint32_t other_line, bool other_wrote) {
    struct fault *fault = dv_fault(core, ERROR_RACE, i, other_line);
    if (fault)
        snprintf(fault->message, sizeof fault->message, "race in %s: %s %s what %s %s, and no flag orders the two", dv_space_name[r->space],
                 dv_op_name[i->op], r->written ? "writes" : "reads", dv_pipe_name[other], other_wrote ? "writes" : "reads");
}

/* Queues run in order; only the vector unit needs a barrier before it reads its own results. */
static bool ordered(const struct core *core, int pipe, int other, uint32_t number, bool read_of_own) {
    if (pipe == other && !(pipe == PIPE_V && read_of_own)) return true;
    return core->clock[pipe][other] >= number;
}

/* What a core has written to the memory of another one: whether its number is known here. */
static bool known_here(const struct core *core, int other, int pipe, uint32_t number) { return core->known[other * PIPES + pipe] >= number; }

static bool last_write_ordered(const struct core *core, const struct granule *g, int pipe, bool read_of_own) {
    if (!g->written) return true;
    if (g->remote) return known_here(core, g->remote - 1, g->writer, g->written);
    return ordered(core, pipe, g->writer, g->written, read_of_own);
}

static void written_by(struct granule *g, const struct dv_instr *i, int pipe, uint32_t number, int remote) {
    memset(g->read, 0, sizeof g->read);
    g->written = number;
    g->writer = (uint8_t)pipe;
    g->writer_line = i->line;
    g->remote = (int16_t)remote;
}

/* A write to the memory of another core: all that this core did there, and what others wrote, has ended. */
static void visit_other(struct core *core, const struct dv_instr *i, const struct region *r, const struct core *owner, struct granule *g, int pipe, uint32_t number) {
    bool own = g->remote == core->index + 1 && g->writer == pipe;
    int writer = g->remote ? g->remote - 1 : owner->index;
    if (g->written && !own && !known_here(core, writer, g->writer, g->written)) race(core, i, r, g->writer, g->writer_line, true);
    for (int q = 0; q < PIPES; q++)
        if (g->read[q] && !known_here(core, owner->index, q, g->read[q])) race(core, i, r, q, g->reader_line[q], false);
    written_by(g, i, pipe, number, core->index + 1);
}

static void visit(struct core *core, const struct dv_instr *i, const struct region *r, struct granule *g, int pipe, uint32_t number) {
    if (!last_write_ordered(core, g, pipe, !r->written)) race(core, i, r, g->writer, g->writer_line, true);
    if (!r->written) {
        g->read[pipe] = number;
        g->reader_line[pipe] = i->line;
        return;
    }
    for (int q = 0; q < PIPES; q++)
        if (q != pipe && g->read[q] && !ordered(core, pipe, q, g->read[q], false)) race(core, i, r, q, g->reader_line[q], false);
    written_by(g, i, pipe, number, 0);
}

static bool gm_ordered(const struct core *core, int pipe, const struct access *a) {
    if (a->core == core->index) return a->pipe == pipe || core->clock[pipe][a->pipe] >= a->number;
    return known_here(core, a->core, a->pipe, a->number);
}

static struct access *next_access(const struct sim *sim, const struct access *a) { return a->next ? &sim->access[a->next - 1] : NULL; }

/* A place for one more access to a granule: one that counts no more, or a new one behind the others. */
static struct access *new_access(struct sim *sim, struct access *first) {
    struct access *last = first;
    for (struct access *a = first; a; last = a, a = next_access(sim, a))
        if (!a->mask) return a;
    if (sim->accesses == sim->access_capacity) {
        int64_t capacity = sim->access_capacity ? 2 * sim->access_capacity : 1024, place = last == first ? -1 : last - sim->access;
        struct access *grown = realloc(sim->access, (size_t)capacity * sizeof *grown);
        if (!grown) return NULL;
        sim->access = grown, sim->access_capacity = capacity;
        if (place >= 0) last = &grown[place];
    }
    sim->access[sim->accesses++] = (struct access){0};
    last->next = (uint32_t)sim->accesses;
    return &sim->access[sim->accesses - 1];
}

/* Bytes of a granule of global memory: every earlier access that conflicts is ordered before this one. What this one
 * writes is forgotten of the others, so a granule has as many entries as it has readers since the last write. */
static void visit_gm(struct core *core, const struct dv_instr *i, const struct region *r, struct access *first, uint32_t mask, int pipe, uint32_t number) {
    for (struct access *a = first; a; a = next_access(core->sim, a)) {
        bool own = a->core == core->index && a->pipe == pipe;
        if (own && a->mask && a->number == number && a->written == r->written) {
            a->mask |= mask;
            return;
        }
        if (!(a->mask & mask)) continue;
        if ((r->written || a->written) && !gm_ordered(core, pipe, a)) race(core, i, r, a->pipe, a->line, a->written);
        if (r->written || (own && !a->written)) a->mask &= ~mask;
    }
    struct access *a = new_access(core->sim, first);
    if (!a) {
        dv_error(core, ERROR_MEMORY, i, "no memory for the proof: too many cores read and write the same bytes");
        return;
    }
    a->number = number, a->line = i->line, a->mask = mask;
    a->core = (int16_t)core->index, a->pipe = (uint8_t)pipe, a->written = r->written;
}

static uint32_t bytes_from(int64_t first, int64_t end) { return (uint32_t)((1ULL << end) - (1ULL << first)); }

static void visit_row(struct core *core, const struct dv_instr *i, const struct region *r, int64_t base, int pipe, uint32_t number) {
    if (r->space != SPACE_gm) {
        for (int64_t at = base / 32; at <= (base + r->row - 1) / 32; at++) visit(core, i, r, &core->shadow->space[r->space][at], pipe, number);
        return;
    }
    struct argument *a = &core->sim->argument[(base >> GM_SHIFT) - 1];
    if (!a->access) {
        if (r->written) dv_error(core, ERROR_PARAMETER, i, "%s writes an argument that the kernel only reads", dv_op_name[i->op]);
        return;
    }
    base &= (1LL << GM_SHIFT) - 1;
    for (int64_t at = base / 32, end = base + r->row; at * 32 < end; at++) {
        int64_t from = base > at * 32 ? base - at * 32 : 0, to = end < at * 32 + 32 ? end - at * 32 : 32;
        visit_gm(core, i, r, &a->access[at], bytes_from(from, to), pipe, number);
    }
}

/* Rows that land in the UB of the vector cores of a block. */
static void visit_receivers(struct core *core, const struct dv_instr *i, int pipe, uint32_t number) {
    for (int sub = 0; sub < 2; sub++) {
        const struct core *owner = dv_receiver(core, i, sub);
        struct region r = dv_landing(i, dv_received(i, sub));
        for (int64_t k = 0; owner && r.row > 0 && k < r.outer * r.rows; k++) {
            int64_t base = r.base + k / r.rows * r.outer_stride + k % r.rows * r.stride;
            for (int64_t at = base / 32; at <= (base + r.row - 1) / 32; at++)
                visit_other(core, i, &r, owner, &owner->shadow->space[r.space][at], pipe, number);
        }
    }
}

/* The blocks of 32 bytes of one operand of an elementwise vector instruction: strides, and bytes of an element. */
struct blocks { int64_t base, block, repeat; int size; };

static struct blocks blocks_of(const struct dv_instr *i, int operand) {
    int at = dv_repeat[i->op], sources = dv_operands[i->op] - 1;
    return (struct blocks){i->operand[operand] / 32, i->p[at + 1 + operand], i->p[at + 2 + sources + operand], dv_size(i->type[operand])};
}

/* How many blocks one repeat touches: the last one may count in part. */
static int count_of(const struct core *core, const struct dv_instr *i, const struct blocks *b, int repeat) {
    int64_t lanes = dv_lanes(core, i), left = core->mask_count - (int64_t)repeat * dv_elements_per_repeat(i);
    if (core->mask_count > 0 && left < lanes) lanes = left;
    return (int)((lanes * b->size + 31) / 32);
}

static uint32_t *stamp_of(const struct core *core, const struct blocks *b, int repeat, int block) {
    return &core->shadow->repeat[b->base + repeat * b->repeat + block * b->block];
}

static void tell_repeats(struct core *core, const struct dv_instr *i) {
    struct fault *fault = dv_fault(core, ERROR_RACE, i, i->line);
    if (fault)
        snprintf(fault->message, sizeof fault->message, "race in UB: a repeat of %s reads what an earlier one writes, and repeats overlap",
                 dv_op_name[i->op]);
}

/* Repeats of the vector unit overlap in time: none may read what an earlier one of the same instruction has written. What
 * lies as the result does is read before it is written, or is a sum that the unit keeps. */
static void visit_repeats(struct core *core, const struct dv_instr *i, uint32_t number) {
    bool blockwise = dv_pipe[i->op] == PIPE_V && dv_repeat[i->op] >= 0 && dv_operands[i->op] > 1 && !dv_is_reduction[i->op];
    if (!blockwise || i->op == OP_vcmp || i->op == OP_vsel || i->op == OP_vbrcb) return;
    struct blocks to = blocks_of(i, 0), from[3];
    uint32_t tag = (number & 0xffffff) << 8;
    int n = 0, repeats = dv_repeats(core, i);
    for (int k = 1; k < dv_operands[i->op]; k++) {
        from[n] = blocks_of(i, k);
        if (from[n].base != to.base || from[n].block != to.block || from[n].repeat != to.repeat || from[n].size != to.size) n++;
    }
    for (uint32_t r = 0; n && r < (uint32_t)repeats && r < 256; r++) {
        for (int k = 0; k < n; k++)
            for (int b = count_of(core, i, &from[k], (int)r) - 1; b >= 0; b--) {
                uint32_t last = *stamp_of(core, &from[k], (int)r, b);
                if ((last & ~255u) != tag || (last & 255) >= r) continue;
                tell_repeats(core, i);
                return;
            }
        for (int b = count_of(core, i, &to, (int)r) - 1; b >= 0; b--) *stamp_of(core, &to, (int)r, b) = tag | r;
    }
}

bool dv_race_access(struct core *core, const struct dv_instr *i, int pipe) {
    struct region r[REGIONS];
    int n = dv_regions(core, i, r);
    uint32_t number = (uint32_t)++core->sequence[pipe];
    visit_repeats(core, i, number);
    for (int written = 0; written < 2; written++)
        for (int k = 0; k < n; k++) {
            if (r[k].written != written || r[k].row <= 0) continue;
            if (written && dv_receiver(core, i, 0)) {
                visit_receivers(core, i, pipe, number);
                continue;
            }
            for (int64_t o = 0; o < r[k].outer; o++)
                for (int64_t row = 0; row < r[k].rows; row++)
                    visit_row(core, i, &r[k], r[k].base + o * r[k].outer_stride + row * r[k].stride, pipe, number);
        }
    return !core->sim->error;
}

bool dv_race_set(struct core *core, int from, int to, struct flag *flag, const struct dv_instr *i) {
    if (core->clock[from][to] < flag->waited) {
        dv_error(core, ERROR_FLAG, i, "flag %s -> %s, id %d may be set a second time before it was waited for",
                 dv_pipe_name[from], dv_pipe_name[to], (int)i->p[2]);
        return false;
    }
    memcpy(flag->clock, core->clock[from], sizeof flag->clock);
    flag->clock[from] = core->sequence[from];
    return true;
}

void dv_race_wait(struct core *core, int to, struct flag *flag) {
    join(core->clock[to], flag->clock);
    flag->waited = ++core->sequence[to];
}

void dv_race_barrier(struct core *core, int pipe) {
    if (pipe != PIPE_ALL) {
        core->clock[pipe][pipe] = core->sequence[pipe];
        return;
    }
    for (int q = 0; q < PIPES; q++) core->clock[PIPE_S][q] = core->sequence[q];
}

void dv_race_unit(struct core *core, int to, int from) { core->clock[to][from] = core->sequence[from]; }

void dv_race_dispatch(struct core *core, const uint64_t *scalar, int pipe) { join(core->clock[pipe], scalar); }

void dv_race_send(const struct core *core, int pipe, uint64_t *clock) {
    memcpy(clock, core->clock[pipe], sizeof core->clock[pipe]);
    clock[pipe] = core->sequence[pipe];
}

void dv_race_receive(struct core *core, int sender, const uint64_t *clock) { join(&core->known[sender * PIPES], clock); }

struct access *dv_gm_accesses(int64_t bytes) { return calloc((size_t)bytes / 32 + 1, sizeof(struct access)); }
