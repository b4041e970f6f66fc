"""A bundle for a microcontroller: a folder of C99 that a firmware project takes as it is, and a self-test on a board.

The network is `NAME.c`, `NAME.h` and `NAME_weights.c`: no heap, no input and output, no libraries but memory functions
and, for networks of floats, libm. All else tests it, builds it or shows how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, cast

import numpy as np

from msc.runtime.flags import FIRMWARE_FLAGS
from msc.runtime.program import CProgram, Signature, TensorSpec
from msc.runtime.program_text import C_TYPES, Golden, call_text, resource
from msc.runtime.weights import write_weights
from msc.support.escaping import c_comment
from msc.targets.machine import Board

if TYPE_CHECKING:
    from numpy.typing import NDArray

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wconversion")
"""None of them finds anything in the network, with GCC and Clang."""
_STEPS_OF_HALVES = 16
"""By how many of the next numbers f16 and bf16 may differ; self-tests compare their bits."""
_ROW = 16
"""Numbers in a row of an array."""


def firmware_texts(program: CProgram, weights: Mapping[str, NDArray[np.generic]], golden: Golden) -> dict[str, str]:
    """The files of the bundle by name. Raises MSC0505 (weights do not fit)."""
    name, board = program.name, program.boards[0]
    texts = {
        f"{name}.c": program.source,
        f"{name}.h": program.header,
        f"{name}.hpp": _cpp(program.signature),
        "selftest.c": _selftest(program.signature, golden),
        "golden.h": _golden(program.signature, golden),
        "board.h": resource("board.h"),
        "board_stack.h": resource("board_stack.h"),
        "board.c": resource(f"board_{board.start.replace('-', '_')}.c"),
        "board.ld": _linker_script(board),
        "Makefile": _makefile(program, board),
        "CMakeLists.txt": _cmake(program),
        "README.md": _readme(program, board),
    }
    if program.signature.weights_bytes:
        texts[f"{name}_weights.c"] = weights_c(program, weights)
    return texts


def weights_c(program: CProgram, weights: Mapping[str, NDArray[np.generic]]) -> str:
    """The weights as a constant array, which any compiler puts into flash. Raises MSC0505."""
    data, name = BytesIO(), program.name
    write_weights(program, weights, data)
    rows = _rows(map(str, data.getvalue()), 2 * _ROW)
    return (
        f"{c_comment(f'The weights of {name}: constants, in section .rodata.{name}_weights.')}\n"
        f'#include "{name}.h"\n\n'
        f"const unsigned char {name}_weights[{name.upper()}_WEIGHTS_BYTES]\n"
        f"    __attribute__((aligned({name.upper()}_ALIGNMENT))) = {{\n{rows}}};\n"
    )


def _rows(numbers: Iterator[str], length: int) -> str:
    every = list(numbers)
    return "".join(f"    {', '.join(every[k : k + length])},\n" for k in range(0, len(every), length))


def _selftest(signature: Signature, golden: Golden) -> str:
    tensors, inputs = (*signature.inputs, *signature.outputs), len(signature.inputs)
    arguments = [f"golden_{t.c_name}" if t.result is None else f"selftest_{t.c_name}" for t in signature.inputs]
    arguments += [f"selftest_{t.c_name}" for t in signature.outputs]
    sizes = [str(size.high) for size in signature.sizes]
    checks, compare = list[str](), dict[str, str]()
    for tensor, (absolute, relative) in zip(signature.outputs, golden.tolerances, strict=True):
        kind = _kind(tensor)
        compare[tensor.dtype] = _COMPARE[kind].replace("@TYPE@", C_TYPES[tensor.dtype]).replace("@DTYPE@", tensor.dtype)
        limits = f"{_STEPS_OF_HALVES if 'f' in tensor.dtype else int(absolute)}"
        if kind == "float":
            limits = f"{absolute!r}{_suffix(tensor)}, {relative!r}{_suffix(tensor)}"
        checks.append(
            f"    if (differs_{tensor.dtype}(selftest_{tensor.c_name}, golden_{tensor.c_name},"
            f" {tensor.elements}, {limits})) {{\n"
            f'        board_text("FAIL: {signature.name}: output {tensor.c_name}\\n");\n        return 1;\n    }}\n'
        )
    memory = "".join(
        f"static {C_TYPES[t.dtype]} selftest_{t.c_name}[{max(t.elements, 1)}];\n"
        for k, t in enumerate(tensors)
        if k >= inputs or t.result is not None
    )
    states = "".join(
        f"    memcpy(selftest_{t.c_name}, golden_{t.c_name}, sizeof golden_{t.c_name});\n"
        for t in signature.inputs
        if t.result is not None
    )
    text = resource("board_selftest.c")
    for key, value in {
        "NAME": signature.name,
        "MACRO": signature.macro,
        "STATES": states,
        "COMPARE": memory + "\n" + "\n".join(compare.values()),
        "CALL": f"{signature.symbol}({', '.join([*arguments, *sizes, 'selftest_workspace'])})",
        "CHECKS": "".join(checks),
    }.items():
        text = text.replace(f"@{key}@", value)
    return text


def _kind(tensor: TensorSpec) -> str:
    return "float" if tensor.dtype in ("f32", "f64") else "integer"


def _suffix(tensor: TensorSpec) -> str:
    return "f" if tensor.dtype == "f32" else ""


_COMPARE = {
    "float": """static int differs_@DTYPE@(const @TYPE@ *got, const @TYPE@ *wanted, int count, @TYPE@ absolute,
                        @TYPE@ relative)
{
    for (int k = 0; k < count; ++k) {
        const @TYPE@ apart = got[k] > wanted[k] ? got[k] - wanted[k] : wanted[k] - got[k];
        const @TYPE@ size = wanted[k] < 0 ? -wanted[k] : wanted[k];
        const int same = got[k] == wanted[k] || (got[k] != got[k] && wanted[k] != wanted[k]);
        if (!same && !(apart <= absolute + relative * size))
            return 1;
    }
    return 0;
}
""",
    "integer": """static int differs_@DTYPE@(const @TYPE@ *got, const @TYPE@ *wanted, int count, int64_t absolute)
{
    for (int k = 0; k < count; ++k) {
        const int64_t apart = (int64_t)got[k] - (int64_t)wanted[k];
        if (apart > absolute || -apart > absolute)
            return 1;
    }
    return 0;
}
""",
}


def _golden(signature: Signature, golden: Golden) -> str:
    tensors = (*signature.inputs, *signature.outputs)
    arrays = "".join(
        f"static const {C_TYPES[t.dtype]} golden_{t.c_name}[{max(t.elements, 1)}] = {{\n"
        f"{_rows(map(_number_of(t), _bits(t, array)), _ROW)}}};\n"
        for t, array in zip(tensors, (*golden.inputs, *golden.outputs), strict=True)
    )
    note = c_comment("Inputs, and the outputs that are right for them.")
    return f"{note}\n#include <math.h>\n#include <stdint.h>\n\n{arrays}"


def _bits(tensor: TensorSpec, array: NDArray[np.generic]) -> Iterator[int | float]:
    flat = np.ascontiguousarray(array).reshape(-1)
    if tensor.dtype in ("f16", "bf16"):
        flat = flat.view(np.uint16)
    yield from cast("list[int | float]", flat.tolist() or [0])


def _number_of(tensor: TensorSpec) -> Callable[[int | float], str]:
    if _kind(tensor) == "integer":
        wide = {"i64": "INT64_C({})", "ui64": "UINT64_C({})"}.get(tensor.dtype, "{}")
        return lambda value: wide.format(int(value))
    suffix = _suffix(tensor)

    def text(value: float) -> str:
        number = float(value)
        if np.isfinite(number):
            return f"{number.hex()}{suffix}"
        return "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"

    return text


_CPP = """/* {name} for C++: a class with its workspace; arrays of other sizes do not compile. Nothing is allocated. */
#pragma once

