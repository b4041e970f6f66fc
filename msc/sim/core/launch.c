/* A kernel of a compiled model on the simulated machine: its arguments are the model's own memory. */
#include <stdio.h>
#include <stdlib.h>

#include "dv_launch.h"
#include "dv_sim.h"

struct sim *dv_new(const double *target, const double *rates, const double *curves, const int64_t *capacity, const int64_t *align,
                   int cores, int blocks, const int64_t *kinds, int mode);
bool dv_argument(struct sim *sim, void *data, uint8_t *valid, int64_t bytes, int written);
int dv_run(struct sim *sim, void (*kernel)(void *const *), void (*attach)(struct dv_ring *), int warm, int64_t limit, int64_t events, int trace_core);
void dv_free(struct sim *sim);

static void stop(const struct dv_kernel *kernel, const char *why) {
    fprintf(stderr, "msc: kernel %s: %s\n", kernel->name, why);
    abort();
}

double dv_launch(const struct dv_machine *machine, const struct dv_kernel *kernel, const struct dv_buffer *buffers, int count,
                 int timed) {
    struct sim *sim = dv_new(machine->parameters, machine->rates, machine->curves, machine->capacity, machine->align,
                             kernel->cores, kernel->blocks, kernel->kinds, MODE_FUNCTION | (timed ? MODE_TIME : 0));
    if (!sim) stop(kernel, "no memory for the simulated cores");
    for (int k = 0; k < count; k++)
        if (!dv_argument(sim, (void *)buffers[k].data, NULL, buffers[k].bytes, 1)) stop(kernel, "too many arguments");
    int error = dv_run(sim, kernel->run, kernel->attach, 1, INT64_MAX, 0, -1);
    if (error) stop(kernel, error < 0 ? "no memory for the simulated L2" : sim->fault[0].message);
    double cycles = 0;
    for (int k = 0; k < sim->cores; k++)
        if (sim->core[k].end > cycles) cycles = sim->core[k].end;
    dv_free(sim);
    return timed ? cycles / machine->hertz : 0;
}
