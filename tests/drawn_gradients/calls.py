"""Which functions there are, and calls of them that succeed."""

# Functions and their arguments are of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import importlib
import inspect
import itertools
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import msc
from msc import Tensor
from msc.support.diagnostics import MscError

PLACES = {"ops": "msc.ops", "mint": "msc.mint", "mnp": "msc.numpy", "scipy.linalg": "msc.scipy.linalg"}
MOST = 160
"""How many calls are tried before a function counts as one that no drawn call fits."""

NO_FUNCTIONS = (
    "constexpr get_grad grad jacfwd jacrev jvp partial prim_attr_register print_ several value_and_grad vjp vmap "
    "apply_along_axis apply_over_axes piecewise add_flags hash_table barrier save load"
).split()
"""What takes functions, or does not compute."""

WITHOUT = ("stop_gradient detach register_hook numpy from_numpy set_dtype assign_value init_data copy_ replace").split()
"""What ends gradients, or changes a tensor."""

SYMMETRIC = ("cholesky", "cho_factor", "eigh", "eigvalsh")
"""Functions that read one triangle of symmetric matrices: their gradients count both halves alike."""


@dataclass(frozen=True)
class Call:
    """A function with arguments; those at `places` are tensors of floats, which are moved."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    places: tuple[int, ...]

    def __call__(self, *values: Tensor) -> list[Tensor]:
        """The tensors of floats among the results."""
        given = list(self.arguments)
        for place, value in zip(self.places, values, strict=True):
            given[place] = value
        if self.name.rpartition(".")[2] in SYMMETRIC:
            given[0] = (given[0] + given[0].swapaxes(-1, -2)) / 2
        return floats_in(self.function(*given))

    @property
    def variables(self) -> list[Any]:
        """The arrays that are moved."""
        return [self.arguments[place].asnumpy() for place in self.places]


def floats_in(result: Any) -> list[Tensor]:
    """The tensors of floats in a structure; numbers of 16 bits are too coarse for differences."""
    if isinstance(result, tuple | list):
        return [t for part in result for t in floats_in(part)]
    wide = isinstance(result, Tensor) and result.dtype in (msc.float32, msc.float64)
    return [result] if wide else []


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, and every method of tensors as a function of one; further names of one only once."""
    seen = set[int]()
    for place, module in PLACES.items():
        of_module: Any = importlib.import_module(module)
        for name in sorted(of_module.__all__):
            found = getattr(of_module, name)
            if inspect.isfunction(found) and name not in NO_FUNCTIONS and name not in WITHOUT:
                record = id(inspect.unwrap(found))
                if record not in seen:
                    seen.add(record)
                    yield f"{place}.{name}", found
    for name in sorted(n for n in dir(Tensor) if not n.startswith("_")):
        found = getattr(Tensor, name)
        if inspect.isfunction(found) and not name.endswith("_") and name not in WITHOUT:
            record = id(inspect.unwrap(found))
            if record not in seen:
                seen.add(record)
                yield f"Tensor.{name}", found


def _tensors(draw: np.random.Generator) -> list[Tensor]:
    """Operands of several forms, without ties."""
    return [
        Tensor(draw.uniform(0.15, 0.85, (3, 4))),
        Tensor(draw.normal(size=(3, 3)) / 3 + 3 * np.eye(3)),
        Tensor(draw.normal(size=5)),
        Tensor(draw.integers(0, 3, (3, 4))),
        Tensor(draw.normal(size=(1, 2, 6, 6))),
        Tensor(draw.integers(0, 3, 3)),
        Tensor(draw.normal(size=(2, 3, 3))),
        Tensor(0.7, msc.float64),
        Tensor(draw.uniform(size=(3, 4)) < 0.5),
    ]


PLAIN: list[Any] = [1, 2, 0.3, (1,), (2, 2), "mean", True, 0]


def calls(name: str, function: Callable[..., Any], count: int = 1) -> list[Call]:
    """Up to some calls that give floats of floats."""
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    tensors = _tensors(draw)
    needed = _needed(function)
    found: list[Call] = []
    for arguments in itertools.islice(_drawn(needed, tensors), MOST):
        try:
            result = floats_in(function(*arguments))
        except (MscError, TypeError, ValueError, AttributeError, IndexError, KeyError):
            continue
        places = tuple(k for k, a in enumerate(arguments) if isinstance(a, Tensor) and a.dtype.is_float)
        if places and any(r.size for r in result):
            found.append(Call(name, function, tuple(arguments), places))
            if len(found) == count:
                break
    return found


def _needed(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)
    return max(count, 1)


def _drawn(count: int, tensors: list[Tensor]) -> Iterator[tuple[Any, ...]]:
    """Arguments: equal forms first, then a tensor with all others."""
    for tensor in tensors:
        if tensor.dtype.is_float:
            yield (tensor,) * count if count == 1 else (tensor, *(_other(tensor, k) for k in range(1, count)))
    for first in (t for t in tensors if t.dtype.is_float):
        for rest in itertools.product([*PLAIN[:5], *tensors[:6], tensors[7]], repeat=min(count - 1, 2)):
            yield (first, *rest, *([1] * (count - 1 - len(rest))))
    for tensor in tensors:
        yield ([tensor, tensor],) + (1,) * (count - 1)


def _other(tensor: Tensor, shift: int) -> Tensor:
    return Tensor(np.roll(tensor.asnumpy(), shift) * (1 + 0.1 * shift))
