/* Cores: the scalar unit issues instructions to in-order queues that run at the same time and wait for flags.
 *
 * A kernel runs as a coroutine for each core and fills that core's ring. Within a core everything is decided by times
 * that are known. A move through GM takes as long as other cores' moves let it: starts and ends of moves are the events
 * of the simulation, the earliest of all cores first, and a queue whose move is under way waits for its end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dv_sim.h"

enum { STACK_BYTES = 1 << 18 };

static void ring_full(struct dv_ring *ring) {
    struct core *core = (struct core *)ring;
    core->sim->running = NULL;
    swapcontext(&core->context, &core->sim->main);
    core->sim->attach(&core->ring);
}

static void run_kernel(unsigned low, unsigned high) {
    struct core *core = (struct core *)(((uintptr_t)high << 32) | (uintptr_t)low);
    core->sim->attach(&core->ring);
    core->sim->kernel((void *const *)core->sim->pointers);
    core->ended = true;
    swapcontext(&core->context, &core->sim->main);
}

/* More instructions of a core; false when its kernel has ended. */
static bool refill(struct core *core) {
    if (core->taken < core->ring.count) return true;
    core->ring.count = core->taken = 0;
    if (core->ended) return false;
    swapcontext(&core->sim->main, &core->context);
    return core->taken < core->ring.count;
}

static void start_core(struct sim *sim, int index) {
    struct core *core = &sim->core[index];
    core->ring.full = ring_full;
    core->ring.load = dv_load_index;
    core->taken = core->ring.count = 0;
    core->ended = core->finished = false;
    getcontext(&core->context);
    core->context.uc_stack.ss_sp = core->stack;
    core->context.uc_stack.ss_size = STACK_BYTES;
    core->context.uc_link = &sim->main;
    uintptr_t address = (uintptr_t)core;
    makecontext(&core->context, (void (*)(void))run_kernel, 2, (unsigned)(address & 0xffffffffu), (unsigned)(address >> 32));
}

static void busy(struct pipe *pipe, double start, double end) {
    if (start < pipe->busy_until) start = pipe->busy_until;
    if (end > start) pipe->busy += end - start, pipe->busy_until = end;
}

static double ready(const struct pipe *pipe) {
    const struct queued *head = &pipe->queue[pipe->head % QUEUE];
    return fmax(head->dispatched, pipe->free_at);
}

static void pop(struct pipe *pipe, double time) {
    pipe->started[pipe->head % QUEUE] = time;
    pipe->head++;
}

static struct flag *flag_of(struct core *core, const struct dv_instr *i) {
    struct sim *sim = core->sim;
    int64_t from = i->p[0], to = i->p[1], id = i->p[2];
    if (id < 0 || id >= (int64_t)PARAM(queues_event_ids) || from == to || from >= PIPES || to >= PIPES) {
        dv_error(core, ERROR_PARAMETER, i, "%s: event id %lld from pipe %lld to %lld: ids are 0 to %d, of two pipes",
                 dv_op_name[i->op], (long long)id, (long long)from, (long long)to, (int)PARAM(queues_event_ids) - 1);
        return NULL;
    }
    return &core->flag[from][to][id];
}

static bool set_flag(struct core *core, const struct dv_instr *i, double time) {
    struct sim *sim = core->sim;
    struct flag *flag = flag_of(core, i);
    if (!flag) return false;
    if (flag->set) {
        dv_error(core, ERROR_FLAG, i, "flag %s -> %s, id %d is set a second time before it was waited for",
                 dv_pipe_name[i->p[0]], dv_pipe_name[i->p[1]], (int)i->p[2]);
        return false;
    }
    flag->set = true;
    flag->time = time + PARAM(queues_flag);
    flag->line = i->line;
    return !(sim->mode & MODE_RACES) || dv_race_set(core, (int)i->p[0], (int)i->p[1], flag, i);
}

