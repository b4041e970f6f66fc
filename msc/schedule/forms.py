"""What a kernel is for a unit that runs it: which schedule trees it has there.

A form finds the trees of the fewest predicted cycles, and reads a tree that anybody wrote. The lowering follows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msc.poly.schedule_tree.nodes import Tree


class Unlike(Exception):
    """A tree that a form cannot follow: why, and the lines of a tree of that form that comes close."""

    def __init__(self, why: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.nearest = nearest


class KernelForm(Protocol):
    """A kernel as one unit runs it."""

    def trees(self) -> Iterator[Tree]:
        """Trees for the kernel, the best predicted first."""
        ...

    def neighbours(self) -> Iterator[Tree]:
        """Trees that tuning tries, the best predicted first."""
        ...

    def reasons(self, tree: Tree) -> Sequence[str]:
        """What the tree makes of the kernel, for people. Raises Unlike."""
        ...
