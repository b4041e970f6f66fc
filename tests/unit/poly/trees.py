"""Schedule trees in tests, as people write them."""

from __future__ import annotations

from textwrap import dedent

from msc.poly.model import KernelModel
from msc.poly.nest import Nest, generate
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import from_lines
from msc.poly.schedule_tree.verify import verify


def tree(text: str) -> Tree:
    """The tree of an indented text."""
    return from_lines(dedent(text).strip("\n").split("\n"))


def nests_of(model: KernelModel, schedule: Tree) -> tuple[Nest, ...]:
    """The loops of a tree, which has to fit its kernel."""
    verify(model, schedule)
    return generate(model, schedule)
