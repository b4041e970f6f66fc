"""TensorFlow Lite models: random operators, damaged in bytes, imported and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from msc.importers.tflite import import_bytes
from msc.ir.verification import verify_module
from tests.random_tflite.drawing import MAKERS, Draw

Random = np.random.Generator


class TfliteModels:
    """The target `tflite`."""

    def seeds(self) -> Iterator[bytes]:
        """A network of each maker, of floats and of integers."""
        for make in MAKERS.values():
            for seed, is_quantised in ((0, False), (1, True)):
                draw = Draw(seed, is_quantised)
                yield draw.graph.bytes(make(draw))

    def run(self, data: bytes) -> str:
        """Parse, import, verify."""
        verify_module(import_bytes(data).module)
        return "module"

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """Some bytes of the tables, which stand behind the constants: sizes, offsets, numbers of tensors; or any."""
        if random.random() < 0.3:
            return mutate(data)
        changed = bytearray(data)
        for _ in range(int(random.integers(1, 5))):
            place = int(random.integers(len(changed)))
            changed[place] = int(random.choice([0, 1, 2, 3, 4, 127, 128, 255, int(random.integers(256))]))
        return bytes(changed)
