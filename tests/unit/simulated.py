"""A model on a simulated machine beside the interpreter, on the same random inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.arrays import Array, numpy_dtype
from msc.driver.compile import compile_model, generate
from msc.driver.options import CompileOptions
from msc.interp import evaluate


@dataclass(frozen=True)
class Compared:
    """The simulated results of a model, the interpreter's, and the module that was compiled."""

    found: Sequence[Array]
    expected: Sequence[Array]
    module: ModuleOp


def compared(path: Path, target: str, draw: Callable[[np.random.Generator, tuple[int, ...]], Array]) -> Compared:
    """`draw` makes the numbers of an input of a shape; booleans are where they are positive."""
    options = CompileOptions(target=target)
    compilation = compile_model(str(path), options)
    program = generate(compilation)
    rng = np.random.default_rng(0)
    inputs = dict[str, Array]()
    for tensor in program.signature.inputs:
        numbers = draw(rng, tensor.shape)
        inputs[tensor.name] = numbers > 0 if tensor.dtype == "i1" else numbers.astype(numpy_dtype(tensor.dtype))
    found = options.backend.load(program, compilation.parameters()).results(**inputs)
    graph = compile_model(str(path), CompileOptions(), "graph")
    return Compared(found, evaluate(graph.module, list(inputs.values()), {}), compilation.module)
