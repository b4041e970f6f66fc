"""A small fixed part of fuzzing, without Atheris: the targets' own damage gives results or diagnostics."""

import resource
from collections.abc import Iterator

import numpy as np
import pytest

from msc import Tensor, int64, ops
from msc.support.diagnostics import MscError
from tests.fuzz.__main__ import MEMORY_BYTES, answer, load
from tests.memory_limit import memory_limit
from tests.unit.importers.models import classifier


def corpus(name: str) -> Iterator[bytes]:
    if name != "onnx":
        yield from load(name).seeds()
    else:
        yield classifier().SerializeToString()


def flipped(data: bytes, random: np.random.Generator) -> bytes:
    changed = bytearray(data)
    changed[int(random.integers(len(changed)))] ^= 1 << int(random.integers(8))
    return bytes(changed)


@pytest.mark.parametrize(
    ("name", "times", "least"),
    [("onnx", 300, 6), ("tflite", 8, 6), ("mir", 2, 6), ("api", 4, 6), ("library", 20, 6), ("artifact", 10, 1)],
)
def test_damage_is_answered(name: str, times: int, least: int) -> None:
    target, random = load(name), np.random.default_rng(0)
    seeds = tuple(corpus(name))
    with memory_limit(MEMORY_BYTES):
        answers = {
            answer(target, target.damaged(data, random, lambda old: flipped(old, random)))
            for data in seeds
            for _ in range(times)
        }
    assert len(answers) >= least


@pytest.mark.parametrize("name", ["scf", "loop"])
def test_edited_stages_run_inside_their_buffers(name: str) -> None:
    target, random = load(name), np.random.default_rng(4)
    data = next(iter(target.seeds()))
    answers = [answer(target, target.damaged(data, random, bytes)) for _ in range(12)]
    assert all(text.startswith("MSC") or "run" in text for text in answers)


def test_what_asks_for_more_memory_than_the_limit_is_refused() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with memory_limit(1 << 30), pytest.raises(MscError, match="MSC0020"):
        ops.sequence_mask(Tensor([1 << 31], int64))
    assert resource.getrlimit(resource.RLIMIT_AS) == before
