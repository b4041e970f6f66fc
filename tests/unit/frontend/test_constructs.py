"""Python constructs: the same results in PyNative mode, as a graph, and as plain Python on NumPy arrays."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor

MODULES = ("control", "loops", "values", "indexing", "exceptions", "functions", "identity", "integers", "libraries")
ALL = {
    f"{module}.{name}": function
    for module in MODULES
    for name, function in vars(importlib.import_module(f"tests.unit.frontend.constructs.{module}")).items()
    if isinstance(function, FunctionType) and function.__module__.endswith(module) and name != "apply"
}

OTHERWISE = {"values.alias_and_add", "indexing.item_assignment_seen_by_alias"}
"""What NumPy does otherwise: `y += 1` changes the array that `x` refers to as well."""


def worlds() -> list[dict[str, Any]]:
    """Arguments by name: so chosen that conditions come out both ways."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found: list[dict[str, Any]] = []
    for sign, n, factor in ((1, 3, 1), (-1, 0, 2), (1, 5, -1)):
        found.append(
            {
                "x": sign * (x - 1),
                "y": factor * (x[::-1] + 0.5).copy(),
                "v": np.arange(4, dtype=np.float32) * sign,
                "n": np.array(n, np.int64),
            }
        )
    return found


def on(function: Any, world: dict[str, Any], make: Any) -> tuple[Any, Any]:
    """The result of a function, and its arguments afterwards."""
    arguments = [make(copy.copy(world[name])) for name in inspect.signature(function).parameters]
    return function(*arguments), arguments


def agree(a: Any, b: Any, path: str = "result") -> None:
    """Check two results; tensors, arrays and NumPy's numbers are compared by value."""
    if is_array(a) or is_array(b):
        left, right = (np.asarray(v.asnumpy() if isinstance(v, Tensor) else v) for v in (a, b))
        assert left.shape == right.shape, f"{path}: {left.shape} and {right.shape}"
        np.testing.assert_allclose(left.astype(np.float64), right.astype(np.float64), 1e-5, 1e-6, err_msg=path)
    elif isinstance(a, dict):
        assert list(a) == list(b), f"{path}: {a} and {b}"
        for key in a:
            agree(a[key], b[key], f"{path}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert (type(a), len(a)) == (type(b), len(b)), f"{path}: {a} and {b}"
        for i, (p, q) in enumerate(zip(a, b, strict=True)):
            agree(p, q, f"{path}[{i}]")
    elif dataclasses.is_dataclass(a):
        assert type(a) is type(b)
        agree(vars(a), vars(b), path)
    else:
        assert a == b or (a != a and b != b), f"{path}: {a!r} and {b!r}"


def is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray | np.generic)


def same_types(a: Any, b: Any, path: str = "result") -> None:
    """Check that graph mode gives the types that PyNative mode gives."""
    assert type(a) is type(b), f"{path}: {type(a)} and {type(b)}"
    if isinstance(a, Tensor):
        assert a.dtype is b.dtype, f"{path}: {a.dtype} and {b.dtype}"
    if isinstance(a, list | tuple):
        for i, (p, q) in enumerate(zip(a, b, strict=True)):
            same_types(p, q, f"{path}[{i}]")
    if isinstance(a, dict):
        for key in a:
            same_types(a[key], b[key], f"{path}[{key!r}]")


@pytest.mark.parametrize("name", ALL)
def test_construct(name: str) -> None:
    function = ALL[name]
    compiled = msc.jit(function, backend="interpreter")
    for world in (*worlds(), worlds()[0]):
        plain = on(function, world, lambda v: v)
        eager = on(function, world, Tensor)
        graph = on(compiled, world, Tensor)
        if name not in OTHERWISE:
            agree(plain, eager)
        agree(eager, graph)
        same_types(eager, graph)
    is_about_identity = name.startswith("identity.")
    assert is_about_identity or "not compiled" not in msc.jit.explain(compiled)
