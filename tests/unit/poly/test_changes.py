"""What a schedule does otherwise, in words."""

import pytest

from msc.driver.reports.explanations import described_change
from msc.poly.schedule_tree.nodes import Tree
from tests.unit.poly.trees import tree

TEXT = """
axis oc 16: S0.1 S1.1
axis oh 10: S0.2 S1.2
axis ow 10: S0.3 S1.3
axis kh 5: S1.4
axis kw 5: S1.5
for oh, ow tile 5
  for ow unroll, oc vector
    run S0
  for kh, kw, ow unroll, oc vector
    run S1
"""


def changed(*changes: tuple[str, str]) -> Tree:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return tree(text)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (changed(), "the same"),
        (changed(("ow tile 5", "ow tile 10")), "ow tile 10"),
        (changed(("oh, ow tile 5", "oh tile 5, oh tile 2, oh, ow tile 5")), "oh tile 5 tile 2"),
        (changed(("oh, ow tile 5", "ow tile 5, oh")), "order: ow, oh, kh, kw"),
        (changed(("oh, ow tile 5", "oh parallel, ow tile 5")), "threads along oh"),
        (changed(("ow unroll, oc vector", "oc unroll, ow vector")), "unrolled oc, vectors along ow"),
        (changed(("    run S1", "    prefetch in0 ahead 1 of oh\n    run S1")), "prefetch in0 ahead 1 of oh"),
        (changed(("oc vector", "oc unroll")), "unrolled ow and oc, no vectors"),
        (changed(("kh, kw", "kw, kh")), "order: oh, ow, kw, kh"),
        (
            changed(
                (
                    "  for kh, kw, ow unroll, oc vector\n    run S1",
                    "  head oc to 8\n    for kh, kw, ow unroll, oc vector\n      run S1\n"
                    "  tail oc from 8\n    for kh, kw, oc unroll, ow vector\n      run S1",
                )
            ),
            "tail of oc from 8 along ow, unrolled ow and oc, vectors along oc and ow",
        ),
    ],
)
def test_changes_in_words(other: Tree, words: str) -> None:
    assert described_change(changed(), other) == words


def test_what_is_undone() -> None:
    assert described_change(changed(("oh, ow", "oh parallel, ow")), changed()) == "one thread"
    assert (
        described_change(changed(), changed(("ow tile 5", "ow"), ("ow unroll, ", "")))
        == "ow not tiled, nothing unrolled"
    )
