"""Library calls of MPI: collectives on one row, whose elements are in the order in which MPI sends them.

`all_reduce sum 0,1/2,3` is a function with its arguments: a word, and the groups of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from xdsl.utils.exceptions import VerifyException

from msc.dialects.arrays import Array
from msc.dialects.calls.library_call import LibraryCall, Prototype, Rows, register_family
from msc.dialects.ranks import current_ranks, exchanged, own_group, reduced, sent

_WORDS = ("sum", "prod", "max", "min")


@dataclass(frozen=True)
class Collective(LibraryCall):
    """A function of MPI on the rows of the ranks of a group."""

    word: str
    groups: tuple[tuple[int, ...], ...]
    inputs: ClassVar = ("given",)
    outputs: ClassVar = ("received",)
    pure: ClassVar = False
    headers: ClassVar = ("mpi.h", "stdio.h", "stdlib.h", "string.h")
    text: ClassVar = Path(__file__).with_suffix(".h")

    @classmethod
    def read(cls, arguments: str) -> Self:
        """The function with arguments. Raises VerifyException."""
        word, _, text = arguments.partition(" ")
        try:
            return cls(word, tuple(tuple(map(int, group.split(","))) for group in text.split("/")))
        except ValueError:
            raise VerifyException(f"{cls.name}: {arguments!r} is not a word and groups of ranks") from None

    @property
    def spelling(self) -> str:
        return f"{self.name} {self.word} {'/'.join(','.join(map(str, group)) for group in self.groups)}"

    @property
    def size(self) -> int:
        """Ranks in a group."""
        return len(self.groups[0])

    def lengths(self, given: int) -> int:
        """The length of the row that is received."""
        return given

    def check(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> None:
        (given,), (received,) = inputs, outputs
        if given.element_type != received.element_type or len(given.get_shape()) != 1:
            raise VerifyException("takes and gives one row of one element type")
        if self.lengths(given.get_shape()[0]) != received.get_shape()[0]:
            raise VerifyException(f"{given.get_shape()[0]} elements do not become {received.get_shape()[0]}")

    def prototype(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> Prototype:
        ranks = tuple(rank for group in self.groups for rank in group)
        return Prototype(self.function, (*self.code, len(self.groups), self.size, ranks))

    @property
    def function(self) -> str:
        """The C function."""
        return f"msc_{self.name}"

    @property
    def code(self) -> tuple[int, ...]:
        """The word as the C function takes it."""
        return ()

    def exchanged(self, row: Array) -> tuple[Sequence[Array], int]:
        """The rows of the group, and the place of this rank."""
        return exchanged(self.groups, self.spelling, row)


class _Reducing(Collective):
    """Sums, products or extrema of the ranks' rows, in the order of the ranks."""

    @property
    def code(self) -> tuple[int, ...]:
        return (_WORDS.index(self.word),)


class AllReduce(_Reducing):
    """Sums on each rank."""

    name = "all_reduce"

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        return (reduced(self.word, self.exchanged(rows[0])[0]),)


class ReduceScatter(_Reducing):
    """A part of the sums on each rank."""

    name = "reduce_scatter"

    def lengths(self, given: int) -> int:
        return given // self.size

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        values, place = self.exchanged(rows[0])
        return (np.split(reduced(self.word, values), self.size)[place],)


class AllGather(Collective):
    """The rows one after the other."""

    name = "all_gather"

    def lengths(self, given: int) -> int:
        return given * self.size

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        return (np.concatenate(self.exchanged(rows[0])[0]),)


class AllToAll(Collective):
    """Of each row the part at this rank's place, one after the other."""

    name = "all_to_all"

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        values, place = self.exchanged(rows[0])
        return (np.concatenate([np.split(value, self.size)[place] for value in values]),)


class Broadcast(Collective):
    """The row of the rank at a place."""

    name = "broadcast"

    @property
    def code(self) -> tuple[int, ...]:
        return (int(self.word),)

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        return (self.exchanged(rows[0])[0][int(self.word)],)


class AllSlice(Collective):
    """The part of the row at this rank's place."""

    name = "all_slice"

    def lengths(self, given: int) -> int:
        return given // self.size

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        return (np.split(rows[0], self.size)[own_group(self.groups).index(current_ranks().rank)],)


class SendRecv(Collective):
    """The row of the rank that sends to this one, which are the two members of each group; zeros if there is none."""

    name = "send_recv"

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        sources, receivers = zip(*self.groups, strict=True)
        return (sent(sources, receivers, self.spelling, rows[0]),)


for _family in (AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, AllSlice, SendRecv):
    register_family(_family, _family.read)
