"""The C headers made of the machine and instruction tables: what the simulator and the kernels are compiled with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache

from msc.support.escaping import c_comment, c_string
from msc.targets.davinci import Cold, DavinciTarget
from msc.targets.davinci_isa import (
    C_TYPES,
    CONTROL,
    DTYPES,
    INSTRUCTIONS,
    REDUCE,
    Instruction,
    InstructionParameter,
    Pipe,
    Space,
)

SECTIONS = ("clock", "cores", "buffers", "alignment", "queues", "features", "cube", "mte1", "gm", "shared", "fixpipe")
_MORE = ("vector", "scalar")

PATHS: tuple[str, ...] = (
    "gm->l1", "gm->l0a", "gm->l0b", "gm->ub", "l1->l0a", "l1->l0b", "l1->bt", "l1->fb", "l0c->gm", "l0c->l1", "l0c->ub",
    "ub->gm", "ub->l1", "ub->ub",
)  # fmt: skip
"""The paths that reports count bytes of."""

_MEMORY = {
    Space.gm: "gm",
    Space.cbuf: "l1",
    Space.ca: "l0a",
    Space.cb: "l0b",
    Space.cc: "l0c",
    Space.ub: "ub",
    Space.bt: "bt",
    Space.fb: "fb",
}


def parameter_values(target: DavinciTarget) -> dict[str, float]:
    """Every number of a machine by `section_name`, in the order of `dv_params.h`."""
    values: dict[str, float] = {}
    for section in (*SECTIONS, *_MORE):
        part: object = getattr(target, section)
        for field in fields(type(part)):  # pyright: ignore[reportArgumentType]
            value: object = getattr(part, field.name)
            if isinstance(value, int | float):
                values[f"{section}_{field.name}"] = float(value)
    return values


def curve_values(cold: Cold) -> list[float]:
    """The measured curves as `dv_new` reads them: for each its length, then its points."""
    flat: list[float] = []
    for field in fields(Cold):
        points: tuple[tuple[float, float], ...] = getattr(cold, field.name)
        flat += [float(len(points)), *(number for point in points for number in point)]
    return flat


def rate_values(target: DavinciTarget) -> list[float]:
    """Elements a cycle of each instruction, for two-byte and four-byte elements."""
    flat: list[float] = []
    for instruction in INSTRUCTIONS.values():
        flat += target.vector.rates.get(instruction.rate, (128.0, 64.0))
    return flat + [1.0] * (2 * len(CONTROL))


def memory_values(target: DavinciTarget) -> tuple[list[int], list[int]]:
    """The bytes of each memory, and what addresses in it are multiples of, in the order of `Space`."""
    b, a = target.buffers, target.alignment
    capacity = [0, b.l1, b.l0a, b.l0b, b.l0c, b.ub, b.bt, b.fb]
    return capacity, [1, a.l1, a.l0a, a.l0b, a.l0c, a.ub, a.bt, a.fb]


@cache
def parameters_header(names: tuple[str, ...]) -> str:
    """`dv_params.h`: the position of each number of a machine."""
    listed = ",\n".join(f"    T_{name}" for name in names)
    return f"/* Made by msc.sim.headers. */\n#pragma once\nenum {{\n{listed},\n    T_COUNT\n}};\n"


@cache
def instructions_header() -> str:
    """`dv_isa.h`: numbers and tables of the instructions."""
    names = (*INSTRUCTIONS, *CONTROL)
    table = [*INSTRUCTIONS.values()]
    lines = ["/* Made by msc.sim.headers. */", "#pragma once", "#include <stdint.h>"]
    lines += _enum("OP_", [*names, "COUNT"])
    lines += _enum("PIPE_", [pipe.name for pipe in Pipe])
    lines += _enum("SPACE_", [space.name for space in Space])
    lines += _enum("TYPE_", [*DTYPES])
    pipes = [int(i.pipe) for i in table]
    lines += [
        _numbers("int8_t dv_pipe[OP_COUNT]", pipes),
        _numbers("int8_t dv_operands[OP_COUNT]", [len(i.spaces) for i in table]),
        _numbers("int8_t dv_parameters[OP_COUNT]", [len(i.parameters) for i in table]),
        _numbers("int8_t dv_reads_first[OP_COUNT]", [int(i.reads_first) for i in table]),
        _numbers("int8_t dv_repeat[OP_COUNT]", [_position(i, "repeat") if i.pipe is Pipe.V else -1 for i in table]),
        _numbers("int8_t dv_has_unit_flag[OP_COUNT]", [int(_position(i, "unit_flag") >= 0) for i in table]),
        _numbers("int8_t dv_is_reduction[OP_COUNT]", [int(i.parameters[:4] == REDUCE) for i in table]),
        _numbers("int8_t dv_is_gm_table[OP_COUNT]", [int(Space.gm in i.spaces) for i in table]),
        _numbers("int8_t dv_path[OP_COUNT]", [_path(i) for i in table]),
    ]
    spaces = ", ".join("{" + ", ".join(str(int(s)) for s in i.spaces) + "}" if i.spaces else "{0}" for i in table)
    lines.append(f"static const int8_t dv_spaces[OP_COUNT][4] = {{{spaces}}};")
    limits = ",\n    ".join("{" + (", ".join(map(_limits, i.parameters)) or "{0, 0}") + "}" for i in table)
    lines.append(f"static const int64_t dv_limits[OP_COUNT][20][2] = {{\n    {limits}}};")
    words = ",\n    ".join(
        "{" + ", ".join(f'"{p.name}"' for p in i.parameters) + "}" if i.parameters else "{0}" for i in table
    )
    lines.append(f"static const char *const dv_parameter_name[OP_COUNT][20] = {{\n    {words}}};")
    lines.append(_strings("dv_op_name[OP_COUNT]", names))
    lines.append(_strings("dv_pipe_name[8]", [pipe.name for pipe in Pipe]))
    lines.append(_strings("dv_space_name[8]", [_MEMORY[space].upper() for space in Space]))
    return "\n".join(lines) + "\n"


@cache
def kernel_header() -> str:
    """`cce.h`: what a kernel includes. One function an instruction; addresses are pointers into CCE's memories."""
    lines = [_PROLOGUE, f"enum {{ {', '.join(f'PIPE_{pipe.name}' for pipe in Pipe)} }};"]
    types = ", ".join(f"{C_TYPES[name]} *: {number}" for number, name in enumerate(DTYPES))
    lines.append(f"#define DV_TYPE(pointer) _Generic((pointer), {types})")
    lines.append(f"enum {{ {', '.join(f'DV_{name}' for name in (*INSTRUCTIONS, *CONTROL))} }};")
    for instruction in INSTRUCTIONS.values():
        lines += _function(instruction)
    lines += [_CONTROL]
    return "\n".join(lines) + "\n"


