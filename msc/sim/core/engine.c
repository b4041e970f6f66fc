/* Cores: the scalar unit issues instructions to in-order queues that run at the same time and wait for flags.
 *
 * A kernel runs as a coroutine for each core and fills that core's ring. Within a core everything is decided by times
 * that are known. A move through GM takes as long as other cores' moves let it: starts and ends of moves are the events
 * of the simulation, the earliest of all cores first, and a queue whose move is under way waits for its end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dv_sim.h"

enum { STACK_BYTES = 1 << 18 };

/* A kernel that takes too many turns ends here: its coroutine is never gone on with. */
static void ring_stop(struct dv_ring *ring, uint32_t line) {
    struct core *core = (struct core *)ring;
    struct dv_instr at = {.line = line};
    dv_error(core, ERROR_LIMIT, &at, "the kernel takes more instructions and iterations than the limit allows");
    core->ended = true;
    core->ring.count = core->taken;
    swapcontext(&core->context, &core->sim->main);
}

static void ring_full(struct dv_ring *ring) {
    struct core *core = (struct core *)ring;
    *ring->budget -= DV_RING;
    if (*ring->budget < 0) ring_stop(ring, ring->slot[DV_RING - 1].line);
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
    core->ring.stop = ring_stop;
    core->ring.budget = &sim->budget;
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
    if (id < 0 || id >= (int64_t)PARAM(queues_event_ids_free) || from == to || from >= PIPES || to >= PIPES) {
        dv_error(core, ERROR_PARAMETER, i, "%s: event id %lld from pipe %lld to %lld: free ids are 0 to %d, of two pipes",
                 dv_op_name[i->op], (long long)id, (long long)from, (long long)to, (int)PARAM(queues_event_ids_free) - 1);
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

static void send(const struct core *from, const struct dv_instr *i, struct core *core, double time) {
    struct cross_flag *cross = &core->cross[i->p[2] % CROSS];
    if (cross->count == CROSS_WAITING) {
        dv_error(core, ERROR_FLAG, i, "flag %lld between cores is set again and again, and nothing waits for it", (long long)i->p[2]);
        return;
    }
    if (from->sim->mode & MODE_RACES) dv_race_send(from, (int)i->p[0], cross->clock[cross->count]);
    cross->sender[cross->count] = from->index;
    cross->line = i->line;
    cross->time[cross->count++] = time;
    core->poked = core->sim->poked = true;
}

/* Mode 0: all cores of a kind; 1: the vector cores of a block; 2: cube and vector cores of a block. */
static bool in_group(const struct core *core, const struct core *other, int64_t mode) {
    bool same_block = other->ring.block == core->ring.block, same_kind = other->ring.is_cube == core->ring.is_cube;
    return mode == 2 ? same_block && !same_kind : same_kind && (mode == 0 || same_block);
}

static void cross_set(struct core *core, const struct dv_instr *i, double time) {
    struct sim *sim = core->sim;
    time += PARAM(queues_cross_core_flag);
    for (int k = 0; k < sim->cores; k++)
        if (in_group(core, &sim->core[k], i->p[1])) send(core, i, &sim->core[k], time);
}

/* The place of the first setting of a flag by a core that waits to be taken, or -1. */
static int setting_of(const struct cross_flag *cross, int sender) {
    for (int k = 0; k < cross->count; k++)
        if (cross->sender[k] == sender) return k;
    return -1;
}

/* Of how many cores a flag is set, and of how many a wait takes it: one setting of each core of the group. */
static int cross_ready(const struct core *core, const struct dv_instr *i, int *needed) {
    const struct sim *sim = core->sim;
    int ready = 0;
    *needed = 0;
    for (int k = 0; k < sim->cores; k++) {
        if (!in_group(core, &sim->core[k], i->p[1])) continue;
        ++*needed;
        ready += setting_of(&core->cross[i->p[2] % CROSS], k) >= 0;
    }
    return ready;
}

static bool cross_wait(struct core *core, const struct dv_instr *i, double *time) {
    struct cross_flag *cross = &core->cross[i->p[2] % CROSS];
    int needed;
    if (cross_ready(core, i, &needed) < needed) return false;
    for (int sender = 0; sender < core->sim->cores; sender++) {
        if (!in_group(core, &core->sim->core[sender], i->p[1])) continue;
        int k = setting_of(cross, sender);
        size_t behind = (size_t)(--cross->count - k);
        *time = fmax(*time, cross->time[k]);
        if (core->sim->mode & MODE_RACES) dv_race_receive(core, sender, cross->clock[k]);
        memmove(cross->time + k, cross->time + k + 1, sizeof cross->time[0] * behind);
        memmove(cross->sender + k, cross->sender + k + 1, sizeof cross->sender[0] * behind);
        memmove(cross->clock + k, cross->clock + k + 1, sizeof cross->clock[0] * behind);
    }
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

/* An instruction counts as one, and for what the simulator does for it: for its bytes, and with data for its products. */
static void charge(struct core *core, const struct dv_instr *i) {
    struct region r[REGIONS];
    bool function = core->sim->mode & MODE_FUNCTION;
    int64_t bytes = 0;
    for (int k = dv_regions(core, i, r) - 1; k >= 0; k--) bytes += r[k].row * r[k].rows * r[k].outer;
    core->sim->budget -= bytes >> (function ? 10 : 14);
    if (function && dv_pipe[i->op] == PIPE_M) core->sim->budget -= i->p[0] * i->p[1] * i->p[2] >> 13;
}

static bool begin(struct core *core, int p, const struct dv_instr *i) {
    struct sim *sim = core->sim;
    if (p == PIPE_V) set_mask(core, i);
    if (sim->mode & MODE_RACES) {
        dv_race_dispatch(core, core->pipe[p].queue[core->pipe[p].head % QUEUE].scalar, p);
        order_units(core, i);
    }
    if (!dv_check(core, i)) return false;
    charge(core, i);
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

static const struct dv_instr *head_of(const struct core *core, int p) {
    const struct pipe *pipe = &core->pipe[p];
    return pipe->head == pipe->tail ? NULL : &pipe->queue[pipe->head % QUEUE].instr;
}

/* What a queue, or the scalar unit, waits for. */
static void tell_blocked(struct core *core, int p, const struct dv_instr *i) {
    struct fault *fault = dv_fault(core, ERROR_DEADLOCK, i, (uint32_t)p);
    if (!fault) return;
    char *to = fault->message;
    const char *who = p == PIPE_S ? "the scalar unit" : dv_pipe_name[p];
    size_t room = sizeof fault->message;
    if (p == PIPE_S && queue_of(i) != PIPE_S && queue_of(i) != PIPE_ALL)
        snprintf(to, room, "%s waits for room in the queue of %s", who, dv_pipe_name[queue_of(i)]);
    else if (i->op == OP_wait_flag)
        snprintf(to, room, "%s waits for a flag of %s, id %lld, that is never set", who, dv_pipe_name[i->p[0]], (long long)i->p[2]);
    else if (i->op == OP_wait_flag_dev) {
        int needed, ready = cross_ready(core, i, &needed);
        snprintf(to, room, "%s waits for flag %lld of other cores, mode %lld: %d of %d have set it", who, (long long)i->p[2],
                 (long long)i->p[1], ready, needed);
    } else if (i->op == OP_pipe_barrier)
        snprintf(to, room, "%s waits in a barrier until all queues are empty", who);
    else if (unit_blocked(core, i))
        snprintf(to, room, "%s waits in %s for the unit flag of %s", who, dv_op_name[i->op], p == PIPE_M ? "FIX" : "M");
    else
        snprintf(to, room, "%s waits in %s", who, dv_op_name[i->op]);
}

/* All that is blocked, queues first: one of them waits for what another one would do behind its own wait. */
static void deadlock(struct sim *sim) {
    for (int p = 1; p <= PIPES; p++)
        for (int k = 0; k < sim->cores; k++) {
            struct core *core = &sim->core[k];
            const struct dv_instr *i = p < PIPES ? head_of(core, p) : core->taken < core->ring.count ? &core->ring.slot[core->taken] : NULL;
            if (i) tell_blocked(core, p % PIPES, i);
        }
    sim->error = ERROR_DEADLOCK;
}

static void tell_set(struct core *core, uint32_t line, const char *from, const char *to, int id) {
    struct dv_instr i = {.op = OP_set_flag, .line = line};
    struct fault *fault = dv_fault(core, ERROR_FLAG, &i, 0);
    if (fault) snprintf(fault->message, sizeof fault->message, "flag %s -> %s, id %d is set, and nothing waits for it", from, to, id);
}

static void check_flags(struct sim *sim) {
    for (int k = 0; k < sim->cores; k++) {
        struct core *core = &sim->core[k];
        for (int f = 0; f < PIPES; f++)
            for (int t = 0; t < PIPES; t++)
                for (int e = 0; e < EVENTS; e++)
                    if (core->flag[f][t][e].set) tell_set(core, core->flag[f][t][e].line, dv_pipe_name[f], dv_pipe_name[t], e);
        for (int e = 0; e < CROSS; e++)
            if (core->cross[e].count) tell_set(core, core->cross[e].line, "another core", "this one", e);
    }
}

/* The lines of a core's next move through GM come to L2; false when it has none any more. */
static bool touch_next(struct core *core) {
    while (!core->sim->error && refill(core))
        while (core->taken < core->ring.count) {
            const struct dv_instr *i = &core->ring.slot[core->taken++];
            if (i->op >= OP_set_flag || !dv_is_gm_table[i->op] || !dv_check(core, i)) continue;
            dv_touch(core, i);
            return true;
        }
    return false;
}

/* What L2 holds when a run starts that others of its kind went before: the lines of one run, a move of each core in turn. */
static void warm_l2(struct sim *sim) {
    for (int k = 0; k < sim->cores; k++) start_core(sim, k);
    for (bool more = true; more && !sim->error;) {
        more = false;
        for (int k = 0; k < sim->cores; k++) more |= touch_next(&sim->core[k]);
    }
}

void dv_simulate(struct sim *sim, int warm, int64_t limit) {
    int mode = sim->mode;
    if (warm && mode & MODE_TIME) {
        sim->mode = MODE_MEMORY_ONLY;
        warm_l2(sim);
        sim->mode = mode;
        sim->budget = limit;
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
            if (!sim->error) deadlock(sim);
            return;
        }
    }
    if (!sim->error && !sim->faults) check_flags(sim);
}
