"""What is fuzzed: seeds, one run, and how to make another input from one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

Random = np.random.Generator


class Target(Protocol):
    """A function of bytes whose every answer must be a value or an MscError."""

    def seeds(self) -> Iterator[bytes]:
        """Sound inputs."""
        ...

    def run(self, data: bytes) -> str:
        """What msc makes of an input, in a word. Raises MscError, or the fault that is sought."""
        ...

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """Another input; `mutate` is the fuzzer's own way to change bytes."""
        ...
