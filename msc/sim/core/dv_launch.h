/* What a compiled model calls to run a kernel on the simulated machine. */
#ifndef DV_LAUNCH_H
#define DV_LAUNCH_H
#include "dv_core.h"

/* A machine's numbers, in the order of dv_params.h and dv_isa.h. */
struct dv_machine {
    const double *parameters, *rates, *curves;
    const int64_t *capacity, *align;
    double hertz;
};

/* A kernel and its cores: kinds[4 * k] has block, sub block, is_cube, is_vector of core k. */
struct dv_kernel {
    const char *name;
    void (*run)(void *const *);
    void (*attach)(struct dv_ring *);
    int cores, blocks;
    const int64_t *kinds;
};

struct dv_buffer {
    const void *data;
    int64_t bytes;
};

/* Runs a kernel on its arguments; the seconds that the machine takes, or 0 unless `timed`. Ends the program with a
 * message where a kernel does what no core can do, which the compiler has proved that none does. */
double dv_launch(const struct dv_machine *machine, const struct dv_kernel *kernel, const struct dv_buffer *buffers, int count,
                 int timed);
#endif