#include "{name}.h"

class {class_} {{
public:
    /* {name}_run; {macro}_OK if all is well. */
    int operator()({parameters}) noexcept
    {{
        return {symbol}({arguments});
    }}

private:
    alignas({macro}_ALIGNMENT) unsigned char workspace[{macro}_WORKSPACE_BYTES + 1];
}};
"""


def _cpp(signature: Signature) -> str:
    """`NAME.hpp`: tensors as references to arrays, whose sizes the compiler checks."""
    macro, outputs = signature.macro, len(signature.outputs)
    tensors = (*signature.inputs, *signature.outputs)
    parameters = [
        f"{'const ' if k < len(tensors) - outputs and t.result is None else ''}{C_TYPES[t.dtype]} "
        f"(&{t.c_name})[{max(t.elements, 1)}]"
        for k, t in enumerate(tensors)
    ]
    parameters += [f"int32_t {size.c_name}" for size in signature.sizes]
    names = [*(t.c_name for t in tensors), *(size.c_name for size in signature.sizes), "workspace"]
    return _CPP.format(
        name=signature.name,
        class_="".join(part.capitalize() for part in signature.name.split("_")) or "Model",
        macro=macro,
        symbol=signature.symbol,
        parameters=", ".join(parameters),
        arguments=", ".join(names),
    )


_LINKER_SCRIPT = """/* Where code, weights and data lie on the board; its emulator loads sections to where they run. */
ENTRY(board_reset)

