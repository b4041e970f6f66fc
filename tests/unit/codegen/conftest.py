"""Fixtures: loop-stage modules from text, compiled and loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.vector import Vector

from msc.codegen.c import COptions, emit_c
from msc.dialects.loop import LOOP
from msc.dialects.ms import MS
from msc.ir.reading import parse_module
from msc.runtime.artifact import CompiledModel, load
from msc.runtime.build import BuildOptions, build
from msc.runtime.flags import WARNING_FLAGS
from msc.runtime.program import CProgram
from msc.targets.catalogue import machine_named

Parse = Callable[[str], ModuleOp]


class Compile(Protocol):
    def __call__(
        self,
        module: ModuleOp | CProgram,
        weights: Mapping[str, NDArray[Any]] = ...,
        sanitize: bool = ...,
        **options: Any,
    ) -> CompiledModel: ...


@pytest.fixture
def module_of() -> Parse:
    context = Context()
    for dialect in (Builtin, Arith, Func, MemRef, Scf, Vector, Math, LOOP, MS):
        context.load_dialect(dialect)
    return lambda text: parse_module(context, text, "test.mir")


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Emit, build with warnings as errors, load."""
    count = iter(range(1000))

    def compile_(
        module: ModuleOp | CProgram,
        weights: Mapping[str, NDArray[Any]] | None = None,
        sanitize: bool = False,
        **options: Any,
    ) -> CompiledModel:
        march = options.pop("march", "native")
        program = (
            module if isinstance(module, CProgram) else emit_c(module, COptions(target=machine_named(march), **options))
        )
        path = tmp_path / f"model{next(count)}.so"
        build(program, weights or {}, "so", path, BuildOptions(flags=WARNING_FLAGS, sanitize=sanitize))
        return load(path)

    return compile_


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
