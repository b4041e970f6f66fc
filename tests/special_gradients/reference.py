"""What PyTorch gives at the arguments of a case."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import warnings
from typing import Any

from tests.special_gradients.cases import Case
from tests.special_gradients.evaluating import NAMES, Derivatives, arguments, variables_of, weights_like


def in_pytorch(case: Case, dtype: str) -> Derivatives:
    """The value and the derivatives of PyTorch's function."""
    torch: Any = importlib.import_module("torch")
    scope: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "length": _length,
        "reduced": _reduced,
        "in_turn": _in_turn,
    }
    arrays = arguments(case, dtype)
    tensors = [torch.tensor(a) for a in arrays]
    variables = [tensors[k].requires_grad_() for k in variables_of(case)]
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(f"lambda {', '.join(NAMES[: len(arrays)])}: {case.theirs}", scope)(*tensors)
            first = _gradients(torch, [value], variables)
            try:
                second = [g.detach().numpy() for g in _gradients(torch, first, variables)]
            except (RuntimeError, NotImplementedError):
                second = None
    finally:
        torch.set_default_dtype(before)
    return Derivatives(value.detach().numpy(), [g.detach().numpy() for g in first], second)


def _length(x: Any, dim: int) -> Any:
    """The root of a sum of squares, which has derivatives of 0 where it is 0."""
    squares = (x * x).sum(dim)
    positive = squares > 0
    return positive * (positive * squares + ~positive).sqrt()


def _in_turn(function: Any, x: Any, places: Any, updates: Any) -> Any:
    """Elements joined with updates at places, one update after the other."""
    found = list(x)
    for place, update in zip(places, updates, strict=True):
        found[place] = function(found[place], update)
    return importlib.import_module("torch").stack(found)


def _reduced(loss: Any, how: str) -> Any:
    return loss if how == "none" else getattr(loss, how)()


def _gradients(torch: Any, results: list[Any], variables: list[Any]) -> list[Any]:
    parts = ((r * torch.tensor(weights_like(r.shape, k, "float64")).to(r.dtype)).sum() for k, r in enumerate(results))
    total: Any = sum(parts)
    if not total.requires_grad:
        return [torch.zeros_like(v) for v in variables]
    return list(torch.autograd.grad(total, variables, create_graph=True, allow_unused=True, materialize_grads=True))
