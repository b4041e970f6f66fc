/* Indices that kernels load from global memory: the scalar unit's own reads. */
#include <string.h>

#include "dv_sim.h"

static int64_t value_at(const uint8_t *at, int bytes) {
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)bytes);
    int unused = 64 - 8 * bytes;
    return (int64_t)(bits << unused) >> unused;
}

/* Some index for each place: neighbours choose rows that are far apart. */
static int64_t spread(int64_t place, int64_t below) { return (int64_t)((uint64_t)place * 2654435761u % (uint64_t)below); }

int64_t dv_load_index(struct dv_ring *ring, const struct dv_instr *i) {
    struct core *core = (struct core *)ring;
    struct sim *sim = core->sim;
    int64_t below = i->p[0], bytes = dv_size(i->type[0]) * i->p[1];
    if (!dv_check(core, i)) return 0;
    if (sim->mode & MODE_RACES) return sim->mode & MODE_GREATEST ? below - 1 : 0;
    if (!sim->argument[(i->operand[0] >> GM_SHIFT) - 1].data)
        return spread((i->operand[0] & ((1LL << GM_SHIFT) - 1)) / bytes, below);
    int64_t index = value_at(dv_at(core, SPACE_gm, i->operand[0]), (int)bytes);
    if (index < 0) index += below;
    return index < 0 ? 0 : index < below ? index : below - 1;
}
