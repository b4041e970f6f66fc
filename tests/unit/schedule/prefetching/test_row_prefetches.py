"""Rows that several loops read are prefetched by the last of them, where L2 does not hold the array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.scalar import Constant
from msc.poly.schedule_tree.nodes import Tree, all_blocks
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.prefetching.row_prefetches import with_row_prefetches
from msc.schedule.tuning.neighbours import Neighbourhood
from msc.targets.catalogue import machine_named
from tests.unit.poly.kernels import apply, array, dims, read, statement
from tests.unit.poly.trees import tree

MACHINE = machine_named("x86-64-v3").with_bytes(L1=1024, L2=4096)
"""With 8 lanes."""

BODY = """
for m{around}
  place t0, t1 in register{place}
  run S0 S2
  for k{first}
    run S1
  for k{last}
    run S3
  run S4
"""


def sums(rows: int, columns: int) -> KernelModel:
    """The sum of each row's largest element and its squares."""
    m, k = dims(2)
    arrays = (array(rows, columns, kind="input"), array(rows, kind="output"), array(rows), array(rows))
    square = apply("mul", read(0, 2, m, k), read(0, 2, m, k))
    statements = (
        statement((rows,), 2, (m,), Constant(0.0, "f32")),
        statement((rows, columns), 2, (m,), read(0, 2, m, k), "max"),
        statement((rows,), 3, (m,), Constant(0.0, "f32")),
        statement((rows, columns), 3, (m,), square, "add"),
        statement((rows,), 1, (m,), apply("add", read(2, 1, m), read(3, 1, m))),
    )
    return KernelModel(arrays, statements, ("sums",))


def schedule(rows: int, columns: int, **parts: str) -> Tree:
    used = {"around": "", "place": "", "first": " vector", "last": " vector", **parts}
    axes = f"axis m {rows}: S0.0 S1.0 S2.0 S3.0 S4.0\naxis k {columns}: S1.1 S3.1"
    return tree(axes + BODY.format(**used))


def prefetches(found: Tree) -> Iterator[str]:
    return (line.strip() for line in to_lines(found) if "prefetch" in line)


@pytest.mark.parametrize(
    ("columns", "parts", "expected"),
    [
        (64, {}, ["prefetch in0 ahead 1 of m"]),
        (64, {"around": " tile 4, m"}, ["prefetch in0 ahead 1 of m"]),
        (8, {}, []),
        (64, {"first": ""}, []),
        (64, {"last": ""}, []),
        (64, {"place": "\n  place in0 in stack"}, []),
    ],
    ids=["rows", "rows in tiles", "rows of a vector", "one loop of vectors", "the other one", "rows on the stack"],
)
def test_the_last_loop_of_vectors_prefetches(columns: int, parts: dict[str, str], expected: list[str]) -> None:
    model = sums(64 * 64 // columns, columns)
    given = schedule(64 * 64 // columns, columns, **parts)
    assert list(prefetches(with_row_prefetches(model, given, MACHINE))) == expected


def test_it_stands_beside_the_last_statement() -> None:
    found = with_row_prefetches(sums(64, 64), schedule(64, 64), MACHINE)
    (block,) = [block for block in all_blocks(found.body) if block.prefetches]
    assert block.nodes == tree("axis m 4: S3.0\nrun S3").body.nodes


def test_what_l2_holds_is_not_prefetched() -> None:
    assert not list(prefetches(with_row_prefetches(sums(8, 64), schedule(8, 64), MACHINE)))


def test_requests_that_take_longer_than_waiting_are_not_made() -> None:
    """A core that waits for many lines at a time, and loads seldom."""
    slow = replace(MACHINE, ports=replace(MACHINE.ports, load=0.1, misses=1000))
    assert list(prefetches(with_row_prefetches(sums(64, 64), schedule(64, 64), MACHINE)))
    assert not list(prefetches(with_row_prefetches(sums(64, 64), schedule(64, 64), slow)))


def test_a_neighbour_prefetches_nothing() -> None:
    model = sums(64, 64)
    space = Neighbourhood(model, dependences(model), MACHINE, 1)
    start = with_row_prefetches(model, schedule(64, 64), MACHINE)
    near = list(space.of(start))
    assert near[-1] == schedule(64, 64)
    assert any(list(prefetches(other)) for other in near)
