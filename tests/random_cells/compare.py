"""Runs a generated Cell in every way and compares."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import Any

import numpy as np

import msc
from msc import Parameter, Tensor, nn, ops
from tests.random_cells.generator import Program
from tests.random_cells.reference import Array, Cell, Functions

CHILD = """
class Child(Cell):
    def __init__(self, weight):
        super().__init__()
        self.bias = weight

    def construct(self, x):
        if x.max() > 8:
            return x * 0.5
        return x + self.bias
"""


@dataclass
class Difference(Exception):
    """Two ways of running a Cell differ."""

    seed: int
    way: str
    message: str
    source: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.way}: {self.message}\n{self.source}"


def inputs(seed: int) -> list[tuple[Any, Any, Any]]:
    """Arguments, so chosen that conditions come out in several ways."""
    source = np.random.default_rng(seed)
    found: list[tuple[Any, Any, Any]] = []
    for n in (3, 0, 1):
        x, y = (source.integers(-12, 13, (2, 3)).astype(np.float32) / 2 for _ in range(2))
        found.append((x, y, np.array(n, np.int64)))
    return found


def made(text: str, name: str, scope: dict[str, Any], wrap: Any) -> Any:
    """The Cell that a source defines."""
    source = CHILD + text
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), scope)
    weight = np.array([[1.0, -2.0, 0.5], [2.0, 0.0, -1.0]], np.float32)
    return scope["Net"](wrap(weight), scope["Child"](wrap(-weight)))


def check(seed: int, *, backend: str = "interpreter") -> str:
    """Compare the ways to run the Cell of a seed; what became of its graph. Raises Difference."""
    text = Program(seed).text
    name = f"<random cell {seed}>"
    plain = made(text, name, {"Cell": Cell, "ops": Functions}, Array)
    eager = made(text, name, {"Cell": nn.Cell, "ops": ops}, lambda w: Parameter(w, name="weight"))
    compiled = msc.jit(eager, backend=backend)
    for arguments in (*inputs(seed), inputs(seed)[0]):
        wanted = plain(*map(Array, arguments))
        for way, run in (("PyNative", eager), ("graph", compiled)):
            try:
                agree(wanted, run(*map(Tensor, arguments)))
            except (AssertionError, AttributeError, TypeError, ValueError, RuntimeError) as error:
                raise Difference(seed, way, f"{type(error).__name__}: {error}", text) from error
    return msc.jit.explain(compiled)


def agree(a: Any, b: Any) -> None:
    """Check that a result in NumPy and one of msc are the same."""
    if isinstance(a, Array):
        value = b.asnumpy() if isinstance(b, Tensor) else np.asarray(b)
        assert value.shape == a.value.shape, f"{value.shape} for {a.value.shape}"
        np.testing.assert_allclose(value, a.value, rtol=1e-5, atol=1e-5)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        agree(list(a.values()), list(b.values()))
    elif isinstance(a, list | tuple):
        assert type(a) is type(b)
        assert len(a) == len(b), f"{len(b)} items for {len(a)}"
        for p, q in zip(a, b, strict=True):
            agree(p, q)
    else:
        assert type(a) is type(b), f"a {type(b).__name__} for a {type(a).__name__}"
        assert a == b, f"{b} for {a}"
