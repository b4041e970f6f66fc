"""Running a graph that was captured: compiled to C, or by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from msc.frontend.modes import INTERPRETER, Wishes
from msc.interp.graph import evaluate
from msc.support.arrays import Array

if TYPE_CHECKING:
    from msc.runtime.compiled_model import CompiledModel

Program: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""From arrays for the inputs of a graph to those of its results."""


class Compiler(Protocol):
    """What makes a function on arrays of a module at the graph stage."""

    def __call__(
        self,
        module: ModuleOp,
        weights: Mapping[str, Array],
        options: Mapping[str, Any],
        samples: Mapping[tuple[int, ...], tuple[ModuleOp, Mapping[str, Array]]],
    ) -> CompiledModel: ...


COMPILER = ("msc.driver.artifacts.cell_compilation", "compile_captured")
"""Where the compiler is: the driver stands above the front end, and is found by name as passes are."""


def program_of(module: ModuleOp, weights: Mapping[str, Array], wishes: Wishes) -> Program:
    """The module as a function. Raises what compiling raises."""
    if wishes.backend == INTERPRETER:
        return lambda inputs: [np.array(result) for result in evaluate(module, inputs, weights)]
    return runs(compiled(module, weights, wishes))


def filling(module: ModuleOp, wishes: Wishes) -> Callable[[Sequence[Array], Array], None]:
    """The module as a function that writes its only result into an array. Raises what compiling raises."""
    if wishes.backend != INTERPRETER:
        model = compiled(module, {}, wishes)
        return lambda inputs, result: model.call_into(inputs, [result])

    def fill(inputs: Sequence[Array], result: Array) -> None:
        result[...] = evaluate(module, inputs, {})[0]

    return fill


def compiled(
    module: ModuleOp,
    weights: Mapping[str, Array],
    wishes: Wishes,
    ranges: Mapping[str, tuple[int, int]] | None = None,
    samples: Mapping[tuple[int, ...], tuple[ModuleOp, Mapping[str, Array]]] | None = None,
) -> CompiledModel:
    """The module as a compiled model, for `ranges` of sizes that it names if there are `samples` at other sizes.

    Raises what compiling raises.
    """
    options = {**wishes.options(), "dims": ranges} if ranges else wishes.options()
    return _compiler()(module, weights, options, samples or {})


def runs(model: CompiledModel) -> Program:
    """The function that calls a compiled model."""
    return lambda inputs: model.results(*inputs)


@cache
def _compiler() -> Compiler:
    module, name = COMPILER
    return getattr(import_module(module), name)
