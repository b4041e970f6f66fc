"""Single operators that memory bounds, or nearly: element-wise functions, reductions, transposes, concatenation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from benchmarks.model import SEED, Array, GraphModel
from benchmarks.onnx_graph import OnnxGraph

Network: TypeAlias = Callable[[OnnxGraph], str]


class Operator(GraphModel):
    """A few nodes over inputs `x`, `y`, ... of the same shape."""

    def __init__(self, name: str, shape: tuple[int, ...], network: Network, inputs: int = 1) -> None:
        self.name = name
        self.inputs = dict.fromkeys("xyz"[:inputs], shape)
        self._network = network

    def example(self) -> dict[str, Array]:
        """Normally distributed: of other numbers, sums and maxima of many would hardly depend on which they are."""
        generator = np.random.default_rng(SEED)
        return {name: generator.standard_normal(shape, np.float32) for name, shape in self.inputs.items()}

    def nodes(self, graph: OnnxGraph) -> str:
        return self._network(graph)


def _function(kind: str) -> Network:
    return lambda graph: graph.op(kind, "x")


def _logarithm(graph: OnnxGraph) -> str:
    """Of 1 + |x|: no NaN, which compares with nothing."""
    return graph.op("Log", graph.op("Add", graph.op("Abs", "x"), graph.constant("one", 1.0)))


def _power(graph: OnnxGraph) -> str:
    return graph.op("Pow", graph.op("Abs", "x"), graph.constant("exponent", 1.7))


def _swish(graph: OnnxGraph) -> str:
    return graph.op("Mul", "x", graph.op("Sigmoid", "x"))


def _reduction(kind: str, *axes: int) -> Network:
    return lambda graph: graph.op(kind, "x", graph.integers("axes", *axes), keepdims=0)


def _largest_place(graph: OnnxGraph) -> str:
    return graph.op("ArgMax", "x", axis=-1, keepdims=0)


def _transpose(*perm: int) -> Network:
    return lambda graph: graph.op("Transpose", "x", perm=list(perm))


def _concatenation(graph: OnnxGraph) -> str:
    """Of two kernels' results and an input."""
    return graph.op("Concat", graph.op("Relu", "x"), graph.op("Abs", "y"), "z", axis=1)


_FUNCTIONS: Mapping[str, Network] = {
    **{"log": _logarithm, "pow": _power, "swish": _swish},
    **{kind.lower(): _function(kind) for kind in ("Sigmoid", "Tanh", "Sin", "Softplus")},
}

SINGLE_OPERATORS = (
    *(Operator(f"{name}-1024", (1024, 1024), network) for name, network in _FUNCTIONS.items()),
    *(Operator(f"{kind}-rows", (1024, 1024), _reduction(f"Reduce{kind.title()}", 1)) for kind in ("sum", "max")),
    *(Operator(f"{kind}-columns", (1024, 1024), _reduction(f"Reduce{kind.title()}", 0)) for kind in ("sum", "max")),
    *(Operator(f"{kind}-all", (1024, 1024), _reduction(f"Reduce{kind.title()}", 0, 1)) for kind in ("sum", "max")),
    Operator("mean-pixels", (1, 256, 56, 56), _reduction("ReduceMean", 2, 3)),
    Operator("argmax-rows", (1024, 1024), _largest_place),
    Operator("transpose-matrix", (2048, 2048), _transpose(1, 0)),
    Operator("transpose-heads", (4, 512, 12, 64), _transpose(0, 2, 1, 3)),
    Operator("transpose-batched", (16, 512, 256), _transpose(0, 2, 1)),
    Operator("transpose-channels-last", (1, 64, 112, 112), _transpose(0, 2, 3, 1)),
    Operator("concat", (1024, 512), _concatenation, 3),
)
