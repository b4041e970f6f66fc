"""Random functions of a few operators that become one kernel or several, and their results on the simulator."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from msc.dialects.arrays import Array, numpy_dtype
from msc.driver.compile import compile_model, generate
from msc.driver.options import CompileOptions
from msc.interp import evaluate
from msc.runtime.program import TensorSpec

MACHINES = ("ascend910b1", "ascend910b1", "ascend950pr", "ascend910a")
_FLOATS = ("f32", "f32", "f16", "bf16")
_UNARY = ("neg", "abs", "exp", "tanh", "sigmoid", "relu", "gelu", "square")
_BINARY = ("add", "sub", "mul", "maximum", "minimum")
_SIZES = st.sampled_from((1, 2, 3, 5, 8, 16, 17, 33, 64, 70, 129, 300))


@dataclass
class Kernel:
    """A function under construction: values by name with their shapes, all of one element type."""

    draw: st.DrawFn
    dtype: str
    machine: str
    values: list[tuple[str, tuple[int, ...]]] = field(default_factory=list[tuple[str, tuple[int, ...]]])
    lines: list[str] = field(default_factory=list[str])
    inputs: int = 0

    def choose(self, *options: str) -> str:
        """One of some words."""
        return self.draw(st.sampled_from(options))

    def pick(self) -> tuple[str, tuple[int, ...]]:
        """A value, a late one more often."""
        return self.values[self.draw(st.integers(max(0, len(self.values) - 3), len(self.values) - 1))]

    def emit(self, text: str, shape: tuple[int, ...]) -> None:
        """One more operation."""
        name = f"v{len(self.values)}"
        self.lines.append(f"  %{name} = ms.{text}")
        self.values.append((name, shape))

    def unary(self) -> None:
        """An element-wise operator."""
        name, shape = self.pick()
        self.emit(f"{self.choose(*_UNARY)} %{name}", shape)

    def binary(self) -> None:
        """Two operands, one of which may be broadcast."""
        (a, left), (b, right) = self.pick(), self.values[self.draw(st.integers(0, len(self.values) - 1))]
        try:
            shape = np.broadcast_shapes(left, right)
        except ValueError:
            return
        self.emit(f"{self.choose(*_BINARY)} %{a}, %{b}", shape)

    def rows(self) -> None:
        """A reduction, or what consists of several."""
        name, shape = self.pick()
        if not shape:
            return
        axis = self.draw(st.integers(0, len(shape) - 1))
        kind = self.choose("softmax", "reduce_max", "reduce_mean", "reduce_sum", "kept")
        if kind == "softmax":
            self.emit(f"softmax %{name} {{axis = {axis}}}", shape)
        elif kind == "kept":
            kept = tuple(1 if k == axis else n for k, n in enumerate(shape))
            self.emit(f"reduce_sum %{name} {{axis = [{axis}], keep_dims = true}}", kept)
        else:
            self.emit(f"{kind} %{name} {{axis = [{axis}]}}", shape[:axis] + shape[axis + 1 :])

    def moved(self) -> None:
        """A transposition or a slice."""
        name, shape = self.pick()
        if len(shape) < 2:
            return
        if self.draw(st.booleans()):
            perm = self.draw(st.permutations(range(len(shape))))
            self.emit(f"transpose %{name} {{perm = {list(perm)}}}", tuple(shape[k] for k in perm))
        else:
            end = [max(1, n - 1) for n in shape]
            self.emit(f"slice %{name} {{begin = {[0] * len(shape)}, end = {end}}}", tuple(end))

    def type_of(self, shape: tuple[int, ...]) -> str:
        """The type of a value."""
        return "tensor<" + "".join(f"{n}x" for n in shape) + f"{self.dtype}>"

    def text(self) -> str:
        """The function; it returns its last value."""
        last, shape = self.values[-1]
        arguments = ", ".join(f"%{name}: {self.type_of(s)}" for name, s in self.values[: self.inputs])
        body = "\n".join(self.lines)
        result = self.type_of(shape)
        return f"func.func @main({arguments}) -> {result} {{\n{body}\n  func.return %{last} : {result}\n}}\n"


@st.composite
def kernels(draw: st.DrawFn) -> tuple[str, str]:
    """A machine, and the text of a function of one to six operators."""
    kernel = Kernel(draw, draw(st.sampled_from(_FLOATS)), draw(st.sampled_from(MACHINES)))
    shape = tuple(draw(st.lists(_SIZES, min_size=1, max_size=3)))
    shape = shape if np.prod(shape) <= 40000 else shape[:1]
    kernel.values = [("x", shape), ("y", shape), ("row", shape[-1:]), ("column", (*shape[:-1], 1))]
    kernel.inputs = len(kernel.values)
    for _ in range(draw(st.integers(1, 6))):
        draw(st.sampled_from((kernel.unary, kernel.binary, kernel.rows, kernel.moved)))()
    if not kernel.lines:
        kernel.unary()
    return kernel.machine, kernel.text()


def check(machine: str, text: str) -> None:
    """Raise AssertionError where the simulated cores compute something else than the interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.mir"
        path.write_text(text, "utf-8")
        options = CompileOptions(target=machine)
        graph = compile_model(str(path), options, "graph").module
        compilation = compile_model(str(path), options)
        program = generate(compilation)
        random = np.random.default_rng(0)
        inputs = {tensor.name: _numbers(random, tensor) for tensor in program.signature.inputs}
        found = options.backend.load(program, compilation.parameters()).results(**inputs)
        expected = evaluate(graph, list(inputs.values()), {})
    for got, wanted in zip(found, expected, strict=True):
        _agree(got, wanted)


def _numbers(random: np.random.Generator, tensor: TensorSpec) -> Array:
    return random.standard_normal(tensor.shape).astype(numpy_dtype(tensor.dtype))


def _agree(found: Array, expected: Array) -> None:
    bound = {2: 5e-2, 4: 1e-4}[expected.dtype.itemsize]
    wanted = expected.astype(np.float64)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=bound, atol=bound * largest)