static void send(const struct core *from, int pipe, struct core *core, int flag, double time) {
    struct cross_flag *cross = &core->cross[flag];
    if (cross->count == CROSS_WAITING) return;
    if (from->sim->mode & MODE_RACES) dv_race_send(from, pipe, cross->clock[cross->count]);
    cross->sender[cross->count] = from->index;
    cross->time[cross->count++] = time;
    core->poked = core->sim->poked = true;
}

/* Mode 0: all cores of a kind; 1: the vector cores of a block; 2: cube and vector cores of a block. */
static void cross_set(struct core *core, const struct dv_instr *i, double time) {
    struct sim *sim = core->sim;
    int mode = (int)i->p[1], flag = (int)i->p[2] % CROSS;
    time += PARAM(queues_cross_core_flag);
    for (int k = 0; k < sim->cores; k++) {
        struct core *other = &sim->core[k];
        bool same_block = other->ring.block == core->ring.block, same_kind = other->ring.is_cube == core->ring.is_cube;
        if (mode == 2 ? same_block && !same_kind : same_kind && (mode == 0 || same_block)) send(core, (int)i->p[0], other, flag, time);
    }
}

/* How many settings a wait takes: all that a group sends. */
static int cross_needed(const struct core *core, int mode) {
    const struct sim *sim = core->sim;
    int needed = 0;
    for (int k = 0; k < sim->cores; k++) {
        const struct core *other = &sim->core[k];
        bool same_block = other->ring.block == core->ring.block, same_kind = other->ring.is_cube == core->ring.is_cube;
        needed += mode == 2 ? same_block && !same_kind : same_kind && (mode == 0 || same_block);
    }
    return needed;
}

static bool cross_wait(struct core *core, const struct dv_instr *i, double *time) {
    struct cross_flag *cross = &core->cross[i->p[2] % CROSS];
    int needed = cross_needed(core, (int)i->p[1]);
    if (cross->count < needed) return false;
    for (int k = 0; k < needed; k++) {
        *time = fmax(*time, cross->time[k]);
        if (core->sim->mode & MODE_RACES) dv_race_receive(core, cross->sender[k], cross->clock[k]);
    }
    cross->count -= needed;
    memmove(cross->time, cross->time + needed, sizeof cross->time[0] * (size_t)cross->count);
    memmove(cross->sender, cross->sender + needed, sizeof cross->sender[0] * (size_t)cross->count);
    memmove(cross->clock, cross->clock + needed, sizeof cross->clock[0] * (size_t)cross->count);
    return true;
}

static bool takes_unit(const struct dv_instr *i) { return dv_pipe[i->op] == PIPE_FIX && dv_has_unit_flag[i->op] && i->p[5]; }

/* Unit flags: Mmad signals a tile to the Fixpipe piece by piece; the Fixpipe starts after it and ends after it. */
static bool unit_blocked(const struct core *core, const struct dv_instr *i) {
    if (i->op == OP_mad || i->op == OP_mad_bias) return i->p[4] && !i->p[3] && core->unit_taken < core->unit_made;
    return takes_unit(i) && core->unit_taken == core->unit_made;
}

/* When an instruction at the head of its queue has what it works on. */
static double operands_ready(const struct core *core, const struct dv_instr *i, double time) {
    return takes_unit(i) ? fmax(time, core->unit_begin) : time;
}

static struct cost unit_cost(struct core *core, const struct dv_instr *i, double start, struct cost cost) {
    const struct sim *sim = core->sim;
    double late = 0;
    if ((i->op == OP_mad || i->op == OP_mad_bias) && i->p[4]) {
        if (!i->p[3]) late = core->unit_free - (start + cost.occupied);
        double begin = start + fmax(0, late);
        if (i->p[4] == 3) core->unit_made++, core->unit_begin = begin, core->unit_end = begin + cost.done + PARAM(fixpipe_start);
    }
    if (takes_unit(i)) {
        late = core->unit_end - (start + cost.occupied);
        core->unit_taken++;
        core->unit_free = start + cost.occupied + fmax(0, late);
    }
    if (late > 0) cost.occupied += late, cost.busy += late, cost.done += late;
    return cost;
}

