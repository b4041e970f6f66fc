"""Random bits by Philox4x32-10 (Salmon et al., 2011): integer arithmetic on a counter, written with operations.

The same numbers come out in PyNative mode, in compiled graphs, on any target and for any number of threads. The state
is the seed and how many blocks of four words were drawn; in a graph it is an argument that the call updates.
"""

from __future__ import annotations

import math
import secrets
from functools import partial
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.capture import INSTALLED
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.randomness import drawing, get_seed, when_seeded
from msc.frontend.tensor import Tensor

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
_WORD = 0xFFFFFFFF

Words = tuple[Tensor, Tensor, Tensor, Tensor]


class _State:
    parameter: Parameter | None = None


def state() -> Parameter:
    """The seed and the number of blocks that were drawn."""
    if _State.parameter is None:
        _State.parameter = Parameter(Tensor(_begun(), dtypes.int64), name="random_state", requires_grad=False)
    return _State.parameter


def _begun() -> list[int]:
    seed = get_seed()
    return [secrets.randbits(62) if seed is None else seed, 0]


@when_seeded
def _restart() -> None:
    """`set_seed` was called: the state begins anew."""
    if _State.parameter is not None:
        _State.parameter.replace(np.array(_begun(), np.int64))


def get_rng_state() -> Tensor:
    """What decides on the random numbers that are drawn from here on: Int64, the seed and the count of draws."""
    return Tensor(np.asarray(_state_now().content))


def set_rng_state(state_: Tensor) -> None:
    """Have the random numbers come that came after `get_rng_state` gave this."""
    array = np.asarray(state_)
    if array.shape != (2,) or array.dtype != np.int64:
        raise ApiValueError("MSC0808", "a state of random numbers is what get_rng_state gave")
    state().replace(array.copy())


def _number(value: int) -> Tensor:
    return Tensor.of(np.array(value, np.uint64))


def _low(x: Tensor) -> Tensor:
    return apply("bitwise_and", x, _number(_WORD))


def _high(x: Tensor) -> Tensor:
    return apply("shift_right", x, _number(32))


def philox(counter: Words, key: tuple[Tensor, Tensor]) -> Words:
    """Four random words for each counter of four words; words are UInt64 below 2^32."""
    a, b, c, d = counter
    k, m = key
    for _ in range(ROUNDS):
        first, second = (apply("mul", x, _number(n)) for x, n in zip((a, c), MULTIPLIERS, strict=True))
        a, b, c, d = (
            apply("bitwise_xor", apply("bitwise_xor", _high(second), b), k),
            _low(second),
            apply("bitwise_xor", apply("bitwise_xor", _high(first), d), m),
            _low(first),
        )
        k, m = (_low(apply("add", x, _number(n))) for x, n in zip((k, m), WEYL, strict=True))
    return a, b, c, d


def _state_now() -> Tensor:
    builder = INSTALLED.builder
    return Tensor.of(state().content) if builder is None else builder.read(state())


def random_words(count: int, seed: int | None = None) -> Tensor:
    """`count` words as UInt64, below 2^32. With a seed the same ones in every call; the state moves on otherwise."""
    blocks = max(-(-count // 4), 1)
    if seed:
        begun: Any = Tensor.of(np.array([seed, 0], np.int64))
    else:
        begun = _state_now()
        drawing(partial(state().replace, begun.content))
        state().replace(apply("add", begun, Tensor.of(np.array([0, blocks], np.int64))).content)
    words = apply("cast", begun, dtype=dtypes.uint64)
    key, first = (apply("slice", words, begin=(k,), end=(k + 1,)) for k in (0, 1))
    places = apply("add", apply("iota", shape=(blocks,), axis=0, dtype=dtypes.uint64), first)
    zero = _number(0)
    found = philox((_low(places), _high(places), zero, zero), (_low(key), _high(key)))
    rows = apply("reshape", apply("stack", *found, axis=-1), shape=(4 * blocks,))
    return rows if count == 4 * blocks else apply("slice", rows, begin=(0,), end=(count,))


def _fractions(words: Tensor) -> Tensor:
    """The upper 24 bits of words, as a Float32 below 2^24."""
    return apply("cast", apply("shift_right", words, _number(8)), dtype=dtypes.float32)


def uniform_numbers(shape: tuple[int, ...], seed: int | None = None) -> Tensor:
    """Multiples of 2^-24, uniform in [0, 1), as Float32."""
    found = apply("mul", _fractions(random_words(math.prod(shape), seed)), Tensor(2.0**-24, dtypes.float32))
    return apply("reshape", found, shape=shape)


def normal_numbers(shape: tuple[int, ...], seed: int | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation 1, as Float32 (Box and Muller, 1958)."""
    count = math.prod(shape)
    half = max(-(-count // 2), 1)
    words = random_words(2 * half, seed)
    first, second = (apply("slice", words, begin=(k * half,), end=((k + 1) * half,)) for k in (0, 1))
    scale = Tensor(2.0**-24, dtypes.float32)
    chance = apply("mul", apply("add", _fractions(first), Tensor(1.0, dtypes.float32)), scale)
    radius = apply("sqrt", apply("mul", apply("log", chance), Tensor(-2.0, dtypes.float32)))
    angle = apply("mul", _fractions(second), Tensor(2 * math.pi * 2.0**-24, dtypes.float32))
    parts = (apply("mul", radius, apply(name, angle)) for name in ("cos", "sin"))
    found = apply("concat", *parts, axis=0)
    cut = found if count == 2 * half else apply("slice", found, begin=(0,), end=(count,))
    return apply("reshape", cut, shape=shape)
