"""Inputs from the command line, and seeded random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from msc.runtime.arguments import numpy_dtype
from msc.runtime.program import ELEMENT_BYTES, TensorSpec
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

Array = NDArray[Any]

_MAXIMUM_ELEMENTS = 1 << 28


def read_values(texts: Sequence[str], option: str = "--input") -> dict[str, Array]:
    """Arrays by name from `NAME=@file.npy` and `NAME=2x3xf32=1,2,...`. Raises MSC0607."""
    values = dict[str, Array]()
    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or not name:
            raise _bad(option, text, "write NAME=@file.npy or NAME=2x3xf32=1,2,3,4,5,6")
        if name in values:
            raise _bad(option, text, f"'{name}' is given twice")
        values[name] = _load(option, text, rest[1:]) if rest.startswith("@") else _literal(option, text, rest)
    return values


def _load(option: str, text: str, path: str) -> Array:
    try:
        loaded: object = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _bad(option, text, f"'{path}' cannot be read: {str(error)[:120]}") from error
    if not isinstance(loaded, np.ndarray):
        raise _bad(option, text, f"'{path}' holds several arrays; .npy holds one")
    return cast(Array, loaded)


def _literal(option: str, text: str, rest: str) -> Array:
    type_text, equals, elements = rest.partition("=")
    *sizes, dtype = type_text.split("x")
    if not equals or dtype not in ELEMENT_BYTES or not all(_is_size(size) for size in sizes):
        raise _bad(option, text, f"'{type_text}' is not a type; write 2x3xf32=1,2,3,4,5,6")
    shape = tuple(map(int, sizes))
    if prod(shape) > _MAXIMUM_ELEMENTS:
        raise _bad(option, text, f"{prod(shape)} elements are too many")
    try:
        numbers = [_number(word, dtype) for word in elements.split(",")] if elements else []
        flat = np.array(numbers, numpy_dtype(dtype))
    except (ValueError, OverflowError) as error:
        raise _bad(option, text, str(error)[:120]) from error
    if flat.size not in (1, prod(shape)):
        raise _bad(option, text, f"{flat.size} elements given, {prod(shape)} needed (or one, which fills all)")
    return np.ascontiguousarray(np.broadcast_to(flat, shape) if flat.size == 1 else flat.reshape(shape))


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def _number(word: str, dtype: str) -> float | int | bool:
    word = word.strip()
    if dtype == "i1" and word in ("true", "false"):
        return word == "true"
    return float(word) if "f" in dtype else int(word)


def _bad(option: str, text: str, reason: str) -> MscError:
    return MscError(Diagnostic("MSC0607", f"{option} {text[:80]}: {reason}"))


def random_inputs(tensors: Sequence[TensorSpec], seed: int) -> tuple[Array, ...]:
    """Seeded values: floats from the standard normal distribution, integers 0 to 3 (fit as indices), booleans."""
    rng = np.random.default_rng(seed)
    return tuple(_random(tensor, rng) for tensor in tensors)


def _random(tensor: TensorSpec, rng: np.random.Generator) -> Array:
    dtype = numpy_dtype(tensor.dtype)
    if tensor.dtype == "i1":
        return rng.integers(0, 2, tensor.shape).astype(dtype)
    if "f" in tensor.dtype:
        return rng.standard_normal(tensor.shape, np.float32).astype(dtype)
    return rng.integers(0, 4, tensor.shape).astype(dtype)


def choose_inputs(tensors: Sequence[TensorSpec], given: Mapping[str, Array], seed: int | None) -> tuple[Array, ...]:
    """The given inputs; with a seed, random ones for the rest. Raises MSC0601 to MSC0604."""
    names = [tensor.name for tensor in tensors]
    for name in given:
        if name not in names:
            help_line = did_you_mean(name, names) or f"its inputs: {', '.join(names) or 'none'}"
            raise MscError(Diagnostic("MSC0602", f"the model has no input '{name}'", help=help_line))
    missing = [name for name in names if name not in given]
    if missing and seed is None:
        help_line = f"--input {missing[0]}=@file.npy gives one, --random SEED makes them up"
        raise MscError(Diagnostic("MSC0601", f"missing inputs: {', '.join(missing)}", help=help_line))
    made_up = random_inputs(tensors, seed or 0)
    return tuple(given.get(tensor.name, value) for tensor, value in zip(tensors, made_up, strict=True))