static void set_mask(struct core *core, const struct dv_instr *i) {
    if (i->op == OP_set_vector_mask) core->mask[0] = (uint64_t)i->p[1], core->mask[1] = (uint64_t)i->p[0];
    if (i->op == OP_set_mask_count) core->mask_count = i->p[0];
    if (i->op == OP_set_mask_norm) core->mask_count = 0;
}

static void order_units(struct core *core, const struct dv_instr *i) {
    if ((i->op == OP_mad || i->op == OP_mad_bias) && i->p[4] && !i->p[3]) dv_race_unit(core, PIPE_M, PIPE_FIX);
    if (dv_has_unit_flag[i->op] && dv_pipe[i->op] == PIPE_FIX && i->p[5]) dv_race_unit(core, PIPE_FIX, PIPE_M);
}

static bool begin(struct core *core, int p, const struct dv_instr *i) {
    struct sim *sim = core->sim;
    if (p == PIPE_V) set_mask(core, i);
    if (sim->mode & MODE_RACES) {
        dv_race_dispatch(core, core->pipe[p].queue[core->pipe[p].head % QUEUE].scalar, p);
        order_units(core, i);
    }
    if (!dv_check(core, i)) return false;
    if (sim->mode & MODE_RACES && !dv_race_access(core, i, p)) return false;
    if (sim->mode & MODE_FUNCTION) dv_execute(core, i);
    dv_mark_written(core, i);
    return true;
}

static void finish(struct core *core, int p, struct queued *head, double start, struct cost cost) {
    struct pipe *pipe = &core->pipe[p];
    pipe->instructions++;
    pipe->free_at = start + cost.occupied;
    pipe->done_at = fmax(pipe->done_at, start + cost.done);
    pipe->stalled = false;
    busy(pipe, start, start + cost.busy);
    core->end = fmax(core->end, start + cost.done);
    if (core->sim->event_capacity) {
        int64_t bytes = 0;
        struct region r[REGIONS];
        int n = dv_regions(core, &head->instr, r);
        if (n > 1) bytes = r[1].row * r[1].rows * r[1].outer;
        dv_record(core, p, &head->instr, start, start + cost.busy, bytes);
    }
}

/* Flags and barriers at the head of a queue. Returns false when the queue has to wait. */
static bool control(struct core *core, int p, struct queued *head, bool *progress) {
    struct sim *sim = core->sim;
    struct pipe *pipe = &core->pipe[p];
    const struct dv_instr *i = &head->instr;
    double time = ready(pipe), start = time;
    if (sim->mode & MODE_RACES) dv_race_dispatch(core, head->scalar, p);
    if (i->op == OP_set_flag) {
        time = fmax(time, pipe->done_at);
        if (!set_flag(core, i, time)) return false;
    } else if (i->op == OP_wait_flag) {
        struct flag *flag = flag_of(core, i);
        if (!flag || !flag->set) return false;
        pipe->stalled = flag->time > time;
        time = fmax(time, flag->time);
        flag->set = false;
        if (sim->mode & MODE_RACES) dv_race_wait(core, p, flag);
        pipe->free_at = time;
    } else if (i->op == OP_pipe_barrier) {
        time = fmax(time, pipe->done_at) + PARAM(queues_barrier);
        pipe->free_at = time;
        if (sim->mode & MODE_RACES) dv_race_barrier(core, p);
    } else if (i->op == OP_ffts_cross_core_sync) {
        cross_set(core, i, fmax(time, pipe->done_at));
    } else {
        if (!cross_wait(core, i, &time)) return false;
        pipe->free_at = time;
    }
    if (sim->event_capacity) dv_record(core, p, i, i->op == OP_wait_flag ? start : time, i->op == OP_wait_flag ? time : time + 1, 0);
    pop(pipe, time);
    core->end = fmax(core->end, time);
    *progress = true;
    return true;
}

