"""Random graphs through all graph passes: bit for bit where no expansion changes the rounding."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import BasicOp
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.simplify.canonicalize_ms import CanonicalizeMs
from msc.graph.simplify.fold_batch_norm import FoldBatchNorm
from msc.graph.simplify.sink_views import SinkViews
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph.weights.outline_constants import OutlineConstants
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.graph_kernel.order_kernels import OrderKernels
from msc.graph_kernel.rematerialize import Rematerialize
from tests.unit.graph_kernel.graphs import main_of, random_inputs, random_weights, read, results, run

Shape = tuple[int, ...]
UNARY = ("neg", "abs", "tanh", "sigmoid", "relu", "gelu", "softsign", "identity", "square")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
CONSTANTS = ("1.0", "-0.0", "0.0", "0.5", "2.0", "-3.0")


@dataclass
class Graph:
    """A function under construction: values by name with their shapes, and the lines that compute them."""

    draw: st.DrawFn
    values: list[tuple[str, Shape]] = field(default_factory=lambda: [("x0", (4, 6)), ("x1", (4, 6)), ("x2", (6,))])
    lines: list[str] = field(default_factory=list[str])
    parameters: list[str] = field(default_factory=list[str])

    def pick(self, rank: int | None = None) -> tuple[str, Shape]:
        fitting = [v for v in self.values if rank is None or len(v[1]) == rank]
        return fitting[self.draw(st.integers(max(0, len(fitting) - 6), len(fitting) - 1))]

    def emit(self, text: str, shape: Shape) -> None:
        name = f"v{len(self.values)}"
        self.lines.append(f"%{name} = ms.{text}")
        self.values.append((name, shape))

    def choose(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def unary(self) -> None:
        name, shape = self.pick()
        self.emit(f"{self.choose(*UNARY)} %{name}", shape)

    def binary(self) -> None:
        (a, left), (b, right) = self.pick(), self.pick()
        try:
            shape = np.broadcast_shapes(left, right)
        except ValueError:
            return
        self.emit(f"{self.choose(*BINARY)} %{a}, %{b}", shape)

    def scaled(self) -> None:
        name, shape = self.pick()
        self.emit(f"constant dense<{self.choose(*CONSTANTS)}> : tensor<f32>", ())
        self.emit(f"{self.choose(*BINARY, 'div')} %{name}, %{self.values[-1][0]}", shape)

    def rows(self) -> None:
        name, shape = self.pick(2)
        axis = self.draw(st.integers(0, 1))
        kind = self.choose("softmax", "reduce_max", "reduce_sum", "reduce_mean", "kept")
        if kind == "softmax":
            self.emit(f"softmax %{name} {{axis = {axis}}}", shape)
        elif kind == "kept":
            self.emit(
                f"reduce_sum %{name} {{axis = [{axis}], keep_dims = true}}",
                tuple(1 if i == axis else n for i, n in enumerate(shape)),
            )
        else:
            self.emit(f"{kind} %{name} {{axis = [{axis}]}}", (shape[1 - axis],))

    def dense(self) -> None:
        name, shape = self.pick(2)
        outputs = self.draw(st.integers(1, 6))
        parameter = f"p{len(self.parameters)}"
        self.parameters.append(f"ms.parameter @{parameter} : tensor<{outputs}x{shape[1]}xf32>")
        self.lines.append(f"%{parameter} = ms.get_parameter @{parameter} : tensor<{outputs}x{shape[1]}xf32>")
        self.emit(f"dense %{name}, %{parameter}", (shape[0], outputs))

    def moved(self) -> None:
        name, (rows, columns) = self.pick(2)
        kind = self.choose("transpose", "reshape", "pad", "concat", "slice", "reverse")
        texts = {
            "transpose": (f"transpose %{name}", (columns, rows)),
            "reshape": (f"reshape %{name} {{shape = [{columns}, {rows}]}}", (columns, rows)),
            "pad": (f"pad %{name} {{pad = [0, 1, 0, 0]}}", (rows, columns + 1)),
            "concat": (f"concat %{name}, %{name} {{axis = 0}}", (2 * rows, columns)),
            "slice": (
                f"slice %{name} {{begin = [0, 0], end = [{max(rows - 1, 1)}, 9]}}",
                (max(rows - 1, 1), min(columns, 9)),
            ),
            "reverse": (f"reverse %{name} {{axis = [1]}}", (rows, columns)),
        }
        self.emit(*texts[kind])

    def text(self) -> str:
        (last, _), (also, _) = self.values[-1], self.pick()
        body = "\n".join(self.lines)
        outputs = f"%{last}, %{also}"
        kinds = ", ".join("tensor<" + "".join(f"{n}x" for n in dict(self.values)[v]) + "f32>" for v in (last, also))
        arguments = "%x0: tensor<4x6xf32>, %x1: tensor<4x6xf32>, %x2: tensor<6xf32>"
        parameters = "\n".join(self.parameters)
        return (
            f"{parameters}\nfunc.func @main({arguments}) -> ({kinds}) {{\n{body}\nfunc.return {outputs} : {kinds}\n}}"
        )


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """The text of a function of up to 14 operations."""
    graph = Graph(draw)
    steps = (graph.unary, graph.binary, graph.scaled, graph.rows, graph.dense, graph.moved)
    for _ in range(draw(st.integers(1, 14))):
        draw(st.sampled_from(steps))()
        if len(graph.values[-1][1]) > 0 and np.prod(graph.values[-1][1]) > 200:
            break
    return graph.text()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs())
def test_passes_keep_what_a_graph_computes(text: str) -> None:
    module = read(text)
    inputs, weights = random_inputs(module), random_weights(module)
    original = results(module, inputs, weights)
    simplified = run(module, CanonicalizeMs())
    for expected, actual in zip(original, results(simplified, inputs, weights), strict=True):
        np.testing.assert_array_equal(actual, expected)
    expanded = run(simplified, FoldBatchNorm(), ExpandComposites())
    reference = results(expanded, inputs, weights)
    for expected, actual in zip(original, reference, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    clean = (CanonicalizeMs(), SinkViews(), CommonSubexpressionElimination(), DeadCodeElimination())
    kernels = (ClusterKernels(), Rematerialize(), OrderKernels())
    final = run(expanded, *clean, HoistParameters(), OutlineConstants(), *kernels)
    for expected, actual in zip(reference, results(final, inputs, weights), strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert not [op for op in main_of(final).body.block.ops if isinstance(op, BasicOp)]
    assert all(op.outputs for op in final.walk() if isinstance(op, KernelOp))