def _function(i: Instruction) -> Iterator[str]:
    """An inline function, and the macro that adds the line and the operands' types."""
    operands = ["dst", *(f"src{k}" if len(i.spaces) > 2 else "src" for k in range(len(i.spaces) - 1))][: len(i.spaces)]
    typed = [f"const volatile void *{name}, int {name}_type" for name in operands]
    numbers = [f"{'double' if p.real else 'int64_t'} {p.name}" for p in i.parameters]
    yield c_comment(f"{i.pipe.name}: {i.note}.")
    yield f"static inline void {i.name}_({', '.join(['uint32_t line', *typed, *numbers])}) {{"
    yield f"    struct dv_instr *i = dv_next(DV_{i.name}, line);"
    for k, name in enumerate(operands):
        yield f"    i->operand[{k}] = (int64_t)(uintptr_t){name}, i->type[{k}] = (uint8_t){name}_type;"
    for k, parameter in enumerate(i.parameters):
        if parameter.real:
            yield f"    __builtin_memcpy(&i->p[{k}], &{parameter.name}, 8);"
        else:
            yield f"    i->p[{k}] = {parameter.name};"
    if not operands and not i.parameters:
        yield "    (void)i;"
    yield "}"
    names = [*operands, *(p.name for p in i.parameters)]
    passed = ["__LINE__", *(f"(const volatile void *)({o}), DV_TYPE({o})" for o in operands)]
    yield f"#define {i.name}({', '.join(names)}) {i.name}_({', '.join([*passed, *(p.name for p in i.parameters)])})"


def _position(i: Instruction, name: str) -> int:
    return next((k for k, p in enumerate(i.parameters) if p.name == name), -1)


def _limits(parameter: InstructionParameter) -> str:
    """The least and the greatest value; the other way round where there are none."""
    free = parameter.real or parameter.bits
    return "{1, 0}" if free else f"{{{parameter.least}, {parameter.most}}}"