/* Moves share memories with others, so their ends are not known when they start. */
static bool is_move(const struct dv_instr *i) { return dv_is_gm_table[i->op] || dv_pipe[i->op] == PIPE_MTE1; }

/* Start whatever a queue can start by itself; remember a move. */
static bool advance_pipe(struct core *core, int p) {
    struct sim *sim = core->sim;
    struct pipe *pipe = &core->pipe[p];
    bool progress = false;
    while (pipe->head < pipe->tail && !pipe->moving && !sim->error) {
        struct queued *head = &pipe->queue[pipe->head % QUEUE];
        if (head->instr.op >= OP_set_flag) {
            if (!control(core, p, head, &progress)) break;
            continue;
        }
        if (unit_blocked(core, &head->instr)) break;
        double start = ready(pipe);
        if (is_move(&head->instr) && sim->mode & MODE_TIME) {
            double ready_at = operands_ready(core, &head->instr, start);
            if (ready_at < core->candidate) core->candidate = ready_at, core->candidate_pipe = p;
            break;
        }
        if (!begin(core, p, &head->instr)) break;
        struct cost cost = {1, 1, 1};
        if (sim->mode & MODE_TIME) cost = dv_cost(core, &head->instr, pipe->stalled);
        pop(pipe, start);
        finish(core, p, head, start, unit_cost(core, &head->instr, start, cost));
        progress = true;
    }
    return progress;
}

static bool all_empty(const struct core *core, double *done) {
    for (int p = 1; p < PIPES; p++) {
        if (core->pipe[p].head < core->pipe[p].tail || core->pipe[p].moving) return false;
        *done = fmax(*done, core->pipe[p].done_at);
    }
    return true;
}

static int queue_of(const struct dv_instr *i) {
    switch (i->op) {
    case OP_set_flag: case OP_pipe_barrier: case OP_ffts_cross_core_sync: return (int)i->p[0];
    case OP_wait_flag: return (int)i->p[1];
    case OP_wait_flag_dev: return (int)i->p[0];
    default: return dv_pipe[i->op];
    }
}

/* Proofs: what was issued before a wait between cores knows nothing of what that wait brings, so it goes first. */
static void drain(struct core *core) {
    bool progress = (core->sim->mode & (MODE_RACES | MODE_TIME)) == MODE_RACES;
    while (progress && !core->sim->error) {
        progress = false;
        for (int p = 1; p < PIPES; p++) progress |= advance_pipe(core, p);
    }
}

/* What the scalar unit does itself. Returns false when it has to wait. */
static bool scalar_step(struct core *core, const struct dv_instr *i) {
    struct sim *sim = core->sim;
    double time = core->scalar;
    switch (i->op) {
    case OP_scalar_work:
        if (sim->mode & MODE_TIME) core->scalar += (double)i->p[0], core->scalar_busy += (double)i->p[0];
        return true;
    case OP_load_index:
        if (sim->mode & MODE_TIME) core->scalar += PARAM(scalar_cycles_per_element), core->scalar_busy += PARAM(scalar_cycles_per_element);
        return true;
    case OP_set_flag: return set_flag(core, i, time);
    case OP_wait_flag: {
        struct flag *flag = flag_of(core, i);
        if (!flag || !flag->set) return false;
        core->scalar = fmax(time, flag->time);
        flag->set = false;
        if (sim->mode & MODE_RACES) dv_race_wait(core, PIPE_S, flag);
        break;
    }
    case OP_pipe_barrier:
        if (!all_empty(core, &time)) return false;
        core->scalar = time + PARAM(queues_barrier);
        if (sim->mode & MODE_RACES) dv_race_barrier(core, PIPE_ALL);
        break;
    case OP_ffts_cross_core_sync: cross_set(core, i, time); return true;
    case OP_wait_flag_dev:
        drain(core);
        if (!cross_wait(core, i, &time)) return false;
        core->scalar = time;
    }
    core->end = fmax(core->end, core->scalar);
    return true;
}

