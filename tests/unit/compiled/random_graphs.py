"""Random graphs of odd shapes: what the operations of one kernel, and kernels among each other, do to each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from hypothesis import strategies as st

Shape: TypeAlias = tuple[int, ...]
SIZES = (1, 2, 3, 5, 7, 8, 9, 16, 17, 33)
MOST_ELEMENTS = 3000
UNARY = ("neg", "abs", "tanh", "sigmoid", "relu", "gelu", "softsign", "silu", "hard_swish", "identity")
BINARY = ("add", "sub", "mul", "maximum", "minimum")


@dataclass(frozen=True)
class Node:
    """A value: `exact` if rounding has no part in it, so that comparisons of it have one answer."""

    name: str
    shape: Shape
    dtype: str = "f32"
    exact: bool = True

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{self.dtype}>"


@dataclass
class Graph:
    """A function under construction."""

    draw: st.DrawFn
    number: int
    nodes: list[Node] = field(default_factory=list[Node])
    inputs: list[Node] = field(default_factory=list[Node])
    lines: list[str] = field(default_factory=list[str])

    def input(self, shape: Shape, dtype: str = "f32") -> Node:
        node = Node(f"%x{self.number}_{len(self.inputs)}", shape, dtype)
        self.inputs.append(node)
        return node

    def emit(self, text: str, shape: Shape, dtype: str = "f32", exact: bool = False) -> None:
        if math.prod(shape) <= MOST_ELEMENTS:
            self.nodes.append(Node(f"%v{self.number}_{len(self.lines)}", shape, dtype, exact))
            self.lines.append(f"{self.nodes[-1].name} = ms.{text}")

    def pick(self, rank: int | None = None, dtype: str = "f32", exact: bool = False) -> Node | None:
        """One of the latest values that fit."""
        fitting = [
            n
            for n in self.nodes
            if (rank is None or len(n.shape) == rank) and n.dtype == dtype and (n.exact or not exact)
        ]
        return self.draw(st.sampled_from(fitting[-4:])) if fitting else None

    def choose(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def size(self) -> int:
        return self.draw(st.sampled_from(SIZES))

    def unary(self) -> None:
        if (x := self.pick()) is not None:
            name = self.choose(*UNARY)
            self.emit(f"{name} {x.name}", x.shape, exact=x.exact and name in ("neg", "abs", "relu", "identity"))

    def binary(self) -> None:
        x, y = self.pick(), self.pick()
        if x is None or y is None:
            return
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            y, shape = self.input(tuple(n if self.draw(st.booleans()) else 1 for n in x.shape)), x.shape
        self.emit(f"{self.choose(*BINARY)} {x.name}, {y.name}", shape)

    def axes(self, shape: Shape) -> list[int]:
        count = self.draw(st.integers(1, len(shape)))
        return sorted(self.draw(st.permutations(range(len(shape))))[:count])

    def reduce(self) -> None:
        x = self.pick()
        if x is None or not x.shape:
            return
        axes, keep = self.axes(x.shape), self.draw(st.booleans())
        kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        shape = kept if keep else tuple(n for i, n in enumerate(x.shape) if i not in axes)
        name = self.choose("sum", "max", "min", "mean")
        keep_text = ", keep_dims = true" if keep else ""
        self.emit(
            f"reduce_{name} {x.name} {{axis = {axes}{keep_text}}}", shape, exact=x.exact and name in ("max", "min")
        )

    def normalise(self) -> None:
        x = self.pick()
        if x is not None and x.shape:
            axis = self.draw(st.integers(0, len(x.shape) - 1))
            self.emit(f"{self.choose('softmax', 'log_softmax', 'cumsum')} {x.name} {{axis = {axis}}}", x.shape)

    def matmul(self) -> None:
        if (x := self.pick(2)) is not None:
            columns = self.size()
            y = self.input((columns, x.shape[1]))
            self.emit(f"matmul {x.name}, {y.name} {{transpose_b = true}}", (x.shape[0], columns))

    def batch_matmul(self) -> None:
        if (x := self.pick(3)) is not None:
            y = self.input((x.shape[0], x.shape[2], self.size()))
            self.emit(f"batch_matmul {x.name}, {y.name}", (*x.shape[:2], y.shape[2]))

    def conv(self) -> None:
        x = self.pick(4)
        if x is None:
            return
        n, c, h, w = x.shape
        kh, kw = min(h, self.draw(st.integers(1, 3))), min(w, self.draw(st.integers(1, 3)))
        channels, stride = self.draw(st.integers(1, 5)), self.draw(st.integers(1, 2))
        weight, bias = self.input((channels, c, kh, kw)), self.input((channels,))
        same = self.draw(st.booleans())
        spatial = (-(-h // stride), -(-w // stride)) if same else ((h - kh) // stride + 1, (w - kw) // stride + 1)
        mode = "same" if same else "valid"
        self.emit(
            f'conv2d {x.name}, {weight.name}, {bias.name} {{pad_mode = "{mode}", stride = [{stride}, {stride}]}}',
            (n, channels, *spatial),
        )

    def pool(self) -> None:
        x = self.pick(4)
        if x is None:
            return
        n, c, h, w = x.shape
        kernel, stride = (min(h, 2), min(w, 3)), self.draw(st.integers(1, 2))
        spatial = ((h - kernel[0]) // stride + 1, (w - kernel[1]) // stride + 1)
        kind = self.choose("max", "avg")
        self.emit(
            f"{kind}_pool2d {x.name} {{kernel_size = {list(kernel)}, stride = {stride}}}",
            (n, c, *spatial),
            exact=x.exact and kind == "max",
        )

    def transpose(self) -> None:
        if (x := self.pick()) is not None and x.shape:
            order = self.draw(st.permutations(range(len(x.shape))))
            self.emit(f"transpose {x.name} {{perm = {list(order)}}}", tuple(x.shape[i] for i in order), exact=x.exact)

    def reshape(self) -> None:
        if (x := self.pick()) is not None:
            total = math.prod(x.shape)
            split = self.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0][:12])) if total else 1
            shape = self.draw(st.sampled_from([(total,), (split, total // split), (1, split, 1, total // split)]))
            self.emit(f"reshape {x.name} {{shape = {list(shape)}}}", shape, exact=x.exact)

    def moved(self) -> None:
        x = self.pick()
        if x is None or not x.shape:
            return
        axis, rank = self.draw(st.integers(0, len(x.shape) - 1)), len(x.shape)
        n = x.shape[axis]
        grown = {
            "pad": (n + 3, f"pad {x.name} {{pad = {_at(axis, 1, rank) + _at(axis, 2, rank)}}}"),
            "reverse": (n, f"reverse {x.name} {{axis = [{axis}]}}"),
            "tile": (2 * n, f"tile {x.name} {{multiples = {_at(axis, 2, rank, 1)}}}"),
            "concat": (2 * n, f"concat {x.name}, {x.name} {{axis = {axis}}}"),
            "slice": (
                (n + 1) // 2,
                f"slice {x.name} {{begin = {[0] * rank}, end = {list(x.shape)}, strides = {_at(axis, 2, rank, 1)}}}",
            ),
        }
        size, text = grown[self.choose(*grown)]
        self.emit(text, (*x.shape[:axis], size, *x.shape[axis + 1 :]), exact=x.exact)

    def chosen(self) -> None:
        """A comparison of exact values, and a selection by it."""
        if (x := self.pick(exact=True)) is not None and (y := self.pick()) is not None and len(y.shape) <= len(x.shape):
            limit = self.input(())
            self.emit(f"{self.choose('less', 'greater_equal')} {x.name}, {limit.name}", x.shape, "i1", True)
            if self.nodes[-1].dtype == "i1":
                self.emit(f"select {self.nodes[-1].name}, {x.name}, {limit.name}", x.shape, exact=True)

    def gathered(self) -> None:
        if (x := self.pick()) is not None and x.shape:
            axis = self.draw(st.integers(0, len(x.shape) - 1))
            places = self.input((self.size(),), "i32")
            shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
            self.emit(f"gather {x.name}, {places.name} {{axis = {axis}}}", shape, exact=x.exact)

    def place(self) -> None:
        if (x := self.pick(exact=True)) is not None and x.shape:
            axis = self.draw(st.integers(0, len(x.shape) - 1))
            shape = (*x.shape[:axis], *x.shape[axis + 1 :])
            self.emit(f"arg{self.choose('max', 'min')} {x.name} {{axis = {axis}}}", shape, "i64", True)


def _at(axis: int, value: int, rank: int, others: int = 0) -> list[int]:
    return [value if i == axis else others for i in range(rank)]


STEPS = (
    "unary unary binary binary reduce reduce normalise matmul batch_matmul conv pool transpose reshape moved moved "
    "chosen gathered place"
).split()


@st.composite
def graphs(draw: st.DrawFn, number: int) -> Graph:
    """A graph of up to ten operations on inputs of rank up to four."""
    graph = Graph(draw, number)
    for _ in range(2):
        rank = draw(st.integers(1, 4))
        shape: Shape = ()
        for _ in range(rank):
            size = draw(st.sampled_from(SIZES))
            shape = (*shape, size if math.prod(shape) * size <= MOST_ELEMENTS // 2 else 1)
        graph.nodes.append(graph.input(shape))
    for _ in range(draw(st.integers(1, 10))):
        getattr(graph, draw(st.sampled_from(STEPS)))()
    return graph


@st.composite
def programs(draw: st.DrawFn, count: int = 4) -> str:
    """A module with several graphs side by side: one build serves them all. Results: the last values, and one more."""
    made = [draw(graphs(number)) for number in range(count)]
    outputs = [n for g in made for n in dict.fromkeys((*g.nodes[-2:], draw(st.sampled_from(g.nodes))))]
    arguments = ", ".join(f"{x.name}: {x.type}" for g in made for x in g.inputs)
    types = ", ".join(n.type for n in outputs)
    body = "\n".join(line for g in made for line in g.lines)
    returned = ", ".join(n.name for n in outputs)
    return f"func.func @main({arguments}) -> ({types}) {{\n{body}\nfunc.return {returned} : {types}\n}}"
