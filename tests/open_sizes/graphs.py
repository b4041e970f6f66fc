"""Random ONNX graphs whose sizes are expressions over open ones: each operator knows which tensors it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET = 18


@dataclass(frozen=True)
class Dim:
    """A size: `constant + n * N + m * M`."""

    constant: int
    n: int = 0
    m: int = 0

    def __add__(self, other: Dim) -> Dim:
        return Dim(self.constant + other.constant, self.n + other.n, self.m + other.m)

    def times(self, factor: int) -> Dim:
        """The size `factor` times."""
        return Dim(self.constant * factor, self.n * factor, self.m * factor)

    @property
    def is_open(self) -> bool:
        """Whether a call decides it."""
        return (self.n, self.m) != (0, 0)

    def at(self, sizes: Mapping[str, int]) -> int:
        """Its value."""
        return self.constant + self.n * sizes["n"] + self.m * sizes["m"]


Shape: TypeAlias = tuple[Dim, ...]
N, M = Dim(0, 1), Dim(0, 0, 1)
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclass(frozen=True)
class Tensor:
    """A value of the graph."""

    name: str
    shape: Shape
    kind: int = FLOAT

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclass
class Graph:
    """A graph that grows."""

    random: Random
    least: Mapping[str, int]
    """The least sizes, at which every tensor must exist."""
    inputs: list[Tensor] = field(default_factory=list[Tensor])
    values: list[Tensor] = field(default_factory=list[Tensor])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: list[TensorProto] = field(default_factory=list[TensorProto])
    used: set[str] = field(default_factory=set[str])

    def emit(self, operator: str, inputs: Sequence[str], shape: Shape, kind: int = FLOAT, **attributes: Any) -> Tensor:
        """A node of one output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"{operator}_{name}", **attributes))
        self.used.update(inputs)
        self.values.append(Tensor(name, shape, kind))
        return self.values[-1]

    def input(self, shape: Shape) -> Tensor:
        """One more input."""
        self.inputs.append(Tensor(f"x{len(self.inputs)}", shape))
        self.values.append(self.inputs[-1])
        return self.inputs[-1]

    def constant(self, values: object, kind: type[np.generic] = np.int64) -> str:
        """The name of a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def weight(self, *shape: int) -> str:
        """The name of a constant of seeded numbers."""
        numbers = np.random.default_rng(len(self.constants)).uniform(-1, 1, shape)
        return self.constant(numbers, np.float32)

    def pick(self, suits: Callable[[Tensor], bool]) -> Tensor | None:
        """One of the values that suit, a late one rather."""
        found = [value for value in self.values if suits(value)]
        return self.random.choice(found[-4:]) if found else None

    def axis(self, x: Tensor) -> int:
        """An axis, an open one rather."""
        opened = [axis for axis, size in enumerate(x.shape) if size.is_open]
        return self.random.choice(opened if opened and self.random.random() < 0.7 else range(x.rank))

    def least_of(self, size: Dim) -> int:
        """The least value of a size."""
        return size.at(self.least)


def is_float(x: Tensor) -> bool:
    """Whether a tensor is of numbers that most operators take, and small enough."""
    return x.kind == FLOAT and x.rank <= 4


def with_axes(x: Tensor) -> bool:
    """Whether a float tensor has dimensions."""
    return is_float(x) and x.rank >= 1


def changed(shape: Shape, axis: int, size: Dim) -> Shape:
    """A shape with another size along an axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def random_graph(seed: int, operators: Sequence[Callable[[Graph], object]], nodes: int) -> Graph:
    """A graph of some nodes on one or two inputs of open sizes."""
    random = Random(seed)
    graph = Graph(random, {"n": 1, "m": 1})
    for number in range(random.choice((1, 1, 2))):
        shape = _input_shape(random)
        graph.inputs.append(Tensor(f"x{number}", shape))
    if not any(size.is_open for x in graph.inputs for size in x.shape):
        first = graph.inputs[0]
        graph.inputs[0] = Tensor(first.name, changed(first.shape, random.randrange(first.rank), N))
    graph.values += graph.inputs
    while len(graph.nodes) < nodes:
        random.choice(operators)(graph)
    return graph


def _input_shape(random: Random) -> Shape:
    """Of rank 1 to 4, with the common sizes 1 to 6 and open ones."""
    rank = random.choice((1, 2, 2, 3, 3, 4))
    return tuple(random.choice((N, N, M, *(Dim(k) for k in (1, 2, 3, 4, 6)))) for _ in range(rank))


def model_of(graph: Graph) -> ModelProto:
    """The model: what nothing reads is an output."""
    names = {"n": N, "m": M}
    infos = [
        helper.make_tensor_value_info(
            x.name, x.kind, [next((k for k, d in names.items() if d == size), size.constant) for size in x.shape]
        )
        for x in graph.inputs
    ]
    outputs = [v for v in graph.values if v.name not in graph.used and v not in graph.inputs] or graph.values[-1:]
    results = [
        helper.make_empty_tensor_value_info(v.name)
        if v.kind < 0
        else helper.make_tensor_value_info(v.name, v.kind, [None] * v.rank)
        for v in outputs
    ]
    made = helper.make_graph(graph.nodes, "open", infos, results, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def arrays_of(graph: Graph, sizes: Mapping[str, int], seed: int) -> dict[str, NDArray[np.float32]]:
    """Inputs of these sizes."""
    rng = np.random.default_rng(seed)
    return {x.name: rng.standard_normal([d.at(sizes) for d in x.shape]).astype(np.float32) for x in graph.inputs}
