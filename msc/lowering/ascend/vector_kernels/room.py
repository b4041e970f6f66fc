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

    def take(
        self, dtype: str, elements: int, name: str = "t", *, fill: bool = False, half: bool | None = None
    ) -> Buffer:
        """A buffer of so many elements; with `fill` its bytes hold something from the start. Raises MSC1021.

        `half` says in which half of a row of banks it starts: two sources of an instruction in different halves do not
        wait for each other.
        """
        size = -(-elements * DTYPES[dtype] // 256) * 256
        for address in self._free[size]:
            if half is None or address % _BANK_ROW == half * _BANK_ROW // 2:
                self._free[size].remove(address)
                return self._again(dtype, address, size, name)
        taken = self.b.taken(Space.ub)
        padding = 0 if half is None else (half * _BANK_ROW // 2 - taken) % _BANK_ROW
        buffer = self.b.alloc(Space.ub, dtype, size // DTYPES[dtype], name, padding)
        address = self.b.taken(Space.ub) - buffer.bytes
        self._places[address, dtype] = buffer
        self._address[buffer] = (address, size)
        if fill:
            self.filled.append(buffer)
        return buffer

    def _again(self, dtype: str, address: int, size: int, name: str) -> Buffer:
        """The buffer of a type at an address that others have had."""
        key = (address, dtype)
        if key not in self._places:
            self._places[key] = self.b.alloc_at(Space.ub, dtype, size // DTYPES[dtype], address, name)
            self._address[self._places[key]] = (address, size)
        return self._places[key]

    def filled_places(self) -> list[tuple[int, int]]:
        """First byte and bytes of the buffers that hold something from the start."""
        return [self._address[buffer] for buffer in self.filled]

    def give(self, buffer: Buffer) -> None:
        """Nobody needs a buffer any more."""
        address, room = self._address[buffer]
        if address not in self._free[room]:
            self._free[room].append(address)
