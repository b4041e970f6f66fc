/* Errors and the trace. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dv_sim.h"

struct fault *dv_fault(struct core *core, int kind, const struct dv_instr *i, uint32_t other_line) {
    struct sim *sim = core->sim;
    uint32_t line = i ? i->line : 0;
    for (int k = sim->faults - 1; k >= 0; k--) {
        struct fault *known = &sim->fault[k];
        if (known->kind != kind || known->line != line || known->other_line != other_line) continue;
        if (known->core != core->index) known->cores++;
        return NULL;
    }
    if (sim->faults == FAULTS) {
        if (!sim->error) sim->error = kind;
        return NULL;
    }
    struct fault *fault = &sim->fault[sim->faults++];
    *fault = (struct fault){.kind = kind, .core = core->index, .cores = 1, .line = line, .other_line = other_line};
    return fault;
}

/* What ends the run. Races that came before may have led to it: they stay, and this comes behind them. */
void dv_error(struct core *core, int kind, const struct dv_instr *i, const char *format, ...) {
    struct sim *sim = core->sim;
    if (sim->error) return;
    struct fault *fault = dv_fault(core, kind, i, 0);
    sim->error = kind;
    if (!fault) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
}

void dv_record(struct core *core, int pipe, const struct dv_instr *i, double start, double end, int64_t bytes) {
    struct sim *sim = core->sim;
    if (sim->event_capacity == 0 || (sim->trace_core >= 0 && sim->trace_core != core->index)) return;
    if (sim->events >= sim->event_capacity) return;
    struct event e = {core->index, pipe, i->op, i->line, start, end, {(int32_t)i->p[0], (int32_t)i->p[1], (int32_t)i->p[2]}, bytes};
    sim->event[sim->events++] = e;
}
