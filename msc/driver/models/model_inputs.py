"""Inputs from the command line, and seeded random ones."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from msc.runtime.arguments import numpy_dtype
from msc.runtime.program import ELEMENT_BYTES, TensorSpec
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.streams import is_stream, read_stream
from msc.support.wording import counted

FORMS = "the forms are NAME=@FILE.npy, NAME=2x3xf32=1,2,3,4,5,6, NAME=2x3xf32=0 and NAME=1,2"
"""What values on the command line look like."""

_TYPE = re.compile(r"(\d+x)*(u?i|b?f|ui)\d+")
_MAXIMUM_ELEMENTS = 1 << 28
_MAXIMUM_STREAM = 1 << 30


@dataclass(frozen=True)
class Elements:
    """Elements without a type, as in `n=2` or `x=1,2,3`: they take that of the tensor."""

    option: str
    text: str
    words: tuple[str, ...]

    def of(self, dtype: str, shape: tuple[int, ...]) -> Array:
        """An array of them; one fills all. Raises MSC0607."""
        return _array(self.option, self.text, self.words, dtype, shape)


Value: TypeAlias = Array | Elements


def read_values(texts: Sequence[str], option: str = "--input") -> dict[str, Value]:
    """Values by name from `NAME=@file.npy`, `NAME=2x3xf32=1,2,...`, and `NAME=1,2,...`. Raises MSC0607."""
    values = dict[str, Value]()
    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or not name:
            raise _bad(option, text, "write NAME=@file.npy, NAME=2x3xf32=1,2,3,4,5,6 or NAME=1")
        if name in values:
            raise _bad(option, text, f"'{name}' is given twice")
        values[name] = _load(option, text, rest[1:]) if rest.startswith("@") else _literal(option, text, rest)
    return values


def arrays_of(values: Mapping[str, Value]) -> dict[str, Array]:
    """The values where a call decides sizes, and no tensor is known. Raises MSC0607 for one without a type."""
    arrays = dict[str, Array]()
    for name, value in values.items():
        if isinstance(value, Elements):
            advice = f"sizes are open here; write them and the type, as in {name}={len(value.words)}xi64=..."
            raise _bad(value.option, value.text, advice)
        arrays[name] = value
    return arrays


def value_files(texts: Sequence[str]) -> Iterator[Path]:
    """The files that `read_values` reads."""
    for text in texts:
        rest = text.partition("=")[2]
        if rest.startswith("@"):
            yield Path(rest[1:])


def _load(option: str, text: str, path: str) -> Array:
    try:
        source = io.BytesIO(read_stream(path, _MAXIMUM_STREAM)) if is_stream(path) else path
        loaded: object = np.load(source, allow_pickle=False)
    except OSError as error:
        raise _bad(option, text, f"'{path}' cannot be read: {error.strerror or 'it is not whole'}") from error
    except (ValueError, EOFError, MemoryError) as error:
        raise _bad(option, text, f"'{path}' is no .npy file of numbers, or not whole") from error
    if not isinstance(loaded, np.ndarray):
        raise _bad(option, text, f"'{path}' holds several arrays; .npy holds one")
    return cast(Array, loaded)


def _literal(option: str, text: str, rest: str) -> Value:
    type_text, equals, elements = rest.rpartition("=")
    words = tuple(word.strip() for word in elements.split(",")) if elements else ()
    if not equals and words:
        return Elements(option, text, words)
    *sizes, dtype = type_text.split("x")
    if dtype not in ELEMENT_BYTES or not all(_is_size(size) for size in sizes):
        raise _bad(option, text, f"'{type_text}' is not a type; write 2x3xf32=1,2,3,4,5,6, or f32=1 for a scalar")
    return _array(option, text, words, dtype, tuple(map(int, sizes)))


def _array(option: str, text: str, words: Sequence[str], dtype: str, shape: tuple[int, ...]) -> Array:
    count = prod(shape)
    if count > _MAXIMUM_ELEMENTS:
        raise _bad(option, text, f"{count} elements are too many")
    if len(words) not in (1, count):
        raise _bad(option, text, f"{counted(len(words), 'element')} given, {count} needed (or one, which fills all)")
    flat = np.empty(len(words), numpy_dtype(dtype))
    for position, word in enumerate(words):
        number = _number(word, dtype)
        if number is None:
            raise _bad(option, text, f"'{word}' is no {dtype}{_range(dtype)}", _meant(text, word))
        with np.errstate(over="ignore"):
            flat[position] = number
    return flat.reshape(shape) if flat.size == count else np.full(shape, flat[0], flat.dtype)


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def _number(word: str, dtype: str) -> float | int | bool | None:
    """The number that a word means in a dtype, None if it means none."""
    if dtype == "i1":
        return {"true": True, "false": False, "1": True, "0": False}.get(word)
    try:
        if "f" in dtype:
            return float(word)
        number = int(word)
    except ValueError:
        return None
    limits = np.iinfo(numpy_dtype(dtype).name)
    return number if limits.min <= number <= limits.max else None


def _range(dtype: str) -> str:
    if dtype == "i1":
        return "; write true or false"
    limits = None if "f" in dtype else np.iinfo(numpy_dtype(dtype).name)
    return "" if limits is None else f", which goes from {limits.min} to {limits.max}"


def _meant(text: str, word: str) -> str:
    """What to write in place of a word that is no number: a file's name, or a type without elements."""
    name = text.partition("=")[0]
    if _TYPE.fullmatch(word):
        return (
            f"a type goes before elements: {name}={word}=0 fills it; without --input, elements are random (--random 0)"
        )
    if Path(word).suffix:
        file = "" if word.endswith(".npy") else ", which numpy.save writes of an array"
        return f"{name}=@{Path(word).with_suffix('.npy')} reads a .npy file{file}"
    return FORMS


def _bad(option: str, text: str, reason: str, advice: str | None = None) -> MscError:
    return MscError(Diagnostic("MSC0607", f"{option} {text[:80]}: {reason}", help=advice or FORMS))


def random_inputs(tensors: Sequence[TensorSpec], seed: int) -> tuple[Array, ...]:
    """Seeded values: floats from the standard normal distribution, integers 0 to 3 (fit as indices), booleans.

    Raises MSC0008 for a seed below 0.
    """
    if seed < 0:
        raise MscError(Diagnostic("MSC0008", f"the seed of random inputs is {seed}; it is 0 or more"))
    rng = np.random.default_rng(seed)
    return tuple(_random(tensor, rng) for tensor in tensors)


def _random(tensor: TensorSpec, rng: np.random.Generator) -> Array:
    dtype = numpy_dtype(tensor.dtype)
    if tensor.dtype == "i1":
        return rng.integers(0, 2, tensor.public_shape).astype(dtype)
    if "f" in tensor.dtype:
        return rng.standard_normal(tensor.public_shape, np.float32).astype(dtype)
    return rng.integers(0, 4, tensor.public_shape).astype(dtype)


def choose_inputs(tensors: Sequence[TensorSpec], given: Mapping[str, Value], seed: int | None) -> tuple[Array, ...]:
    """The given inputs; with a seed, random ones for the rest. Raises MSC0601 to MSC0604, MSC0607."""
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
    return tuple(_typed(given.get(t.name, value), t) for t, value in zip(tensors, made_up, strict=True))


def _typed(value: Value, tensor: TensorSpec) -> Array:
    return value.of(tensor.dtype, tensor.public_shape) if isinstance(value, Elements) else value