static bool dispatch(struct core *core) {
    struct sim *sim = core->sim;
    bool progress = false;
    uint64_t depth = (uint64_t)PARAM(queues_depth);
    while (!sim->error && refill(core)) {
        const struct dv_instr *i = &core->ring.slot[core->taken];
        int p = queue_of(i);
        if (p < 0 || p > PIPES) {
            dv_error(core, ERROR_PARAMETER, i, "%s: there is no pipe %d", dv_op_name[i->op], p);
            return false;
        }
        if (p == PIPE_S || p == PIPE_ALL) {
            if (!scalar_step(core, i)) return progress;
        } else {
            struct pipe *pipe = &core->pipe[p];
            if (pipe->tail - pipe->head >= depth) return progress;
            if (pipe->tail >= depth) core->scalar = fmax(core->scalar, pipe->started[(pipe->tail - depth) % QUEUE]);
            struct queued *q = &pipe->queue[pipe->tail++ % QUEUE];
            q->instr = *i;
            q->dispatched = core->scalar;
            if (sim->mode & MODE_RACES) memcpy(q->scalar, core->clock[PIPE_S], sizeof q->scalar);
        }
        if (sim->mode & MODE_TIME) core->scalar += PARAM(queues_issue), core->scalar_busy += PARAM(queues_issue);
        core->scalar_instructions++;
        core->taken++;
        progress = true;
    }
    return progress;
}

static void advance(struct core *core) {
    bool progress = true;
    core->candidate = NEVER;
    while (progress && !core->sim->error) {
        progress = dispatch(core);
        for (int p = 1; p < PIPES; p++) progress |= advance_pipe(core, p);
    }
    double done = 0;
    core->finished = core->ended && core->taken >= core->ring.count && all_empty(core, &done);
    core->end = fmax(core->end, core->scalar);
}

/* What MTE1 asks of L1: an access a cycle while it moves. */
static struct flow load_flow(struct core *core, const struct dv_instr *i, double time) {
    struct sim *sim = core->sim;
    struct cost cost = dv_cost(core, i, false);
    struct flow flow = {.core = core, .pipe = PIPE_MTE1, .since = time, .start = time, .left = cost.occupied};
    flow.l1 = fmax(0, cost.occupied - PARAM(mte1_gap)) / cost.occupied;
    flow.acknowledged = cost.done - cost.occupied;
    return flow;
}

/* A queue frees the slot of a move when it starts, and has not reached it again when the move ends. */
static void start_move(struct core *core) {
    struct pipe *pipe = &core->pipe[core->candidate_pipe];
    const struct queued *head = &pipe->queue[pipe->head % QUEUE];
    if (!begin(core, core->candidate_pipe, &head->instr)) return;
    double start = fmax(core->candidate, core->sim->now);
    bool is_gm = dv_is_gm_table[head->instr.op];
    struct flow flow = is_gm ? dv_gm_flow(core, &head->instr, start) : load_flow(core, &head->instr, start);
    flow.since = ready(pipe);
    dv_flow_start(core->sim, &flow);
    pop(pipe, flow.since);
    pipe->moving = true;
}

static struct core *end_move(struct sim *sim) {
    struct flow flow = dv_flow_end(sim);
    struct pipe *pipe = &flow.core->pipe[flow.pipe];
    struct queued *moved = &pipe->queue[(pipe->head - 1) % QUEUE];
    double cycles = sim->now - flow.since;
    bool is_gm = dv_is_gm_table[moved->instr.op];
    struct cost cost = {cycles, is_gm ? cycles : cycles + flow.acknowledged, cycles + flow.acknowledged};
    pipe->moving = false;
    finish(flow.core, flow.pipe, moved, flow.since, unit_cost(flow.core, &moved->instr, flow.since, cost));
    return flow.core;
}

