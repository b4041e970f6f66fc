/* The simulator of a machine of DaVinci cores: structures and functions that its files share. */
#ifndef DV_SIM_H
#define DV_SIM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "dv_core.h"
#include "dv_isa.h"    /* made of msc.targets.davinci_isa */
#include "dv_params.h" /* made of msc.targets.davinci */

enum { PIPES = 7, QUEUE = 64, EVENTS = 16, REGIONS = 8, CROSS = 16, CROSS_WAITING = 64, FAULTS = 16 };
enum { MODE_FUNCTION = 1, MODE_TIME = 2, MODE_RACES = 4, MODE_MEMORY_ONLY = 8, MODE_GREATEST = 16 };
enum { ERROR_NONE, ERROR_BOUNDS, ERROR_ALIGNMENT, ERROR_UNINITIALISED, ERROR_PARAMETER, ERROR_DEADLOCK, ERROR_FLAG, ERROR_RACE, ERROR_LIMIT, ERROR_MEMORY };

#define NEVER 1e300
/* GM argument k starts at the virtual address (k + 1) << GM_SHIFT: what msc.dialects.davinci lets an index be, times the
 * bytes of an element, stays within half of that, so no index leads to another argument. */
#define GM_SHIFT 56

/* Bytes that an operand covers: outer x rows of row bytes. */
struct region {
    uint8_t space, operand;
    bool written;
    int64_t base, row, rows, stride, outer, outer_stride;
};

struct queued {
    struct dv_instr instr;
    double dispatched;
    uint64_t scalar[PIPES]; /* races: what the scalar unit knew */
};

struct pipe {
    struct queued queue[QUEUE];
    uint64_t head, tail; /* instructions started, dispatched */
    double started[QUEUE];
    double free_at, done_at, busy, busy_until;
    uint64_t instructions;
    bool moving;  /* a move is under way */
    bool stalled; /* the last thing the pipe did was to wait for a flag */
};

struct flag {
    bool set;
    double time;
    uint32_t line;
    uint64_t clock[PIPES]; /* races: what had ended when it was set */
    uint64_t waited; /* the number of the last wait, in the queue that waited */
};

struct cross_flag {
    int count, sender[CROSS_WAITING];
    uint64_t clock[CROSS_WAITING][PIPES];
    double time[CROSS_WAITING];
    uint32_t line; /* of the last setting */
};

struct shadow; /* races: who touched what last */

struct core {
    struct dv_ring ring; /* first: dv_ring.full casts back */
    struct sim *sim;
    int index;
    ucontext_t context;
    char *stack;
    uint32_t taken; /* of the ring */
    bool ended, finished, poked;
    double scalar, scalar_busy;
    uint64_t scalar_instructions;
    struct pipe pipe[PIPES];
    struct flag flag[PIPES][PIPES][EVENTS];
    struct cross_flag cross[CROSS];
    int unit_made, unit_taken; /* tiles of L0C signalled by unit flags */
    double unit_begin, unit_end, unit_free; /* the last Mmad of a tile; the Fixpipe's end of the tile before */
    bool warm[8]; /* paths that have moved something */
    uint8_t *memory[8];  /* of each space but GM */
    uint8_t *valid[8];   /* bytes that hold something */
    uint64_t mask[2];
    int64_t mask_count;
    double candidate;    /* when its next move can start */
    int candidate_pipe;
    double end;
    double reads, writes; /* accesses to L1 a cycle that MTE1 asks for and that MTE2 has */
    int64_t path_bytes[16];
    double macs, ideal; /* ideal: cycles that the macs take at the peak of their types */
    struct shadow *shadow;
    uint64_t clock[PIPES][PIPES]; /* races: clock[p][q]: the last instruction of q that is known to have ended */
    uint64_t sequence[PIPES];
    uint64_t *known; /* races: the same of every core's queues */
};

enum { SHARED_READ, SHARED_WRITE, SHARED_HBM, SHARED_MIXED, SHARED };

/* A move that is under way: through GM, or from L1 to L0. */
struct flow {
    struct core *core;
    int pipe;
    double since;              /* its queue is taken from here on; it may wait for unit flags before it starts */
    double start, counted, end; /* `left` counts from `counted` on; the end if speeds stay */
    double left, speed;        /* cycles that it would take by itself, of which `speed` pass in one */
    double demand[SHARED_MIXED]; /* bytes a cycle that it asks for at speed 1 */
    double l1, bound;          /* accesses to L1 a cycle at speed 1; the speed that L1 bounds it to */
    double acknowledged;       /* cycles after its end until others see what it moved */
};

struct event {
    int32_t core, pipe, op;
    uint32_t line;
    double start, end;
    int32_t flag[3];
    int64_t bytes;
};

struct argument {
    uint8_t *data;
    uint8_t *valid;
    int64_t bytes, first_line;
    struct access *access; /* races: of each granule; NULL where the kernel only reads */
};

/* What went wrong, told once for all cores that did the same. */
struct fault {
    int kind, core, cores;
    uint32_t line, other_line;
    char message[512];
};

