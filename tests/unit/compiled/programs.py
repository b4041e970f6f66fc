"""Many small computations as one program, compiled and run, beside what the interpreter says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.ms.base import MsOp
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.interp import evaluate
from msc.ir.reading import parse_module
from msc.runtime.artifact import CompiledModel, load
from msc.runtime.build import BuildOptions, build
from msc.runtime.flags import WARNING_FLAGS
from msc.runtime.program import CProgram
from tests.unit.compiled.processes import process

Array: TypeAlias = NDArray[Any]
Case: TypeAlias = tuple[str, str]
"""The text of an operation on operands `%0`, `%1`, ... and their types."""

QUICK = ("-O1",)
"""What is tested is what the C means; -O1 builds several times as fast as -O3."""


def parsed(text: str) -> ModuleOp:
    """A module from text. Raises MscError."""
    return parse_module(new_context(), text, "test.mir")


def program_text(cases: Sequence[Case]) -> str:
    """A module whose entry function computes every case on inputs of its own. Raises MscError for an illegal one."""
    return _program_text(tuple(cases))


@lru_cache(maxsize=8192)
def _program_text(cases: tuple[Case, ...]) -> str:
    """Several test files make the same thousands of programs, and each is parsed for the types of its results."""
    arguments = ", ".join(
        f"%c{number}_{i}: tensor<{type_}>"
        for number, (_, types) in enumerate(cases)
        for i, type_ in enumerate(types.split())
    )
    lines = [_line(number, operation) for number, (operation, _) in enumerate(cases)]
    head, body = f"func.func @main({arguments})", "\n".join(lines)
    module = parsed(f"{head} {{\n{body}\nfunc.return\n}}")
    results = [result for op in module.walk() if isinstance(op, MsOp) for result in op.results]
    types = ", ".join(str(result.type) for result in results)
    names = ", ".join(name for line in lines for name in line.split(" = ")[0].split(", "))
    return f"{head} -> ({types}) {{\n{body}\nfunc.return {names} : {types}\n}}"


def _line(number: int, operation: str) -> str:
    results = ", ".join(f"%r{number}_{i}" for i in range(results_of(operation)))
    operands = re.sub(r"%(\d+)", lambda operand: f"%c{number}_{operand[1]}", operation)
    return f"{results} = {operands}"


def results_of(operation: str) -> int:
    """How many results the text of an operation gives."""
    return 2 if operation.startswith("ms.split ") else 1


def generated(text: str, folder: Path, march: str = "native", threads: int = 1) -> tuple[CProgram, Mapping[str, Array]]:
    """The C of a text, and the weights that it takes."""
    source = folder / "program.mir"
    source.write_text(text, encoding="utf-8")
    compilation = compile_model(str(source), CompileOptions(march=march, threads=threads))
    return generate_c(compilation), compilation.parameters()


def compiled(
    text: str, folder: Path, march: str = "native", threads: int = 1, flags: Sequence[str] = QUICK
) -> CompiledModel:
    """The program of a text, built with warnings as errors, and loaded."""
    library = folder / f"program-{len(list(folder.iterdir()))}.so"
    options = BuildOptions(flags=(*WARNING_FLAGS, *flags))
    return load(build(*generated(text, folder, march, threads), "so", library, options))


def run_checked(text: str, folder: Path, inputs: Sequence[Array], march: str = "native") -> tuple[Array, ...]:
    """The outputs of a program that AddressSanitizer and UndefinedBehaviorSanitizer watch, in buffers of exact size.

    Raises AssertionError with what they say.
    """
    return process(*generated(text, folder, march), folder, BuildOptions(sanitize=True)).outputs(inputs)


def interpreted(text: str, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """What the interpreter gives for a text."""
    with np.errstate(all="ignore"):
        return evaluate(parsed(text), inputs, {})
