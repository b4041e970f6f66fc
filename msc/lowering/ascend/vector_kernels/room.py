"""Buffers in UB that values share over time."""

from __future__ import annotations

from collections import defaultdict

from msc.lowering.ascend.builder import Buffer, KernelBuilder
from msc.targets.davinci_isa import DTYPES, Space

_BANK_ROW = 512
"""Bytes after which UB's bank groups repeat."""


class Room:
    """Buffers by size. A buffer that nobody needs any more is given again, in any type."""

    def __init__(self, builder: KernelBuilder) -> None:
        self.b = builder
        self._free: dict[int, list[int]] = defaultdict(list)
        self._places: dict[tuple[int, str], Buffer] = {}
        self._address: dict[Buffer, tuple[int, int]] = {}
        self.filled: list[Buffer] = []

    def take(self, dtype: str, elements: int, name: str = "t", *, fill: bool = False) -> Buffer:
        """A buffer of so many elements; with `fill` its bytes hold something from the start. Raises MSC1021."""
        room = -(-elements * DTYPES[dtype] // 256) * 256
        if self._free[room]:
            address = self._free[room].pop()
            key = (address, dtype)
            if key not in self._places:
                self._places[key] = self.b.alloc_at(Space.ub, dtype, room // DTYPES[dtype], address, name)
                self._address[self._places[key]] = (address, room)
            return self._places[key]
        buffer = self.b.alloc(Space.ub, dtype, room // DTYPES[dtype], name)
        address = self.b.taken(Space.ub) - buffer.bytes
        self._places[address, dtype] = buffer
        self._address[buffer] = (address, room)
        if fill:
            self.filled.append(buffer)
        return buffer

    def filled_places(self) -> list[tuple[int, int]]:
        """First byte and bytes of the buffers that hold something from the start."""
        return [self._address[buffer] for buffer in self.filled]

    def give(self, buffer: Buffer) -> None:
        """Nobody needs a buffer any more."""
        address, room = self._address[buffer]
        if address not in self._free[room]:
            self._free[room].append(address)