MEMORY
{{
    CODE (rx) : ORIGIN = {code:#x}, LENGTH = {code_bytes:#x}
    DATA (rw) : ORIGIN = {data:#x}, LENGTH = {data_bytes:#x}
}}

SECTIONS
{{
    .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.srodata*) }} > CODE
    .ARM.exidx : {{ *(.ARM.exidx*) }} > CODE
    .data : {{ *(.data*) *(.sdata*) }} > DATA
    .bss (NOLOAD) : {{
        . = ALIGN(8);
        board_bss = .;
        *(.bss*) *(.sbss*) *(COMMON)
        . = ALIGN(8);
        board_bss_end = .;
    }} > DATA
    board_stack_end = ORIGIN(DATA) + LENGTH(DATA);
    /DISCARD/ : {{ *(.eh_frame*) *(.comment*) *(.riscv.attributes) }}
}}
"""


def _linker_script(board: Board) -> str:
    return _LINKER_SCRIPT.format(**{k: v for k, v in vars(board).items() if isinstance(v, int)})


_MAKEFILE = """# make && make run: the self-test on {board}, which QEMU emulates. make size: flash.
CC = {compiler}
MACHINE = {machine}
CFLAGS = {flags}
WARNINGS = {warnings}
EMULATOR = {emulator} -M {board}{bios} -display none -serial none -monitor none -icount shift=0 \\
	-chardev stdio,id=text -semihosting-config enable=on,target=native,chardev=text
OBJECTS = {objects}

all: selftest.elf

%.o: %.c {name}.h
	$(CC) $(MACHINE) $(CFLAGS) $(WARNINGS) -fstack-usage -c $< -o $@

selftest.o: golden.h board.h

selftest.elf: $(OBJECTS) selftest.o board.o board.ld
	$(CC) $(MACHINE) $(CFLAGS) -nostartfiles -T board.ld -Wl,--gc-sections,-Map=selftest.map $(filter %.o,$^) -o $@ -lm

run: selftest.elf
	$(EMULATOR) -kernel $<

size: $(OBJECTS)
	$(subst gcc,size,$(CC)) $(OBJECTS)

clean:
	rm -f *.o *.su selftest.elf selftest.map

.PHONY: all run size clean
"""


def _objects(program: CProgram) -> list[str]:
    return [program.name, f"{program.name}_weights"] if program.signature.weights_bytes else [program.name]


def _makefile(program: CProgram, board: Board) -> str:
    return _MAKEFILE.format(
        name=program.name,
        board=board.name,
        compiler=board.compiler,
        emulator=board.emulator,
        bios=" -bios none" if board.start == "riscv32" else "",
        machine=" ".join((*program.march, *board.linked)),
        flags=" ".join(FIRMWARE_FLAGS),
        warnings=" ".join(WARNINGS),
        objects=" ".join(f"{each}.o" for each in _objects(program)),
    )


_CMAKE = """# The network as a library: add_subdirectory(...), then target_link_libraries(firmware {name}).
cmake_minimum_required(VERSION 3.13)
project({name} C)
add_library({name} STATIC {sources})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_compile_options({name} PRIVATE {flags})
target_link_libraries({name} PUBLIC m)
"""


def _cmake(program: CProgram) -> str:
    sources = " ".join(f"{each}.c" for each in _objects(program))
    return _CMAKE.format(name=program.name, sources=sources, flags=" ".join((*program.march, *FIRMWARE_FLAGS)))


_README = """# {name}

A neural network as C99, generated by msc {version} for {target}. It allocates nothing, prints nothing, and keeps no
state between calls.

    make && make run          # PASS: {name}, on {board} under QEMU, with the instructions and the stack of a call
    make size                 # flash

| file | what it is |
|---|---|
| `{name}.h`, `{name}.hpp` | what a caller includes, in C and in C++ |
| `{name}.c`{weights} | the network: compile these with `{flags}` |
| `CMakeLists.txt` | the same as a library |
| `selftest.c`, `golden.h` | a program that compares it with outputs that are known to be right |
| `board.c`, `board.h`, `board_stack.h`, `board.ld`, `Makefile` | an example of start-up code, for QEMU's {board} |
| `manifest.json` | names, types and shapes, the weights' layout, SHA-256 of the files |

```c
{call}```

* **RAM**: the workspace, {workspace} bytes, and the stack. Nothing in the workspace survives a call: several networks,
  and other code, can share it. It is as large as the largest `_WORKSPACE_BYTES` of all, aligned to {alignment}.
* **Flash**: code and weights, {weights_bytes} bytes of them. The linker places the weights by their section,
  `.rodata.{name}_weights`. With `-D{macro}_EXTERNAL_WEIGHTS` they are where `{name}_set_weights` says, without
  `{name}_weights.c`.
* **Cycles by kernel**: `make clean run CFLAGS="$(CFLAGS) -DSELFTEST_KERNELS -D{macro}_HOOK=selftest_hook"` prints them
  for the self-test. On a chip, define the hook as a function that reads a counter of cycles.
"""


def _readme(program: CProgram, board: Board) -> str:
    signature = program.signature
    return _README.format(
        name=program.name,
        macro=program.name.upper(),
        version=signature.msc_version,
        target=signature.target,
        board=board.name,
        weights=f", `{program.name}_weights.c`" if signature.weights_bytes else "",
        flags=" ".join((*program.march, *FIRMWARE_FLAGS)),
        call=call_text(signature),
        workspace=signature.workspace_bytes,
        alignment=signature.alignment,
        weights_bytes=signature.weights_bytes,
    )
