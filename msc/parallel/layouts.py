"""How a tensor lies on a mesh: which axes cut each dimension, and over which axes its value is still to be summed.

`[dp, _, sp.tp]` cuts dimension 0 along dp and dimension 2 along sp and then tp; `[dp, _] sum(tp)` is a tensor whose
parts on the ranks along tp must be added. It is MindSpore's pair of device matrix and tensor map, with names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msc.parallel.mesh import Mesh
from msc.support.diagnostics import Diagnostic, MscError

Reduction: TypeAlias = Literal["sum", "prod", "max", "min"]

_TEXT = re.compile(r"\s*\[(?P<cuts>[^\]]*)\]\s*(?:(?P<reduction>sum|prod|max|min)\((?P<partial>[^)]*)\))?\s*")


@dataclass(frozen=True)
class Layout:
    """`cuts` has the axes of each dimension, major first; `partial` those over which values are to be reduced.

    Raises MSC1101 for an axis that stands twice and MSC1100 for one that the mesh does not have.
    """

    mesh: Mesh
    cuts: tuple[tuple[str, ...], ...]
    partial: tuple[str, ...] = ()
    reduction: Reduction = "sum"

    def __post_init__(self) -> None:
        if not self.partial:  # nothing is reduced, which is one layout whatever it was reduced by
            object.__setattr__(self, "reduction", "sum")
        used = self.axes + self.partial
        self.mesh.size_of(*used)
        twice = next((axis for axis in used if used.count(axis) > 1), None)
        if twice is not None:
            raise _wrong(str(self), f"axis {twice} stands twice")

    @classmethod
    def whole(cls, mesh: Mesh, rank: int) -> Layout:
        """Each rank has all of it."""
        return cls(mesh, ((),) * rank)

    @classmethod
    def parse(cls, mesh: Mesh, text: str) -> Layout:
        """The layout that a text like `[dp, _] sum(tp)` says. Raises MSC1101."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise _wrong(text, "it is not written as [dp, _, sp.tp] or [dp, _] sum(tp)")
        parts = [part.strip() for part in match["cuts"].split(",")] if match["cuts"].strip() else []
        cuts = tuple(() if part == "_" else tuple(part.split(".")) for part in parts)
        partial = tuple(part.strip() for part in (match["partial"] or "").split(",") if part.strip())
        reduction: Reduction = match["reduction"] or "sum"  # pyright: ignore[reportAssignmentType]
        return cls(mesh, cuts, partial, reduction)

    @classmethod
    def from_tensor_map(cls, mesh: Mesh, tensor_map: Sequence[int | Sequence[int]]) -> Layout:
        """MindSpore's tensor map: for each dimension the axis that cuts it, counted from the right, or -1."""
        names = mesh.names[::-1]
        cuts = [tuple(entry) if isinstance(entry, Sequence) else (entry,) for entry in tensor_map]
        for entry in (number for cut in cuts for number in cut):
            if not -1 <= entry < len(names):
                raise _wrong(str(list(tensor_map)), f"mesh {mesh} has no axis {entry}")
        return cls(mesh, tuple(tuple(names[number] for number in cut if number >= 0) for cut in cuts))

    @property
    def tensor_map(self) -> tuple[int | tuple[int, ...], ...]:
        """MindSpore's tensor map; several axes of one dimension are a tuple."""
        names = self.mesh.names[::-1]
        maps = [tuple(names.index(axis) for axis in cut) for cut in self.cuts]
        return tuple(-1 if not cut else cut[0] if len(cut) == 1 else cut for cut in maps)

    def __str__(self) -> str:
        text = "[" + ", ".join(".".join(cut) or "_" for cut in self.cuts) + "]"
        return f"{text} {self.reduction}({', '.join(self.partial)})" if self.partial else text

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that cut a dimension."""
        return tuple(axis for cut in self.cuts for axis in cut)

    @property
    def is_whole(self) -> bool:
        """Whether each rank has the whole value."""
        return self.strategy == (1,) * len(self.cuts) and self.mesh.size_of(*self.partial) == 1

    @property
    def strategy(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        return tuple(self.mesh.size_of(*cut) for cut in self.cuts)

    @property
    def copies(self) -> int:
        """How many ranks have the same part (repeated calculation)."""
        return self.mesh.size // self.mesh.size_of(*self.axes, *self.partial)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether a shape has this many dimensions, and each divides into its parts."""
        return len(shape) == len(self.cuts) and all(
            size % parts == 0 for size, parts in zip(shape, self.strategy, strict=True)
        )

    def local_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one rank's part. Raises MSC1101 if a dimension does not divide."""
        if not self.fits(shape):
            raise _wrong(str(self), f"a tensor {'x'.join(map(str, shape))} does not divide into {self.strategy} parts")
        return tuple(size // parts for size, parts in zip(shape, self.strategy, strict=True))

    def slices(self, shape: Sequence[int], rank: int) -> tuple[slice, ...]:
        """Which part of a tensor a rank has. Raises MSC1101 if a dimension does not divide."""
        starts = (
            self.mesh.position(rank, cut) * part for cut, part in zip(self.cuts, self.local_shape(shape), strict=True)
        )
        return tuple(slice(start, start + part) for start, part in zip(starts, self.local_shape(shape), strict=True))

    def with_cuts(self, cuts: Sequence[Sequence[str]]) -> Layout:
        """The layout with other cuts and nothing to be reduced."""
        return Layout(self.mesh, tuple(map(tuple, cuts)))

    def reduced(self) -> Layout:
        """The layout when its partial values have been reduced."""
        return Layout(self.mesh, self.cuts)


def _wrong(text: str, why: str) -> MscError:
    help = "each dimension names the axes of the mesh that cut it, or _; an axis stands once"
    return MscError(Diagnostic("MSC1101", f"layout {text}: {why}", help=help))
