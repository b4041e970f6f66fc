"""Calls of the Python library with random arguments: functions, operators, layers, methods, which bytes choose."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import cache
from math import prod
from typing import Any

import numpy as np

import msc
import msc.numpy
from msc import Tensor, nn, ops
from tests.fuzz.api_arguments import Choices

Random = np.random.Generator

_LEFT_OUT = frozenset("print_ Print several prim_attr_register Tensor.of".split())
"""What writes, or is no function for users."""


class LibraryCalls:
    """The target `library`."""

    def seeds(self) -> Iterator[bytes]:
        """A few of each length."""
        callables()
        random = np.random.default_rng(0)
        for length in (6, 10, 14, 20) * 8:
            yield random.bytes(length)

    def run(self, data: bytes) -> str:
        """One call; of a layer or an operator, with the call of what it gives."""
        choices = Choices(data)
        named = callables()
        name = sorted(named)[choices.below(256) * 256 % len(named) + choices.below(256) % len(named) - len(named)]
        try:
            with chdir(_scratch()):
                return call(name, named[name], choices)
        except RuntimeError as error:
            if str(error) == "no":  # an object of ours, which belongs to the user
                return "the user's own error"
            raise

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """Bytes choose freely."""
        return mutate(data) if random.random() < 0.5 else random.bytes(int(random.integers(4, 40)))


@cache
def _scratch() -> str:
    """Where calls that write a file write it."""
    return tempfile.mkdtemp(prefix="fuzz-library-")


@cache
def callables() -> dict[str, Callable[..., Any]]:
    """Everything of the library that takes tensors, by its name."""
    found: dict[str, Callable[..., Any]] = {}
    for place, module in (("ops", ops), ("nn", nn), ("numpy", msc.numpy)):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and name not in _LEFT_OUT:
                found[f"{place}.{name}"] = value
    for name in dir(Tensor):
        value = getattr(Tensor, name)
        if callable(value) and not name.startswith("_") and f"Tensor.{name}" not in _LEFT_OUT:
            found[f"Tensor.{name}"] = value
    for name in ("getitem", "setitem", "add", "matmul", "len", "index", "float", "contains"):
        found[f"Tensor.__{name}__"] = getattr(Tensor, f"__{name}__")
    found["Tensor"] = Tensor
    return found


def call(name: str, function: Callable[..., Any], choices: Choices) -> str:
    """Call it with what the bytes choose: as many arguments as it takes, mostly, and some of them sound."""
    first = (tensor(choices),) if name.startswith("Tensor.") else ()
    made = function(*first, *arguments(choices, function, len(first)), **keywords(choices, function))
    if isinstance(made, nn.Cell | ops.Primitive):
        made(*[tensor(choices) if choices.below(3) else choices.value() for _ in range(choices.below(4))])
    return "a result"


def arguments(choices: Choices, function: Callable[..., Any], given: int) -> list[Any]:
    """Positional arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) - given
    needed = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters) - given
    count = choices.below(6) if choices.below(8) == 0 else needed + choices.below(max(most - needed, 0) + 1)
    return [argument(choices) for _ in range(max(count, 0))]


def keywords(choices: Choices, function: Callable[..., Any]) -> dict[str, Any]:
    """Keyword arguments, at times unknown ones."""
    if choices.below(4):
        return {}
    try:
        names = tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = ()
    return {choices.of((*names[1:], "axis", "nonsense")): argument(choices)}


def argument(choices: Choices) -> Any:
    """A tensor, a small number, a shape or an axis, a word that is often taken, or anything at all."""
    match choices.below(8):
        case 0 | 1 | 2:
            return tensor(choices)
        case 3:
            return choices.of((0, 1, 2, 3, -1, 0.5, True, None))
        case 4:
            return choices.of(((0, 1), (1,), [2, 3], (), (-1,), (2, 2), (1, 1, 1, 1), [0, 0], (3, 4)))
        case 5:
            return choices.of(("mean", "sum", "none", "same", "valid", "constant", "reflect", "relu", "ij->ji"))
        case 6:
            return choices.of((msc.float32, msc.int64, msc.bool_, np.float32, "float16", [tensor(choices)] * 2))
        case _:
            return choices.value()


def tensor(choices: Choices) -> Tensor:
    """A small tensor of any element type and shape."""
    shape: tuple[int, ...] = choices.of(((2, 3), (2, 3), (), (3,), (1, 2, 4, 4), (2, 2, 3), (0, 3), (4, 4), (1,)))
    dtype = choices.of((msc.float32, msc.float32, msc.int64, msc.bool_, msc.float16, msc.int32, msc.uint8))
    elements = np.arange(prod(shape), dtype=np.int64) % 5
    return Tensor(elements.reshape(shape), dtype)
