"""Gradients of single operations beside central differences, in f64."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from msc.driver.passes.registry import new_context
from msc.graph.autodiff.grad import Grad
from msc.interp import evaluate
from tests.unit.compiled.programs import Case, parsed, program_text

Array: TypeAlias = NDArray[Any]

STEP = 1e-6
POSITIVE = re.compile(r"ms\.(log|sqrt|rsqrt|pow|xlogy|reciprocal|batch_norm|div|floor_div|rem|mod)\b")
WITHIN_ONE = re.compile(r"ms\.(asin|acos|atanh|log1p)\b")
CHANCES = re.compile(r"ms\.(logit|binary_cross_entropy)\b")
ABOVE_ONE = re.compile(r"ms\.acosh\b")


def module_of(case: Case) -> ModuleOp:
    """The program of a case with its floats in f64."""
    operation, types = case
    wide = re.sub(r"\b(f16|bf16|f32)\b", "f64", operation)
    return parsed(program_text([(wide, re.sub(r"(f16|bf16|f32)", "f64", types))]))


def differentiated(module: ModuleOp, **options: Any) -> ModuleOp:
    """The module after the pass `grad`."""
    made = module.clone()
    Grad(**options).apply(new_context(), made)
    made.verify()
    return made


def inputs_of(case: Case, rng: np.random.Generator) -> list[Array]:
    """Operands inside the domain of an operation, with no two elements equal; indices within every axis of a case."""
    operation, types = case
    found: list[Array] = []
    for type_ in types.split():
        *sizes, dtype = type_.split("x")
        shape = tuple(map(int, sizes))
        if dtype.startswith(("i", "ui")):
            found.append(np.asarray(rng.integers(0, 2, shape)).astype(np.bool_ if dtype == "i1" else numpy_name(dtype)))
            continue
        value = rng.permutation(np.linspace(-1.7, 1.9, int(np.prod(shape)) or 1))[: int(np.prod(shape))].reshape(shape)
        if POSITIVE.search(operation):
            value = np.abs(value) + 0.3
        if WITHIN_ONE.search(operation):
            value = value / 2.1
        if CHANCES.search(operation):
            value = (value + 2) / 4
        if ABOVE_ONE.search(operation):
            value = np.abs(value) + 1.2
        found.append(np.asarray(value + rng.uniform(-1e-3, 1e-3, shape)))
    return found


def numpy_name(dtype: str) -> str:
    return ("u" if dtype.startswith("u") else "") + "int" + dtype.lstrip("ui")


def central_differences(module: ModuleOp, inputs: Sequence[Array], index: int, seeds: Sequence[Array]) -> Array:
    """The derivative of the sum of the results times seeds by the elements of one input."""
    found = np.zeros(inputs[index].shape)
    for place in np.ndindex(inputs[index].shape):
        ends: list[float] = []
        for step in (STEP, -STEP):
            moved = [a.copy() for a in inputs]
            moved[index][place] += step
            results = zip(evaluate(module, moved, {}), seeds, strict=True)
            ends.append(sum(float((r * s)[np.isfinite(r)].sum()) for r, s in results))
        found[place] = (ends[0] - ends[1]) / (2 * STEP)
    return found
