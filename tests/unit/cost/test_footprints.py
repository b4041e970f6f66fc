"""Footprints: an index with a stride leaves out the rows between its values; others of a statement may fill them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from msc.cost.footprints import Access, IndexSet, footprint_of, values
from msc.poly.compute import affine_map, dims

LINE, PAGE = 64, 4096


def rows_of(*index: AffineExpr, shape: tuple[int, ...], counts: tuple[int, ...]) -> tuple[int, int]:
    """Bytes and runs that an access of f32 touches."""
    access = Access(0, affine_map(len(counts), list(index)).results, shape, 4, written=False, local=False)
    found = footprint_of(access, counts, LINE, PAGE)
    return found.bytes, found.runs


def test_rows_that_a_stride_leaves_out_are_not_read() -> None:
    """Of 64 rows each eighth; each eighth and the two after it; and all of them."""
    i, j, k = dims(3)
    shape = (66, 1024)
    assert rows_of(i * 8 + j, k, shape=shape, counts=(8, 1, 16)) == (8 * 64, 8)
    assert rows_of(i * 8 + j, k, shape=shape, counts=(8, 3, 16)) == (24 * 64, 24)
    assert rows_of(i * 8 + j, k, shape=shape, counts=(8, 8, 16)) == (64 * 64, 64)


def test_windows_that_overlap_read_all_rows_between() -> None:
    i, j, k = dims(3)
    assert rows_of(i * 2 + j, k, shape=(66, 1024), counts=(8, 4, 16)) == (18 * 64, 18)


def test_elements_within_a_line_bring_the_whole_line() -> None:
    """Each second and each sixteenth element of a row touch all its lines, each 32nd one half of them."""
    (i,) = dims(1)
    assert rows_of(i * 2, shape=(1024,), counts=(512,)) == (4096, 1)
    assert rows_of(i * 16, shape=(1024,), counts=(64,)) == (4096, 1)
    assert rows_of(i * 32, shape=(1024,), counts=(32,)) == (32 * 64, 32)


def test_parts_of_short_rows_bring_what_lies_between_them() -> None:
    """Five of seven elements of each row lie in all lines of the array; 16 of 48 in one of three."""
    i, j = dims(2)
    assert rows_of(i, j, shape=(64, 7), counts=(64, 5)) == (28 * 64, 1)
    assert rows_of(i, j, shape=(64, 48), counts=(64, 16)) == (64 * 64, 64)


def test_blocks_of_a_layout_are_all_of_an_axis() -> None:
    i, j = dims(2)
    assert values(i // 8 * 8 + i % 8, (64, 1)) == IndexSet.interval(64)
    assert values(i * 8 + j, (4, 8)) == IndexSet.interval(32)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12)), min_size=1, max_size=4))
def test_an_index_has_the_values_that_its_dimensions_reach(terms: list[tuple[int, int]]) -> None:
    """Its span is exact; what is counted is at least what there is, and no more than lies between."""
    expr = sum((d * factor for d, (_, factor) in zip(dims(len(terms)), terms, strict=True)), dims(1)[0] * 0)
    found = values(expr, tuple(n for n, _ in terms))
    reached = {0}
    for n, factor in terms:
        reached = {value + factor * k for value in reached for k in range(n)}
    assert found.span == max(reached) + 1
    assert len(reached) <= found.size <= found.span


def test_an_axis_holds_so_many_of_them() -> None:
    index = IndexSet(((3, 1), (4, 8)))
    assert index.within(27) is index
    assert index.within(17) == IndexSet(((3, 1), (3, 8)))
    assert index.within(2) == IndexSet(((2, 1), (1, 8)))