static void deadlock(struct sim *sim) {
    for (int k = 0; k < sim->cores && !sim->error; k++) {
        struct core *core = &sim->core[k];
        for (int p = 1; p < PIPES && !sim->error; p++) {
            struct pipe *pipe = &core->pipe[p];
            if (pipe->head == pipe->tail) continue;
            const struct dv_instr *i = &pipe->queue[pipe->head % QUEUE].instr;
            if (i->op == OP_wait_flag)
                dv_error(core, ERROR_DEADLOCK, i, "deadlock: %s waits for a flag of %s, id %d, that is never set",
                         dv_pipe_name[p], dv_pipe_name[i->p[0]], (int)i->p[2]);
            else
                dv_error(core, ERROR_DEADLOCK, i, "deadlock: %s waits in %s", dv_pipe_name[p], dv_op_name[i->op]);
        }
        if (!sim->error && core->taken < core->ring.count)
            dv_error(core, ERROR_DEADLOCK, &core->ring.slot[core->taken], "deadlock: the scalar unit waits in %s",
                     dv_op_name[core->ring.slot[core->taken].op]);
    }
}

static void check_flags(struct sim *sim) {
    for (int k = 0; k < sim->cores; k++)
        for (int f = 0; f < PIPES; f++)
            for (int t = 0; t < PIPES; t++)
                for (int e = 0; e < EVENTS; e++) {
                    struct core *core = &sim->core[k];
                    if (!core->flag[f][t][e].set) continue;
                    struct dv_instr i = {0};
                    i.op = OP_set_flag, i.line = core->flag[f][t][e].line;
                    dv_error(core, ERROR_FLAG, &i, "flag %s -> %s, id %d is set, and nothing waits for it",
                             dv_pipe_name[f], dv_pipe_name[t], e);
                }
}

/* What L2 holds when a run starts that others of its kind went before: the lines of one run, core by core in turn. */
static void warm_l2(struct sim *sim) {
    for (int k = 0; k < sim->cores; k++) start_core(sim, k);
    for (bool more = true; more;) {
        more = false;
        for (int k = 0; k < sim->cores; k++) {
            struct core *core = &sim->core[k];
            if (!refill(core)) continue;
            for (; core->taken < core->ring.count; core->taken++) {
                const struct dv_instr *i = &core->ring.slot[core->taken];
                if (i->op < OP_set_flag && dv_is_gm_table[i->op] && dv_check(core, i)) dv_touch(core, i);
            }
            more = true;
        }
        if (sim->error) return;
    }
}

void dv_simulate(struct sim *sim, int warm) {
    int mode = sim->mode;
    if (warm && mode & MODE_TIME) {
        sim->mode = MODE_MEMORY_ONLY;
        warm_l2(sim);
        sim->mode = mode;
        if (sim->error) return;
    }
    for (int k = 0; k < sim->cores; k++) {
        struct core *core = &sim->core[k];
        start_core(sim, k);
        core->scalar = core->end = (double)core->ring.block * PARAM(cores_launch_us) * PARAM(clock_mhz) * !!(mode & MODE_TIME);
        core->candidate = 0;
        core->candidate_pipe = -1;
        advance(core);
    }
    while (!sim->error) {
        struct core *next = NULL;
        int running = 0;
        for (int k = 0; k < sim->cores; k++) {
            struct core *core = &sim->core[k];
            running += !core->finished;
            if (!core->finished && core->candidate < NEVER && (!next || core->candidate < next->candidate)) next = core;
        }
        if (!running) break;
        double end = dv_flow_next(sim);
        if (end < NEVER && (!next || end <= next->candidate)) next = end_move(sim);
        else if (next) start_move(next);
        if (next) advance(next);
        bool moved = next != NULL;
        for (int k = 0; sim->poked && k < sim->cores; k++) {
            struct core *core = &sim->core[k];
            if (!core->poked) continue;
            core->poked = false;
            moved = true;
            advance(core);
        }
        sim->poked = false;
        for (int k = 0; k < sim->cores; k++) sim->poked |= sim->core[k].poked;
        if (!moved) {
            deadlock(sim);
            return;
        }
    }
    if (!sim->error) check_flags(sim);
}
