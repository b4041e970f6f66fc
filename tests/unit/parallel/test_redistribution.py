"""Redistribution: each pair of layouts gets the right parts, with no more bytes than gathering everything.

`python -m tests.unit.parallel.test_redistribution` takes all pairs of all meshes; the tests take all of small ones.
"""

import itertools
import random
import sys
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from msc.parallel.layouts import Layout
from msc.parallel.mesh import Mesh
from msc.parallel.redistribution import Transfer, gathering_share, least_share, received_bytes, redistribute
from msc.support.diagnostics import MscError

MESHES = ["a=2", "a=2,b=2", "a=2,b=4", "a=2,b=2,c=2"]


def layouts(mesh: Mesh, rank: int) -> Iterator[Layout]:
    """All layouts of tensors of a rank."""
    for count in range(len(mesh.axes) + 1):
        for axes in itertools.permutations(mesh.names, count):
            for dimensions in itertools.combinations_with_replacement(range(rank), count):
                cuts: list[list[str]] = [[] for _ in range(rank)]
                for axis, dimension in zip(axes, dimensions, strict=True):
                    cuts[dimension].append(axis)
                yield Layout(mesh, tuple(map(tuple, cuts)))


def ran(step: Transfer, parts: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """What all ranks have after a step, and how many elements they received: by what the collective means."""
    after, received = list(parts), 0
    if step.kind == "permute":
        for source, receiver in step.pairs:
            after[receiver] = parts[source]
            received += parts[source].size
        return after, received
    for group in step.groups:
        values = [parts[rank] for rank in group]
        size = values[0].size
        for place, rank in enumerate(group):
            match step.kind:
                case "all_gather":
                    after[rank] = np.concatenate(values, step.dimension)
                    received += (len(group) - 1) * size
                case "all_slice":
                    after[rank] = np.split(values[place], len(group), step.dimension)[place]
                case "all_to_all":
                    sent = [np.split(value, len(group), step.target)[place] for value in values]
                    after[rank] = np.concatenate(sent, step.dimension)
                    received += (len(group) - 1) * sent[0].size
                case "all_reduce":
                    after[rank] = np.sum(values, 0)
                    received += 2 * (len(group) - 1) * size // len(group)
                case "reduce_scatter":
                    after[rank] = np.split(np.sum(values, 0), len(group), step.dimension)[place]
                    received += (len(group) - 1) * size // len(group)
    return after, received


def check(source: Layout, target: Layout) -> bool:
    """Run the steps; whether they move no more bytes than any method must."""
    shape = (source.mesh.size,) * len(source.cuts)
    whole = np.random.default_rng(0).integers(0, 100, shape)
    parts = [whole[source.slices(shape, rank)] for rank in range(source.mesh.size)]
    if source.partial:
        for rank in range(source.mesh.size):
            first = source.mesh.position(rank, source.partial) == 0
            parts[rank] = parts[rank] if first else 0 * parts[rank]
    steps = redistribute(source, target, shape)
    total = 0
    for step in steps:
        parts, received = ran(step, parts)
        total += received
    for rank in range(target.mesh.size):
        assert np.array_equal(parts[rank], whole[target.slices(shape, rank)]), (source, target, steps)
    assert total == received_bytes(steps, whole.size)
    share = sum((step.share for step in steps), Fraction(0))
    assert share <= gathering_share(source, target), (source, target, steps)
    if source.partial:
        return False
    assert share >= least_share(source, target), (source, target, steps)
    return share == least_share(source, target)


def pairs(mesh: str, rank: int) -> list[tuple[Layout, Layout]]:
    found = list(layouts(Mesh.parse(mesh), rank))
    return list(itertools.product(found, found))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pairs(mesh: str, rank: int) -> None:
    every = pairs(mesh, rank)
    for source, target in every if len(every) <= 25 else random.Random(0).sample(every, 25):
        check(source, target)


@pytest.mark.parametrize("target", ["[_, _]", "[a, _]", "[b.a, _]", "[_, b]", "[a, b]"])
@pytest.mark.parametrize("source", ["[_, _] sum(a)", "[b, _] sum(a)", "[_, _] sum(a, b)"])
def test_partial_values(source: str, target: str) -> None:
    mesh = Mesh.of(a=2, b=2)
    check(Layout.parse(mesh, source), Layout.parse(mesh, target))


@pytest.mark.parametrize(
    ("source", "target", "kinds"),
    [
        ("[a, _]", "[_, _]", ["all_gather"]),
        ("[a, _]", "[_, a]", ["all_to_all"]),
        ("[_, _]", "[b, a]", ["all_slice", "all_slice"]),
        ("[_, _] sum(a)", "[_, _]", ["all_reduce"]),
        ("[_, _] sum(a)", "[a, _]", ["reduce_scatter"]),
        ("[a.b, _]", "[_, _]", ["all_gather"]),
        ("[a, b]", "[b, a]", ["permute"]),
    ],
)
def test_textbook_pairs(source: str, target: str, kinds: list[str]) -> None:
    mesh = Mesh.of(a=2, b=2)
    steps = redistribute(Layout.parse(mesh, source), Layout.parse(mesh, target))
    assert [step.kind for step in steps] == kinds


def test_part_of_an_axis_is_gathered() -> None:
    """From 4 parts to 2 along another axis: each rank receives at most one more half."""
    mesh = Mesh.of(a=2, b=4)
    source, target = Layout.parse(mesh, "[b]"), Layout.parse(mesh, "[a]")
    assert sum(step.share for step in redistribute(source, target)) < gathering_share(source, target)


def test_large_mesh_needs_no_long_search() -> None:
    mesh = Mesh.of(pp=8, dp=16, tp=8)
    steps = redistribute(Layout.parse(mesh, "[dp, tp, _]"), Layout.parse(mesh, "[dp, _, _]"))
    assert [step.kind for step in steps] == ["all_gather"]
    assert len(steps[0].groups) == 128


@pytest.mark.parametrize(("source", "target"), [("[a]", "[_, a]"), ("[_]", "[_] sum(a)")])
def test_no_way(source: str, target: str) -> None:
    mesh = Mesh.of(a=2)
    with pytest.raises(MscError, match="MSC1102"):
        redistribute(Layout.parse(mesh, source), Layout.parse(mesh, target))


def main() -> None:
    for mesh, rank in itertools.product(MESHES, [1, 2, 3]):
        every = pairs(mesh, rank)
        least = sum(check(source, target) for source, target in every)
        sys.stdout.write(f"{mesh:12} rank {rank}: {len(every)} pairs, {least} with the fewest bytes of any method\n")


if __name__ == "__main__":
    main()
