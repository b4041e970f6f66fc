"""Graphs from text for the tests of graph passes, and running them through passes and the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor
from xdsl.passes import ModulePass

from msc.dialects.gk import GK
from msc.dialects.ms import MS
from msc.dialects.ms.structure import ParameterOp
from msc.dialects.ms.target import TargetAttr, set_target
from msc.interp import evaluate
from msc.interp.inputs import arguments, declared
from msc.ir.reading import parse_module
from msc.ir.verification import dominance_violations

Array = NDArray[Any]


def context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Func, Scf, Arith, Tensor, MS, GK):
        ctx.load_dialect(dialect)
    return ctx


def read(text: str) -> ModuleOp:
    module = parse_module(context(), text, "test.mir")
    module.verify()
    return module


def function(arguments_: str, body: str, parameters: str = "") -> ModuleOp:
    """A module with one function of a body that ends with `%y = ...` lines; returns %y, whose type is inferred."""
    head = f"builtin.module {{\n{parameters}\nfunc.func @main({arguments_}) -> "
    probe = head + "() {\n" + body + "\nfunc.return\n}\n}"
    (main,) = (op for op in parse_module(context(), probe, "test.mir").ops if op.name == "func.func")
    result = next(op for op in reversed(list(main.walk())) if op.results).results[0].type
    return read(head + f"{result} {{\n{body}\nfunc.return %y : {result}\n}}\n}}")


def for_machine(module: ModuleOp, machine: str, threads: int = 1) -> ModuleOp:
    """A module that says what it is compiled for."""
    set_target(module, TargetAttr.of("cpu", machine, threads))
    return module


def run(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    """A copy of the module after passes, verified after each."""
    copy = module.clone()
    for pass_ in passes:
        pass_.apply(context(), copy)
        copy.verify()
        assert not list(dominance_violations(copy))
    return read(str(copy))


def main_of(module: ModuleOp) -> Any:
    return next(op for op in module.ops if op.name == "func.func")


def random_inputs(module: ModuleOp, seed: int = 0) -> list[Array]:
    """Normal floats, small integers, for every argument of the entry function."""
    rng = np.random.default_rng(seed)
    expected = [declared(*argument) for argument in arguments(main_of(module))]
    return [_random(d.dtype, d.shape, rng) for d in expected]


def _random(dtype: Any, shape: Sequence[int], rng: np.random.Generator) -> Array:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 20, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype) * 2 if np.dtype(dtype).kind != "b" else rng.random(shape) < 0.5


def results(module: ModuleOp, inputs: Sequence[Array], weights: dict[str, Array] | None = None) -> tuple[Array, ...]:
    return evaluate(module, inputs, weights or {})


def random_weights(module: ModuleOp, seed: int = 7) -> dict[str, Array]:
    """Values for all parameters that are not derived; positive, so that they serve as variances."""
    rng = np.random.default_rng(seed)
    stored = [op for op in module.ops if isinstance(op, ParameterOp) and op.initialiser is None]
    return {op.symbol: rng.random(op.type.get_shape(), np.float32) + 0.5 for op in stored}
