"""Arguments of the public Python functions: values of every kind in every place, which bytes choose."""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import msc

Random = np.random.Generator

MODELS = (
    """builtin.module @a {
 func.func @main(%x: tensor<3x4xf32> {ms.name = "x"}, %k: tensor<i8> {ms.name = "k"}) -> (tensor<3x4xf32>, tensor<i8>) {
    %0 = ms.abs %x
    %1 = ms.abs %k
    func.return %0, %1 : tensor<3x4xf32>, tensor<i8>
  }
}
""",
    """builtin.module @open {
  func.func @main(%x: tensor<?x4xf32> {ms.name = "x", ms.dims = ["batch", ""]}) -> (tensor<?x4xf32> {ms.name = "y"}) {
    %0 = ms.abs %x
    func.return %0 : tensor<?x4xf32>
  }
}
""",
)
OPTIONS = (
    *("target", "threads", "dims", "march", "weights", "max_memory", "tuned", "winograd", "flush_subnormals"),
    *("without", "input_values", "use_cache"),
)


class _Raises:
    """An object whose every conversion fails."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("no")

    __index__ = __array__ = __fspath__ = __iter__ = __len__ = __float__ = _fail
    __hash__: ClassVar[Any] = object.__hash__


class _Index:
    """An integer that is no int."""

    def __index__(self) -> int:
        return 3


class Choices:
    """Choices that bytes make; 0 when they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def below(self, count: int) -> int:
        """A number from 0 to `count` - 1."""
        return next(self._data, 0) % count

    def of(self, items: tuple[Any, ...]) -> Any:
        """One of the items."""
        return items[self.below(len(items))]

    def value(self, depth: int = 0) -> Any:
        """A value of any kind."""
        kind = self.below(12 if depth < 2 else 9)
        match kind:
            case 0:
                return self.of((0, 1, 2, 3, 4, 8, -1, 1025, 1 << 31, 1 << 62, 1 << 70, -(1 << 70)))
            case 1:
                return self.of(
                    (None, True, False, ..., NotImplemented, object(), object, len, print, math, range(1, 8))
                )
            case 2:
                return self.of((0.0, 3.0, 1.5, -1.0, math.nan, math.inf, 3j, slice(1, 8), Path("x.so"), Path()))
            case 3:
                texts = (
                    "",
                    "x",
                    "3",
                    "1..8",
                    "8..1",
                    "4G",
                    "-1",
                    "native",
                    "generic",
                    "cpu",
                    "fusion",
                    "fusion,packing",
                )
                return self.of(
                    (*texts, "batch", "axes", "\0", "a\nb", "\ud800", "é", "x" * 5000, "/dev/null", ".", "/")
                )
            case 4:
                return self.of(
                    (b"", b"x", b"\x08\x01", b"\xff" * 40, bytearray(b"x"), memoryview(b"x"), *map(str.encode, MODELS))
                )
            case 5:
                return self.of(
                    (
                        np.int64(3),
                        np.uint8(2),
                        np.float32(3),
                        np.bool_(True),
                        np.str_("x"),
                        np.array(3),
                        _Index(),
                        _Raises(),
                    )
                )
            case 6:
                return self.array()
            case 7:
                return self.of((*MODELS, *(text[:150] for text in MODELS), io.StringIO(MODELS[0]), io.BytesIO(b"\x08")))
            case 8:
                return self.of((np.ma.masked_array([1.0, 2], [False, True]), io.StringIO("x"), {3}, iter([1])))
            case 9:
                return [self.value(depth + 1) for _ in range(self.below(4))]
            case 10:
                return tuple(self.value(depth + 1) for _ in range(self.below(4)))
            case _:
                keys = ("batch", "axes", "x", "", 3, None, b"x", "\ud800")
                return {self.of(keys): self.value(depth + 1) for _ in range(self.below(3))}

    def array(self) -> Any:
        """An array of any dtype, shape and layout."""
        shape = self.of(((3, 4), (3, 4), (), (2, 4), (4, 3), (0, 4), (1,), (3, 4, 1), (9, 4)))
        dtype = self.of(("f4", "f4", "i1", "f8", "i8", "?", "c8", "O", "U3", "S3", "M8[s]", "m8[s]", "f2", "V4", ">f4"))
        made = np.zeros(shape, dtype)
        match self.below(5):
            case 0:
                return np.asfortranarray(made)
            case 1:
                made.flags.writeable = False
                return made
            case 2:
                return made[::-1] if made.ndim else made
            case _:
                return made


@cache
def networks() -> tuple[Any, ...]:
    """Models of known sizes, of a range of sizes, and of sizes that calls decide."""
    fixed, ranged = msc.compile(MODELS[0]), msc.compile(MODELS[1], dims={"batch": (1, 8)})
    return fixed, ranged, msc.compile(MODELS[1])


class ApiArguments:
    """The target `api`."""

    def seeds(self) -> Iterator[bytes]:
        """A few of each length. What msc imports when it is used is imported here, and so instrumented."""
        networks()
        random = np.random.default_rng(0)
        for length in (4, 8, 12, 16) * 8:
            yield random.bytes(length)

    def run(self, data: bytes) -> str:
        """One call."""
        choices = Choices(data)
        action = choices.of((_compile, _compile, _load, _call, _call, _call, _into, _into, _profile, _save, _other))
        return action(choices)

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """Bytes choose freely."""
        return mutate(data) if random.random() < 0.5 else random.bytes(int(random.integers(2, 24)))


def _compile(choices: Choices) -> str:
    options = {choices.of(OPTIONS): choices.value() for _ in range(1 + choices.below(2))}
    model = choices.value() if choices.below(3) == 0 else choices.of(MODELS)
    _ = repr(msc.compile(model, **options))
    return "compiled"


def _load(choices: Choices) -> str:
    msc.load(choices.value())
    return "loaded"


def _call(choices: Choices) -> str:
    network = choices.of(networks())
    arrays = [choices.array() if choices.below(2) else choices.value() for _ in range(choices.below(4))]
    named = {choices.of(("x", "k", "z", "")): choices.value() for _ in range(choices.below(2))}
    choices.of((network, network.results))(*arrays, **named)
    return "called"


def _into(choices: Choices) -> str:
    network = choices.of(networks()[:2])
    function = choices.of((network.call_into, network.bind, network.check, network.new_outputs))
    arguments = [
        [choices.array() for _ in range(choices.below(4))] if choices.below(3) else choices.value() for _ in "ab"
    ]
    function(*(arguments if function in (network.call_into, network.bind) else arguments[:1]))
    return "ran"


def _profile(choices: Choices) -> str:
    network = choices.of(networks()[:2])
    network.profile(choices.value(), choices.value())
    return "profiled"


def _save(choices: Choices) -> str:
    with tempfile.TemporaryDirectory() as folder:
        target = choices.value()
        inside = Path(folder) / target if isinstance(target, str) and target[:1].isalpha() else target
        if isinstance(inside, str | Path) and not str(inside).startswith(folder):
            return "left out"
        choices.of(networks()).save(inside)
    return "saved"


def _other(choices: Choices) -> str:
    network = choices.of(networks())
    assert repr(network)
    assert dir(network)
    assert network.inputs
    assert network.outputs
    ForkingPickler.dumps(network)
    return "described"
