"""What a function of the library gives at some arguments: its value and its derivatives, in either mode."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import msc
from msc import Tensor, nn, ops
from tests.special_gradients.cases import Case
from tests.special_gradients.inputs import INPUTS, Array

NAMES = "abcd"


def typed(cell: nn.Cell, *inputs: Tensor) -> Tensor:
    """What a cell with parameters gives, once these have the element type of the input."""
    for parameter in cell.get_parameters():
        parameter.content = parameter.asnumpy().astype(inputs[0].dtype.numpy)
    return cell(*inputs)


SCOPE = {"typed": typed, "ops": ops, "nn": nn, "mnp": importlib.import_module("msc.numpy"), "Tensor": Tensor}


@dataclass
class Derivatives:
    """A value, the gradients of its elements' weighted sum, and those of the gradients' weighted sum."""

    value: Array
    first: list[Array]
    second: list[Array] | None
    """None if the function has none in PyTorch."""


def arguments(case: Case, dtype: str) -> list[Array]:
    """The arrays of a case: floats of `dtype`, integers as they are."""
    arrays = [INPUTS[name.removeprefix("=")] for name in case.inputs]
    return [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]


def variables_of(case: Case) -> tuple[int, ...]:
    """The numbers of the arguments that are differentiated: the floats that are not marked as constants."""
    return tuple(k for k, n in enumerate(case.inputs) if n[0] != "=" and INPUTS[n].dtype.kind == "f")


def weights_like(shape: Sequence[int], which: int, dtype: Any) -> Array:
    """What each element counts: small numbers of both signs, none zero."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    return (((places * 7 + which * 3) % 11 - 4.5) / 4).astype(dtype)


def function_of(text: str, case: Case) -> Callable[..., Tensor]:
    """The function that a text of the library is, of all arguments of a case."""
    return eval(f"lambda {', '.join(NAMES[: len(case.inputs)])}: {text}", dict(SCOPE))


def derivatives(text: str, case: Case, dtype: str) -> Derivatives:
    """Those of a function of the library, in PyNative mode."""
    arrays = arguments(case, dtype)
    function, wanted = function_of(text, case), variables_of(case)
    tensors = [Tensor(a) for a in arrays]
    first = gradient_of(function, wanted)
    second = gradient_of(first, wanted)
    value = function(*tensors)
    found = [[g.asnumpy() for g in gradient(*tensors)] for gradient in (first, second)]
    return Derivatives(value.asnumpy(), *found)


def first_derivatives(text: str, case: Case, dtype: str) -> list[Array]:
    """The gradients alone."""
    tensors = map(Tensor, arguments(case, dtype))
    return [g.asnumpy() for g in gradient_of(function_of(text, case), variables_of(case))(*tensors)]


def gradient_of(function: Callable[..., Any], wanted: tuple[int, ...]) -> Callable[..., tuple[Tensor, ...]]:
    """The gradients of the weighted sum of a function's result, or results."""

    def total(*args: Tensor) -> Tensor:
        return weighted(function(*args))

    return msc.grad(total, wanted)


def weighted(results: Any) -> Tensor:
    """The sum of all elements of one or several results, each times its weight."""
    total: Any = 0.0
    for k, result in enumerate(results if isinstance(results, tuple) else (results,)):
        total = total + (result * Tensor(weights_like(result.shape, k, result.dtype.numpy))).sum()
    return total


def direction_error(text: str, case: Case, dtype: str, known: Derivatives) -> str | None:
    """What is wrong with `jvp` and `vjp`, which must agree with the gradients."""
    arrays = arguments(case, dtype)
    tensors, wanted = [Tensor(a) for a in arrays], variables_of(case)
    function = function_of(text, case)

    def of_variables(*values: Tensor) -> Tensor:
        given = list(tensors)
        for place, value in zip(wanted, values, strict=True):
            given[place] = value
        return function(*given)

    variables = [tensors[k] for k in wanted]
    value, pull_back = msc.vjp(of_variables, *variables)
    seed = Tensor(weights_like(value.shape, 0, value.dtype.numpy))
    pulled: Any = pull_back(seed)
    found = [p.asnumpy() for p in (pulled if isinstance(pulled, tuple) else (pulled,))]
    if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(found, known.first, strict=True)):
        return f"vjp gives {found}"
    directions = [weights_like(v.shape, 5, dtype) for v in variables]
    if not all(np.all(np.isfinite(g)) for g in known.first):
        return None
    tangent = msc.jvp(of_variables, tuple(variables), tuple(map(Tensor, directions)))[1]
    pushed = np.sum(tangent.asnumpy() * seed.asnumpy(), dtype=np.float64)
    terms = [np.asarray(g * d, np.float64) for g, d in zip(known.first, directions, strict=True)]
    size = max(1.0, sum(float(np.abs(t).sum()) for t in terms))
    error = abs(pushed - sum(float(t.sum()) for t in terms))
    return None if error <= (1e-9 if dtype == "float64" else 1e-4) * size else f"jvp is off by {error}"
