"""Buffers in UB that values share over time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from msc.lowering.ascend.builder import Buffer, KernelBuilder
from msc.targets.davinci_isa import DTYPES, Space

BANK_ROW = 512
"""Bytes after which UB's bank groups repeat."""


@dataclass(frozen=True)
class ConstantBuffer:
    """A place in UB that holds one value before the first task: its first byte, its bytes, their type."""

    first: int
    bytes: int
    dtype: str
    value: float


class Room:
    """Buffers by size. A buffer that nobody needs any more is given again, in any type."""

    def __init__(self, builder: KernelBuilder) -> None:
        self.b = builder
        self._free: dict[int, list[int]] = defaultdict(list)
        self._places: dict[tuple[int, str], Buffer] = {}
        self._address: dict[Buffer, tuple[int, int]] = {}
        self._constants: dict[tuple[str, int, float, bool], Buffer] = {}
        self.fills: list[ConstantBuffer] = []

    def take(
        self, dtype: str, elements: int, name: str = "t", *, fill: bool = False, half: bool | None = None
    ) -> Buffer:
        """A buffer of so many elements; with `fill` its bytes hold something from the start. Raises MSC1021.

        `half` says in which half of a row of banks it starts: two sources of an instruction in different halves do not
        wait for each other.
        """
        size = -(-elements * DTYPES[dtype] // 256) * 256
        fits = (a for a in self._free[size] if half is None or a % BANK_ROW == half * BANK_ROW // 2)
        if (address := next(fits, None)) is None:
            buffer = self._new(dtype, size, name, half)
        else:
            self._free[size].remove(address)
            buffer = self._again(dtype, address, size, name)
        place = ConstantBuffer(*self._address[buffer], "f32", 0.0)
        if fill and place not in self.fills:  # those who had it before need not have filled it
            self.fills.append(place)
        return buffer

    def _new(self, dtype: str, size: int, name: str, half: bool | None) -> Buffer:
        """A buffer where nothing was before."""
        taken = self.b.taken(Space.ub)
        padding = 0 if half is None else (half * BANK_ROW // 2 - taken) % BANK_ROW
        buffer = self.b.alloc(Space.ub, dtype, size // DTYPES[dtype], name, padding)
        address = self.b.taken(Space.ub) - buffer.bytes
        self._places[address, dtype] = buffer
        self._address[buffer] = (address, size)
        return buffer

    def constant(self, dtype: str, elements: int, value: float, name: str, half: bool) -> Buffer:
        """A buffer that holds a value at the start of each task. Who writes it puts the value back."""
        key = (dtype, elements, value, half)
        if key not in self._constants:
            buffer = self._constants[key] = self._new(dtype, elements * DTYPES[dtype], name, half)
            self.fills.append(ConstantBuffer(*self._address[buffer], dtype, value))
        return self._constants[key]

    def _again(self, dtype: str, address: int, size: int, name: str) -> Buffer:
        """The buffer of a type at an address that others have had."""
        key = (address, dtype)
        if key not in self._places:
            self._places[key] = self.b.alloc_at(Space.ub, dtype, size // DTYPES[dtype], address, name)
            self._address[self._places[key]] = (address, size)
        return self._places[key]

    def half_of(self, buffer: Buffer) -> bool:
        """In which half of a row of banks a buffer starts."""
        return self._address[buffer][0] % BANK_ROW >= BANK_ROW // 2

    def give(self, buffer: Buffer) -> None:
        """Nobody needs a buffer any more."""
        address, room = self._address[buffer]
        if address not in self._free[room]:
            self._free[room].append(address)