def _path(i: Instruction) -> int:
    if len(i.spaces) < 2 or i.pipe in (Pipe.M,) or (i.pipe is Pipe.V and i.name != "copy_ubuf_to_ubuf"):
        return 15
    return PATHS.index(f"{_MEMORY[i.spaces[1]]}->{_MEMORY[i.spaces[0]]}")


def _enum(prefix: str, names: list[str]) -> list[str]:
    return [f"enum {{ {', '.join(prefix + name for name in names)} }};"]


def _numbers(declaration: str, values: list[int]) -> str:
    return f"static const {declaration} = {{{', '.join(map(str, values))}}};"


def _strings(declaration: str, words: tuple[str, ...] | list[str]) -> str:
    return f"static const char *const {declaration} = {{{', '.join(map(c_string, words))}}};"


_PROLOGUE = """/* Made by msc.sim.headers: CCE's instructions of a DaVinci core, for the simulator.
 *
 * A kernel is compiled by the system's C compiler; each call hands one instruction to the simulator. On-chip addresses
 * are byte offsets in their memory, written as pointers; those of global memory are never read by the kernel itself. */
#ifndef MSC_CCE_H
#define MSC_CCE_H
#include "dv_core.h"

#define __gm__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __ubuf__
#define __bt__
#define __fbuf__
#define __aicore__
#define GLOBAL __attribute__((visibility("default")))

typedef struct { uint16_t bits; } half;
typedef struct { uint16_t bits; } bfloat16_t;

#ifndef DV_ATTACH
#define DV_ATTACH GLOBAL
#endif

static struct dv_ring *dv_ring_;
DV_ATTACH void dv_attach(struct dv_ring *ring) { dv_ring_ = ring; }

static inline struct dv_instr *dv_next(int op, uint32_t line) {
    if (dv_ring_->count == DV_RING) dv_ring_->full(dv_ring_);
    struct dv_instr *i = &dv_ring_->slot[dv_ring_->count++];
    i->op = (uint16_t)op;
    i->line = line;
    return i;
}

/* An iteration of a loop: a kernel that takes too many is stopped. */
static inline int dv_turn(uint32_t line) {
    if (--*dv_ring_->budget < 0) dv_ring_->stop(dv_ring_, line);
    return 1;
}

/* The core that runs: its block, how many there are, which of the block's vector cores it is, and what it has. */
static inline int64_t get_block_idx(void) { return dv_ring_->block; }
static inline int64_t get_block_num(void) { return dv_ring_->blocks; }
static inline int64_t get_subblockid(void) { return dv_ring_->sub_block; }
static inline int dv_is_cube(void) { return (int)dv_ring_->is_cube; }
static inline int dv_is_vector(void) { return (int)dv_ring_->is_vector; }
static inline int64_t dv_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t dv_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t dv_ceildiv(int64_t a, int64_t b) { return a / b + (a % b > 0); }
static inline int64_t dv_floordiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t dv_mod(int64_t a, int64_t b) { return a - dv_floordiv(a, b) * b; }
"""

_CONTROL = """/* Order: flags between two pipes of a core, barriers, flags between cores. */
static inline void dv_control(int op, uint32_t line, int64_t a, int64_t b, int64_t c) {
    struct dv_instr *i = dv_next(op, line);
    i->p[0] = a, i->p[1] = b, i->p[2] = c;
}
#define set_flag(from, to, event) dv_control(DV_set_flag, __LINE__, from, to, event)
#define wait_flag(from, to, event) dv_control(DV_wait_flag, __LINE__, from, to, event)
#define pipe_barrier(pipe) dv_control(DV_pipe_barrier, __LINE__, pipe, 0, 0)
#define ffts_cross_core_sync(pipe, mode, flag) dv_control(DV_ffts_cross_core_sync, __LINE__, pipe, mode, flag)
#define wait_flag_dev(mode, flag) dv_control(DV_wait_flag_dev, __LINE__, PIPE_S, mode, flag)

/* S: an index in global memory, of one word or two; negative ones count from the end, and all become 0 to below - 1. */
static inline int64_t load_index_(uint32_t line, const volatile void *at, int type, int64_t below, int64_t words) {
    struct dv_instr *i = dv_next(DV_load_index, line);
    i->operand[0] = (int64_t)(uintptr_t)at, i->type[0] = (uint8_t)type;
    i->p[0] = below, i->p[1] = words;
    return dv_ring_->load(dv_ring_, i);
}
#define load_index(at, below, words) load_index_(__LINE__, (const volatile void *)(at), DV_TYPE(at), below, words)
#endif"""
