/* Errors and the trace. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dv_sim.h"

void dv_error(struct core *core, int kind, const struct dv_instr *i, const char *format, ...) {
    struct sim *sim = core->sim;
    if (sim->error) return;
    sim->error = kind;
    sim->error_core = core->index;
    sim->error_line = i ? i->line : 0;
    sim->error_op = i ? i->op : -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sim->message, sizeof sim->message, format, arguments);
    va_end(arguments);
}

void dv_record(struct core *core, int pipe, const struct dv_instr *i, double start, double end, int64_t bytes) {
    struct sim *sim = core->sim;
    if (sim->event_capacity == 0 || (sim->trace_core >= 0 && sim->trace_core != core->index)) return;
    if (sim->events >= sim->event_capacity) return;
    struct event e = {core->index, pipe, i->op, i->line, start, end, {(int32_t)i->p[0], (int32_t)i->p[1], (int32_t)i->p[2]}, bytes};
    sim->event[sim->events++] = e;
}
