"""Fixtures: one operation on arrays, and modules from text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp, TensorType
from xdsl.dialects.func import Func
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor
from xdsl.dialects.vector import Vector
from xdsl.ir import Block

from msc.dialects.arrays import Array, dtype_text, fits
from msc.dialects.element_types import element_type
from msc.dialects.gk import GK
from msc.dialects.loop import LOOP
from msc.dialects.ms import MS
from msc.dialects.ms.base import MsOp
from msc.interp import evaluate_op
from msc.ir.reading import parse_module


class Run(Protocol):
    """Call an operation, by name, on arrays; the result's type is checked."""

    def __call__(self, name: str, *arrays: Array, **properties: Any) -> Array: ...


def run_all(name: str, *arrays: Array, **properties: Any) -> tuple[Array, ...]:
    types = [TensorType(element_type(dtype_text(a.dtype)), a.shape) for a in arrays]
    constructor = cast(type[MsOp], next(op for op in MS.operations if op.name == f"ms.{name}"))
    op = constructor(*Block(arg_types=types).args, **properties)
    op.verify()
    results = evaluate_op(op, *arrays)
    assert all(fits(result, op.result_tensor(i)) for i, result in enumerate(results))
    return results


@pytest.fixture
def run() -> Run:
    return lambda name, *arrays, **properties: run_all(name, *arrays, **properties)[0]


@pytest.fixture
def run_several() -> Callable[..., tuple[Array, ...]]:
    return run_all


@pytest.fixture
def module_of() -> Callable[[str], ModuleOp]:
    def parse(text: str) -> ModuleOp:
        context = Context()
        for dialect in (Builtin, Func, MS, GK, LOOP, Arith, Math, MemRef, Scf, Tensor, Vector):
            context.load_dialect(dialect)
        module = parse_module(context, text, "test.mir")
        module.verify()
        return module

    return parse
