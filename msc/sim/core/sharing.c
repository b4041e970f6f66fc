/* What moves under way share: L2's bandwidth, by direction and together, HBM's, and L1 of their core.
 *
 * A move asks for what it would take by itself, which its own port bounds. Where all ask for more than there is, each has
 * an equal share, and what one does not need goes to the others (max-min fairness). In L1, MTE2 writes while MTE1 reads:
 * each has a share that is its own. Speeds change when a move starts and when one ends, so its end is known when it
 * comes. */
#include <math.h>

#include "dv_sim.h"

static double demand_of(const struct flow *flow, int resource) {
    return resource == SHARED_MIXED ? flow->demand[SHARED_READ] + flow->demand[SHARED_WRITE] : flow->demand[resource];
}

/* The speed at which a move may run for its core and all resources but one. */
static double bounded(const struct flow *flow, const double level[SHARED], int but) {
    double speed = flow->bound;
    for (int r = 0; r < SHARED; r++)
        if (r != but && demand_of(flow, r) * speed > level[r]) speed = level[r] / demand_of(flow, r);
    return speed;
}

/* The most bytes a cycle that one move may have of a resource, so that all have no more than there is. */
static double fair_level(const struct sim *sim, const double level[SHARED], int resource, double capacity) {
    double sum = 0, share = 0, before = -1;
    for (int k = 0; k < sim->flows; k++) sum += demand_of(&sim->flow[k], resource) * bounded(&sim->flow[k], level, resource);
    if (sum <= capacity) return NEVER;
    while (share > before) {
        double left = capacity;
        int open = 0;
        for (int k = 0; k < sim->flows; k++) {
            double wanted = demand_of(&sim->flow[k], resource) * bounded(&sim->flow[k], level, resource);
            if (wanted <= share) left -= wanted;
            else open++;
        }
        before = share;
        if (open) share = fmax(share, left / open);
    }
    return share;
}

/* Whether there is enough of everything: most often there is. */
static bool enough(const struct sim *sim, const double capacity[SHARED]) {
    double sum[SHARED] = {0};
    for (int k = 0; k < sim->flows; k++)
        for (int r = 0; r < SHARED_MIXED; r++) sum[r] += sim->flow[k].demand[r] * sim->flow[k].bound;
    sum[SHARED_MIXED] = sum[SHARED_READ] + sum[SHARED_WRITE];
    for (int r = 0; r < SHARED; r++)
        if (sum[r] > capacity[r]) return false;
    return true;
}

/* Levels of all resources. A move that one slows asks the others for less, so they are found in turn until they stay. */
static void find_levels(const struct sim *sim, double level[SHARED]) {
    const double capacity[SHARED] = {PARAM(shared_l2_read), PARAM(shared_l2_write), PARAM(shared_hbm), PARAM(shared_l2_mixed)};
    for (int r = 0; r < SHARED; r++) level[r] = NEVER;
    bool changed = !enough(sim, capacity);
    for (int turn = 0; changed && turn < SHARED; turn++) {
        changed = false;
        for (int r = 0; r < SHARED; r++) {
            double found = fair_level(sim, level, r, capacity[r]);
            changed |= found != level[r];
            level[r] = found;
        }
    }
}

/* The speed of a queue at L1 while another one wants the rest of its accesses. */
static double at_l1(const struct sim *sim, double wanted, double share, double other) {
    if (wanted + other <= PARAM(mte1_l1_accesses)) return 1;
    return fmin(1, fmax(share * PARAM(mte1_l1_accesses), PARAM(mte1_l1_accesses) - other) / wanted);
}

static void set_speed(const struct sim *sim, struct flow *flow, double speed) {
    if (speed == flow->speed) return;
    flow->left -= (sim->now - flow->counted) * flow->speed;
    flow->counted = sim->now;
    flow->speed = speed;
    flow->end = sim->now + fmax(0, flow->left) / speed;
}

static void set_speeds(struct sim *sim) {
    double level[SHARED], share = PARAM(mte1_l1_write_share);
    for (int k = 0; k < sim->flows; k++) {
        struct flow *flow = &sim->flow[k];
        flow->bound = 1;
        if (flow->l1 > 0 && flow->pipe != PIPE_MTE1 && flow->core->reads > 0) flow->bound = at_l1(sim, flow->l1, share, flow->core->reads);
        if (flow->pipe == PIPE_MTE1) flow->core->writes = 0;
    }
    find_levels(sim, level);
    for (int k = 0; k < sim->flows; k++) {
        struct flow *flow = &sim->flow[k];
        if (flow->pipe == PIPE_MTE1) continue;
        set_speed(sim, flow, bounded(flow, level, SHARED));
        if (flow->l1 > 0) flow->core->writes = flow->l1 * flow->speed;
    }
    for (int k = 0; k < sim->flows; k++)
        if (sim->flow[k].pipe == PIPE_MTE1) set_speed(sim, &sim->flow[k], at_l1(sim, sim->flow[k].l1, 1 - share, sim->flow[k].core->writes));
}

void dv_flow_start(struct sim *sim, const struct flow *flow) {
    sim->now = flow->start;
    struct flow *own = &sim->flow[sim->flows++];
    *own = *flow;
    own->counted = flow->start;
    own->speed = 1;
    own->end = flow->start + flow->left;
    if (own->pipe == PIPE_MTE1) own->core->reads = own->l1;
    sim->speeds_known = false;
}

double dv_flow_next(struct sim *sim) {
    if (!sim->speeds_known) set_speeds(sim);
    sim->speeds_known = true;
    double next = NEVER;
    for (int k = 0; k < sim->flows; k++)
        if (sim->flow[k].end < next) next = sim->flow[k].end, sim->next_flow = k;
    return next;
}

struct flow dv_flow_end(struct sim *sim) {
    sim->now = dv_flow_next(sim);
    struct flow ended = sim->flow[sim->next_flow];
    sim->flow[sim->next_flow] = sim->flow[--sim->flows];
    if (ended.pipe == PIPE_MTE1) ended.core->reads = 0;
    sim->speeds_known = false;
    return ended;
}
