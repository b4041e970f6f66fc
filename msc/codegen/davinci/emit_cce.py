"""`davinci` to C with CCE's intrinsics, which the simulator's header `cce.h` defines.

Each operation becomes one line, so that a line of the C leads back to its operation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.codegen.c.names import RESERVED, SYSTEM
from msc.dialects import davinci
from msc.dialects.loop import ApplyOp, ForOp
from msc.sim.sources import kernel_headers
from msc.support.escaping import c_comment, comment_text
from msc.support.naming import unique
from msc.targets.davinci_isa import C_TYPES, Space

_HEADING = 1000
"""Characters of the comment with a kernel's name and its cores."""

_QUALIFIERS: Mapping[Space, str] = {
    Space.gm: "__gm__",
    Space.cbuf: "__cbuf__",
    Space.ca: "__ca__",
    Space.cb: "__cb__",
    Space.cc: "__cc__",
    Space.ub: "__ubuf__",
    Space.bt: "__bt__",
    Space.fb: "__fbuf__",
}


@cache
def _taken() -> frozenset[str]:
    """What no value of a kernel may be called: words of C, and all words of what a kernel includes."""
    words = re.findall(r"[A-Za-z_]\w+", "\n".join(kernel_headers().values()), re.ASCII)
    return frozenset({*RESERVED, *SYSTEM, *words, "arguments", "kernel"})


@dataclass(frozen=True)
class CceProgram:
    """C text, and the operation behind each of its lines (1-based)."""

    text: str
    operations: Mapping[int, Operation]


def emit_cce(kernel: davinci.DavinciKernelOp) -> CceProgram:
    """The C of a kernel: one function `kernel` over the addresses of its arguments."""
    writer = _Writer()
    writer.line(_heading(kernel))
    writer.line('#include "cce.h"')
    writer.line("")
    writer.function(kernel, "GLOBAL __aicore__ void kernel")
    return CceProgram("\n".join(writer.lines) + "\n", writer.operations)


def emit_cce_kernels(kernels: Sequence[davinci.DavinciKernelOp]) -> CceProgram:
    """The C of several kernels: one exported function each, `kernel_0`, `kernel_1`, ..."""
    writer = _Writer()
    writer.line('#include "cce.h"')
    for number, kernel in enumerate(kernels):
        writer.line(_heading(kernel))
        writer.names, writer.used = {}, set(_taken())
        writer.function(kernel, f"GLOBAL __aicore__ void kernel_{number}")
    return CceProgram("\n".join(writer.lines) + "\n", writer.operations)


def emit_cce_function(kernel: davinci.DavinciKernelOp, name: str) -> str:
    """A kernel as one function of a file that holds others, behind the inclusion of `cce.h`."""
    writer = _Writer(used={*_taken(), name})
    writer.function(kernel, f"static __aicore__ void {name}")
    return "\n".join(writer.lines) + "\n"


def _heading(kernel: davinci.DavinciKernelOp) -> str:
    return c_comment(f"{comment_text(kernel.sym_name.data)}: {cores_text(kernel)}.", limit=_HEADING)


def cores_text(kernel: davinci.DavinciKernelOp) -> str:
    """What a kernel runs on, for people."""
    return f"{kernel.blocks.value.data} blocks of {kernel.kind.data} cores of {kernel.target.data}"


