"""What a program takes of a small machine's memory, tensor by tensor and kernel by kernel, and limits for it.

RAM is the workspace and the stack: programs have no other variables. Flash is the weights and the code. Where the
machine's C compiler is there, it tells the code's size, and the stack of every function; the bound of the whole is
that of the longest way through the calls, which never recur. Without it, the stack is that of local arrays, and no code
counts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from msc.runtime.flags import FIRMWARE_FLAGS
from msc.runtime.program import CProgram, MemoryStep
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.temporary import temporary_folder
from msc.targets.machine import Machine

_LIBRARY = {"memset": 32, "memcpy": 32, "memmove": 32}
_OTHER_LIBRARY = 128
"""Bytes of stack that functions of libraries are taken to need: of memory, and all others, such as those of floats."""
_SHOWN = 8
"""Rows of a table: the kernels at which most is live."""


@dataclass(frozen=True)
class MemoryLimits:
    """Bytes that a program may take; 0: no limit."""

    ram: int = 0
    rom: int = 0
    stack: int = 0

    def over(self, machine: Machine) -> MemoryLimits:
        """With what the machine has where nothing is said."""
        return MemoryLimits(self.ram or machine.ram, self.rom or machine.flash, self.stack)


@dataclass(frozen=True)
class CompilerFigures:
    """What a C compiler says: bytes of code and constants, and a bound of the stack."""

    code: int
    stack: int


def measured(program: CProgram) -> CompilerFigures | None:
    """What the C compiler of the program's board says; None where it is not there."""
    board = program.boards[0] if program.boards else None
    compiler = shutil.which(board.compiler) if board is not None else None
    if board is None or compiler is None:
        return None
    with temporary_folder("measure") as folder:
        for name, text in ((f"{program.name}.c", program.source), (f"{program.name}.h", program.header)):
            (folder / name).write_text(text, encoding="utf-8")
        flags = [*program.march, *board.linked, *FIRMWARE_FLAGS, "-fcallgraph-info=su"]
        built = folder / f"{program.name}.o"
        command = [compiler, *flags, "-c", str(folder / f"{program.name}.c"), "-o", str(built)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        calls = folder / f"{program.name}.ci"
        if ran.returncode or not calls.is_file():
            return None
        size = subprocess.run(
            [re.sub("gcc$", "size", compiler), str(built)], capture_output=True, text=True, check=True
        ).stdout
        return CompilerFigures(int(size.splitlines()[1].split()[0]), stack_bound(calls.read_text("utf-8"), program))


_NODE = re.compile(r'node: \{ title: "([^"]*)" label: "([^"]*)"')
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')
_BYTES = re.compile(r"\\n(\d+) bytes \(static\)")


def stack_bound(graph: str, program: CProgram) -> int:
    """The bound of the stack of the entry functions, of the call graph that GCC writes with `-fcallgraph-info=su`.

    Raises MSC0531 for a function that calls itself, and for one whose frame the compiler does not know.
    """
    frames = dict[str, int]()
    for title, label in _NODE.findall(graph):
        own = _BYTES.search(label)
        if own is None and ".c:" in title:
            message = f"the compiler does not know the stack of '{title}' in advance"
            raise MscError(Diagnostic("MSC0531", message))
        frames[title] = int(own[1]) if own is not None else _LIBRARY.get(title, _OTHER_LIBRARY)
    callees: dict[str, set[str]] = {title: set() for title in frames}
    for caller, callee in _EDGE.findall(graph):
        callees[caller].add(callee)
    open_: list[str] = []

    @cache
    def bound(title: str) -> int:
        if title in open_:
            raise MscError(Diagnostic("MSC0531", f"'{title}' calls itself: its stack has no bound"))
        open_.append(title)
        deepest = max((bound(callee) for callee in sorted(callees.get(title, ()))), default=0)
        open_.pop()
        return frames.get(title, _OTHER_LIBRARY) + deepest

    symbols = {function.symbol for function in program.signature.functions}
    return max(bound(title) for title in frames if title in symbols)


def with_measured(program: CProgram, found: CompilerFigures) -> CProgram:
    """The program with the compiler's figures in its header."""
    name, stack = program.name.upper(), f"_STACK_BYTES {program.signature.stack_bytes}\n"
    more = f"_STACK_BYTES {found.stack}\n#define {name}_CODE_BYTES {found.code}\n"
    said = (
        f"Local arrays take at most {name}_STACK_BYTES bytes of a thread's stack, beside what the compiler puts there."
    )
    bound = f"A call takes at most {name}_STACK_BYTES bytes of the stack, and code {name}_CODE_BYTES of flash."
    header = program.header.replace(f"#define {name}{stack}", f"#define {name}{more}").replace(said, bound)
    return replace(program, header=header, signature=replace(program.signature, stack_bytes=found.stack))


def check_limits(program: CProgram, limits: MemoryLimits, found: CompilerFigures | None) -> None:
    """Raise MSC0530, with tables of what takes the memory, for a program that takes more than it may."""
    signature, code = program.signature, found.code if found is not None else 0
    workspace = max(each.workspace_bytes for each in signature.functions)
    stack = found.stack if found is not None else signature.stack_bytes
    rows: Sequence[tuple[str, Mapping[str, int], int, Iterator[str]]] = (
        ("RAM", {"workspace": workspace, "stack": stack}, limits.ram, _live(program.steps)),
        ("flash", {"weights": signature.weights_bytes, "code": code}, limits.rom, _weights(program)),
        ("stack", {"stack": stack}, limits.stack, iter(())),
    )
    for kind, parts, limit, table in rows:
        needed = sum(parts.values())
        if limit and needed > limit:
            detail = " + ".join(f"{size} of {part}" for part, size in parts.items() if size)
            message = f"{program.name} takes {needed} bytes of {kind}, {needed - limit} more than {limit}: {detail}"
            raise MscError(Diagnostic("MSC0530", message, notes=tuple(table), help=_HELP[kind]))


_HELP = {
    "RAM": "--ram-limit is for workspace and stack; smaller images or fewer channels where most is live need less",
    "flash": "--rom-limit is for weights and code; a quantised model needs a fourth",
    "stack": "--stack-limit is for what a call takes of the stack; --ram-limit counts it too",
}


def _live(steps: Sequence[MemoryStep]) -> Iterator[str]:
    """The kernels at which most bytes of the workspace are live, with the tensors."""
    most = sorted(steps, key=lambda step: -step.bytes)[:_SHOWN]
    for step in most:
        tensors = ", ".join(f"{name} {size}" for name, size in step.live)
        yield f"{step.bytes:>9} bytes live at {step.kernel}: {tensors}"


def _weights(program: CProgram) -> Iterator[str]:
    for slot in sorted(program.weights, key=lambda slot: -slot.bytes)[:_SHOWN]:
        yield f"{slot.bytes:>9} bytes of weights: {slot.symbol}"


def asserts(program: CProgram, limits: MemoryLimits) -> str:
    """C that does not compile where the program takes more than its limits."""
    name = program.name.upper()
    rows = (
        (limits.ram, f"{name}_WORKSPACE_BYTES + {name}_STACK_BYTES", "RAM"),
        (limits.rom, f"{name}_WEIGHTS_BYTES + {name}_CODE_BYTES", "flash"),
        (limits.stack, f"{name}_STACK_BYTES", "stack"),
    )
    return "".join(f'_Static_assert({sum_} <= {limit}, "{kind}");\n' for limit, sum_, kind in rows if limit)
