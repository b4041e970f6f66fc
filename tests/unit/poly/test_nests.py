"""Loop nests that one process makes and another one reads."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineExpr

from msc.poly import nest_text
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.nest import Body, Instance, Loop, generate, nests_at_all_blocks, nests_of, note_nests
from msc.poly.scalar import Read
from msc.poly.schedule_tree.to_isl import to_isl
from tests.unit.poly.trees import tree

TREE = """
axis i 10: S0.0 S1.0
axis j 6: S0.1 S1.1
for i tile 4
  for i unroll
    place t0 in stack
    for j vector
      run S0 S1
"""


def copies() -> KernelModel:
    """An array copied to another one, and that to the output."""
    i, j = dims(2)
    here = affine_map(2, (i, j))
    arrays = tuple(Array((10, 6), "f32", kind) for kind in ("input", "output", "internal"))
    first = KernelStatement((10, 6), ("i", "j"), 2, here, Read(0, here, "f32"), None, 0)
    second = KernelStatement((10, 6), ("i", "j"), 1, here, Read(2, here, "f32"), None, 1)
    return KernelModel(arrays, (first, second), ("ms.copy", "ms.copy"))


def test_nests_are_read_as_they_were_written() -> None:
    nests = nests_at_all_blocks(copies(), tree(TREE))
    assert nest_text.from_text(nest_text.to_text(nests)) == nests


def test_indices_keep_their_form() -> None:
    """Equal values in another form would be other C."""
    i, j = dims(2)
    index = ((i * 4 + j) // 3, (j + i * 4) % 5, AffineExpr.constant(-2) + i)
    nest = Loop("i", "parallel", i, j + 1, 2, (Body(3, (Instance(7, index),)),), 5)
    assert nest_text.from_text(nest_text.to_text([nest])) == (nest,)


@pytest.mark.parametrize("text", ['[["loop", "i"]]', '[["run", 0, [["Sub", 1, 2], "x"]]]', "[[]]"])
def test_what_is_no_nest_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        nest_text.from_text(text)


def test_nests_that_are_noted_are_taken_for_the_tree() -> None:
    made = generate(to_isl(copies(), tree(TREE)))
    receiving, text = copies(), nest_text.to_text(nests_at_all_blocks(copies(), tree(TREE)))
    note_nests(receiving, tree(TREE), nest_text.from_text(text))
    assert nests_of(receiving, tree(TREE)) == made == nests_of(copies(), tree(TREE))
    other = tree(TREE.replace("tile 4", "tile 5"))
    assert nests_of(receiving, other) == generate(to_isl(copies(), other))
