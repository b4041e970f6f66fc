/* What msc.sim calls: make a machine, give it arguments and a kernel, run it, read what came out. */
#include <stdlib.h>
#include <string.h>

#include "dv_sim.h"

enum { STACK_BYTES = 1 << 18 };

void dv_simulate(struct sim *sim, int warm, int64_t limit);
void dv_free(struct sim *sim);

static bool new_core(struct sim *sim, int index) {
    struct core *core = &sim->core[index];
    core->sim = sim;
    core->index = index;
    core->mask[0] = core->mask[1] = ~0ULL;
    core->stack = malloc(STACK_BYTES);
    bool whole = core->stack != NULL;
    for (int k = 1; k < 8 && sim->mode & MODE_FUNCTION; k++) {
        core->memory[k] = calloc((size_t)sim->capacity[k] + 64, 1);
        core->valid[k] = calloc((size_t)sim->capacity[k] + 64, 1);
        whole = whole && core->memory[k] && core->valid[k];
    }
    if (sim->mode & MODE_RACES) {
        core->shadow = dv_shadow_new(sim);
        core->known = calloc((size_t)sim->cores * PIPES, sizeof(uint64_t));
        whole = whole && core->shadow && core->known;
    }
    return whole;
}

/* kinds[k] has block, sub block, is_cube, is_vector of core k. */
struct sim *dv_new(const double *target, const double *rates, const double *curves, const int64_t *capacity, const int64_t *align,
                   int cores, int blocks, const int64_t *kinds, int mode) {
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim) return NULL;
    memcpy(sim->target, target, sizeof sim->target);
    memcpy(sim->rate, rates, sizeof sim->rate);
    memcpy(sim->capacity, capacity, sizeof sim->capacity);
    memcpy(sim->align, align, sizeof sim->align);
    for (int c = 0; c < 6; c++) {
        sim->cold[c].count = (int)*curves++;
        for (int k = 0; k < sim->cold[c].count; k++) sim->cold[c].kb[k] = *curves++, sim->cold[c].cycles[k] = *curves++;
    }
    sim->mode = mode;
    sim->cores = cores;
    sim->lines = 0;
    sim->core = calloc((size_t)cores, sizeof *sim->core);
    sim->flow = calloc((size_t)cores * PIPES, sizeof *sim->flow);
    bool whole = sim->core && sim->flow;
    for (int k = 0; whole && k < cores; k++) {
        struct dv_ring *ring = &sim->core[k].ring;
        ring->block = kinds[4 * k], ring->sub_block = kinds[4 * k + 1];
        ring->is_cube = kinds[4 * k + 2], ring->is_vector = kinds[4 * k + 3], ring->blocks = blocks;
        whole = new_core(sim, k);
    }
    if (!whole) {
        dv_free(sim);
        return NULL;
    }
    return sim;
}

/* The next argument: `data` is NULL in timing alone; `valid` says which bytes hold something, NULL for all; what the
 * kernel does not write has no races. Returns whether there was room. */
bool dv_argument(struct sim *sim, void *data, uint8_t *valid, int64_t bytes, int written) {
    if (sim->arguments == DV_ARGUMENTS) return false;
    struct argument *a = &sim->argument[sim->arguments];
    a->data = data;
    a->valid = valid;
    a->bytes = bytes;
    a->first_line = sim->lines;
    if (sim->mode & MODE_RACES && written && !(a->access = dv_gm_accesses(bytes))) return false;
    sim->lines += bytes / (int64_t)PARAM(shared_line) + 2;
    sim->pointers[sim->arguments] = (void *)((int64_t)(sim->arguments + 1) << GM_SHIFT);
    sim->arguments++;
    return true;
}

static bool new_l2(struct sim *sim) {
    sim->l2_lines = (int64_t)(PARAM(shared_l2) / PARAM(shared_line));
    sim->l2_place = calloc((size_t)sim->lines, sizeof *sim->l2_place);
    sim->l2_line = calloc((size_t)sim->l2_lines, sizeof *sim->l2_line);
    sim->dirty = calloc((size_t)sim->lines, 1);
    sim->line_free = calloc((size_t)sim->lines, sizeof *sim->line_free);
    sim->line_core = malloc((size_t)sim->lines * sizeof *sim->line_core + 1);
    if (sim->line_core) memset(sim->line_core, 0xff, (size_t)sim->lines * sizeof *sim->line_core);
    return sim->l2_place && sim->l2_line && sim->dirty && sim->line_free && sim->line_core;
}

/* Returns 0, or the kind of error; -1 for no memory. */
int dv_run(struct sim *sim, void (*kernel)(void *const *), void (*attach)(struct dv_ring *), int warm, int64_t limit, int64_t events, int trace_core) {
    sim->kernel = kernel;
    sim->budget = limit;
    sim->attach = attach;
    sim->trace_core = trace_core;
    sim->event_capacity = events;
    if (events && !(sim->event = malloc((size_t)events * sizeof *sim->event))) return -1;
    if (sim->mode & MODE_TIME && !new_l2(sim)) return -1;
    dv_simulate(sim, warm, limit);
    if (!sim->error && sim->faults) sim->error = sim->fault[0].kind;
    return sim->error;
}

/* Of one core: end, scalar busy, then for each pipe busy, instructions; then macs, the cycles that they take at least, and the bytes of each path. */
void dv_core_result(const struct sim *sim, int index, double *out) {
    const struct core *core = &sim->core[index];
    *out++ = core->end;
    *out++ = core->scalar_busy;
    *out++ = (double)core->scalar_instructions;
    for (int p = 1; p < PIPES; p++) *out++ = core->pipe[p].busy, *out++ = (double)core->pipe[p].instructions;
    *out++ = core->macs;
    *out++ = core->ideal;
    for (int k = 0; k < 16; k++) *out++ = (double)core->path_bytes[k];
}

void dv_memory_result(const struct sim *sim, double *out) {
    out[0] = sim->hbm_bytes, out[1] = sim->l2_bytes, out[2] = (double)sim->hits, out[3] = (double)sim->misses;
}

/* One of the faults: its message and kind, line, other line, core, cores; NULL behind the last one. */
const char *dv_fault_at(const struct sim *sim, int index, int32_t *place) {
    if (index >= sim->faults) return NULL;
    const struct fault *f = &sim->fault[index];
    place[0] = f->kind, place[1] = (int32_t)f->line, place[2] = (int32_t)f->other_line;
    place[3] = f->core, place[4] = f->cores;
    return f->message;
}

int64_t dv_events(const struct sim *sim, const struct event **events) {
    *events = sim->event;
    return sim->events;
}

void dv_free(struct sim *sim) {
    if (!sim) return;
    for (int k = 0; sim->core && k < sim->cores; k++) {
        free(sim->core[k].stack);
        for (int s = 1; s < 8; s++) free(sim->core[k].memory[s]), free(sim->core[k].valid[s]);
        dv_shadow_free(sim->core[k].shadow);
        free(sim->core[k].known);
    }
    for (int k = 0; k < sim->arguments; k++) free(sim->argument[k].access);
    free(sim->access);
    free(sim->core), free(sim->flow), free(sim->event);
    free(sim->l2_place), free(sim->l2_line), free(sim->dirty), free(sim->line_free), free(sim->line_core);
    free(sim);
}
