"""Checks of programs that msc compiles, done again without each optimisation that makes a difference to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from msc.backends.backend import CBackend
from msc.driver.compile import compile_read, generate_c
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.runtime.compiled_model import CompiledModel
from msc.runtime.program import Signature
from tests.conformance.running import reason
from tests.switched.changes import Copy, changed
from tests.unit.compiled.programs import QUICK, Array


class Function(Protocol):
    """A compiled model, wherever it runs: called as `CompiledModel` is."""

    @property
    def signature(self) -> Signature: ...

    def __call__(self, *arrays: Array, **named: Array) -> Any: ...

    def results(self, *arrays: Array, **named: Array) -> tuple[Array, ...]: ...


Compile: TypeAlias = Callable[[LoadedModel, CompileOptions], Function]


@dataclass(frozen=True)
class Check:
    """Calling `run` with what compiles raises if a result is wrong."""

    name: str
    run: Callable[[Compile], None]


@dataclass(frozen=True)
class Tried:
    """What came of a check: for each optimisation that makes a difference the failure without it, or nothing.

    `refused` says why nothing was compiled with all of them.
    """

    suite: str
    name: str
    reasons: Mapping[str, str]
    refused: str = ""


def compile_loaded(model: LoadedModel, options: CompileOptions, flags: tuple[str, ...] = ()) -> CompiledModel:
    """A model compiled to C, built with `flags` after msc's own, and loaded."""
    compilation = compile_read(model, options)
    backend = options.backend
    assert isinstance(backend, CBackend)
    return backend.load(generate_c(compilation), compilation.parameters(), flags)


class _Looked(BaseException):
    """Nothing is built in the first round; no handler of a suite shall catch this."""


def tried(suite: str, check: Check, names: Sequence[str], seconds: int) -> Tried:
    """Do a check without each of the optimisations `names` in turn, at most `seconds` each time."""
    found: dict[str, Copy] = {}

    def look(model: LoadedModel, options: CompileOptions) -> Function:
        found.update(changed(model, options, names))
        raise _Looked

    def run() -> None:
        with suppress(_Looked):
            check.run(look)
            raise LookupError("nothing is compiled")

    if refused := reason(run, seconds):
        return Tried(suite, check.name, {}, refused)
    reasons = {name: copy.failure or _failure(check, copy, seconds) for name, copy in found.items()}
    return Tried(suite, check.name, reasons)


def _failure(check: Check, copy: Copy, seconds: int) -> str:
    """Why a check fails if what it compiles is this."""

    def compile_(_model: LoadedModel, _options: CompileOptions) -> Function:
        return compile_loaded(copy.model, copy.options, QUICK)

    return reason(lambda: check.run(compile_), seconds)