struct sim {
    double target[T_COUNT];
    double rate[OP_COUNT][2];
    struct curve { int count; double kb[16], cycles[16]; } cold[6];
    int mode, cores, coupled;
    bool poked;
    int64_t capacity[8], align[8];
    struct core *core;
    void (*kernel)(void *const *);
    void (*attach)(struct dv_ring *);
    void *pointers[DV_ARGUMENTS];
    struct argument argument[DV_ARGUMENTS];
    int arguments;
    ucontext_t main;
    struct core *running;
    /* L2 */
    int64_t lines, l2_lines, l2_next;
    int32_t *l2_place;   /* line -> 1 + place in l2_line, or 0 */
    int32_t *l2_line;    /* place -> 1 + line, or 0 */
    uint8_t *dirty;
    double *line_free;
    int16_t *line_core;
    struct flow *flow;   /* the moves under way */
    int flows, next_flow;
    bool speeds_known;
    double now;          /* the time that `left` of each flow counts from */
    double hbm_bytes, l2_bytes;
    int64_t hits, misses;
    /* trace */
    struct event *event;
    int64_t events, event_capacity;
    int trace_core; /* -1: all */
    /* races: what accesses to GM that do not fit their granule stand in */
    struct access *access;
    int64_t accesses, access_capacity;
    /* errors: `error` ends the run, `fault` has it first, or all races */
    int error, faults;
    struct fault fault[FAULTS];
    int64_t budget; /* instructions and iterations that all cores may still take */
};

#define PARAM(name) (sim->target[T_##name])

/* A sum of regions that an instruction touches; returns how many there are. */
int dv_regions(const struct core *core, const struct dv_instr *i, struct region out[REGIONS]);
int dv_elements_per_repeat(const struct dv_instr *i);
int dv_repeats(const struct core *core, const struct dv_instr *i);
int dv_lanes(const struct core *core, const struct dv_instr *i); /* elements of a repeat that count */

/* Where cores have one unit each, the Fixpipe writes to the UB of its block's vector cores: the first half of the rows,
 * rounded up, to one, the others to the other. NULL where an instruction writes to its own core. */
struct core *dv_receiver(const struct core *core, const struct dv_instr *i, int sub_block);
int64_t dv_received(const struct dv_instr *i, int sub_block);
struct region dv_landing(const struct dv_instr *i, int64_t rows);

/* Checks of parameters, bounds, alignment and, with data, of uninitialised reads. */
bool dv_check(struct core *core, const struct dv_instr *i);
void dv_mark_written(struct core *core, const struct dv_instr *i);

/* The index that a kernel loads. Proofs have no data: there each index is the least one, or in MODE_GREATEST the
 * greatest one, so that bounds hold of all between. Timing without data spreads them. */
int64_t dv_load_index(struct dv_ring *ring, const struct dv_instr *i);

/* The data of an instruction. */
void dv_execute(struct core *core, const struct dv_instr *i);
void dv_load_valid(const struct dv_instr *i, uint8_t *to, const uint8_t *from);
int64_t dv_fractals_of_k(const struct dv_instr *i);
bool dv_product_holds(const struct core *core, const struct dv_instr *i);
void dv_vector(struct core *core, const struct dv_instr *i);
float dv_load(const uint8_t *at, int type);
void dv_store(uint8_t *at, int type, float value);
uint8_t *dv_at(struct core *core, int space, int64_t address);

/* Cycles: of instructions that stay on the core, and what moves through GM that start at `time` ask for. */
struct cost { double occupied, busy, done; };
struct cost dv_cost(struct core *core, const struct dv_instr *i, bool stalled);
struct flow dv_gm_flow(struct core *core, const struct dv_instr *i, double time);
/* Moves under way: one more, when the next one ends (NEVER if none is under way), and that end. */
void dv_flow_start(struct sim *sim, const struct flow *flow);
double dv_flow_next(struct sim *sim);
struct flow dv_flow_end(struct sim *sim);
void dv_touch(struct core *core, const struct dv_instr *i);
bool dv_is_gm(int op);

/* Races. Accesses return false where the run has ended, settings with an error in the simulator. */
bool dv_race_access(struct core *core, const struct dv_instr *i, int pipe);
bool dv_race_set(struct core *core, int from, int to, struct flag *flag, const struct dv_instr *i);
void dv_race_unit(struct core *core, int to, int from);
void dv_race_dispatch(struct core *core, const uint64_t *scalar, int pipe);
void dv_race_send(const struct core *core, int pipe, uint64_t *clock);
void dv_race_receive(struct core *core, int sender, const uint64_t *clock);
struct access *dv_gm_accesses(int64_t bytes);
void dv_race_wait(struct core *core, int to, struct flag *flag);
void dv_race_barrier(struct core *core, int pipe);
struct shadow *dv_shadow_new(const struct sim *sim);
void dv_shadow_free(struct shadow *shadow);

/* The entry of a fault at two lines; NULL where it is there already, or where there is no room, which ends the run. */
struct fault *dv_fault(struct core *core, int kind, const struct dv_instr *i, uint32_t other_line);
void dv_error(struct core *core, int kind, const struct dv_instr *i, const char *format, ...);
void dv_record(struct core *core, int pipe, const struct dv_instr *i, double start, double end, int64_t bytes);
int dv_size(int type);
#endif
