"""The gradients of a network of the zoo in several ways, and PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import msc
from msc import Tensor, nn
from msc.dialects.arrays import Array
from tests.unit.model_zoo.pytorch.references import REFERENCES
from tests.unit.model_zoo.small_networks import NETWORKS, arrays, with_random_weights

torch: Any = importlib.import_module("torch")

WAYS = ("PyNative", "graph", "C")
TOLERANCE = 1e-3
"""Relative to the largest element of a gradient, as f32 gives it in networks with normalisations of small batches."""


@dataclass
class Wrong(Exception):
    """The gradient by a weight or an input differs."""

    network: str
    way: str
    variable: str
    error: float

    def __str__(self) -> str:
        return f"{self.network}, {self.way}: the gradient by {self.variable} is off by {self.error:.1e}"


def check(name: str, *, training: bool, ways: Sequence[str] = WAYS) -> float:
    """Compare all gradients of what the results count at random; the largest relative error. Raises Wrong."""
    make, inputs = NETWORKS[name]
    net, given = with_random_weights(make()).set_train(training), inputs()
    counts = _counts(net, given)
    wanted = _reference(name, net, given, counts, training)
    worst = 0.0
    for way in ways:
        found = _gradients(net, given, counts, way)
        for variable, gradient in wanted.items():
            error = _error(found[variable], gradient, max(float(np.abs(w).max()) for w in wanted.values()))
            worst = max(worst, error)
            if not error <= TOLERANCE:
                raise Wrong(name, way, variable, error)
    return worst


def _error(found: Array, wanted: Array, largest: float) -> float:
    """Relative to the largest element; of a gradient that is zero but for rounding, to that of all gradients."""
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.abs(found - wanted).max() / max(float(np.abs(wanted).max()), 1e-3 * largest))


def _counts(net: nn.Cell, given: Sequence[Array]) -> list[Array]:
    """What the elements of the results count."""
    rng = np.random.default_rng(3)
    return [rng.standard_normal(r.shape).astype(np.float32) for r in arrays(net(*map(Tensor, given)))]


def _gradients(net: nn.Cell, given: Sequence[Array], counts: Sequence[Array], way: str) -> dict[str, Array]:
    """Gradients by name: of weights their own, of inputs `input0` and so on."""
    weights = net.trainable_params()
    floats = tuple(k for k, array in enumerate(given) if array.dtype.kind == "f")
    sens = [Tensor(c) for c in counts]
    gradient: Callable[..., Any] = msc.grad(net, floats or None, weights, sens_param=True)
    if way != "PyNative":
        gradient = msc.jit(gradient, backend="interpreter" if way == "graph" else "", fullgraph=True)
    found = gradient(*map(Tensor, given), sens[0] if len(sens) == 1 else tuple(sens))
    by_inputs, by_weights = found if floats else ((), found)
    named = {f"input{k}": g for k, g in zip(floats, by_inputs, strict=True)}
    named |= {p.name: g for p, g in zip(weights, by_weights, strict=True)}
    return {key: g.asnumpy() for key, g in named.items()}


def _reference(
    name: str, net: nn.Cell, given: Sequence[Array], counts: Sequence[Array], training: bool
) -> Mapping[str, Array]:
    trainable = {p.name for p in net.trainable_params()}
    values: dict[str, Any] = {}
    for key, parameter in net.parameters_dict().items():
        values[key] = torch.from_numpy(parameter.asnumpy()).requires_grad_(key in trainable)
        if training and key.endswith(("moving_mean", "moving_variance")):
            values[key] = None
    inputs = [torch.from_numpy(array) for array in given]
    variables = {f"input{k}": t.requires_grad_() for k, t in enumerate(inputs) if t.is_floating_point()}
    variables |= {key: values[key] for key in trainable}
    result: Any = REFERENCES[name](values.__getitem__, *inputs)
    results: list[Any] = [*result] if len(counts) > 1 else [result]
    total: Any = sum((r * torch.from_numpy(c)).sum() for r, c in zip(results, counts, strict=True))
    found = torch.autograd.grad(total, list(variables.values()))
    return {key: g.numpy() for key, g in zip(variables, found, strict=True)}