@dataclass
class _Writer:
    lines: list[str] = field(default_factory=list[str])
    operations: dict[int, Operation] = field(default_factory=dict[int, Operation])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    used: set[str] = field(default_factory=lambda: set(_taken()))
    depth: int = 0

    def line(self, text: str, op: Operation | None = None) -> None:
        self.lines.append("    " * self.depth + text if text else "")
        if op is not None:
            self.operations[len(self.lines)] = op

    def function(self, kernel: davinci.DavinciKernelOp, head: str) -> None:
        """A kernel's function over the addresses of its arguments."""
        self.line(f"{head}(void *const *arguments) {{")
        self.depth = 1
        for position, argument in enumerate(kernel.body.block.args):
            self.pointer(argument, f"arguments[{position}]")
        if not kernel.body.block.args:
            self.line("(void)arguments;")
        self.block(kernel.body.block)
        self.depth = 0
        self.line("}")

    def name(self, value: SSAValue) -> str:
        """A C identifier for a value: its own name as far as that is one."""
        if value not in self.names:
            hint = re.sub(r"\W", "_", value.name_hint or "v", flags=re.ASCII)
            wanted = hint if re.match(r"[A-Za-z]", hint) else f"v{hint}"
            self.names[value] = unique(wanted, self.used)
            self.used.add(self.names[value])
        return self.names[value]

    def pointer(self, value: SSAValue, address: str, op: Operation | None = None) -> None:
        type_ = value.type
        assert isinstance(type_, davinci.BufferType)
        pointer = f"{_QUALIFIERS[type_.memory]} {C_TYPES[type_.dtype]} *"
        self.line(f"{pointer}{self.name(value)} = ({pointer}){address};", op)

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def nested(self, head: str, block: Block, op: Operation) -> None:
        self.line(f"{head} {{", op)
        self.depth += 1
        self.block(block)
        self.depth -= 1
        self.line("}")

    def operation(self, op: Operation) -> None:
        match op:
            case davinci.AllocOp():
                self.pointer(op.buffer, f"{op.address.value.data}", op)
            case ForOp():
                self.loop(op)
            case davinci.SectionOp():
                self.nested(f"if (dv_is_{op.kind.data}())", op.body.block, op)
            case ApplyOp():
                self.index(op.result, self.expression(op.map.data.results[0], op.values), op)
            case davinci.MinOp() | davinci.MaxOp():
                word = "dv_min" if isinstance(op, davinci.MinOp) else "dv_max"
                self.index(op.result, self.extreme(word, op.map, op.values), op)
            case davinci.BlockIdxOp():
                self.index(op.result, "get_block_idx()", op)
            case davinci.SubBlockOp():
                self.index(op.result, "get_subblockid()", op)
            case davinci.LoadIndexOp():
                self.load_index(op)
            case davinci.FlagOp():
                word = "set_flag" if isinstance(op, davinci.SetFlagOp) else "wait_flag"
                source, target = op.pipes
                event = self.expression(op.event.data.results[0], op.values)
                self.line(f"{word}(PIPE_{source.name}, PIPE_{target.name}, {event});", op)
            case davinci.PipeBarrierOp():
                self.line(f"pipe_barrier(PIPE_{op.which.name});", op)
            case davinci.CrossCoreSyncOp():
                flag = f"{op.mode.value.data}, {op.flag.value.data}"
                self.line(f"ffts_cross_core_sync(PIPE_{op.which.name}, {flag});", op)
            case davinci.WaitFlagDevOp():
                self.line(f"wait_flag_dev({op.mode.value.data}, {op.flag.value.data});", op)
            case davinci.QueueOp():
                self.instruction(op)
            case _:
                raise ValueError(f"{op.name} is no operation of a DaVinci kernel")

    def index(self, result: SSAValue, text: str, op: Operation) -> None:
        self.line(f"int64_t {self.name(result)} = {text};", op)

    def load_index(self, op: davinci.LoadIndexOp) -> None:
        place = self.place(op.buffer, op.offset.data.results[0], op.values)
        self.index(op.result, f"load_index({place}, {op.below.value.data}, {op.words.value.data})", op)

    def place(self, buffer: SSAValue, expr: AffineExpr, values: Sequence[SSAValue]) -> str:
        """The address of an element of a buffer."""
        offset = self.expression(expr, values)
        return self.name(buffer) if offset == "0" else f"{self.name(buffer)} + {offset}"

    def loop(self, op: ForOp) -> None:
        lower = self.extreme("dv_max", op.lower, op.values)
        upper = self.extreme("dv_min", op.upper, op.values)
        variable = self.name(op.variable)
        step = f"{variable}++" if op.step.value.data == 1 else f"{variable} += {op.step.value.data}"
        runs = f"{variable} < {upper} && dv_turn(__LINE__)"
        self.nested(f"for (int64_t {variable} = {lower}; {runs}; {step})", op.body.block, op)

    def extreme(self, word: str, map_: AffineMapAttr, values: Sequence[SSAValue]) -> str:
        first, *others = [self.expression(e, values) for e in map_.data.results]
        for other in others:
            first = f"{word}({first}, {other})"
        return first

    def instruction(self, op: davinci.QueueOp) -> None:
        given: list[str] = []
        for buffer, expr in zip(op.buffers, op.offsets.data.results, strict=True):
            given.append(self.place(buffer, expr, op.values))
        numbers = iter(op.parameters.data.results)
        for parameter in op.instruction.parameters:
            if parameter.real:
                assert op.scalar is not None
                given.append(_real(op.scalar.value.data))
            else:
                expr = next(numbers)
                given.append(_bits(expr) if parameter.bits else self.expression(expr, op.values))
        self.line(f"{op.instruction.name}({', '.join(given)});", op)

    def expression(self, expr: AffineExpr, values: Sequence[SSAValue], inner: bool = False) -> str:
        """An affine expression in C; `inner` puts sums in parentheses."""
        match expr:
            case AffineConstantExpr():
                return str(expr.value)
            case AffineDimExpr():
                return self.name(values[expr.position])
            case AffineBinaryOpExpr(AffineBinaryOpKind.Add, left, right):
                text = f"{self.expression(left, values)} + {self.expression(right, values)}"
                return f"({text})" if inner else text
            case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, left, right):
                return f"{self.expression(left, values, True)} * {self.expression(right, values, True)}"
            case AffineBinaryOpExpr(kind, left, right):
                word = {"mod": "dv_mod", "floordiv": "dv_floordiv", "ceildiv": "dv_ceildiv"}[_WORDS[kind]]
                return f"{word}({self.expression(left, values)}, {self.expression(right, values)})"
            case _:
                raise ValueError(f"no C for {expr}")


def _bits(expr: AffineExpr) -> str:
    """64 bits as C has them in an int64_t."""
    assert isinstance(expr, AffineConstantExpr)
    return f"(int64_t)0x{expr.value & (1 << 64) - 1:x}ULL"


def _real(value: float) -> str:
    """A double as C has it."""
    if math.isnan(value):
        return '__builtin_nan("")'
    return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}__builtin_inf()"


_WORDS = {
    AffineBinaryOpKind.Mod: "mod",
    AffineBinaryOpKind.FloorDiv: "floordiv",
    AffineBinaryOpKind.CeilDiv: "ceildiv",
}
