"""Differentiates a generated Cell in every way and compares."""

# PyTorch has no types here, and values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import msc
from msc import Parameter, Tensor, nn, ops
from msc.dialects.arrays import Array
from tests.random_cells.compare import Difference, inputs, made
from tests.random_cells.reference import Cell
from tests.random_gradients.generator import DifferentiableProgram
from tests.random_gradients.reference import TorchArray, TorchFunctions, tensors, torch

TOLERANCE = 1e-9
"""Of f64, relative to the largest element of a gradient or 1."""

_FAILURES = (AssertionError, AttributeError, KeyError, TypeError, ValueError, RuntimeError, msc.MscError)
"""What a run that is wrong raises."""


def check(seed: int, *, backend: str = "interpreter", dtype: Any = np.float64) -> str:
    """Compare the gradients of the Cell of a seed by inputs and weights; "", or why it says nothing. Raises Difference.

    `dtype` is that of inputs and weights. A Cell whose gradients are not the same in f32 and f64 says nothing.
    """
    text = DifferentiableProgram(seed).text
    name = f"<random gradient {seed}>"
    eager = made(text, name, {"Cell": nn.Cell, "ops": ops}, lambda w: Parameter(Tensor(w.astype(dtype)), name="weight"))
    weights = [eager.weight, eager.child.bias]
    gradient = msc.grad(eager, (0, 1), weights)
    compiled = msc.jit(gradient, backend=backend)
    tolerance = TOLERANCE if dtype is np.float64 else 2e-4
    steady = 0
    for x, y, n in inputs(seed):
        wanted = reference(text, name, x, y, n, torch.float64)
        if wanted is None or not all(np.isfinite(w).all() for w in wanted):
            continue
        rough = reference(text, name, x, y, n, torch.float32)
        if rough is None or not _close(rough, wanted, 1e-3):
            continue
        steady += 1
        arguments = (Tensor(x.astype(dtype)), Tensor(y.astype(dtype)), Tensor(n))
        for way, run in (("PyNative", gradient), ("graph", compiled)):
            try:
                by_inputs, by_weights = run(*arguments)
                found = [g.asnumpy() for g in (*by_inputs, *by_weights)]
            except _FAILURES as error:
                raise Difference(seed, way, f"{type(error).__name__}: {error}", text) from error
            if not _close(found, wanted, tolerance):
                message = f"n = {n}\n{x}\n{y}\n" + "\n".join(f"{f}\n!= {w}" for f, w in zip(found, wanted, strict=True))
                raise Difference(seed, way, message, text)
    return "" if steady else "rounding decides, or nothing depends on inputs"


def reference(text: str, name: str, x: Any, y: Any, n: Any, dtype: Any) -> list[Array] | None:
    """PyTorch's gradients by x, y and both weights; None where the result has no derivative."""
    cell = made(
        text,
        name,
        {"Cell": Cell, "ops": TorchFunctions},
        lambda w: TorchArray(torch.tensor(w, dtype=dtype, requires_grad=True)),
    )
    variables = [torch.tensor(a, dtype=dtype, requires_grad=True) for a in (x, y)]
    weights = [cell.weight.value, cell.child.bias.value]
    results = tensors(cell(*map(TorchArray, variables), TorchArray(torch.tensor(n))))
    total = sum(result.sum() for result in results)
    if not getattr(total, "requires_grad", False):
        return None
    found = torch.autograd.grad(total, [*variables, *weights], allow_unused=True, materialize_grads=True)
    return [g.detach().numpy() for g in found]


def _close(found: Sequence[Array], wanted: Sequence[Array], tolerance: float) -> bool:
    return all(
        f.shape == w.shape and bool(np.max(np.abs(f - w)) <= tolerance * max(1.0, float(np.max(np.abs(w)))))
        for f, w in zip(found, wanted, strict=True)
    )
