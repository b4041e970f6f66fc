"""Running a graph that was captured: compiled to C, or by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from msc.interp.graph import evaluate

Array: TypeAlias = NDArray[Any]
Program: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""From arrays for the inputs of a graph to those of its results."""


class Compiler(Protocol):
    """What makes a function on arrays of a module at the graph stage."""

    def __call__(self, module: ModuleOp, weights: Mapping[str, Array]) -> Callable[..., Any]: ...


COMPILER = ("msc.driver.artifacts.captured", "compile_captured")
"""Where the compiler is: the driver stands above the front end, and is found by name as passes are."""

BACKENDS = ("", "interpreter")
"""What runs graphs: C that is compiled, or the interpreter, which starts faster and is what tests compare with."""


def program_of(module: ModuleOp, weights: Mapping[str, Array], backend: str) -> Program:
    """The module as a function. Raises what compiling raises."""
    if backend == "interpreter":
        return lambda inputs: evaluate(module, inputs, weights)
    function = _compiler()(module, weights)

    def run(inputs: Sequence[Array]) -> Sequence[Array]:
        results: Any = function(*[a if a.flags.c_contiguous else a.copy() for a in inputs])
        return cast(Sequence[Array], results if isinstance(results, tuple) else (results,))

    return run


@cache
def _compiler() -> Compiler:
    module, name = COMPILER
    return getattr(import_module(module), name)
