"""Which kernels threads share, and along which loop."""

from __future__ import annotations

import pytest

from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.plan import Group, Member, Plan
from msc.poly.scalar import Read, apply
from msc.schedule.threads import Surroundings, shared
from msc.targets.catalogue import machine_named

TARGET = machine_named("x86-64-v4")


def product(rows: int, columns: int, depth: int) -> tuple[KernelModel, Plan]:
    """A product of matrices in tiles of 8 rows and 32 columns."""
    m, n, k = dims(3)
    shapes = ((rows, depth), (depth, columns), (rows, columns))
    arrays = tuple(Array(shape, "f32", "input" if i < 2 else "output") for i, shape in enumerate(shapes))
    reads = (Read(i, affine_map(3, index), "f32") for i, index in enumerate(((m, k), (k, n))))
    statement = KernelStatement(
        (rows, columns, depth), ("m", "n", "k"), 2, affine_map(3, (m, n)), apply("mul", *reads), "add", 0
    )
    band = (Member("m", rows, {0: 0}, 8), Member("n", columns, {0: 1}, 32, vector=True))
    return KernelModel(arrays, (statement,), ("ms.matmul",)), Plan(band, (Group((0,), (Member("k", depth, {0: 2}),)),))


@pytest.mark.parametrize(
    ("sizes", "loop"),
    [
        ((512, 512, 512), "m"),  # both have iterations enough: the outermost
        ((64, 1024, 64), "m"),  # eight iterations are enough for two threads
        ((64, 4096, 512), "n"),  # but all threads would read all columns, which no L2 holds
        ((48, 1024, 64), "m"),  # so are six, three for each
        ((40, 1024, 64), "n"),  # five are not
        ((24, 4096, 512), "n"),  # nor are three
        ((8, 4096, 512), "n"),  # one tile of rows cannot be shared
        ((24, 32, 64), None),  # less work than a team costs
        ((8, 32, 1 << 20), None),  # one tile
    ],
)
def test_a_loop_with_iterations_enough(sizes: tuple[int, int, int], loop: str | None) -> None:
    model, plan = product(*sizes)
    reasons: list[str] = []
    found = shared(model, plan, TARGET, 2, reasons)
    assert [member.name for member in found.band if member.parallel] == ([] if loop is None else [loop])
    assert [m.parallel for m in found.band[1:]] == [False] * (len(found.band) - 1)
    assert bool(reasons) == (loop is not None)


def test_the_loop_that_moves_furthest_in_the_output() -> None:
    """Rows, though columns are outermost, so that the kernel after it finds its rows in its own cache."""
    model, plan = product(256, 256, 256)
    turned = Plan(plan.band[::-1], plan.groups)
    assert [m.name for m in shared(model, turned, TARGET, 2, []).band if m.parallel] == ["m"]


def test_less_must_be_saved_where_threads_wrote_what_is_read() -> None:
    model, plan = product(48, 512, 32)
    assert not any(m.parallel for m in shared(model, plan, TARGET, 2, []).band)
    assert any(m.parallel for m in shared(model, plan, TARGET, 2, [], Surroundings(follows=True)).band)


def test_in_a_loop_what_is_new_must_be_fetched() -> None:
    """A step of a recurrent network: the same weights every time, and little else."""
    model, plan = product(8, 256, 512)
    assert not any(m.parallel for m in shared(model, plan, TARGET, 2, []).band)
    step, apart = Surroundings(kept=frozenset({1})), Surroundings(kept=frozenset())
    assert any(m.parallel for m in shared(model, plan, TARGET, 2, [], step).band)
    assert not any(m.parallel for m in shared(model, plan, TARGET, 2, [], apart).band)


def test_one_thread_shares_nothing() -> None:
    model, plan = product(4096, 64, 64)
    assert shared(model, plan, TARGET, 1, []) == plan
