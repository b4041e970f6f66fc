"""A device mesh: ranks in a box whose axes have names, as `dp=2,tp=4`. Rank numbers count the last axis fastest."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msc.support.diagnostics import Diagnostic, MscError, near_match

_AXIS = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*([0-9]+)\s*")


@dataclass(frozen=True)
class Mesh:
    """Axes by name, major first, each with the number of ranks along it. Raises MSC1100 for axes that are no mesh."""

    axes: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.axes]
        if len(set(names)) < len(names):
            raise _wrong(str(self), "two axes have one name")
        for name, size in self.axes:
            if size < 1:
                raise _wrong(str(self), f"axis {name} has no rank")

    @classmethod
    def parse(cls, text: str) -> Mesh:
        """The mesh that `dp=2,tp=4` says. Raises MSC1100."""
        matches = [_AXIS.fullmatch(part) for part in text.split(",")] if text.strip() else []
        if not all(matches):
            raise _wrong(text, "an axis is written as NAME=RANKS")
        return cls(tuple((match[1], int(match[2])) for match in matches if match))

    @classmethod
    def of(cls, **sizes: int) -> Mesh:
        """`Mesh.of(dp=2, tp=4)`."""
        return cls(tuple(sizes.items()))

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The device matrix."""
        return tuple(size for _, size in self.axes)

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return math.prod(self.shape)

    def size_of(self, *names: str) -> int:
        """How many ranks lie along axes. Raises MSC1100 for a name that no axis has."""
        return math.prod(self._sizes([name])[0] for name in names)

    def coordinates(self, rank: int) -> dict[str, int]:
        """The place of a rank on each axis."""
        place: dict[str, int] = {}
        for name, size in reversed(self.axes):
            rank, place[name] = divmod(rank, size)
        return place

    def rank(self, coordinates: Mapping[str, int]) -> int:
        """The rank at a place; axes that are not named are at 0."""
        number = 0
        for name, size in self.axes:
            number = number * size + coordinates.get(name, 0)
        return number

    def position(self, rank: int, names: Sequence[str]) -> int:
        """The place of a rank on several axes as one, the first of which is major."""
        place, position = self.coordinates(rank), 0
        for name, size in zip(names, self._sizes(names), strict=True):
            position = position * size + place[name]
        return position

    def groups(self, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The ranks that differ on the named axes alone, by place on those: a group for each place on the others."""
        rest = [name for name in self.names if name not in names]
        return tuple(
            tuple(
                self.rank({**dict(zip(rest, outer, strict=True)), **dict(zip(names, inner, strict=True))})
                for inner in itertools.product(*map(range, self._sizes(names)))
            )
            for outer in itertools.product(*map(range, self._sizes(rest)))
        )

    def _sizes(self, names: Iterable[str]) -> list[int]:
        sizes = dict(self.axes)
        for name in names:
            if name not in sizes:
                near = near_match(name, sizes)
                raise _wrong(str(self), f"no axis is named {name!r}", f"did you mean {near!r}?" if near else None)
        return [sizes[name] for name in names]


def _wrong(text: str, why: str, help: str | None = None) -> MscError:
    return MscError(Diagnostic("MSC1100", f"mesh {text!r}: {why}", help=help or "a mesh is written as dp=2,tp=4"))
